package inventory

import (
	"encoding/json"
	"maps"
	"slices"
	"unique"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	helpers "k8s.io/component-helpers/scheduling/corev1"
)

// Placement is what of a pod decides to which nodes the scheduler may bind it. It is
// comparable: pods of one template share one.
type Placement struct{ encoded unique.Handle[string] }

// constraints are a Placement before it is encoded.
type constraints struct {
	NodeSelector map[string]string    `json:"nodeSelector,omitempty"`
	Required     *corev1.NodeSelector `json:"required,omitempty"`
	Tolerations  []corev1.Toleration  `json:"tolerations,omitempty"`
	// Requests are what planned pods request. They are not kept of other pods.
	Requests corev1.ResourceList `json:"requests,omitempty"`
}

func placementOf(spec *corev1.PodSpec) Placement {
	c := constraints{NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil {
		c.Required = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return encodePlacement(c)
}

// Allows reports whether selectors, affinity, tolerations and requests let the scheduler bind such a
// pod to a node that may give itself the labels for which own is true. Other
// pods may still keep it away.
func (p Placement) Allows(n *Node, own func(label string) bool) bool {
	c := p.constraints()
	for k, v := range c.NodeSelector {
		if has, ok := n.Labels[k]; !own(k) && (!ok || has != v) {
			return false
		}
	}
	allows := func(t corev1.NodeSelectorTerm) bool { return allowsTerm(t, n, own) }
	if c.Required != nil && !slices.ContainsFunc(c.Required.NodeSelectorTerms, allows) {
		return false
	}
	_, untolerated := helpers.FindMatchingUntoleratedTaint(logr.Discard(), n.Taints, c.Tolerations,
		func(t *corev1.Taint) bool { return t.Effect != corev1.TaintEffectPreferNoSchedule }, false)
	return !untolerated && c.fit(n)
}

// Pinned reports whether the pod may be bound to a node of some name only.
func (p Placement) Pinned() bool {
	c := p.constraints()
	byField := func(t corev1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 }
	return c.Required != nil && slices.ContainsFunc(c.Required.NodeSelectorTerms, byField)
}

func (p Placement) constraints() constraints {
	var c constraints
	if p == (Placement{}) {
		return c
	}
	if err := json.Unmarshal([]byte(p.encoded.Value()), &c); err != nil {
		panic("constraints of a pod do not decode: " + err.Error())
	}
	return c
}

// allowsTerm reports whether a node matches a term of a selector with the labels that it has
// and those that it may give itself. A term without requirements matches nothing.
func allowsTerm(t corev1.NodeSelectorTerm, n *Node, own func(string) bool) bool {
	if len(t.MatchExpressions)+len(t.MatchFields) == 0 {
		return false
	}
	others := slices.DeleteFunc(slices.Clone(t.MatchExpressions), func(r corev1.NodeSelectorRequirement) bool { return own(r.Key) })
	if len(others)+len(t.MatchFields) == 0 {
		return true
	}
	selector, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: others, MatchFields: t.MatchFields}},
	})
	node := &corev1.Node{}
	node.Name, node.Labels = n.Name, n.Labels
	return err == nil && selector.Match(node)
}

// Selects reports whether the pod has a node selector.
func (p Placement) Selects() bool { return len(p.constraints().NodeSelector) > 0 }

// Tolerates reports whether the pod has tolerations besides those that the API server adds.
func (p Placement) Tolerates() bool {
	return slices.ContainsFunc(p.constraints().Tolerations, func(t corev1.Toleration) bool {
		added := t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
		return !added || t.Effect != corev1.TaintEffectNoExecute || t.TolerationSeconds == nil
	})
}

// In is the placement of a pod that also selects nodes by labels, and tolerates a taint.
func (p Placement) In(labels map[string]string, taint corev1.Taint) Placement {
	c := p.constraints()
	if c.NodeSelector == nil {
		c.NodeSelector = map[string]string{}
	}
	maps.Copy(c.NodeSelector, labels)
	c.Tolerations = append(c.Tolerations, TolerationOf(taint))
	return encodePlacement(c)
}

// TolerationOf tolerates a taint.
func TolerationOf(t corev1.Taint) corev1.Toleration {
	return corev1.Toleration{Key: t.Key, Operator: corev1.TolerationOpEqual, Value: t.Value, Effect: t.Effect}
}
