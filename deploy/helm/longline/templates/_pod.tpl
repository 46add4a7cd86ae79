{{- /* The pod of every component. root; component; command; resources; pki: "" or "knows" or "signs"; port and portName; probes: text;
       measured: whether it counts requests or tasks; grace: seconds to end in. */ -}}
{{- define "longline.podSpec" -}}
{{- $measured := and .measured .root.Values.metrics.enabled .root.Values.metrics.processes -}}
{{- $environment := include "longline.environment" (dict "root" .root "component" .component "measured" $measured) -}}
automountServiceAccountToken: false
# Otherwise Services of this chart would become settings of the portal, such as LONGLINE_LIVE_PORT.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ .grace | default 30 }}
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.affinity }}
affinity: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
containers:
  - name: {{ .component | replace "_" "-" }}
    {{- include "longline.container" .root | nindent 4 }}
    command: {{ toJson .command }}
    env: {{- $environment | nindent 6 }}
    {{- with .port }}
    ports:
      - {name: {{ $.portName }}, containerPort: {{ . }}}
    # Serve clients that still use this address until all of them know that the pod ends.
    lifecycle: {preStop: {exec: {command: [sleep, "5"]}}}
    {{- end }}
    {{- with .probes }}
    {{- . | nindent 4 }}
    {{- end }}
    resources: {{- toYaml .resources | nindent 6 }}
    volumeMounts: {{- include "longline.mounts" (dict "pki" .pki "measured" $measured) | nindent 6 }}
  {{- if $measured }}
  - name: process-metrics
    {{- include "longline.container" .root | nindent 4 }}
    command: [gunicorn, --config, "python:portal.processes.gunicorn_metrics", --bind, "0.0.0.0:9471", --no-control-socket]
    env: {{- $environment | nindent 6 }}
    ports:
      - {name: metrics, containerPort: 9471}
    livenessProbe: {httpGet: {path: /healthz, port: metrics}, periodSeconds: 30, timeoutSeconds: 10}
    resources: {{- toYaml .root.Values.metrics.resources | nindent 6 }}
    volumeMounts: {{- include "longline.mounts" (dict "pki" "" "measured" true) | nindent 6 }}
  {{- end }}
volumes:
  - {{- include "longline.secretsVolume" . | nindent 4 }}
  {{- if .pki }}
  - {{- include "longline.pkiVolume" . | nindent 4 }}
  {{- end }}
  # In memory: gunicorn's and Celery's heartbeat files are here.
  - {name: tmp, emptyDir: {medium: Memory, sizeLimit: 256Mi}}
  {{- if $measured }}
  - {name: metrics, emptyDir: {}}
  {{- end }}
{{- end -}}

{{- define "longline.container" -}}
image: {{ include "longline.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end -}}

{{- define "longline.mounts" -}}
- {name: secrets, mountPath: /etc/longline/secrets, readOnly: true}
{{- if .pki }}
- {name: pki, mountPath: /var/lib/longline/pki, readOnly: true}
{{- end }}
- {name: tmp, mountPath: /tmp}
{{- if .measured }}
- {name: metrics, mountPath: /run/longline/metrics}
{{- end }}
{{- end -}}
