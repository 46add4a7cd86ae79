{{- /* Report all missing and contradictory values at once: the schema cannot express them. */ -}}
{{- define "longline.check" -}}
{{- $wrong := list -}}
{{- with .Values -}}
{{- if not .image.repository -}}{{- $wrong = append $wrong "image.repository is empty: name the image of the portal in your registry, such as registry.example.net/longline-portal" -}}{{- end -}}
{{- if not (or .image.tag .image.digest) -}}{{- $wrong = append $wrong "image.tag is empty: name the release, or give image.digest" -}}{{- end -}}
{{- if not .host -}}{{- $wrong = append $wrong "host is empty: name the portal as browsers do, such as portal.example.net" -}}{{- end -}}
{{- if not .trustedProxies -}}{{- $wrong = append $wrong "trustedProxies is empty: name the networks of the pods that end TLS before the portal, such as 10.244.0.0/16. Without them every link would be http://" -}}{{- end -}}
{{- if not .secrets.existingSecret -}}{{- $wrong = append $wrong "secrets.existingSecret is empty: make a Secret with the keys secret_key, token_pepper, database_url and redis_url, and name it" -}}{{- end -}}
{{- if not .pki.existingSecret -}}{{- $wrong = append $wrong "pki.existingSecret is empty: make a Secret with the keys ca.pem, portal.pem, portal.key and ca.key, and name it" -}}{{- end -}}
{{- if and .ingress.enabled (not .ingress.tlsSecret) -}}{{- $wrong = append $wrong "ingress.tlsSecret is empty: name a Secret of the type kubernetes.io/tls for the host, or set ingress.enabled to false and end TLS elsewhere" -}}{{- end -}}
{{- if and .networkPolicy.enabled (not .networkPolicy.ingressFrom) -}}{{- $wrong = append $wrong "networkPolicy.ingressFrom is empty: name where the proxies' pods are, or nobody reaches the portal" -}}{{- end -}}
{{- if and .settings.NETBOX_URL (not (has "netbox_token" .secrets.optionalKeys)) -}}{{- $wrong = append $wrong "settings.NETBOX_URL needs a token: put it into the Secret as netbox_token, and list that in secrets.optionalKeys" -}}{{- end -}}
{{- if .settings.OIDC_SERVER_URL -}}
{{- if not .settings.OIDC_CLIENT_ID -}}{{- $wrong = append $wrong "settings.OIDC_SERVER_URL needs settings.OIDC_CLIENT_ID" -}}{{- end -}}
{{- if not (has "oidc_client_secret" .secrets.optionalKeys) -}}{{- $wrong = append $wrong "settings.OIDC_SERVER_URL needs a secret: put it into the Secret as oidc_client_secret, and list that in secrets.optionalKeys" -}}{{- end -}}
{{- end -}}
{{- range $name, $value := .settings -}}
{{- $key := $value | toString | trimPrefix "/etc/longline/secrets/" -}}
{{- if and (ne $key (toString $value)) (not (has $key $.Values.secrets.optionalKeys)) -}}{{- $wrong = append $wrong (printf "settings.%s is the file %s: put it into the Secret as %s, and list that in secrets.optionalKeys" $name $value $key) -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- if $wrong -}}{{- fail (printf "the values cannot be used:\n* %s" (join "\n* " $wrong)) -}}{{- end -}}
{{- end -}}
