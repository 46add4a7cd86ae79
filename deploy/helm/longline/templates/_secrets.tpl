{{- /* The keys of the Secret that a component uses, separated by spaces: a broken-in process has no other's secrets. */ -}}
{{- define "longline.secretKeys" -}}
{{- $keys := list "secret_key" "token_pepper" "database_url" "redis_url" -}}
{{- $everybodys := list "secret_key_fallbacks" "database_direct_url" "database_replica_url" "cache_url" "authorities" "provider_logo" -}}
{{- $own := dict "web" (list "oidc_client_secret" "netbox_webhook_secret") "notifications" (list "email_url") "netbox" (list "netbox_token") -}}
{{- range concat $everybodys (get $own .component | default list) -}}
{{- if has . $.root.Values.secrets.optionalKeys -}}{{- $keys = append $keys . -}}{{- end -}}
{{- end -}}
{{- join " " $keys -}}
{{- end -}}

{{- /* The files in /etc/longline/secrets. */ -}}
{{- define "longline.secretsVolume" -}}
name: secrets
secret:
  secretName: {{ .root.Values.secrets.existingSecret }}
  defaultMode: 0440
  items:
    {{- range splitList " " (include "longline.secretKeys" .) }}
    - {key: {{ . }}, path: {{ . }}}
    {{- end }}
{{- end -}}

{{- /* The CA's certificate and the portal's; components that sign also get the CA's key. */ -}}
{{- define "longline.pkiVolume" -}}
name: pki
secret:
  secretName: {{ .root.Values.pki.existingSecret }}
  defaultMode: 0440
  items:
    {{- range list "ca.pem" "portal.pem" "portal.key" }}
    - {key: {{ . }}, path: {{ . }}}
    {{- end }}
    {{- if and (eq .pki "signs") .root.Values.pki.signs }}
    - {key: ca.key, path: ca.key}
    {{- end }}
{{- end -}}
