package attackpaths

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// everyRight stands for a rule for everything.
const everyRight = ^right(0)

// wantedRight is a right that a step needs. It is one for any object that has the name or is the target, and for
// every object if any is true. If alone is true, rights that are alike do not give the step.
type wantedRight struct {
	of           right
	name, target string
	any, alone   bool
	// writes takes each right to write objects of the kind that counts together with others: any of them is enough.
	writes bool
}

// givenBy reports whether a rule gives the right, one that is alike, or the right to create such an object by its name.
func (w wantedRight) givenBy(g *Graph, rule *rbacv1.PolicyRule) bool {
	covers := func(name string) bool {
		return w.any || name == "" || name == w.name || w.name == "" && name == w.target
	}
	rights := []right{w.of}
	switch {
	case w.of == everyRight:
		return grantsEverything(rule)
	case w.writes:
		rights = w.of.otherWrites()
	case !w.alone:
		rights = w.of.alike()
	}
	for _, r := range rights {
		if i := slices.Index(madeByName[:], r); i >= 0 {
			rights = append(rights, partOf(i))
		}
	}
	return slices.ContainsFunc(rights, func(r right) bool { return slices.ContainsFunc(g.kinds[r].namesBy(rule), covers) })
}

// otherWrites lists the rights to write objects of the same kind that count together with others of a requester.
func (r right) otherWrites() []right {
	var all []right
	k := &requestKinds[r]
	for other := firstOwn; other < rightCount; other++ {
		o := &requestKinds[other]
		same := o.group == k.group && o.resource == k.resource && o.subresource == k.subresource
		if same && (wantedRight{of: other}).harm() > 0 {
			all = append(all, other)
		}
	}
	return all
}

// standardVerbs are what a rule for every verb allows on most resources.
var standardVerbs = strings.Fields(every)

func verbsOf(rule *rbacv1.PolicyRule) []string {
	if slices.Contains(rule.Verbs, "*") {
		return standardVerbs
	}
	return rule.Verbs
}

// cut takes from a rule what gives a right, and nothing else: what is left may be up to three rules, or none. A
// resource that a rule for all resources names loses its verbs; a rule for all verbs of all resources is left out.
func cut(rule *rbacv1.PolicyRule, gives func(*rbacv1.PolicyRule) bool) []rbacv1.PolicyRule {
	if !gives(rule) {
		return []rbacv1.PolicyRule{*rule}
	}
	only := func(verbs, resources, names []string) *rbacv1.PolicyRule {
		part := *rule
		part.Verbs, part.Resources, part.ResourceNames = verbs, resources, names
		return &part
	}
	var left []rbacv1.PolicyRule
	keep := func(part *rbacv1.PolicyRule) { left = append(left, *part) }
	names := rule.ResourceNames
	if len(names) > 1 {
		kept := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return gives(only(rule.Verbs, rule.Resources, []string{name}))
		})
		if len(kept) > 0 && len(kept) < len(names) {
			keep(only(rule.Verbs, rule.Resources, kept))
			names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(kept, name) })
		}
	}
	kept := slices.DeleteFunc(slices.Clone(rule.Resources), func(one string) bool { return gives(only(rule.Verbs, []string{one}, names)) })
	if len(kept) > 0 {
		keep(only(rule.Verbs, kept, names))
	}
	first := len(left)
	for _, one := range rule.Resources {
		verbs := rule.Verbs
		if !strings.Contains(one, "*") {
			verbs = verbsOf(rule)
		}
		kept := slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return gives(only([]string{verb}, []string{one}, names)) })
		i := slices.IndexFunc(left[first:], func(r rbacv1.PolicyRule) bool { return slices.Equal(r.Verbs, kept) })
		switch {
		case len(kept) == 0 || len(kept) == len(verbs):
		case i >= 0:
			left[first+i].Resources = append(slices.Clone(left[first+i].Resources), one)
		default:
			keep(only(kept, []string{one}, names))
		}
	}
	return left
}

// takeRights takes rights from the rules of roles, and from the aggregated roles that a controller makes of them.
func (o *objects) takeRights(changes []changeKey) {
	parts := o.rulesWithout(changes)
	if len(parts) == 0 {
		return
	}
	o.roles = slices.Clone(o.roles)
	for role, rules := range parts {
		for i := range rules {
			if len(rules[i]) == 0 {
				rules[i] = []rbacv1.PolicyRule{{}} // rules keep their places
			}
		}
		o.roles[role].Rules = slices.Concat(rules...)
	}
}

// rulesWithout are what is left of each rule of the roles that changes are about, and of the aggregated roles that a controller
// makes of them.
func (o *objects) rulesWithout(changes []changeKey) map[int32][][]rbacv1.PolicyRule {
	all := map[int32][][]rbacv1.PolicyRule{}
	for _, c := range changes {
		if c.kind != takeRight && c.kind != removeRule {
			continue
		}
		role, _ := o.roleOf(rbac.Ref(c.object))
		if all[role] == nil {
			all[role] = slices.Collect(slices.Chunk(o.roles[role].Rules, 1))
		}
		for i, rules := range all[role] {
			if c.kind == removeRule {
				if i == c.rule {
					all[role][i] = nil
				}
				continue
			}
			var left []rbacv1.PolicyRule
			for j := range rules {
				left = append(left, cut(&rules[j], func(rule *rbacv1.PolicyRule) bool { return c.right.givenBy(o.rights, rule) })...)
			}
			all[role][i] = left
		}
	}
	if len(all) == 0 {
		return nil
	}
	for i := range o.roles {
		if r := &o.roles[i]; slices.ContainsFunc(r.Sources, func(source string) bool { return all[o.clusterRole(source)] != nil }) {
			all[int32(i)] = o.aggregated(r, all)
		}
	}
	return all
}

