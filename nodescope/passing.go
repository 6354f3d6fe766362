package nodescope

import (
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// Passing is what one rule of a scope lets pass. Later authorizers decide about it.
type Passing struct {
	// Scope and Mode are the name and mode of the NodeScope, and Rule is its rule: "podsOnNode[1]", or
	// "otherwise" and "tokensWithoutNode" for what no rule names.
	Scope string        `json:"scope"`
	Mode  v1alpha1.Mode `json:"mode"`
	Rule  string        `json:"rule"`
	// APIGroups, Resources, ResourceNames, Verbs, NonResourceURLs and Namespaces are as in RBAC.
	// Nothing is listed for asNode: nodeauthz.Reach lists what the node may do.
	APIGroups       []string `json:"apiGroups,omitempty"`
	Resources       []string `json:"resources,omitempty"`
	ResourceNames   []string `json:"resourceNames,omitempty"`
	Verbs           []string `json:"verbs,omitempty"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
	Namespaces      []string `json:"namespaces,omitempty"`
	// FieldSelector that a request must have, empty if none.
	FieldSelector string `json:"fieldSelector,omitempty"`
	// Name is the only name of objects; empty for all.
	Name string `json:"name,omitempty"`
	// Requires says what a request must be.
	Requires string `json:"requires"`
}

// Passing returns what the scopes of a user let pass with a token of a node, scope by scope and in the
// order of the rules. A request must pass every scope. Node is empty for a token without a node.
func (p *Policy) Passing(user, node string) []Passing {
	var all []Passing
	for _, s := range p.Of(user) {
		all = append(all, s.passing(node)...)
	}
	return all
}

// PassingOf returns what a valid NodeScope lets pass with a token of a node. It ignores the subjects.
func PassingOf(spec *v1alpha1.NodeScopeSpec, node string) []Passing {
	s := &Scope{mode: spec.Mode}
	s.read(spec)
	return s.passing(node)
}

func (s *Scope) passing(node string) []Passing {
	anything := func(because string) []Passing {
		return []Passing{{Scope: s.name, Mode: s.mode, Rule: because, Requires: kinds[anywhere].requires}}
	}
	switch {
	case s.broken:
		return nil
	case node == "" && s.withoutNode == v1alpha1.Allow:
		return anything("tokensWithoutNode")
	case node == "":
		return nil
	}
	var all []Passing
	for i := range s.rules {
		all = append(all, s.rules[i].passing(s, node))
	}
	if s.otherwise == v1alpha1.Allow {
		all = append(all, Passing{Scope: s.name, Mode: s.mode, Rule: "otherwise", Requires: "named by no rule"})
	}
	return all
}

func (r *rule) passing(s *Scope, node string) Passing {
	p := Passing{
		Scope: s.name, Mode: s.mode, Rule: r.name, APIGroups: r.names.APIGroups, Resources: r.names.Resources,
		ResourceNames: r.names.ResourceNames, Verbs: r.names.Verbs, NonResourceURLs: r.names.NonResourceURLs,
		Namespaces: r.namespaces, Requires: r.info().requires,
	}
	switch r.kind {
	case namedAsNode:
		p.Name = node
	case selectsNode:
		p.FieldSelector = r.field + "=" + node
	case asNode, podsOnNode, namedAsPod, anywhere:
	}
	return p
}
