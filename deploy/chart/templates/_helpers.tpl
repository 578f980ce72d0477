{{- define "tain.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end -}}

{{- define "tain.labels" -}}
app.kubernetes.io/name: tain
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tain.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* What every pod has: no rights, no token of the cluster's, and a root that cannot be written. */}}
{{- define "tain.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "tain.container" -}}
image: {{ include "tain.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
env:
  - { name: HOST, value: "0.0.0.0" }
  - { name: PORT, value: "8080" }
  - { name: METRICS_PORT, value: "9464" }
  - { name: NODE_ENV, value: production }
  {{- range $name, $value := .Values.settings }}
  - { name: {{ $name }}, value: {{ $value | quote }} }
  {{- end }}
envFrom:
  - secretRef: { name: {{ required "secret: the name of a Secret with DATABASE_URL, REDIS_URL and so on" .Values.secret | quote }} }
{{- end -}}
