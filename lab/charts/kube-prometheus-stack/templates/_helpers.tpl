{{- define "kps.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end }}

{{/* Upstream cuts at 26 so that the longest name built on it stays within 63 characters. */}}
{{- define "kps.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $full .Values.fullnameOverride | trunc 26 | trimSuffix "-" -}}
{{- end }}

{{- define "kps.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end }}

{{- define "kps.operator" -}}
{{- default (printf "%s-operator" (include "kps.fullname" .)) .Values.prometheusOperator.fullnameOverride | trunc 35 | trimSuffix "-" -}}
{{- end }}

{{/* Name of the Prometheus ("prometheus") or Alertmanager ("alertmanager") object: (list $ KIND). */}}
{{- define "kps.crname" -}}
{{- $root := index . 0 -}}
{{- include "kps.fullname" $root }}{{ if not $root.Values.cleanPrometheusOperatorObjectNames }}-{{ index . 1 }}{{ end -}}
{{- end }}

{{- define "kps.serviceAccount" -}}
{{- $root := index . 0 -}}{{- $kind := index . 1 -}}{{- $account := (index $root.Values $kind).serviceAccount -}}
{{- default (ternary (printf "%s-%s" (include "kps.fullname" $root) $kind) "default" $account.create) $account.name -}}
{{- end }}

{{- define "kps.labels" -}}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.Version | quote }}
app.kubernetes.io/part-of: {{ include "kps.name" . }}
chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
release: {{ .Release.Name | quote }}
heritage: {{ .Release.Service | quote }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "kps.image" -}}
{{- $image := .image -}}
{{- $tag := default .tag $image.tag -}}
{{- printf "%s/%s:%s" (default $image.registry .root.Values.global.imageRegistry) $image.repository $tag }}{{ with $image.sha }}@sha256:{{ . }}{{ end -}}
{{- end }}

{{- define "kps.scrapeLimits" -}}
{{- range $key := list "sampleLimit" "targetLimit" "labelLimit" "labelNameLengthLimit" "labelValueLengthLimit" }}
{{- with index $ $key }}
{{ $key }}: {{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* The settings of a scrape endpoint that all the chart's serviceMonitor values have in common. */}}
{{- define "kps.endpointOptions" -}}
{{- range $key := list "interval" "scrapeTimeout" "proxyUrl" "metricRelabelings" "relabelings" }}
{{- with index $ $key }}
{{- if kindIs "string" . }}
{{ $key }}: {{ . }}
{{- else }}
{{ $key }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The fields of a spec that carry their value's name: (list VALUES KEY...), empty ones left out. */}}
{{- define "kps.passThrough" -}}
{{- $values := first . -}}
{{- range $key := rest . }}
{{- with index $values $key }}
{{- if or (kindIs "map" .) (kindIs "slice" .) }}
{{ $key }}: {{- toYaml . | nindent 2 }}
{{- else }}
{{ $key }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* affinity of a Prometheus or Alertmanager: (dict "spec" SPEC "app" NAME "label" KEY "value" NAME) */}}
{{- define "kps.affinity" -}}
{{- $spec := .spec -}}
{{- $selector := dict "matchExpressions" (list (dict "key" "app.kubernetes.io/name" "operator" "In" "values" (list .app)) (dict "key" .label "operator" "In" "values" (list .value))) -}}
{{- $term := dict "topologyKey" $spec.podAntiAffinityTopologyKey "labelSelector" $selector -}}
{{- $affinity := deepCopy (default dict $spec.affinity) -}}
{{- if eq $spec.podAntiAffinity "hard" }}
{{- $_ := set $affinity "podAntiAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (list $term)) }}
{{- else if eq $spec.podAntiAffinity "soft" }}
{{- $_ := set $affinity "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" (list (dict "weight" 100 "podAffinityTerm" $term))) }}
{{- end }}
{{- with $affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* spec of a Service of type ClusterIP or NodePort, without ports and selector. */}}
{{- define "kps.serviceOptions" -}}
type: {{ .type }}
{{- with .clusterIP }}
clusterIP: {{ . }}
{{- end }}
{{- if ne .type "ClusterIP" }}
externalTrafficPolicy: {{ default "Cluster" .externalTrafficPolicy }}
{{- end }}
{{- with .sessionAffinity }}
sessionAffinity: {{ . }}
{{- end }}
{{- end }}

{{- define "kps.operatorLabels" -}}
{{ include "kps.labels" . }}
app: {{ include "kps.name" . }}-operator
app.kubernetes.io/name: {{ include "kps.name" . }}-prometheus-operator
app.kubernetes.io/component: prometheus-operator
{{- end }}

{{- define "kps.operatorSelector" -}}
app: {{ include "kps.name" . }}-operator
release: {{ .Release.Name | quote }}
{{- end }}
