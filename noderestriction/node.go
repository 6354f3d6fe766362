package noderestriction

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// ownNode compares the name in the request, which selects the object that the API
// server writes.
func ownNode(q *question) *refusal {
	if q.req.Name != q.node {
		return forbid(WritesOtherNode, "node %s may not write node %q", q.node, q.req.Name)
	}
	return nil
}

func noConfigSource(_ *question, node *corev1.Node) *refusal {
	if configSource(node) != nil {
		return forbid(ConfigSourceSet, "spec.configSource is set")
	}
	return nil
}

// configSourceStays allows the removal of the source: old kubelets do not support it
// and drop it.
func configSourceStays(_ *question, from, to *corev1.Node) *refusal {
	if source := configSource(to); source != nil && !equality.Semantic.DeepEqual(source, configSource(from)) {
		return forbid(ConfigSourceSet, "spec.configSource changes to another value")
	}
	return nil
}

// configSource reads a field that kubelets no longer use and that API servers still
// store.
func configSource(node *corev1.Node) *corev1.NodeConfigSource {
	return node.Spec.ConfigSource //lint:ignore SA1019 stored nodes can have it
}

func taintsStay(_ *question, from, to *corev1.Node) *refusal {
	if !slices.EqualFunc(from.Spec.Taints, to.Spec.Taints, sameTaint) {
		return forbid(TaintsChanged, "spec.taints changes")
	}
	return nil
}

// sameTaint compares all fields, including future ones, and times by their instant.
func sameTaint(a, b corev1.Taint) bool {
	if !a.TimeAdded.Equal(b.TimeAdded) {
		return false
	}
	a.TimeAdded, b.TimeAdded = nil, nil
	return a == b
}

// ownersStay uses reflection only if there are owners: most updates are heartbeats of
// nodes without owners.
func ownersStay(_ *question, from, to *corev1.Node) *refusal {
	if len(from.OwnerReferences)+len(to.OwnerReferences) > 0 && !equality.Semantic.DeepEqual(to.OwnerReferences, from.OwnerReferences) {
		return forbid(OwnerReferencesChanged, "metadata.ownerReferences changes")
	}
	return nil
}

func labelsAllowed(_ *question, node *corev1.Node) *refusal {
	return labelRefusal(changedLabels(nil, node.Labels))
}

func labelChangesAllowed(_ *question, from, to *corev1.Node) *refusal {
	return labelRefusal(changedLabels(from.Labels, to.Labels))
}

// changedLabels returns the keys that are added, changed or removed.
func changedLabels(from, to map[string]string) []string {
	var changed []string
	for key, value := range to {
		if old, ok := from[key]; !ok || old != value {
			changed = append(changed, key)
		}
	}
	for key := range from {
		if _, ok := to[key]; !ok {
			changed = append(changed, key)
		}
	}
	return changed
}

func labelRefusal(changed []string) *refusal {
	reserved := slices.DeleteFunc(changed, func(key string) bool { return !reservedLabel(key) })
	if len(reserved) == 0 {
		return nil
	}
	slices.Sort(reserved)
	return forbid(LabelNotAllowed, "a node may not write the labels %q", strings.Join(reserved, ", "))
}

// OwnLabel reports whether a node may write a label with this key to its own Node object.
func OwnLabel(key string) bool { return !reservedLabel(key) }

// reservedLabel reports whether a node must not set a label because it may control
// scheduling: labels with the prefix for that purpose
// (node-restriction.kubernetes.io), and labels of Kubernetes that are not the
// kubelet's. Keys without a prefix are not reserved.
func reservedLabel(key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	return within(prefix, corev1.LabelNamespaceNodeRestriction) ||
		(within(prefix, "kubernetes.io") || within(prefix, "k8s.io")) && !kubeletapis.IsKubeletLabel(key)
}

// within reports whether a label's prefix is the domain or a subdomain.
func within(prefix, domain string) bool {
	parent, ok := strings.CutSuffix(prefix, domain)
	return ok && (parent == "" || strings.HasSuffix(parent, "."))
}
