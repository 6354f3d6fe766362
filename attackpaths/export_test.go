package attackpaths

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Costs returns how many steps the cheapest derivation of each holding has that From reports.
func (g *Graph) Costs(start Holding) (map[Holding]int, error) {
	v, err := g.find(start)
	if err != nil {
		return nil, err
	}
	costs := map[Holding]int{}
	r := g.newReach()
	defer r.release()
	r.solve(v)
	for _, w := range r.ways(v, Possible) {
		costs[w.holding()] = int(w.cost())
	}
	return costs, nil
}

// Edges returns how many edges and parts of joins the graph has.
func (g *Graph) Edges() int {
	n := 0
	for v := range g.edges.Out {
		n += len(g.edges.Out[v]) + len(g.edges.JoinsOf[v])
	}
	return n
}

// SecretsListed makes the graph of a cluster, and counts how often the secrets of each node are listed.
func SecretsListed(c *Cluster) map[string]int {
	b, listed := newBuilder(c), map[string]int{}
	b.objects = c.objects()
	list := b.objects.secretsOn
	b.objects.secretsOn = func(node string) []verdict.Object {
		listed[node]++
		return list(node)
	}
	b.build()
	return listed
}

// PolicyGuards says whether admission policies guard the writes of an attacker.
type PolicyGuards struct{ b *builder }

// NewPolicyGuards returns the guards of a cluster.
func NewPolicyGuards(c *Cluster) PolicyGuards {
	b := newBuilder(c)
	b.collect()
	return PolicyGuards{b}
}

// rightFor is the right that allows a write; ok is false for writes of custom techniques.
func (g PolicyGuards) rightFor(w inventory.Write) (r right, ok bool) {
	for r := range rightCount {
		of := writeOf(r)
		of.Namespaced = w.Namespaced
		if of == w {
			return r, true
		}
	}
	return 0, false
}

func (g PolicyGuards) right(w inventory.Write) right {
	r, ok := g.rightFor(w)
	if !ok {
		panic("no right for a write")
	}
	return r
}

func (g PolicyGuards) guarded(attempts ...attempt) bool {
	return g.b.policyGuards(func() []attempt { return attempts }) != ""
}

// Write is about a write of which the object is not special.
func (g PolicyGuards) Write(w inventory.Write, namespace string) bool {
	if _, ok := g.rightFor(w); !ok {
		w.Namespaced = namespace != ""
		return g.b.namedGuards(w, namespace) != ""
	}
	return g.guarded(g.b.attemptsOf(g.right(w), namespace)...)
}

// Pods is about pods made by a write for a use: any, account, secret, host, claim or ephemeral.
func (g PolicyGuards) Pods(w inventory.Write, namespace, use, name string) bool {
	uses := map[string]podUse{
		"any": anyPod, "account": usesAccount, "secret": usesSecret, "host": takesHost,
		"claim": mountsClaim, "ephemeral": mountsEphemeral,
	}
	return g.guarded(g.b.attemptsOfPods(g.right(w), namespace, uses[use], name)...)
}

// Container is about an ephemeral container.
func (g PolicyGuards) Container(p *inventory.Pod, privileged bool) bool {
	return g.guarded(g.b.addedContainer(p.Namespace, privileged, p.Ephemeral)...)
}

// NewBinding, ChangedBinding and ChangedRole are about objects of RBAC.
func (g PolicyGuards) NewBinding(w inventory.Write, namespace string, role rbac.Ref) bool {
	return g.guarded(g.b.newBinding(g.right(w), namespace, role)...)
}

func (g PolicyGuards) ChangedBinding(w inventory.Write, bound rbac.BoundRole) bool {
	return g.guarded(g.b.changedBinding(g.right(w), bound)...)
}

func (g PolicyGuards) ChangedRole(w inventory.Write, role rbac.RoleRules) bool {
	return g.guarded(g.b.changedRole(g.right(w), role)...)
}

// Bound are the nodes of the pods that were placed.
func (p *Placing) Bound() map[inventory.Name]string { return p.bound }

// Right is a kind of request that techniques need.
type Right struct {
	Verbs                        []string
	Group, Resource, Subresource string
	Namespaced                   bool
	place                        right
}

