{{- /* The objects of a file of deploy/, in the release's namespace. (list root file) */ -}}
{{- define "htcd.objects" -}}
{{- $root := index . 0 -}}
{{- range $text := splitList "\n---\n" ($root.Files.Get (index . 1)) }}
---
{{ include "htcd.placed" (list $root (fromYaml $text)) }}
{{- end }}
{{- end }}

{{- /* One object in the release's namespace. (list root object) */ -}}
{{- define "htcd.placed" -}}
{{- $namespace := (index . 0).Release.Namespace -}}
{{- $object := index . 1 -}}
{{- $everywhere := list "ClusterRole" "ClusterRoleBinding" "ValidatingAdmissionPolicy" "ValidatingAdmissionPolicyBinding" "MutatingAdmissionPolicy" "MutatingAdmissionPolicyBinding" "APIService" -}}
{{- if not (has $object.kind $everywhere) }}{{ $_ := set $object.metadata "namespace" $namespace }}{{ end -}}
{{- range $object.subjects }}{{ if eq .kind "ServiceAccount" }}{{ $_ := set . "namespace" $namespace }}{{ end }}{{ end -}}
{{- toYaml $object }}
{{- end }}

{{- define "htcd.account" -}}
{{ get (.Values.settings | default dict) "HTCD_KINIT_SECRET" | default .Values.secrets.account | default (ternary "kinit-secret" "condor-token" .Values.kerberos.enabled) }}
{{- end }}

{{- define "htcd.image" -}}
{{- $repository := required "image.repository: name htcd's image at your site, such as registry.example.org/htcd" .Values.image.repository -}}
{{- if .Values.image.digest -}}
{{ printf "%s@%s" $repository .Values.image.digest }}
{{- else -}}
{{ printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- define "htcd.callbackURL" -}}
{{- $scheme := ternary "https" "http" (or (not (empty .Values.ingress.tls)) (not (empty .Values.tls.secretName))) -}}
{{ .Values.callbackURL | default (printf "%s://%s/cloudevents" $scheme .Values.ingress.host) }}
{{- end }}

{{- define "htcd.config" -}}
{{- $condor := .Files.Get (ternary "files/base/manager/condor_config" "files/generic/condor_config" .Values.kerberos.enabled)
  | replace "collector.example.org" .Values.condor.collector
  | replace "UID_DOMAIN = example.org" (printf "UID_DOMAIN = %s" .Values.condor.uidDomain) -}}
condor_config: {{ .Values.condor.config | default $condor | toJson }}
{{- if .Values.kerberos.enabled }}
krb5.conf: {{ .Values.kerberos.config | default (.Files.Get "files/base/manager/krb5.conf" | replace "EXAMPLE.ORG" .Values.kerberos.realm) | toJson }}
{{- end }}
{{- end }}

{{- /* What a site writes in settings comes before everything that follows from other values. */ -}}
{{- define "htcd.settings" -}}
{{- $all := dict "HTCD_CALLBACK_URL" (include "htcd.callbackURL" .) "HTCD_SCHEDD" .Values.condor.schedd "HTCD_COLLECTOR" .Values.condor.collector -}}
{{- if ne (include "htcd.account" .) "kinit-secret" }}{{ $_ := set $all "HTCD_KINIT_SECRET" (include "htcd.account" .) }}{{ end -}}
{{- if gt (len (without (.Values.secrets.ofNamespaces | default list) (include "htcd.account" .))) 0 }}
{{- $_ := set $all "HTCD_POOL_SECRETS" (join "," (without (.Values.secrets.ofNamespaces | default list) (include "htcd.account" .))) }}
{{- end -}}
{{- if .Values.logsPod.enabled }}{{ $_ := set $all "HTCD_LOGS_POD_IMAGE" (include "htcd.image" .) }}{{ end -}}
{{- range $name, $value := .Values.settings }}{{ $_ := set $all $name $value }}{{ end -}}
{{- toYaml $all }}
{{- end }}
