package inventory

import (
	"encoding/json"
	"maps"
	"slices"
	"unique"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	helpers "k8s.io/component-helpers/scheduling/corev1"
)

// Placement is what of a pod decides to which nodes the scheduler may bind it. It is
// comparable: pods of one template share one.
type Placement struct{ encoded unique.Handle[string] }

// placementOf encodes the parts of a spec that count: node selector, required affinity, tolerations, and requests of the whole pod.
func placementOf(spec *corev1.PodSpec, requests corev1.ResourceList) Placement {
	kept := corev1.PodSpec{NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if terms := required(spec); terms != nil {
		kept.Affinity = requiring(terms)
	}
	if len(requests) > 0 {
		kept.Resources = &corev1.ResourceRequirements{Requests: requests}
	}
	encoded, err := json.Marshal(kept)
	if err != nil {
		panic("the placement of a pod does not encode: " + err.Error())
	}
	return Placement{unique.Make(string(encoded))}
}

// spec has the parts of the pod's spec that count.
func (p Placement) spec() (spec corev1.PodSpec) {
	if p == (Placement{}) {
		return spec
	}
	if err := json.Unmarshal([]byte(p.encoded.Value()), &spec); err != nil {
		panic("the placement of a pod does not decode: " + err.Error())
	}
	return spec
}

// required has the terms of the required affinity, of which a node has to match one; nil if every node does.
func required(spec *corev1.PodSpec) *corev1.NodeSelector {
	return value(value(spec.Affinity).NodeAffinity).RequiredDuringSchedulingIgnoredDuringExecution
}

func requiring(terms *corev1.NodeSelector) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
}

// Allows reports whether selectors, affinity, tolerations and requests let the scheduler bind such a
// pod to a node that may give itself the labels for which own is true; nil is for none. Other
// pods may still keep it away.
func (p Placement) Allows(n *Node, own func(label string) bool) bool {
	spec := p.spec()
	_, untolerated := helpers.FindMatchingUntoleratedTaint(logr.Discard(), n.Taints, spec.Tolerations,
		func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }, false)
	if untolerated || !fits(&spec, n) {
		return false
	}
	if own != nil {
		leaveOut(&spec, own)
	}
	return n.matches(spec.NodeSelector, spec.Affinity)
}

// leaveOut takes the labels that a node may give itself out of what a pod requires.
func leaveOut(spec *corev1.PodSpec, own func(label string) bool) {
	maps.DeleteFunc(spec.NodeSelector, func(label, _ string) bool { return own(label) })
	terms := value(required(spec)).NodeSelectorTerms
	for i, t := range terms {
		terms[i].MatchExpressions = slices.DeleteFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return own(r.Key) })
		if len(t.MatchExpressions) > 0 && len(terms[i].MatchExpressions)+len(t.MatchFields) == 0 {
			spec.Affinity = nil // the node can match this term by itself
		}
	}
}

// matches reports whether a node has the labels of a selector, and matches the required affinity, if there is one.
func (n *Node) matches(selector map[string]string, affinity *corev1.Affinity) bool {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}}
	matches, err := nodeaffinity.NewRequiredNodeAffinity(selector, affinity).Match(node)
	return err == nil && matches
}

// HasRequests reports whether the size of a node matters. It is known of planned pods only.
func (p Placement) HasRequests() bool { return p.spec().Resources != nil }

// Fits reports whether an empty node is large enough. A node of unknown size is.
func (p Placement) Fits(n *Node) bool {
	spec := p.spec()
	return fits(&spec, n)
}

func fits(spec *corev1.PodSpec, n *Node) bool {
	for name, q := range value(spec.Resources).Requests {
		if has := n.Allocatable[name]; n.Allocatable != nil && has.Cmp(q) < 0 {
			return false
		}
	}
	return true
}

// Pinned reports whether the pod may be bound to a node of some name only.
func (p Placement) Pinned() bool {
	spec := p.spec()
	byField := func(t corev1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 }
	return slices.ContainsFunc(value(required(&spec)).NodeSelectorTerms, byField)
}

// Selects reports whether the pod has a node selector.
func (p Placement) Selects() bool { return len(p.spec().NodeSelector) > 0 }

// Tolerates reports whether the pod has tolerations besides those that the API server adds.
func (p Placement) Tolerates() bool {
	return slices.ContainsFunc(p.spec().Tolerations, func(t corev1.Toleration) bool {
		added := t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
		return !added || t.Effect != corev1.TaintEffectNoExecute || t.TolerationSeconds == nil
	})
}

// In is the placement of a pod that also selects nodes by labels, and tolerates a taint.
func (p Placement) In(labels map[string]string, taint corev1.Taint) Placement {
	spec := p.spec()
	if spec.NodeSelector == nil {
		spec.NodeSelector = map[string]string{}
	}
	maps.Copy(spec.NodeSelector, labels)
	spec.Tolerations = append(spec.Tolerations, TolerationOf(taint))
	return placementOf(&spec, value(spec.Resources).Requests)
}

// TolerationOf tolerates a taint.
func TolerationOf(t corev1.Taint) corev1.Toleration {
	return corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect}
}
