package attackpaths

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// takeOwn takes one of the rights of a requester that a step needs together, by any binding that gives it.
func (g *Graph) takeOwn(s *stepSearch, u *use) []*plan {
	bindings := map[int32]bool{}
	for v := range s.first {
		for _, e := range s.edges.Out[v] {
			if s.keys[v].kind == isSubject && e.Row == 0 && e.Arg >= 0 {
				bindings[g.bindingOf(s, e.Arg)] = true
			}
		}
	}
	if u.Arg >= 0 {
		bindings[g.bindingOf(s, u.Arg)] = true
	}
	target := s.keys[u.To]
	if target.kind == isLimited {
		target = s.keys[target.of]
	}
	given := map[wantedRight]*plan{}
	var all []*plan
	for _, binding := range slices.Sorted(maps.Keys(bindings)) {
		role, ok := g.world.objects.roleOf(g.bindings[binding].Role)
		// Rights count together with others in the namespace of the target, and unless they are everything, which leads to
		// cluster-admin instead.
		scope := g.bindings[binding].Binding.Namespace
		if !ok || scope != "" && scope != target.namespace || scope == "" && givesEverything(g.roles[role].Rules) {
			continue
		}
		for _, wanted := range g.ownRights(s, u, role) {
			if given[wanted] == nil {
				given[wanted] = &plan{ends: s.text(g, u)}
				all = append(all, given[wanted])
			}
			given[wanted].add(g.cheapest(g.takeGrant(s, nil, binding, wanted)))
		}
	}
	return all
}

// add makes the changes of another plan too.
func (p *plan) add(o *plan) {
	p.changes, p.own, p.harm = append(p.changes, o.changes...), p.own+o.own, max(p.harm, o.harm)
	p.disrupts = p.disrupts || o.disrupts
}

// cheapest is the plan that takes the fewest other rights; empty if there is none.
func (g *Graph) cheapest(all []*plan) *plan {
	best := &plan{}
	for _, c := range all {
		if p := (&plan{}).with(g.world.objects, c); p != nil && (len(best.changes) == 0 || p.compare(best) < 0) {
			best = p
		}
	}
	return best
}

// bindingOf is the place that a binding of another graph of the cluster has in this one.
func (g *Graph) bindingOf(s *stepSearch, binding int32) int32 {
	return g.world.objects.bindingIndex()[verdict.Object(s.bindings[binding].Binding)]
}

// ownRights are the rights of a role that the technique of a step uses together with others: for what the step is
// about if rules name objects, and for any object.
func (g *Graph) ownRights(s *stepSearch, u *use, role int32) []wantedRight {
	if isCustomRow(u.Row) {
		return nil
	}
	needs := techniques[u.Row-1].needs
	if codeOf(u.Row) == Impersonate { // a node is needed too in some modes
		mode := mode(0)
		if to := s.keys[u.To]; to.kind == isLimited {
			mode = s.kinds[to.variant].on
		}
		needs = slices.DeleteFunc(slices.Concat(needs, techniques[u.Row-1].helps), func(r right) bool {
			return requestKinds[r].mode != mode
		})
	}
	var all []wantedRight
	for _, needed := range needs {
		w := wantedRight{of: needed, any: true, alone: true}
		given := func(named bool) bool {
			return slices.ContainsFunc(g.roles[role].Rules, func(r rbacv1.PolicyRule) bool {
				return (!named || len(r.ResourceNames) > 0) && w.givenBy(g, &r)
			})
		}
		if needed < firstOwn || !given(false) {
			continue
		}
		if given(true) {
			all = append(all, wantedRight{of: w.of, target: s.targetName(u), alone: true})
		}
		all = append(all, w)
		if others := needed.otherWrites(); w.harm() > 0 && len(others) > 1 {
			w.of, w.writes = others[0], true
			if !slices.Contains(all, w) {
				all = append(all, w)
			}
		}
	}
	return all
}

