package attackpaths

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// ChangeKind says what a [Change] takes away.
type ChangeKind string

// The kinds of changes.
const (
	// RemoveBinding removes the subjects of a RoleBinding or ClusterRoleBinding.
	RemoveBinding ChangeKind = "Binding"
	// RemoveRule removes one rule of a Role or ClusterRole, for everyone who has the role.
	RemoveRule ChangeKind = "RoleRule"
	// RemoveMount no longer mounts a token or a secret into the pods of a workload, or into one
	// pod without a workload. Secrets in environment variables count as mounted.
	RemoveMount ChangeKind = "PodMount"
	// RestrictPods makes a namespace enforce the Pod Security level restricted.
	RestrictPods ChangeKind = "PodSecurity"
)

// Change is something that can be taken away, and which nodes that helps if it is the only change.
type Change struct {
	// Kind says what is taken away.
	Kind ChangeKind `json:"kind"`
	// Object is the binding, the role, the workload or pod, or the namespace.
	Object verdict.Object `json:"object"`
	// Rule is the rule of the role, and RuleNumber its place in the role, from one. They are set
	// for [RemoveRule] only.
	Rule       *rbacv1.PolicyRule `json:"rule,omitempty"`
	RuleNumber int                `json:"ruleNumber,omitempty"`
	// Secret is the name of the secret that is mounted; empty for service account tokens.
	Secret string `json:"secret,omitempty"`
	// Certain is how many nodes no longer certainly reach cluster-admin, and Entirely how many no
	// longer reach it at all. A node whose path becomes possible counts for Certain only, and one
	// whose path was only possible for Entirely only.
	Certain  int `json:"certain"`
	Entirely int `json:"entirely"`
	// Remedy makes the change, and keeps Kubernetes from restoring what is taken away.
	Remedy *verdict.Remedy `json:"remedy,omitempty"`
	// Restored is true for an object that Kubernetes restores unless it is annotated, as Remedy does.
	Restored bool `json:"restored,omitempty"`

	// keepsMasters is true for the binding of system:masters, which has its rights anyway.
	keepsMasters bool
	key          changeKey
}

// String says in one sentence what to do.
func (c Change) String() string {
	if c.Restored {
		return c.text() + ", and annotate it so that Kubernetes does not restore it"
	}
	return c.text()
}

func (c Change) text() string {
	object := rbac.Ref(c.Object).String()
	switch c.Kind {
	case RemoveBinding:
		if c.keepsMasters {
			return "remove the subjects of " + object + " but system:masters"
		}
		return "remove the subjects of " + object
	case RemoveRule:
		return fmt.Sprintf("remove rule %d (%s) from %s", c.RuleNumber, ruleText(c.Rule), object)
	case RemoveMount:
		what := "a service account token"
		if c.Secret != "" {
			what = fmt.Sprintf("secret %q", c.Secret)
		}
		if c.Object.Kind == Pod {
			return "do not mount " + what + " into " + object
		}
		return "do not mount " + what + " into the pods of " + object
	}
	return "enforce the Pod Security level restricted in " + object
}

// ruleText says what a rule allows: "get, list secrets in group apps".
func ruleText(r *rbacv1.PolicyRule) string {
	if r == nil {
		return ""
	}
	text := strings.Join(r.Verbs, ", ") + " " + strings.Join(append(append([]string{}, r.Resources...), r.NonResourceURLs...), ", ")
	if groups := strings.Join(r.APIGroups, ", "); groups != "" {
		text += " of " + groups
	}
	if len(r.ResourceNames) > 0 {
		text += " named " + strings.Join(r.ResourceNames, ", ")
	}
	return text
}

// compare puts first what helps more, then orders by kind and name.
func (c Change) compare(d Change) int {
	return cmp.Or(cmp.Compare(d.Certain, c.Certain), cmp.Compare(d.Entirely, c.Entirely), c.key.compare(d.key))
}

// NodesThatReach counts nodes by how they reach cluster-admin; each node counts once.
type NodesThatReach struct {
	// Certain is how many nodes certainly reach it, and Possible how many only possibly.
	Certain  int `json:"certain"`
	Possible int `json:"possible"`
}

// Advice is what to change so that nodes no longer reach cluster-admin, or the target that was asked for instead.
type Advice struct {
	// Nodes reach it now. Nodes that run the control plane are left out everywhere: no
	// change helps them.
	Nodes NodesThatReach `json:"nodes"`
	// Alone are the changes of which each helps some node without any other: what helps most
	// nodes comes first. No change outside of the list does, unless NotEvaluated is more than 0.
	Alone []Change `json:"alone"`
	// NotEvaluated is how many changes were not evaluated, because there were too many. They are on the
	// paths of fewer nodes than the evaluated ones.
	NotEvaluated int `json:"notEvaluated,omitempty"`
	// Set are changes that together help all nodes that changes can help, in the order in which
	// they were found. None of them can be left out, but a smaller set may exist. The counts are
	// about each change alone, and may be zero.
	Set []Change `json:"set"`
	// Left are the nodes that reach cluster-admin after all changes of Set, and Remaining the path
	// of the first one that has to be ended; empty if there is none. Unless a limit was reached,
	// none of the four kinds of changes ends it.
	Left      NodesThatReach `json:"left"`
	Remaining []Step         `json:"remaining,omitempty"`
	// Placing is where to run the pods that give cluster-admin instead; nil if there are none. Its
	// effect is that without the changes of Set.
	Placing *Placing `json:"placing,omitempty"`

	objects *objects
}