func (o *objects) clusterRole(name string) int32 {
	return o.roleIndex()[roleName{"", name}]
}

// aggregated is what is left of the rules of an aggregated role: of each rule what a source has of it, and all of it if a
// source states it as before.
func (o *objects) aggregated(r *rbac.RoleRules, changed map[int32][][]rbacv1.PolicyRule) [][]rbacv1.PolicyRule {
	all := make([][]rbacv1.PolicyRule, len(r.Rules))
	for i := range r.Rules {
		before := r.Rules[i : i+1]
		var left []rbacv1.PolicyRule
		stated := false
		for _, source := range r.Sources {
			role := o.clusterRole(source)
			for j := range o.roles[role].Rules {
				if !sameRule(&o.roles[role].Rules[j], &before[0]) {
					continue
				}
				parts := before
				if changed[role] != nil {
					parts = changed[role][j]
				}
				for _, part := range parts {
					if !slices.ContainsFunc(left, func(known rbacv1.PolicyRule) bool { return sameRule(&known, &part) }) {
						left = append(left, part)
					}
				}
				stated = true
			}
		}
		if !stated || slices.ContainsFunc(left, func(known rbacv1.PolicyRule) bool { return sameRule(&known, &before[0]) }) {
			left = before
		}
		all[i] = left
	}
	return all
}

// cells counts the rights of rules: one for each verb, resource and name.
func cells(rules []rbacv1.PolicyRule) int {
	n := 0
	for i := range rules {
		r := &rules[i]
		verbs, resources := len(verbsOf(r)), len(r.Resources)+len(r.NonResourceURLs)
		if slices.Contains(r.Resources, "*") {
			resources = resourcesIn(r.APIGroups)
		}
		n += verbs * resources * max(1, len(r.ResourceNames))
	}
	return n
}

// resourcesIn counts the resources that an API server has in groups, by the table of all rights.
func resourcesIn(groups []string) int {
	known := map[[3]string]bool{}
	for _, r := range allRights {
		if slices.Contains(groups, "*") || slices.Contains(groups, r.Group) {
			known[[3]string{r.Group, r.Resource, r.Subresource}] = true
		}
	}
	return max(1, len(known))
}

// giving counts the rights of rules that give a right, each resource and verb once.
func (o *objects) giving(rules []rbacv1.PolicyRule, w wantedRight) int {
	n := 0
	for i := range rules {
		r := &rules[i]
		if !w.givenBy(o.rights, r) {
			continue
		}
		found := 0
		for _, verb := range verbsOf(r) {
			for _, resource := range r.Resources {
				part := *r
				part.Verbs, part.Resources = []string{verb}, []string{resource}
				if w.givenBy(o.rights, &part) {
					found++
				}
			}
		}
		n += max(1, found)
	}
	return n
}

// members counts whom a subject stands for: of groups whose members only the authenticator knows, two.
func (o *objects) members(s rbacv1.Subject) int {
	_, group, _ := principal(s)
	namespace, isOfNamespace := strings.CutPrefix(group, allServiceAccounts+":")
	switch {
	case group == "":
		return 1
	case group == allServiceAccounts:
		return max(2, len(o.accounts))
	case isOfNamespace:
		n := 0
		for _, a := range o.accounts {
			if a.Namespace == namespace {
				n++
			}
		}
		return n
	}
	return 2
}

// lost counts the rights that subjects of bindings have no longer after changes.
func (o *objects) lost(changes []changeKey) int {
	rules := o.rulesWithout(changes)
	taken := takenSubjects(changes)
	n := 0
	for i := range o.bindings {
		bound := &o.bindings[i]
		role, ok := o.roleOf(bound.Role)
		gone := taken[verdict.Object(bound.Binding)]
		if !ok || rules[role] == nil && gone == nil {
			continue
		}
		before := cells(o.roles[role].Rules)
		after := before
		for i, left := range rules[role] {
			// Several sources of an aggregated role may leave parts of a rule that overlap.
			whole := cells(o.roles[role].Rules[i : i+1])
			after -= whole - min(whole, cells(left))
		}
		for place, subject := range bound.Subjects {
			if gone.has(place) {
				n += before * o.members(subject)
			} else {
				n += (before - after) * o.members(subject)
			}
		}
	}
	return n
}

// roleOf finds a role by its name.
func (o *objects) roleOf(role rbac.Ref) (place int32, ok bool) {
	place, ok = o.roleIndex()[roleName{role.Namespace, role.Name}]
	return place, ok && o.roles[place].Role == role
}
