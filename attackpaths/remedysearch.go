package attackpaths

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// maxTried bounds the graphs that are made for one remedy.
const maxTried = 60

// plan is changes that end derivations of a step together.
type plan struct {
	changes []changeKey
	// own is how many of the rights that the changes take give the step, and lost how many others they take.
	own, lost int
	// harm orders what a step needs by how much is usually done with it.
	harm int
	// disrupts is true if something is deleted or started again, or Kubernetes relies on it.
	disrupts bool
	// ends is the use that the last changes should end, if they may turn out not to: another right gives the same.
	ends string
}

// compare puts first what disrupts nothing, then what takes the fewest other rights.
func (p *plan) compare(o *plan) int {
	return cmp.Or(compareBools(p.disrupts, o.disrupts), cmp.Compare(p.lost, o.lost), cmp.Compare(p.harm, o.harm),
		cmp.Compare(len(p.changes), len(o.changes)))
}

// with adds changes to a plan; nil if the plan has them.
func (p *plan) with(o *objects, more *plan) *plan {
	next := &plan{
		changes: slices.Clone(p.changes), own: p.own + more.own, harm: p.harm + more.harm, disrupts: p.disrupts || more.disrupts,
		ends: more.ends,
	}
	for _, change := range more.changes {
		if !slices.Contains(next.changes, change) {
			next.changes = append(next.changes, change)
		}
	}
	if len(next.changes) == len(p.changes) {
		return nil
	}
	next.lost = max(0, o.lost(next.changes)-next.own)
	return next
}

// findRemedy searches the plans in the order of what they take: whatever ends the step has to end each derivation of
// it, so that a plan whose graph still has one is extended by each change that could end that.
func (g *Graph) findRemedy(at stepPlace) *verdict.Remedy {
	queue, why := []*plan{{}}, noneOfBefore
	reduced := g.reducedFor(at)
	for tried := 0; len(queue) > 0; tried++ {
		if tried == maxTried || tried > 0 && g.world.budget <= 0 {
			return g.endAll(at, reduced)
		}
		best := slices.MinFunc(queue, (*plan).compare) // the first of equal ones
		queue = slices.DeleteFunc(queue, func(p *plan) bool { return p == best })
		s := g.after(best.changes, at, reduced)
		if s == nil {
			return g.render(best)
		}
		if best.ends != "" && best.ends == s.text(g, &s.uses[0]) {
			continue
		}
		candidates, none := g.candidates(s)
		if len(candidates) == 0 {
			why = none
		}
		for _, c := range candidates {
			if next := best.with(g.world.objects, c); next != nil && !slices.ContainsFunc(queue, next.same) {
				queue = append(queue, next)
			}
		}
	}
	return noRemedy(why)
}

// endAll makes every change that could end a derivation until there is none, and leaves out each change that the others
// do not need. Other changes may take less.
func (g *Graph) endAll(at stepPlace, reduced *objects) *verdict.Remedy {
	all := &plan{}
	for s := g.after(nil, at, reduced); s != nil; s = g.after(all.changes, at, reduced) {
		candidates, _ := g.candidates(s)
		before := len(all.changes)
		for _, c := range candidates {
			if next := all.with(g.world.objects, c); next != nil && (!c.disrupts || len(candidates) == 1) {
				all = next
			}
		}
		if len(all.changes) == before {
			return noRemedy(noneOfMany)
		}
	}
	all.changes = prune(all.changes, func(less []changeKey) bool { return g.after(less, at, reduced) == nil })
	all.lost = g.world.objects.lost(all.changes)
	r := g.render(all)
	r.Warning = strings.TrimSpace(r.Warning + " " + warningOfMany)
	return r
}

func (p *plan) same(o *plan) bool {
	return len(p.changes) == len(o.changes) &&
		!slices.ContainsFunc(p.changes, func(c changeKey) bool { return !slices.Contains(o.changes, c) })
}

// after finds the step in the graph of the cluster after changes; nil if it is not there.
func (g *Graph) after(changes []changeKey, at stepPlace, reduced *objects) *stepSearch {
	if len(changes) == 0 && reduced == nil {
		return g.findStep(g, at)
	}
	if reduced == nil || g.world.objects.takeEverything(changes) {
		reduced = g.world.objects
	}
	b := g.world.again(reduced.without(g.world.cluster, changes))
	g.world.budget -= len(b.keys)
	return g.findStep(b.Graph, at)
}

