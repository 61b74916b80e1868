{{- define "gpu-operator.labels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.operator.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Labels the operator gives the objects of an operand; takes (dict "root" $ "name" NAME). */}}
{{- define "gpu-operator.operandLabels" -}}
app: {{ .name }}
app.kubernetes.io/managed-by: gpu-operator
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- with .root.Values.daemonsets.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "gpu-operator.image" -}}
{{- $v := .values -}}
{{- printf "%s/%s:%s" $v.repository $v.image (default .root.Chart.AppVersion $v.version) -}}
{{- end }}

{{- define "gpu-operator.pullSecrets" -}}
{{- with . }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/*
Environment of an operand: as the operator does, a user's entry replaces the built-in one of that
name. Takes (dict "defaults" LIST "user" LIST).
*/}}
{{- define "gpu-operator.env" -}}
{{- $names := dict }}
{{- range .user }}{{ $_ := set $names .name true }}{{ end }}
{{- $env := list }}
{{- range .defaults }}{{ if not (hasKey $names .name) }}{{ $env = append $env . }}{{ end }}{{ end }}
{{- toYaml (concat $env .user) }}
{{- end }}

{{/* What all operand DaemonSets share, from spec down to the pod spec's scheduling part. */}}
{{- define "gpu-operator.daemonSetSpec" -}}
{{- $v := .root.Values -}}
updateStrategy:
  type: {{ $v.daemonsets.updateStrategy }}
  {{- if eq $v.daemonsets.updateStrategy "RollingUpdate" }}
  rollingUpdate:
    maxUnavailable: {{ $v.daemonsets.rollingUpdate.maxUnavailable | toString | atoi | default $v.daemonsets.rollingUpdate.maxUnavailable }}
  {{- end }}
selector:
  matchLabels:
    app: {{ .name }}
{{- end }}

{{- define "gpu-operator.podMetadata" -}}
labels:
  {{- include "gpu-operator.operandLabels" . | nindent 2 }}
annotations:
  gpuboot.lab/simulated: "true"
  {{- with .root.Values.daemonsets.annotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with .annotations }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "gpu-operator.scheduling" -}}
runtimeClassName: {{ .root.Values.operator.runtimeClass }}
priorityClassName: {{ .root.Values.daemonsets.priorityClassName }}
nodeSelector:
  nvidia.com/gpu.deploy.{{ .deploy }}: "true"
{{- with .root.Values.daemonsets.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- if .hostNetwork }}
hostNetwork: true
dnsPolicy: ClusterFirstWithHostNet
{{- end }}
{{- end }}

{{/*
The init container every operand but the validator starts with. NVIDIA's loops over `[ -f … ]` in
a shell; the lab's image has none, so its binary does the waiting.
*/}}
{{- define "gpu-operator.toolkitWait" -}}
- name: toolkit-validation
  image: {{ include "gpu-operator.image" (dict "root" .root "values" .root.Values.validator) }}
  imagePullPolicy: {{ .root.Values.validator.imagePullPolicy }}
  command: [sim-gpu-operator]
  args: [wait, /run/nvidia/validations/toolkit-ready]
  securityContext: {privileged: true}
  volumeMounts:
    - {name: run-nvidia-validations, mountPath: /run/nvidia/validations, mountPropagation: HostToContainer}
{{- end }}

{{- define "gpu-operator.validationsVolume" -}}
- name: run-nvidia-validations
  hostPath: {path: /run/nvidia/validations, type: DirectoryOrCreate}
{{- end }}

{{/*
config-manager, as an init container and as a side-car: it chooses one file of
devicePlugin.config.name for the node, by label or default, and tells the program when that choice
changes; a content that changes under its name is not noticed. As the operator's (v26.7.0,
controllers/object_controls.go:2818). Takes (dict "root" $ "values" V "process" PROGRAM), with ""
for the init container.
*/}}
{{- define "gpu-operator.configManager" -}}
{{- if .root.Values.devicePlugin.config.name }}
- name: {{ ternary "config-manager" "config-manager-init" (not (empty .process)) }}
  image: {{ include "gpu-operator.image" (dict "root" .root "values" .root.Values.devicePlugin) }}
  imagePullPolicy: {{ .root.Values.devicePlugin.imagePullPolicy }}
  command: [config-manager]
  env:
    - {name: ONESHOT, value: {{ empty .process | quote }}}
    - {name: KUBECONFIG, value: ""}
    - {{- include "gpu-operator.fieldEnv" (list "NODE_NAME" "spec.nodeName") | nindent 6 }}
    - {name: NODE_LABEL, value: nvidia.com/device-plugin.config}
    - {name: CONFIG_FILE_SRCDIR, value: /available-configs}
    - {name: CONFIG_FILE_DST, value: /config/config.yaml}
    - {name: DEFAULT_CONFIG, value: {{ .root.Values.devicePlugin.config.default | quote }}}
    - {name: SEND_SIGNAL, value: {{ not (empty .process) | quote }}}
    - {name: SIGNAL, value: {{ ternary "1" "" (not (empty .process)) | quote }}}
    - {name: PROCESS_TO_SIGNAL, value: {{ .process | quote }}}
    - {name: FALLBACK_STRATEGIES, value: empty}
  {{- with .values.resources }}
  resources: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- if .process }}
  securityContext: {privileged: true}
  {{- end }}
  volumeMounts: {{- include "gpu-operator.configMounts" .root | nindent 4 }}
{{- end }}
{{- end }}

{{- define "gpu-operator.configMounts" -}}
{{- with .Values.devicePlugin.config.name -}}
- {name: config, mountPath: /config}
- {name: {{ . }}, mountPath: /available-configs}
{{- end }}
{{- end }}

{{- define "gpu-operator.configVolumes" -}}
{{- with .Values.devicePlugin.config.name -}}
- name: {{ . }}
  configMap: {name: {{ . }}}
- name: config
  emptyDir: {}
{{- end }}
{{- end }}

{{- define "gpu-operator.fieldEnv" -}}
name: {{ index . 0 }}
valueFrom: {fieldRef: {fieldPath: {{ index . 1 }}}}
{{- end }}

{{- define "gpu-operator.hasServiceMonitor" -}}
{{- if .Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor" }}true{{ end -}}
{{- end }}