// targetName is the name that a right for only one object would have.
func (s *stepSearch) targetName(u *use) string {
	k := s.keys[u.To]
	if k.kind == isLimited {
		k = s.keys[k.of]
	}
	if k.kind != isRole {
		return k.name
	}
	for _, v := range u.from { // the role that gets rules
		if of := s.keys[v.vertex]; of.kind == isRole {
			k = of
		}
	}
	return s.roles[k.role].Role.Name
}

// takeGrant takes a right that a binding gives: from the role's rules, or the subjects from the binding. The subjects
// are those that the edge leads from, or those that the requester stands for.
func (g *Graph) takeGrant(s *stepSearch, u *use, binding int32, wanted wantedRight) []*plan {
	o := g.world.objects
	bound := &g.bindings[binding]
	places := g.placesOf(s, u, binding)
	own := 0
	var all []*plan
	if role, ok := o.roleOf(bound.Role); ok {
		own = o.giving(o.roles[role].Rules, wanted) * len(places)
		if changes := o.shrink(role, wanted); len(changes) > 0 {
			all = append(all, &plan{changes: changes, own: own, harm: wanted.harm()})
		}
	}
	ofAdmin := keepsMasters(bound)
	less := &plan{own: own, harm: wanted.harm(), disrupts: isDefault(bound.Binding.Name, bound.Default) && !ofAdmin}
	for _, place := range places {
		if !ofAdmin || !isMasters(bound.Subjects[place]) {
			less.changes = append(less.changes, changeKey{kind: takeSubject, object: verdict.Object(bound.Binding), rule: place})
		}
	}
	if len(less.changes) > 0 {
		all = append(all, less)
	}
	return all
}

// shrink takes a right from the rules of a role, or from those that an aggregated role is made of. It is empty if
// Kubernetes restores one of them, or if nothing would be left of one.
func (o *objects) shrink(role int32, wanted wantedRight) []changeKey {
	r := &o.roles[role]
	if r.Sources == nil {
		if int(role) >= o.existing || isDefault(r.Role.Name, r.Default) || r.Role.Namespace == "" && r.Role.Name == clusterAdmin {
			return nil
		}
		change := changeKey{kind: takeRight, object: verdict.Object(r.Role), right: wanted}
		if len(slices.Concat(o.rulesWithout([]changeKey{change})[role]...)) == 0 {
			return nil
		}
		return []changeKey{change}
	}
	var all []changeKey
	for i := range o.roles {
		source := &o.roles[i]
		stated := source.Role.Kind == "ClusterRole" && slices.Contains(r.Sources, source.Role.Name)
		if !stated || !slices.ContainsFunc(source.Rules, func(rule rbacv1.PolicyRule) bool { return wanted.givenBy(o.rights, &rule) }) {
			continue
		}
		changes := o.shrink(int32(i), wanted)
		if len(changes) == 0 {
			return nil
		}
		all = append(all, changes...)
	}
	return all
}

// harm orders rights by how much is usually done with them: few need those by which others get rights.
func (w wantedRight) harm() int {
	rare := []right{createVolumes, bindClusterRoles, bindRoles, escalateClusterRoles, escalateRoles, approveSigners, signSigners}
	if impersonateServiceAccounts <= w.of && w.of <= impersonateGroupInfo || slices.Contains(rare, w.of) {
		return 0
	}
	return 1
}

