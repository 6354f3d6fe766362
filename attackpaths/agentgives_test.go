package attackpaths_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// goal is something that an attacker wants of the made cluster.
type goal struct {
	name string
	// reached says how the goal is reached, with the path to it.
	reached func(r attackpaths.Result, from string) (attackpaths.Certainty, []attackpaths.Step)
}

// goals are what the page says of each agent. Cluster-admin owns everything, but what it owns is
// not counted for the other goals.
var goals = []goal{
	{"cluster-admin", func(r attackpaths.Result, _ string) (attackpaths.Certainty, []attackpaths.Step) {
		return weakest(r, []attackpaths.Holding{{Kind: attackpaths.ClusterAdmin}})
	}},
	{"all secrets", func(r attackpaths.Result, _ string) (attackpaths.Certainty, []attackpaths.Step) {
		return weakest(r, foreignSecrets)
	}},
	{"all other nodes", func(r attackpaths.Result, from string) (attackpaths.Certainty, []attackpaths.Step) {
		var others []attackpaths.Holding
		for _, name := range []string{controllersNode, plainNode, otherNode} {
			if name != from {
				others = append(others, attackpaths.Holding{Kind: attackpaths.Node, Name: name})
			}
		}
		return weakest(r, others)
	}},
}

// allNodes is the place of the goal "all other nodes".
const allNodes = 2

// foreignSecrets are the secrets of testdata/agents.yaml, which no agent uses.
var foreignSecrets = []attackpaths.Holding{
	{Kind: attackpaths.Secret, Namespace: "default", Name: "license"},
	{Kind: attackpaths.Secret, Namespace: "kube-system", Name: "backup"},
	{Kind: attackpaths.Secret, Namespace: "ops", Name: "registry"},
	{Kind: attackpaths.Secret, Namespace: "shop", Name: "database"},
}

// weakest says whether all of several holdings are reached. The path is that of the first one that
// is not certain, or else of the first one.
func weakest(r attackpaths.Result, wanted []attackpaths.Holding) (attackpaths.Certainty, []attackpaths.Step) {
	least, path := attackpaths.Certain, []attackpaths.Step(nil)
	for _, h := range wanted {
		i := slices.IndexFunc(r.Reached, func(x attackpaths.Reached) bool { return x.Holding == h })
		if i < 0 {
			return attackpaths.No, nil
		}
		if x := r.Reached[i]; path == nil || x.Certainty < least {
			least, path = x.Certainty, x.Path
		}
	}
	return least, path
}

// given is what one node gives.
type given struct {
	node string
	// certainty and path are those of each goal.
	certainty []attackpaths.Certainty
	paths     [][]attackpaths.Step
	reached   []attackpaths.Reached
}

// give computes what nodes give.
func (m made) give(t *testing.T, nodes ...string) []given {
	t.Helper()
	g := newGraph(t, m.cluster(t))
	var all []given
	for _, node := range nodes {
		r, err := g.From(attackpaths.Holding{Kind: attackpaths.Node, Name: node})
		if err != nil {
			t.Fatal(err)
		}
		x := given{node: node, reached: r.Reached}
		for _, goal := range goals {
			certainty, path := goal.reached(r, node)
			x.certainty, x.paths = append(x.certainty, certainty), append(x.paths, path)
		}
		all = append(all, x)
	}
	return all
}

func newGraph(t *testing.T, c *attackpaths.Cluster) *attackpaths.Graph {
	t.Helper()
	g, err := attackpaths.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// beyond are the holdings that a node reaches and does not reach without the agent, but for what
// is the agent's own and for pods. Where cluster-admin is reached, it is not listed what only that gives.
func (g given) beyond(without given, own map[attackpaths.Holding]bool) []attackpaths.Reached {
	var more []attackpaths.Reached
	for _, x := range g.reached {
		had := slices.ContainsFunc(without.reached, func(y attackpaths.Reached) bool {
			return y.Holding == x.Holding && y.Certainty >= x.Certainty
		})
		if !had && x.Kind != attackpaths.Pod && x.Certainty > g.certainty[0] && !own[x.Holding] {
			more = append(more, x)
		}
	}
	return more
}

// own are the accounts and secrets of the agent: those of its file and of its pods.
func (a *agent) own() map[attackpaths.Holding]bool {
	own := map[attackpaths.Holding]bool{}
	i := inventory.New()
	for _, object := range a.objects {
		switch object.(type) {
		case *corev1.ServiceAccount, *corev1.Secret:
			i.Set(object)
		}
	}
	for _, w := range a.workloads {
		i.Set(made{}.pod(w, "node"))
	}
	for _, name := range i.ServiceAccounts() {
		own[attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: name.Namespace, Name: name.Name}] = true
	}
	for _, s := range i.Secrets() {
		own[attackpaths.Holding{Kind: attackpaths.Secret, Namespace: s.Namespace, Name: s.Name.Name}] = true
	}
	for _, p := range i.Pods() {
		own[attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: p.Namespace, Name: p.ServiceAccount}] = true
		for _, name := range slices.Concat(p.Secrets, p.PullSecrets) {
			own[attackpaths.Holding{Kind: attackpaths.Secret, Namespace: p.Namespace, Name: name}] = true
		}
	}
	return own
}

