package attackpaths

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// remedyOf makes a change to the cluster's objects. Restored is true for objects that Kubernetes restores, which the
// remedy keeps it from.
func (a *advisor) remedyOf(k changeKey) (remedy *verdict.Remedy, restored bool) {
	for _, p := range a.whole.pods {
		if k.kind != removeMount || templateObject(p) != k.object {
			continue
		}
		if _, none := changeTemplate(p, removeMount, k.secret); none != "" {
			return noRemedy(none), false
		}
	}
	remedy = a.whole.render([]changeKey{k}, nil)
	return remedy, slices.ContainsFunc(remedy.Changes, func(c verdict.Change) bool {
		return strings.HasSuffix(c.Path, escaped(keepChanged))
	})
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
				found = append(found, changeKey{kind: removeRule, object: objectOf(source.Role), rule: j})
			}
		}
	}
	if len(found) != 1 {
		return changeKey{}, false
	}
	return found[0], true
}

// lasting replaces changes of aggregated roles by changes of the roles that state their rules, or leaves
// them out.
func (a *advisor) lasting(changes []changeKey) []changeKey {
	var all []changeKey
	for _, c := range changes {
		role, lasts := a.whole.roleIndex()[c.object], true
		if c.kind == removeRule && a.whole.roles[role].Sources != nil {
			c, lasts = a.stated(role, c.rule)
		}
		if lasts && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

func sameRule(a, b *rbacv1.PolicyRule) bool {
	return slices.Equal(a.Verbs, b.Verbs) && slices.Equal(a.APIGroups, b.APIGroups) && slices.Equal(a.Resources, b.Resources) &&
		slices.Equal(a.ResourceNames, b.ResourceNames) && slices.Equal(a.NonResourceURLs, b.NonResourceURLs)
}
