{{- define "node-authorizer.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "node-authorizer.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{- define "node-authorizer.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "node-authorizer.image" -}}
{{- $repository := required "image.repository is required: the chart does not know where you keep the image (or set server.enabled=false)" .Values.image.repository -}}
{{- printf "%s:%s" $repository (.Values.image.tag | default .Chart.AppVersion) -}}
{{- end -}}

{{- define "node-authorizer.secret" -}}
{{- .Values.certificates.existingSecret | default (printf "%s-tls" (include "node-authorizer.fullname" .)) -}}
{{- end -}}

{{/*
Fails if a duration in a config is out of its range, which a schema cannot express. Takes the root,
the name of the values with the config, and the config.
*/}}
{{- define "node-authorizer.checkDurations" -}}
{{- $root := index . 0 -}}
{{- $owner := index . 1 -}}
{{- $config := index . 2 -}}
{{- $start := toDate "2006-01-02" "2000-01-01" -}}
{{- range $field, $range := $root.Files.Get "files/durations.yaml" | fromYaml -}}
{{- $value := $config -}}
{{- range $name := splitList "." $field -}}
{{- $value = ternary $value dict (kindIs "map" $value) -}}
{{- $value = get $value $name -}}
{{- end -}}
{{- if $value -}}
{{- $end := mustDateModify $value $start -}}
{{- if or ($end.Before (mustDateModify (first $range) $start)) ($end.After (mustDateModify (last $range) $start)) -}}
{{- fail (printf "%s.config.%s: want a duration from %s to %s, got %s" $owner $field (first $range) (last $range) $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The server's config file: the chart's fields, overridden by the user's. */}}
{{- define "node-authorizer.config" -}}
{{- $tls := "/etc/node-authorizer/tls" -}}
{{- $config := dict
  "apiVersion" "config.node-authorizer.io/v1alpha1"
  "kind" "ServerConfiguration"
  "webhook" (dict
    "address" ":8443"
    "certificateFile" (printf "%s/tls.crt" $tls)
    "keyFile" (printf "%s/tls.key" $tls)
    "clientCAFile" (printf "%s/ca.crt" $tls)
    "allowedClientNames" (list .Values.certificates.clientName))
  "metrics" (dict "address" ":8081")
  "shutdown" (dict "delay" "5s") -}}
{{- if .Values.server.kubeconfigSecret -}}
{{- $_ := set $config "cluster" (dict "kubeconfig" "/etc/node-authorizer/cluster/kubeconfig") -}}
{{- end -}}
{{- if .Values.server.authorizationConfiguration -}}
{{- $_ := set $config "authorization" (dict "configFile" "/etc/node-authorizer/config/authorization.yaml") -}}
{{- end -}}
{{- if .Values.server.mappings -}}
{{- if not (has "File" (include "node-authorizer.mappingSources" . | splitList " ")) -}}
{{- fail "server.mappings has no effect without File in server.config.iam.sources: add it, or remove the mappings" -}}
{{- end -}}
{{- $_ := set $config "iam" (dict "file" "/etc/node-authorizer/config/mappings.yaml") -}}
{{- end -}}
{{- include "node-authorizer.checkDurations" (list . "server" .Values.server.config) -}}
{{- toYaml (mustMergeOverwrite $config (deepCopy .Values.server.config)) -}}
{{- end -}}

{{/* The questions that the server answers. */}}
{{- define "node-authorizer.serves" -}}
{{- join " " (dig "webhook" "serves" (list "Authorization" "Admission") .Values.server.config) -}}
{{- end -}}

{{/* The sources of mappings of AWS callers; empty if the server does not authenticate them. */}}
{{- define "node-authorizer.mappingSources" -}}
{{- if has "Authentication" (include "node-authorizer.serves" . | splitList " ") -}}
{{- join " " (dig "iam" "sources" (list "ConfigMap") .Values.server.config) -}}
{{- end -}}
{{- end -}}

{{/* True if a config enables one of the fields of containment. Takes the config and the fields. */}}
{{- define "node-authorizer.contained" -}}
{{- $containment := (first .).containment | default dict -}}
{{- range $field := rest . -}}
{{- if eq (get $containment $field) "Enabled" -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{/* Whom the server's rights are given to. */}}
{{- define "node-authorizer.subject" -}}
{{- if .Values.rbac.user -}}
- apiGroup: rbac.authorization.k8s.io
  kind: User
  name: {{ .Values.rbac.user | quote }}
{{- else -}}
- kind: ServiceAccount
  name: {{ include "node-authorizer.fullname" . }}
  namespace: {{ .Release.Namespace }}
{{- end -}}
{{- end -}}

{{/* True if the server answers for RBAC too. */}}
{{- define "node-authorizer.chain" -}}
{{- if eq (dig "authorization" "mode" "Node" .Values.server.config) "Chain" -}}true{{- end -}}
{{- end -}}

{{/*
Makes the certificates once per rendering and keeps them in the values, because
several templates need the same. What a former release made is taken again.
*/}}
{{- define "node-authorizer.certificates" -}}
{{- if not (hasKey .Values "madeCertificates") -}}
{{- $name := include "node-authorizer.fullname" . -}}
{{- $made := dict -}}
{{- $server := lookup "v1" "Secret" .Release.Namespace (printf "%s-tls" $name) -}}
{{- $client := lookup "v1" "Secret" .Release.Namespace (printf "%s-client" $name) -}}
{{- if and $server $client -}}
{{- $made = dict "server" $server.data "client" $client.data -}}
{{- else -}}
{{- $days := int .Values.certificates.validityDays -}}
{{- $service := printf "%s.%s.svc" $name .Release.Namespace -}}
{{- $ca := genCAWithKey (printf "%s-ca" $name) $days (genPrivateKey "ecdsa") -}}
{{- $serving := genSignedCertWithKey $service (list "127.0.0.1") (list $service (printf "%s.cluster.local" $service) "localhost") $days $ca (genPrivateKey "ecdsa") -}}
{{- $calling := genSignedCertWithKey .Values.certificates.clientName nil nil $days $ca (genPrivateKey "ecdsa") -}}
{{- $authority := $ca.Cert | b64enc -}}
{{- $made = dict
  "server" (dict "ca.crt" $authority "tls.crt" ($serving.Cert | b64enc) "tls.key" ($serving.Key | b64enc))
  "client" (dict "ca.crt" $authority "tls.crt" ($calling.Cert | b64enc) "tls.key" ($calling.Key | b64enc)) -}}
{{- end -}}
{{- $_ := set .Values "madeCertificates" $made -}}
{{- end -}}
{{- end -}}

{{/* The authority of the server's certificate, PEM in base64. */}}
{{- define "node-authorizer.caBundle" -}}
{{- if .Values.webhooks.caBundle -}}
{{- .Values.webhooks.caBundle -}}
{{- else if .Values.certificates.existingSecret -}}
{{- $secret := lookup "v1" "Secret" .Release.Namespace .Values.certificates.existingSecret -}}
{{- required (printf "webhooks.caBundle is required: the Secret %s with a ca.crt is not in namespace %s, or cannot be read while rendering" .Values.certificates.existingSecret .Release.Namespace) (dig "data" "ca.crt" "" ($secret | default dict)) -}}
{{- else -}}
{{- if not .Values.server.enabled -}}
{{- fail "webhooks.caBundle is required with server.enabled=false: the chart makes no certificate then" -}}
{{- end -}}
{{- include "node-authorizer.certificates" . -}}
{{- index .Values.madeCertificates.server "ca.crt" -}}
{{- end -}}
{{- end -}}

{{/* Where kube-apiserver sends a webhook's requests. Takes the root and a path. */}}
{{- define "node-authorizer.clientConfig" -}}
{{- $root := index . 0 -}}
{{- $path := index . 1 -}}
{{- if $root.Values.webhooks.url -}}
url: {{ printf "%s%s" $root.Values.webhooks.url $path }}
{{- else -}}
{{- if not $root.Values.server.enabled -}}
{{- fail "webhooks.url is required with server.enabled=false: there is no Service then" -}}
{{- end -}}
service:
  namespace: {{ $root.Release.Namespace }}
  name: {{ include "node-authorizer.fullname" $root }}
  path: {{ $path }}
  port: 443
{{- end }}
caBundle: {{ include "node-authorizer.caBundle" $root }}
{{- end -}}

{{- define "node-authorizer.bootstrapSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: bootstrap
{{- end -}}

{{- define "node-authorizer.bootstrapSecret" -}}
{{- .Values.bootstrap.certificates.existingSecret | default (printf "%s-bootstrap-tls" (include "node-authorizer.fullname" .)) -}}
{{- end -}}

{{/* The config file of the bootstrap service, made like the server's. */}}
{{- define "node-authorizer.bootstrapConfig" -}}
{{- $tls := "/etc/node-authorizer/tls" -}}
{{- $bootstrap := dict
  "address" ":10443"
  "certificateFile" (printf "%s/tls.crt" $tls)
  "keyFile" (printf "%s/tls.key" $tls) -}}
{{- if .Values.bootstrap.certificates.requireClient -}}
{{- $_ := set $bootstrap "clientCAFile" (printf "%s/ca.crt" $tls) -}}
{{- end -}}
{{- $config := dict
  "apiVersion" "config.node-authorizer.io/v1alpha1"
  "kind" "ServerConfiguration"
  "webhook" (dict "address" "")
  "metrics" (dict "address" ":10444")
  "bootstrap" $bootstrap
  "approver" (dict "enabled" true "unattestedNodes" "Leave") -}}
{{- $given := deepCopy .Values.bootstrap.config -}}
{{- if not .Values.bootstrap.service -}}
{{- $_ := unset $config "bootstrap" -}}
{{- if or (hasKey $given "bootstrap") (not (dig "approver" "enabled" true $given)) -}}
{{- fail "bootstrap.service=false is for the approver alone: remove bootstrap.config.bootstrap, and leave approver.enabled true" -}}
{{- end -}}
{{- else if not (dig "bootstrap" "attestor" "" $given) -}}
{{- fail "bootstrap.config.bootstrap.attestor is required: say how machines prove what they are, such as aws" -}}
{{- end -}}
{{- include "node-authorizer.checkDurations" (list . "bootstrap" $given) -}}
{{- toYaml (mustMergeOverwrite $config $given) -}}
{{- end -}}

{{/* As node-authorizer.certificates, for the bootstrap service. */}}
{{- define "node-authorizer.bootstrapCertificates" -}}
{{- if not (hasKey .Values "madeBootstrapCertificates") -}}
{{- $name := include "node-authorizer.bootstrapSecret" . -}}
{{- $kept := lookup "v1" "Secret" .Release.Namespace $name -}}
{{- $made := dict -}}
{{- if $kept -}}
{{- $made = $kept.data -}}
{{- else -}}
{{- with .Values.bootstrap.certificates -}}
{{- if not (or .names .addresses) -}}
{{- fail "bootstrap.certificates.names is required: the names by which machines reach the service (or bring your own certificate in bootstrap.certificates.existingSecret)" -}}
{{- end -}}
{{- if .requireClient -}}
{{- fail "bootstrap.certificates.existingSecret is required with requireClient: nobody has the key of an authority that Helm made, to sign the certificates of machines" -}}
{{- end -}}
{{- $days := int .validityDays -}}
{{- $ca := genCAWithKey (printf "%s-ca" $name) $days (genPrivateKey "ecdsa") -}}
{{- $serving := genSignedCertWithKey (concat .names .addresses | first) .addresses .names $days $ca (genPrivateKey "ecdsa") -}}
{{- $made = dict "ca.crt" ($ca.Cert | b64enc) "tls.crt" ($serving.Cert | b64enc) "tls.key" ($serving.Key | b64enc) -}}
{{- end -}}
{{- end -}}
{{- $_ := set .Values "madeBootstrapCertificates" $made -}}
{{- end -}}
{{- end -}}