// Rights are those that an account in NodeScopes may have on its own, without constrained impersonation.
func Rights(c *Cluster) []Right {
	var all []Right
	for r := range declaredRights {
		k := requestKinds[r]
		verbs := slices.Clone(k.verbs)
		if (r == execPods || r == attachPods) && c.Features.Minor() < 35 {
			verbs = append(verbs, "get")
		}
		if r.countsAlone() {
			all = append(all, Right{verbs, k.group, k.resource, k.subresource, k.namespaced, r})
		}
	}
	return all
}

// Nameless reports whether a request with a verb has no name.
func (r Right) Nameless(verb string) (nameless, named bool) {
	return requestKinds[r.place].byName(verb)
}

// TokenHas says whether the token of an account on a node has a right for an object. The empty node
// stands for a node that no cluster has.
func (g *Graph) TokenHas(namespace, name, node string, r Right, in, object string) Certainty {
	certainty := No
	note := func(v vertex) {
		for _, e := range g.edges.Out[v] {
			k := g.keys[e.To]
			covers := limit{k.namespace, k.name}.covers(in, object)
			if k.kind == isRight && k.of != 0 {
				covers = covers && slices.ContainsFunc(g.pods, func(p *inventory.Pod) bool {
					return nodeUserPrefix+p.Node == g.keys[k.of].name && p.Namespace == in && p.Name.Name == object
				})
			}
			owns := k.kind == isClusterAdmin
			byName := requestKinds[r.place].unnamed && k.name != ""
			if !owns && (k.kind != isRight || right(k.variant) != r.place || !covers || byName) {
				continue
			}
			if certainty = max(certainty, Possible); e.DependsOn == 0 {
				certainty = Certain
			}
		}
	}
	if v, ok := g.index[key{kind: isScoped, namespace: namespace, name: name}]; ok {
		note(v)
	}
	if user, ok := g.index[key{kind: isNodeUser, name: nodeUserPrefix + node}]; ok {
		if v, ok := g.index[key{kind: isAssociated, namespace: namespace, name: name, of: user}]; ok {
			note(v)
		}
	}
	return certainty
}

// NeededRight is a right with the techniques of which it is more than a help.
type NeededRight struct {
	Right
	Techniques []Code
}

// Path is the resource as rules name it.
func (r NeededRight) Path() string {
	return objectText("", r.Resource, r.Subresource)
}

// NeededRights are all rights of the table.
func NeededRights() []NeededRight {
	all := make([]NeededRight, declaredRights)
	for r, k := range requestKinds[:declaredRights] {
		all[r].Right = Right{k.verbs, k.group, k.resource, k.subresource, k.namespaced, right(r)}
	}
	for _, t := range techniques {
		for _, r := range t.needs {
			all[r].Techniques = append(all[r].Techniques, t.Code)
		}
	}
	return all
}

// HasStep reports whether a graph of the cluster after a change has a step that another graph has, whichever right
// gives it.
func HasStep(of, g *Graph, s Step) bool { return of.findStep(g, *s.place) != nil }

// MadeAlone reports whether a step of a graph is made with nothing that other holdings have.
func MadeAlone(g *Graph, s Step) bool {
	search := g.findStep(g, *s.place)
	how := []use{*search.end}
	for i := 0; i < len(how); i++ {
		for _, d := range how[i].from {
			if !d.own {
				return false
			}
			how = append(how, search.sources[d])
		}
	}
	return true
}

// RightsGiven counts what bindings give to subjects, as Remedy.OtherRights counts it.
func RightsGiven(c *Cluster) int {
	o, n := c.objects(), 0
	for _, bound := range o.bindings {
		for _, role := range o.roles {
			if role.Role == bound.Role {
				for _, subject := range bound.Subjects {
					n += cells(role.Rules) * o.members(subject)
				}
			}
		}
	}
	return n
}

// AddRemediesWithin is AddRemedies for graphs with so many vertices.
func (g *Graph) AddRemediesWithin(budget int, paths ...[]Step) { g.addRemedies(budget, paths...) }
