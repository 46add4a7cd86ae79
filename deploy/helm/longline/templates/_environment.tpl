{{- /* The portal's settings (docs/operate/configure.md). Secrets are read from files and are not in the environment. */ -}}
{{- define "longline.environment" -}}
{{- $root := .root -}}
{{- $component := .component -}}
- {name: BASE_URL, value: {{ printf "https://%s" $root.Values.host | quote }}}
{{- /* Probes use localhost. */}}
- {name: ALLOWED_HOSTS, value: {{ printf "localhost,%s" $root.Values.host | quote }}}
- {name: CSRF_TRUSTED_ORIGINS, value: {{ printf "https://%s" $root.Values.host | quote }}}
- {name: LONGLINE_TRUSTED_PROXIES, value: {{ join "," $root.Values.trustedProxies | quote }}}
{{- if not .measured }}
- {name: LONGLINE_METRICS_DIR, value: ""}
{{- end }}
{{- range $key := splitList " " (include "longline.secretKeys" .) }}
{{- if not (has $key (list "authorities" "provider_logo")) }}
- {name: {{ upper $key }}_FILE, value: /etc/longline/secrets/{{ $key }}}
{{- end }}
{{- end }}
{{- range $name, $value := $root.Values.settings }}
{{- /* Only components that sign people in get the secret of single sign-on. */}}
{{- if and (kindIs "invalid" $value | not) (or (eq $component "web") (not (hasPrefix "OIDC_" $name))) }}
- {name: {{ $name }}, value: {{ include "longline.text" $value | quote }}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* A number of values.yaml may be a float to Helm: 1000000 would become 1e+06. */ -}}
{{- define "longline.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ int64 . }}{{ else }}{{ . }}{{ end -}}
{{- end -}}
