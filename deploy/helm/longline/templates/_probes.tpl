{{- /* Probes of processes that touch LONGLINE_ALIVE_FILE every few seconds while they work. Without the broker they stop
       touching it. So only ten minutes restart a process: otherwise an outage of Redis would end every task. */ -}}
{{- define "longline.aliveProbes" -}}
{{- $age := "test $(( $(date +%s) - $(stat -c %Y /tmp/alive) )) -lt" -}}
startupProbe:
  exec: {command: [sh, -c, {{ printf "%s 60" $age | quote }}]}
  periodSeconds: 5
  timeoutSeconds: 10
  failureThreshold: 120
readinessProbe:
  exec: {command: [sh, -c, {{ printf "%s 60" $age | quote }}]}
  periodSeconds: 15
  timeoutSeconds: 15
livenessProbe:
  exec: {command: [sh, -c, {{ printf "%s 600" $age | quote }}]}
  periodSeconds: 30
  timeoutSeconds: 15
  failureThreshold: 4
{{- end -}}
