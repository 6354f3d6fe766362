package attackpaths

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// defaultLimit is AdviceOptions.Limit if it is zero.
const defaultLimit = 200

// WhatToChange finds what to take away so that nodes no longer reach cluster-admin, or another target: bindings, rules
// of roles, what pods mount, and namespaces without the Pod Security level restricted.
//
// Each answer is the answer of a new graph of the cluster without the change, as if [New] were called
// again. It says nothing about what the change breaks. Kubernetes restores default roles and their
// bindings when an API server starts: remedies of these say so, and keep it from that. It restores the
// rules of aggregated roles from others, which are changed instead. The rules of the ClusterRole
// cluster-admin are not proposed.
//
// The time grows with the number of changes on the paths, and with what leads to cluster-admin. The
// cluster must not change meanwhile.
func WhatToChange(c *Cluster, o AdviceOptions) (*Advice, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if o.Limit <= 0 {
		o.Limit = defaultLimit
	}
	a := &advisor{cluster: c, options: o, whole: c.objects(), graph: newBuilder(c), alones: map[changeKey]Change{}}
	a.keepTarget()
	a.graph.objects, a.graph.target = a.whole, o.Target
	a.graph.build()
	if o.Target != (Holding{}) {
		if _, err := a.graph.ends(o.Target); err != nil {
			return nil, err
		}
	}
	advice := a.begin()
	a.alone(advice)
	a.set(advice)
	advice.Placing = a.place(a.graph)
	return advice, nil
}

// advisor evaluates changes.
type advisor struct {
	cluster *Cluster
	options AdviceOptions
	// whole are all objects, graph is made of them, and reduced are those that paths to cluster-admin need without some rules
	// for everything.
	whole   *objects
	graph   *builder
	reduced map[string]*objects
	// unreduced is true if the reduced objects turned out not to be enough.
	unreduced bool
	// nodes reach cluster-admin as before says, and do not run the control plane.
	nodes  []string
	before []Certainty
	// alones are the changes that were evaluated alone.
	alones map[changeKey]Change
}

// begin finds, in the graph of all objects, the nodes that reach cluster-admin, and reduces the cluster.
func (a *advisor) begin() *Advice {
	b := a.graph
	var names []string
	for v, k := range b.keys {
		if k.kind == isNode && !b.runsControlPlane(vertex(v)) && a.options.Target != (Holding{Kind: Node, Name: k.name}) {
			names = append(names, k.name)
		}
	}
	for i, reach := range b.reachGoal(names) {
		if reach != No {
			a.nodes, a.before = append(a.nodes, names[i]), append(a.before, reach)
		}
	}
	a.reduced = map[string]*objects{fmt.Sprint([]changeKey{}): b.reduce(a.nodes)}
	return &Advice{Nodes: countReach(a.before), Alone: []Change{}, Set: []Change{}, objects: a.whole}
}

func countReach(all []Certainty) NodesThatReach {
	var n NodesThatReach
	for _, reach := range all {
		switch reach {
		case Certain:
			n.Certain++
		case Possible:
			n.Possible++
		}
	}
	return n
}

// again makes a graph of other objects of the cluster, whose roles have the same places. It has what the roles grant that are the
// same: to read their rules again for each graph would make advice take half as long again.
func (b *builder) again(o *objects) *builder {
	next := newBuilder(b.cluster)
	next.objects, next.target = o, b.target
	for role, rights := range b.roleRights {
		if int(role) == len(o.roles) || sameSlice(o.roles[role].Rules, b.roles[role].Rules) {
			next.roleRights[role] = rights
		}
	}
	next.build()
	return next
}

func sameSlice[T any](a, b []T) bool { return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) }

