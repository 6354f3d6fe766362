package attackpaths

import (
	"fmt"
	"strings"
)

// podOf is a pod with a token of its account, for the level restricted.
func podOf(namespace, name, node, account string, more ...string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: %s, name: %s}
spec:
  nodeName: %q
  serviceAccountName: %s
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
  containers: [{name: c, image: i, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]
  volumes:
  - name: token
    projected: {sources: [{serviceAccountToken: {path: token}}]}
%s
---`, namespace, name, node, account, strings.Join(more, "\n"))
}

// privilegedPod is a pod that is privileged, without a token.
func privilegedPod(namespace, name, node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: %s, name: %s}
spec:
  nodeName: %q
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: i, securityContext: {privileged: true}}]
---`, namespace, name, node)
}

// bare is a pod without a token.
func bare(pod string) string {
	head, _, _ := strings.Cut(pod, "  volumes:")
	return head + "---"
}

// workloadOf is a workload of restricted pods. Without replicas it has no pod.
func workloadOf(apiVersion, kind, namespace, name string, replicas int) string {
	count := fmt.Sprintf("replicas: %d, selector: {matchLabels: {app: %s}}, ", replicas, name)
	if kind == "DaemonSet" {
		count = fmt.Sprintf("selector: {matchLabels: {app: %s}}, ", name)
	}
	return fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {namespace: %s, name: %s}
spec: {%stemplate: {metadata: {labels: {app: %[4]s}}, spec: {
  nodeName: web-1, automountServiceAccountToken: false, terminationGracePeriodSeconds: 0,
  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}},
  containers: [{name: c, image: i, securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}]}}}
---`, apiVersion, kind, namespace, name, count)
}

// roleOf binds rules, one in a line as "verbs resources.group/sub [names]", to a subject in a
// namespace; the empty namespace is the whole cluster.
func roleOf(name, namespace, subject string, rules ...string) string {
	kind, meta := "ClusterRole", "name: "+name
	if namespace != "" {
		kind, meta = "Role", "namespace: "+namespace+", name: "+name
	}
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: %[1]s
metadata: {%[2]s}
rules:
%[3]s---
`, kind, meta, rulesText(rules)) + binding(kind, name, namespace, name, subject)
}

// clusterRole is a role that nobody has.
func clusterRole(name string, rules ...string) string {
	return fmt.Sprintf("\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s}\nrules:\n%s---",
		name, rulesText(rules))
}

