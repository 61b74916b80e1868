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
Which file of devicePlugin.config.name device plugin and GFD read. NVIDIA's config-manager side-car,
which chooses one per node by label, is not in the lab.
*/}}
{{- define "gpu-operator.pluginConfigEnv" -}}
{{- $config := .Values.devicePlugin.config -}}
{{- if $config.name -}}
- name: CONFIG_FILE
  value: /available-configs/{{ required "the lab's stand-in chart runs no config-manager: set devicePlugin.config.default" $config.default }}
{{- end -}}
{{- end }}

{{- define "gpu-operator.fieldEnv" -}}
name: {{ index . 0 }}
valueFrom: {fieldRef: {fieldPath: {{ index . 1 }}}}
{{- end }}

{{- define "gpu-operator.hasServiceMonitor" -}}
{{- if .Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor" }}true{{ end -}}
{{- end }}