// keepTarget keeps a secret that is known only because pods name it: no change removes the secret itself.
func (a *advisor) keepTarget() {
	n := inventory.Name{Namespace: a.options.Target.Namespace, Name: a.options.Target.Name}
	isTarget := func(s inventory.Secret) bool { return s.Name == n }
	names := func(p *inventory.Pod) bool { return p.Namespace == n.Namespace && slices.Contains(p.Secrets, n.Name) }
	if a.options.Target.Kind == Secret && !slices.ContainsFunc(a.whole.secrets, isTarget) && slices.ContainsFunc(a.whole.pods, names) {
		a.whole.secrets = append(slices.Clip(a.whole.secrets), inventory.Secret{Name: n})
	}
}

// evaluate says how the nodes reach the goal after changes, and makes the graph.
func (a *advisor) evaluate(changes []changeKey) (*builder, []Certainty) {
	b := a.graph.again(a.without(changes))
	return b, b.reachGoal(a.nodes)
}

// without are the objects that are needed after changes. The graph leaves out what a rule for
// everything gives besides, so that without such a rule the objects have to be selected again.
func (a *advisor) without(changes []changeKey) *objects {
	if a.unreduced {
		return a.whole.without(a.cluster, changes)
	}
	var everything, others []changeKey
	for _, c := range changes {
		if c.kind == removeRule && grantsEverything(a.ruleOf(c)) {
			everything = append(everything, c)
		} else {
			others = append(others, c)
		}
	}
	slices.SortFunc(everything, changeKey.compare)
	id := fmt.Sprint(everything)
	from, ok := a.reduced[id]
	if !ok {
		from = a.graph.again(a.whole.without(a.cluster, everything)).reduce(a.nodes)
		a.reduced[id] = from
	}
	return from.without(a.cluster, others)
}

// ruleOf is the rule that a change removes.
func (a *advisor) ruleOf(c changeKey) *rbacv1.PolicyRule {
	role, _ := a.whole.roleOf(rbac.Ref(c.object))
	return &a.whole.roles[role].Rules[c.rule]
}

// helped counts the nodes that changes help.
func helped(before, after []Certainty) (certain, entirely int) {
	for i := range before {
		if before[i] == Certain && after[i] != Certain {
			certain++
		}
		if before[i] != No && after[i] == No {
			entirely++
		}
	}
	return certain, entirely
}

// alone evaluates the changes on the paths of nodes.
func (a *advisor) alone(advice *Advice) {
	b, reach := a.evaluate(nil)
	candidates := a.candidates(b, reach)
	if len(candidates) > a.options.Limit {
		advice.NotEvaluated = len(candidates) - a.options.Limit
		candidates = candidates[:a.options.Limit]
	}
	for _, c := range candidates {
		change := a.describe(c.key)
		_, after := a.evaluate([]changeKey{c.key})
		change.Certain, change.Entirely = helped(a.before, after)
		a.alones[c.key] = change
		if change.Certain+change.Entirely > 0 {
			advice.Alone = append(advice.Alone, change)
		}
	}
	slices.SortFunc(advice.Alone, Change.compare)
}

// describe is a change for those who make it.
func (a *advisor) describe(k changeKey) Change {
	if known, ok := a.alones[k]; ok {
		return known
	}
	change := Change{Kind: publicKinds[k.kind], Object: k.object, Secret: k.secret, key: k}
	if k.kind == removeRule {
		change.Rule, change.RuleNumber = a.ruleOf(k).DeepCopy(), k.rule+1
	}
	if k.kind == takeSubject {
		change.keepsMasters = keepsMasters(&a.whole.bindings[a.whole.bindingIndex()[k.object]])
	}
	for _, p := range a.whole.pods {
		if k.kind == removeMount && templateObject(p) == k.object && unchangeable(p) != "" {
			change.Remedy = noRemedy(unchangeable(p))
			return change
		}
	}
	change.Remedy = a.whole.render([]changeKey{k})
	change.Restored = slices.ContainsFunc(change.Remedy.Changes, func(c verdict.Change) bool {
		return strings.HasSuffix(c.Path, escaped(keepChanged))
	})
	return change
}
