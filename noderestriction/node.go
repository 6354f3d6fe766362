package noderestriction

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// ownNode compares the name of the request, which says what the API server
// writes.
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

// configSourceStays lets the source be removed: old kubelets do not know it and
// drop it.
func configSourceStays(_ *question, from, to *corev1.Node) *refusal {
	if source := configSource(to); source != nil && !equality.Semantic.DeepEqual(source, configSource(from)) {
		return forbid(ConfigSourceSet, "spec.configSource changes to another value")
	}
	return nil
}

// configSource reads a field that no kubelet uses any more and that API servers
// still store.
func configSource(node *corev1.Node) *corev1.NodeConfigSource {
	return node.Spec.ConfigSource //lint:ignore SA1019 stored nodes can have it
}

func taintsStay(_ *question, from, to *corev1.Node) *refusal {
	if !slices.EqualFunc(from.Spec.Taints, to.Spec.Taints, sameTaint) {
		return forbid(TaintsChanged, "spec.taints changes")
	}
	return nil
}

// sameTaint compares all fields, whichever there will be, and times by the
// instant that they mean.
func sameTaint(a, b corev1.Taint) bool {
	if !a.TimeAdded.Equal(b.TimeAdded) {
		return false
	}
	a.TimeAdded, b.TimeAdded = nil, nil
	return a == b
}

// ownersStay compares by reflection only if there is something to compare: most
// updates are heartbeats of nodes without owners.
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

// reservedLabel reports whether a label may say where work is placed, so that a
// node must not give it to itself: those for that purpose
// (node-restriction.kubernetes.io), and those of Kubernetes that are not the
// kubelet's. Keys without a prefix are nobody's.
func reservedLabel(key string) bool {
	prefix, _, ok := strings.Cut(key, "/")
	if !ok {
		return false
	}
	return within(prefix, corev1.LabelNamespaceNodeRestriction) ||
		(within(prefix, "kubernetes.io") || within(prefix, "k8s.io")) && !kubeletapis.IsKubeletLabel(key)
}

// within reports whether a label's prefix is the domain or below it.
func within(prefix, domain string) bool {
	parent, ok := strings.CutSuffix(prefix, domain)
	return ok && (parent == "" || strings.HasSuffix(parent, "."))
}