// advice is what to change so that no worker reaches one goal.
type advice struct {
	// alone are changes of which each is enough, and set changes that are enough together. Set is
	// empty if one is enough.
	alone, set []attackpaths.Change
	// left is how the goal is still reached after all changes of set.
	left attackpaths.Certainty
	// remaining is a path that the changes do not end.
	remaining []attackpaths.Step
}

// adminAdvice is that of WhatToChange. Possible also ends what is only possible.
func (m made) adminAdvice(t *testing.T, possible bool) advice {
	t.Helper()
	found, err := attackpaths.WhatToChange(m.cluster(t), attackpaths.AdviceOptions{Possible: possible})
	if err != nil {
		t.Fatal(err)
	}
	a := advice{set: found.Set, remaining: found.Remaining}
	for _, c := range found.Alone {
		if possible && c.Entirely == found.Nodes.Certain+found.Nodes.Possible || !possible && c.Certain == found.Nodes.Certain {
			a.alone = append(a.alone, c)
		}
	}
	if found.Left.Certain > 0 {
		a.left = attackpaths.Certain
	} else if found.Left.Possible > 0 {
		a.left = attackpaths.Possible
	}
	return a
}

// ruleAdvice finds rules of an agent's roles without which no node reaches a goal. None of them can
// be kept; other sets may exist. It is empty if the goal is reached without any rule.
func (m made) ruleAdvice(t *testing.T, a *agent, goal int, nodes ...string) []attackpaths.Change {
	t.Helper()
	var removed []attackpaths.Change
	for _, object := range a.objects {
		removed = append(removed, ruleRemovals(object)...)
	}
	ended := func(without []attackpaths.Change) bool {
		return !slices.ContainsFunc(m.withoutRules(without).give(t, nodes...), func(g given) bool {
			return g.certainty[goal] != attackpaths.No
		})
	}
	if !ended(removed) {
		return nil
	}
	// Put rules back, many at once while that is possible.
	for size := len(removed); size > 0; size /= 2 {
		for i := 0; i < len(removed); {
			less := slices.Delete(slices.Clone(removed), i, min(i+size, len(removed)))
			if ended(less) {
				removed = less
			} else {
				i += size
			}
		}
	}
	return removed
}

// ruleRemovals are the removals of each rule of a role; none for other objects.
func ruleRemovals(object runtime.Object) []attackpaths.Change {
	var h attackpaths.Holding
	var rules []rbacv1.PolicyRule
	switch o := object.(type) {
	case *rbacv1.ClusterRole:
		h, rules = attackpaths.Holding{Kind: "ClusterRole", Name: o.Name}, o.Rules
	case *rbacv1.Role:
		h, rules = attackpaths.Holding{Kind: "Role", Namespace: o.Namespace, Name: o.Name}, o.Rules
	}
	var all []attackpaths.Change
	for i := range rules {
		all = append(all, attackpaths.Change{Kind: attackpaths.RemoveRule, Object: h, Rule: &rules[i], RuleNumber: i + 1})
	}
	return all
}

// withoutRules is the cluster without rules of roles.
func (m made) withoutRules(changes []attackpaths.Change) made {
	m.objects = slices.Clone(m.objects)
	for i, object := range m.objects {
		keep := func(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
			var kept []rbacv1.PolicyRule
			for n := range rules {
				if !slices.ContainsFunc(changes, func(c attackpaths.Change) bool { return c.Rule == &rules[n] }) {
					kept = append(kept, rules[n])
				}
			}
			return kept
		}
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			without := *o
			without.Rules = keep(o.Rules)
			m.objects[i] = &without
		case *rbacv1.Role:
			without := *o
			without.Rules = keep(o.Rules)
			m.objects[i] = &without
		}
	}
	return m
}

// daemons reports whether the agent has DaemonSets, and others whether it has other workloads.
func (a *agent) daemons() bool {
	return slices.ContainsFunc(a.workloads, func(w workload) bool { return w.kind == "DaemonSet" })
}

func (a *agent) others() bool {
	return slices.ContainsFunc(a.workloads, func(w workload) bool { return w.kind != "DaemonSet" })
}

// runsOn says where the agent's pods run: "DaemonSet a/b; Deployment a/c".
func (a *agent) runsOn() string {
	var parts []string
	for _, w := range a.workloads {
		parts = append(parts, "`"+w.String()+"`")
	}
	return strings.Join(parts, ", ")
}