// Together makes several changes at once, as [Graph.Together] does.
func (a *Advice) Together(changes ...Change) *verdict.Remedy {
	keys := make([]changeKey, len(changes))
	for i, c := range changes {
		keys[i] = c.key
	}
	return a.objects.render(keys)
}

// AdviceOptions are options of [WhatToChange].
type AdviceOptions struct {
	// Target is what nodes are kept from; cluster-admin if it is zero. Paths to cluster-admin lead to each target.
	Target Holding
	// Possible also ends the paths that are only possible. Otherwise Set ends the certain ones.
	Possible bool
	// Limit is how many changes are evaluated at once, and how many Set may have; 200 if zero.
	Limit int
}

// set finds changes that together help all nodes that changes can help.
func (a *advisor) set(advice *Advice) {
	var taken []changeKey
	for {
		all, left := a.extend(taken)
		taken = prune(all, func(others []changeKey) bool {
			_, after := a.evaluate(others)
			return a.remains(after) == a.remains(left)
		})
		_, expected := a.evaluate(taken)
		// The reduced cluster is checked against the whole one.
		b := a.graph.again(a.whole.without(a.cluster, taken))
		reach := b.reachGoal(a.nodes)
		if slices.Equal(reach, expected) {
			for _, k := range taken {
				advice.Set = append(advice.Set, a.describe(k))
			}
			advice.Left, advice.Remaining = countReach(reach), a.remaining(b, reach)
			return
		}
		a.unreduced = true
	}
}

// extend takes one change after the other, the one that helps most nodes first.
func (a *advisor) extend(taken []changeKey) (all []changeKey, left []Certainty) {
	b, reach := a.evaluate(taken)
	for len(taken) < a.options.Limit && a.remains(reach) > 0 {
		candidates := slices.DeleteFunc(a.candidates(b, reach), func(c Change) bool {
			return a.bound(c) == 0 || slices.Contains(taken, c.key) // the node still requests tokens without a mount
		})
		if len(candidates) == 0 {
			break
		}
		best, most := candidates[0].key, 0
		for i, c := range candidates {
			if most >= a.bound(c) || i >= a.options.Limit {
				break // it helps no more nodes than it has paths of
			}
			_, after := a.evaluate(append(slices.Clip(taken), c.key))
			if n := a.remains(reach) - a.remains(after); n > most {
				best, most = c.key, n
			}
		}
		taken = append(taken, best)
		b, reach = a.evaluate(taken)
	}
	return taken, reach
}

// bound is how many nodes a change can help.
func (a *advisor) bound(c Change) int {
	if a.options.Possible {
		return c.Entirely
	}
	return c.Certain
}

// remains counts the nodes that the set does not help yet.
func (a *advisor) remains(reach []Certainty) int {
	n := countReach(reach)
	if a.options.Possible {
		return n.Certain + n.Possible
	}
	return n.Certain
}

// prune leaves out each change without which the others are enough.
func prune(changes []changeKey, enough func([]changeKey) bool) []changeKey {
	for i := len(changes) - 1; i >= 0; i-- {
		if others := slices.Delete(slices.Clone(changes), i, i+1); enough(others) {
			changes = others
		}
	}
	return changes
}

// remaining is the path of the first node that the changes do not help.
func (a *advisor) remaining(b *builder, reach []Certainty) []Step {
	for _, certainty := range [...]Certainty{Certain, Possible} {
		i := slices.Index(reach, certainty)
		if i < 0 || certainty == Possible && !a.options.Possible {
			continue
		}
		s := b.solver(certainty == Possible)
		defer s.Release()
		s.SolveUntil(b.index[key{kind: isNode, name: a.nodes[i]}], b.goal)
		return s.path(b.goal)
	}
	return nil
}

// candidates are the changes on one path of each node, with the numbers of nodes that have them, those on the paths of most nodes
// first. Of nodes that reach cluster-admin certainly, the path is certain.
func (a *advisor) candidates(b *builder, reach []Certainty) []Change {
	counts := map[changeKey]Change{}
	for _, certainty := range [...]Certainty{Certain, Possible} {
		wanted := map[vertex]bool{}
		for i, name := range a.nodes {
			if reach[i] == certainty {
				wanted[b.index[key{kind: isNode, name: name}]] = true
			}
		}
		if len(wanted) == 0 {
			continue
		}
		for _, changes := range b.changesOf(certainty == Possible, wanted) {
			for _, change := range changes {
				c := counts[change]
				c.key = change
				c.Entirely++
				if certainty == Certain {
					c.Certain++
				}
				counts[change] = c
			}
		}
	}
	return slices.SortedFunc(maps.Values(counts), Change.compare)
}
