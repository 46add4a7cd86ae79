{{- /* Within the cluster: root, component, port, portName, annotations. */ -}}
{{- define "longline.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "longline.fullname" .root }}-{{ .component }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "longline.labels" . | nindent 4 }}
  {{- with .annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  type: ClusterIP
  selector: {{- include "longline.selector" . | nindent 4 }}
  ports:
    - {name: {{ .portName }}, port: {{ .port }}, targetPort: {{ .portName }}, protocol: TCP}
{{- end -}}
