{{- define "sluice.labels" -}}
app.kubernetes.io/name: sluice
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "sluice.name" -}}
{{ printf "%s-sluice" .Release.Name | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- define "sluice.secret" -}}
{{ .Values.existingSecret | default (include "sluice.name" .) }}
{{- end }}
