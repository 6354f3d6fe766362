package attackpaths

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// remedyOf makes a change to the cluster's objects. Restored is true for objects that Kubernetes
// restores, if the remedy does not keep it from that.
func (a *advisor) remedyOf(k changeKey) (remedy *verdict.Remedy, restored bool) {
	e := editor{apiVersion: rbacAPI, object: k.object}
	switch k.kind {
	case RemoveBinding:
		for i := range a.whole.bindings {
			if bound := &a.whole.bindings[i]; objectOf(bound.Binding) == k.object {
				changes := withoutSubjects(bound, func(int) bool { return true })
				return &verdict.Remedy{Changes: changes, Disrupts: disruption(changes)}, bound.Default && !keepsMasters(bound)
			}
		}
	case RemoveRule:
		for i := range a.whole.roles {
			if r := &a.whole.roles[i]; objectOf(r.Role) == k.object {
				e.entry("/rules", k.rule, &r.Rules[k.rule])
				if r.Default {
					e.do(verdict.Add, "/metadata/annotations/"+escaped(keepChanged), "false")
				}
				return &verdict.Remedy{Changes: e.changes, Disrupts: disruption(e.changes)}, r.Default
			}
		}
	case RemoveMount:
		return a.mountRemedy(k), false
	case RestrictPods:
		return &verdict.Remedy{Changes: labelLevel(k.object, psa.LevelRestricted)}, false
	}
	return nil, false
}

func everyPlace(n int) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	return places
}

// mountRemedy no longer mounts something into the pods of a workload.
func (a *advisor) mountRemedy(k changeKey) *verdict.Remedy {
	for _, p := range a.whole.pods {
		if templateObject(p) != k.object {
			continue
		}
		if _, none := changeTemplate(p, RemoveMount, k.secret); none != "" {
			return noRemedy(none)
		}
	}
	r := &verdict.Remedy{}
	r.Changes, r.Warning = renderTemplate(a.whole.pods, nil, nil, []changeKey{k})
	r.Disrupts = disruption(r.Changes)
	return r
}

// stated finds where the rules of an aggregated role are stated: the controller restores them from
// there. A rule that several roles state is left out, and so is one that none does.
func (a *advisor) stated(role int32, place int) (changeKey, bool) {
	r := &a.whole.roles[role]
	var found []changeKey
	for i := range a.whole.roles {
		source := &a.whole.roles[i]
		if source.Role.Kind != "ClusterRole" || !slices.Contains(r.Sources, source.Role.Name) {
			continue
		}
		for j := range source.Rules {
			if sameRule(&source.Rules[j], &r.Rules[place]) {
				found = append(found, changeKey{kind: RemoveRule, object: objectOf(source.Role), rule: j})
			}
		}
	}
	if len(found) != 1 {
		return changeKey{}, false
	}
	return found[0], true
}

// lasting replaces changes of aggregated roles by those of the roles that state their rules, or leaves
// them out.
func (a *advisor) lasting(changes []changeKey) []changeKey {
	lasts := func(c changeKey) bool { return c.kind != RemoveRule || a.whole.roles[a.roles[c.object]].Sources == nil }
	if !slices.ContainsFunc(changes, func(c changeKey) bool { return !lasts(c) }) {
		return changes
	}
	var all []changeKey
	for _, c := range changes {
		if !lasts(c) {
			var ok bool
			if c, ok = a.stated(a.roles[c.object], c.rule); !ok {
				continue
			}
		}
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

func sameRule(a, b *rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}

// aggregated adds to changes of rules what the controller does with them: aggregated roles no longer
// have these rules.
func (a *advisor) aggregated(changes []changeKey) []changeKey {
	all := slices.Clip(changes)
	for _, c := range changes {
		if c.kind != RemoveRule || c.object.Namespace != "" {
			continue
		}
		for _, role := range a.aggregates[c.object.Name] {
			r := &a.whole.roles[role]
			for j := range r.Rules {
				if at, ok := a.stated(role, j); ok && at == c {
					all = append(all, changeKey{kind: RemoveRule, object: objectOf(r.Role), rule: j})
				}
			}
		}
	}
	return all
}

// collectAggregates finds the aggregated roles of each role that states rules of them.
func (a *advisor) collectAggregates() {
	a.aggregates, a.roles = map[string][]int32{}, map[verdict.Object]int32{}
	for i := range a.whole.roles {
		a.roles[objectOf(a.whole.roles[i].Role)] = int32(i)
		for _, source := range a.whole.roles[i].Sources {
			a.aggregates[source] = append(a.aggregates[source], int32(i))
		}
	}
}
