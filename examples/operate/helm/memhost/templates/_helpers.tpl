{{- define "memhost.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "memhost.image" -}}
{{ required "image.repository: name your image" .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* What a host and the migration have alike: environment, mounts and rights of the container. */}}
{{- define "memhost.container" -}}
image: {{ include "memhost.image" . }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
envFrom:
  - secretRef:
      name: {{ required "existingSecret: name the Secret with MEMHOST_TOKEN and MEMHOST_PG_PASSWORD" .Values.existingSecret }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: config, mountPath: /etc/memhost, readOnly: true}
  - {name: data, mountPath: /data}
  - {name: tmp, mountPath: /tmp}
  {{- if .Values.databaseCA }}
  - {name: ca, mountPath: /etc/memhost-ca, readOnly: true}
  {{- end }}
{{- end }}

{{/* The pod's rights and volumes; the argument's name is the ConfigMap's. */}}
{{- define "memhost.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
volumes:
  - name: config
    configMap: {name: {{ .name }}}
  - {name: data, emptyDir: {}}
  - {name: tmp, emptyDir: {}}
  {{- with .root.Values.databaseCA }}
  - name: ca
    secret: {secretName: {{ . }}}
  {{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