// placesOf are the places of subjects in a binding.
func (g *Graph) placesOf(s *stepSearch, u *use, binding int32) []int {
	names := map[string]bool{}
	if u != nil && s.keys[u.from[0].vertex].kind == isSubject {
		names[s.keys[u.from[0].vertex].name] = true
	} else {
		for v := range s.first {
			if k := s.keys[v]; k.kind == isSubject {
				names[k.name] = true
			} else if s.isScopedAccount(k) {
				for _, v := range g.scopedSubjects(k, binding) {
					names[g.keys[v].name] = true
				}
			}
		}
	}
	var places []int
	for i, subject := range g.bindings[binding].Subjects {
		user, group, ok := principal(subject)
		if ok && names[subjectKey(user, group, anybody).name] {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		for i := range g.bindings[binding].Subjects {
			places = append(places, i)
		}
	}
	return places
}

const (
	rbacAPI = "rbac.authorization.k8s.io/v1"
	// keepChanged is the annotation that keeps the API server from restoring a default role or
	// binding when it starts, with the value "false".
	// Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#auto-reconciliation
	keepChanged = "rbac.authorization.kubernetes.io/autoupdate"
	// clusterAdmin is the role that an API server needs.
	clusterAdmin = "cluster-admin"
)

// withoutSubjects removes subjects from a binding, which stays: whoever wants the rights back adds them again.
//
// The API server gives system:masters its rights without a binding, so that the subject of the
// binding cluster-admin stays: then nothing has to be kept from being restored.
func withoutSubjects(bound *rbac.BoundRole, gone places) []verdict.Change {
	e := editor{apiVersion: rbacAPI, object: verdict.Object(bound.Binding)}
	ofAdmin := keepsMasters(bound)
	for i := len(bound.Subjects) - 1; i >= 0; i-- {
		if gone.has(i) && !(ofAdmin && isMasters(bound.Subjects[i])) {
			path, subject := "/subjects/"+strconv.Itoa(i), bound.Subjects[i]
			if subject.APIGroup == "" && subject.Kind != rbacv1.ServiceAccountKind {
				subject.APIGroup = rbacv1.GroupName // as the API server returns it
			}
			e.do(verdict.Test, path, subject)
			e.do(verdict.Remove, path, nil)
		}
	}
	if bound.Default && !ofAdmin {
		e.do(verdict.Add, "/metadata/annotations/"+escaped(keepChanged), "false")
	}
	return e.changes
}

// keepsMasters reports whether a binding is the one that Kubernetes makes for system:masters.
func keepsMasters(bound *rbac.BoundRole) bool {
	return bound.Default && bound.Binding.Name == clusterAdmin
}

func isMasters(s rbacv1.Subject) bool { return s.Kind == rbacv1.GroupKind && s.Name == masters }

// isDefault reports whether Kubernetes makes an object of RBAC itself.
func isDefault(name string, labeled bool) bool { return labeled || strings.HasPrefix(name, "system:") }

// withRules replaces rules of a role by what is left of each.
func withRules(r *rbac.RoleRules, left [][]rbacv1.PolicyRule) []verdict.Change {
	e := editor{apiVersion: rbacAPI, object: verdict.Object(r.Role)}
	for i := len(left) - 1; i >= 0; i-- {
		rule, path := &r.Rules[i], "/rules/"+strconv.Itoa(i)
		if len(left[i]) == 1 && sameRule(&left[i][0], rule) {
			continue
		}
		e.do(verdict.Test, path, rule)
		if len(left[i]) == 0 {
			e.do(verdict.Remove, path, nil)
			continue
		}
		now := &left[i][0]
		e.replace(path+"/resources", rule.Resources, now.Resources)
		e.replace(path+"/verbs", rule.Verbs, now.Verbs)
		e.replace(path+"/resourceNames", rule.ResourceNames, now.ResourceNames)
		for j := len(left[i]) - 1; j > 0; j-- {
			e.do(verdict.Add, "/rules/"+strconv.Itoa(i+1), &left[i][j])
		}
	}
	if r.Default {
		e.do(verdict.Add, "/metadata/annotations/"+escaped(keepChanged), "false")
	}
	return e.changes
}

func sameRule(a, b *rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}

// replace replaces a list that is another then.
func (e *editor) replace(path string, before, now []string) {
	if !slices.Equal(before, now) {
		e.do(verdict.Replace, path, now)
	}
}
