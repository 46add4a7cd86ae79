{{- /* A long-running component; parameters: those of longline.podSpec, and replicas. */ -}}
{{- define "longline.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "longline.fullname" .root }}-{{ .component | replace "_" "-" }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "longline.labels" . | nindent 4 }}
spec:
  replicas: {{ .replicas }}
  revisionHistoryLimit: 3
  selector:
    matchLabels: {{- include "longline.selector" . | nindent 6 }}
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  template:
    metadata:
      labels: {{- include "longline.selector" . | nindent 8 }}
      {{- with .root.Values.podAnnotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      {{- include "longline.podSpec" . | nindent 6 }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "longline.selector" . | nindent 14 }}
{{- end -}}