// reducedFor are the objects that lead from the start of a path to what a step leads to; nil for all, where not every
// right is an edge of the graph: in NodeScopes and constrained impersonation.
func (g *Graph) reducedFor(at stepPlace) *objects {
	w := g.world
	if g.enforced > 0 || w.constrains() {
		return nil
	}
	if w.from[at.start] == nil {
		clear(w.from) // paths come by their starts
		w.from[at.start] = w.leadingFrom(at.start)
	}
	w.budget -= len(g.keys) / 8 // what the reduction costs
	target, isHolding := g.keys[at.to].holding()
	reduced := w.reduceTo(w.from[at.start].to(func(v vertex, k key) bool {
		h, ok := k.holding()
		return isHolding && ok && h == target || v == at.to
	}))
	if g.after(nil, at, reduced) == nil {
		return nil
	}
	return reduced
}

// takeEverything reports whether changes take a rule for everything from somebody: the graph leaves out what such a
// rule contains, so that what leads somewhere is another thing then.
func (o *objects) takeEverything(changes []changeKey) bool {
	return slices.ContainsFunc(changes, func(c changeKey) bool {
		of := rbac.Ref(c.object)
		if c.kind == takeSubject {
			of = o.bindings[o.bindingIndex()[c.object]].Role
		}
		role, ok := o.roleOf(of)
		return ok && givesEverything(o.roles[role].Rules)
	})
}

func givesEverything(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return grantsEverything(&rule) })
}

// candidates lists what could end a derivation, or says why nothing can. Roles have the same places in all graphs of
// the cluster.
func (g *Graph) candidates(s *stepSearch) (all []*plan, none string) {
	none = noneOfBefore
	for i := range s.uses {
		found, why := g.endUse(s, &s.uses[i])
		all = append(all, found...)
		if i == 0 && why != "" {
			none = why
		}
	}
	return all, none
}

// endUse lists what could end one edge of a derivation: changes of the object that makes the step, or else of a right.
func (g *Graph) endUse(s *stepSearch, u *use) (all []*plan, none string) {
	var code Code
	if u.Row != 0 && !isCustomRow(u.Row) {
		code = codeOf(u.Row)
		if end := endings[code]; end != nil {
			all, none = end(g, s, u)
		}
		switch {
		case len(all) > 0 || none != "" || isOfPod(u.Row):
			return all, none
		case len(u.from) > 1 || s.keys[u.from[0].vertex].actor():
			all = g.takeOwn(s, u)
		}
	}
	to := s.keys[u.To]
	if code == BindRole && to.kind == isRole && int(to.role) < len(g.roles)-1 {
		for _, wanted := range s.wantedAfter(u) {
			if changes := g.world.objects.shrink(to.role, wanted); len(changes) > 0 {
				all = append(all, &plan{changes: changes, harm: wanted.harm()})
			}
		}
	}
	if u.Arg >= 0 && len(all) == 0 {
		for _, wanted := range s.wantedAfter(u) {
			all = append(all, g.takeGrant(s, u, g.bindingOf(s, u.Arg), wanted)...)
		}
	}
	return all, ""
}

// wantedAfter lists the rights to which a binding leads in a derivation: of each way from there the first right of the
// table, request of custom techniques, or everything. Ways may lead back to where they began.
func (s *stepSearch) wantedAfter(u *use) []wantedRight {
	var all []wantedRight
	seen := map[vertex]bool{}
	var visit func(to vertex)
	visit = func(to vertex) {
		if seen[to] {
			return
		}
		seen[to] = true
		w := wantedRight{of: right(s.keys[to].variant), name: s.keys[to].name, target: s.target.Name}
		switch k := s.keys[to]; {
		case k.kind == isRight:
		case k.kind == isClusterAdmin:
			w = wantedRight{of: everyRight}
		default:
			for i := range s.uses {
				if slices.ContainsFunc(s.uses[i].from, func(d reachedVertex) bool { return d.vertex == to }) {
					visit(s.uses[i].To)
				}
			}
			return
		}
		if !slices.Contains(all, w) {
			all = append(all, w)
		}
	}
	visit(u.To)
	return all
}