// binding binds a role to a subject.
func binding(kind, role, namespace, name, subject string) string {
	bindingKind, meta := "ClusterRoleBinding", "name: "+name
	if namespace != "" {
		bindingKind, meta = "RoleBinding", "namespace: "+namespace+", name: "+name
	}
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: %s
metadata: {%s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: %s, name: %s}
subjects: [%s]
---`, bindingKind, meta, kind, role, subjectText(subject))
}

func rulesText(rules []string) string {
	var list strings.Builder
	for _, rule := range rules {
		parts := strings.Fields(rule)
		resource, group, _ := strings.Cut(parts[1], "@")
		fmt.Fprintf(&list, "- {verbs: ['%s'], resources: [%q], apiGroups: [%q]", strings.ReplaceAll(parts[0], ",", "','"), resource, group)
		if len(parts) > 2 {
			fmt.Fprintf(&list, ", resourceNames: [%s]", parts[2])
		}
		list.WriteString("}\n")
	}
	return list.String()
}

// subjectText is a subject written as ns/account, user NAME or group NAME.
func subjectText(subject string) string {
	if user, ok := strings.CutPrefix(subject, "user "); ok {
		return "{kind: User, apiGroup: rbac.authorization.k8s.io, name: '" + user + "'}"
	}
	if group, ok := strings.CutPrefix(subject, "group "); ok {
		return "{kind: Group, apiGroup: rbac.authorization.k8s.io, name: '" + group + "'}"
	}
	namespace, name, _ := strings.Cut(subject, "/")
	return "{kind: ServiceAccount, namespace: " + namespace + ", name: " + name + "}"
}

func account(namespace, name string) string {
	return fmt.Sprintf("\napiVersion: v1\nkind: ServiceAccount\nmetadata: {namespace: %s, name: %s}\n---", namespace, name)
}

// opaque is a secret with some content.
func opaque(namespace, name string) string {
	return fmt.Sprintf("\napiVersion: v1\nkind: Secret\nmetadata: {namespace: %s, name: %s}\nstringData: {content: of %[2]s in %[1]s}\n---",
		namespace, name)
}

// tokenSecret is a secret that a controller fills with a token.
func tokenSecret(namespace, name, account string) string {
	return fmt.Sprintf("\napiVersion: v1\nkind: Secret\ntype: kubernetes.io/service-account-token\n"+
		"metadata: {namespace: %s, name: %s, annotations: {kubernetes.io/service-account.name: %s}}\n---", namespace, name, account)
}

func namespace(name, labels string) string {
	return fmt.Sprintf("\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {%s}}\n---", name, labels)
}

// nodeOf is a node without a kubelet.
func nodeOf(name string, labels ...string) string {
	return fmt.Sprintf("\napiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {%s}}\n---", name, strings.Join(labels, ", "))
}

// replaced is a text with one part replaced.
func replaced(text, old, new string) string { return strings.Replace(text, old, new, 1) }

// someWebhooks is a configuration without webhooks.
func someWebhooks(kind string) string {
	return fmt.Sprintf("\napiVersion: admissionregistration.k8s.io/v1\nkind: %s\nmetadata: {name: some}\nwebhooks: []\n---", kind)
}

// driverVolume is a volume whose driver needs the secret store/key, for the claim shop/data.
const driverVolume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  claimRef: {namespace: shop, name: data}
  csi: {driver: disks.example.com, volumeHandle: data, nodePublishSecretRef: {namespace: store, name: key}}
---`

// mirrorPod is the image of a static pod in kube-system.
func mirrorPod(name, node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: kube-system, name: %s, annotations: {kubernetes.io/config.mirror: x}}
spec: {nodeName: %s, containers: [{name: c, image: i}]}
---`, name, node)
}

// hostPathPod is the pod shop/db-1 with a folder of its node.
func hostPathPod(path string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: shop, name: db-1}
spec:
  nodeName: pay-1
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  containers: [{name: c, image: i, volumeMounts: [{name: host, mountPath: /host}]}]
  volumes: [{name: host, hostPath: {path: %s}}]
---`, path)
}

// folderVolume is the claim tools/data with a volume that is a folder of any node.
func folderVolume(path string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: PersistentVolume
metadata: {name: data}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteMany]
  claimRef: {namespace: tools, name: data}
  hostPath: {path: %s}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {namespace: tools, name: data}
spec: {accessModes: [ReadWriteMany], volumeName: data, storageClassName: "", resources: {requests: {storage: 1Gi}}}
---`, path)
}

// claimless is a volume without its claim.
func claimless(volume string) string {
	head, _, _ := strings.Cut(volume, "---")
	return replaced(head, "  claimRef: {namespace: tools, name: data}\n", "") + "---"
}

// bootstrapSecret is a bootstrap token.
const bootstrapSecret = `
apiVersion: v1
kind: Secret
type: bootstrap.kubernetes.io/token
metadata: {namespace: kube-system, name: bootstrap-token-abcdef}
stringData: {token-id: abcdef, token-secret: 0123456789abcdef, usage-bootstrap-authentication: "true"}
---`

// aggregated is a cluster role that a controller fills from those with its label, and its
// binding.
func aggregated(name, subject string) string {
	return fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %s}
aggregationRule: {clusterRoleSelectors: [{matchLabels: {part-of: %[1]s}}]}
rules: []
---`, name) + binding("ClusterRole", name, "", name, subject)
}

// labelled is a cluster role that is a part of an aggregated one.
func labelled(name, of string, rules ...string) string {
	return replaced(clusterRole(name, rules...), "metadata: {", "metadata: {labels: {part-of: "+of+"}, ")
}
