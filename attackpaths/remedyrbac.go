package attackpaths

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const (
	rbacAPI = "rbac.authorization.k8s.io/v1"
	// keepChanged is the annotation that keeps the API server from restoring a default role or
	// binding when it starts, with the value "false".
	// Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#auto-reconciliation
	keepChanged = "rbac.authorization.kubernetes.io/autoupdate"
)

// grantRemedy takes a right from those to whom a binding gives it, with as little else as it can:
// a part of the role's rule if the role is theirs alone, or else the subjects of the binding.
func (s *solver) grantRemedy(g grant, target string) *verdict.Remedy {
	places := s.subjectPlaces(g)
	if len(places) == len(s.bindings[g.binding].Subjects) {
		if changes := s.shrunkRole(g, target); len(changes) > 0 {
			return &verdict.Remedy{Changes: changes}
		}
	}
	return &verdict.Remedy{Changes: withoutSubjects(&s.bindings[g.binding], places)}
}

// withoutSubjects removes subjects from a binding, and the binding with the last one unless the API
// server would restore it.
//
// The API server gives system:masters its rights without a binding, so that the subject of the
// binding cluster-admin stays: then nothing has to be kept from being restored.
func withoutSubjects(bound *rbac.BoundRole, places []int) []verdict.Change {
	object := objectOf(bound.Binding)
	if len(places) == len(bound.Subjects) && !bound.Default {
		return []verdict.Change{deletion(rbacAPI, object)}
	}
	e := editor{apiVersion: rbacAPI, object: object}
	ofAdmin := bound.Default && object.Name == clusterAdmin
	for _, i := range slices.Backward(places) {
		if ofAdmin && isMasters(bound.Subjects[i]) {
			continue
		}
		e.entry("/subjects", i, servedSubject(bound.Subjects[i]))
	}
	if bound.Default && !ofAdmin {
		e.do(verdict.Add, "/metadata/annotations/"+escaped(keepChanged), "false")
	}
	return e.changes
}

func isMasters(s rbacv1.Subject) bool { return s.Kind == rbacv1.GroupKind && s.Name == masters }

// entry removes an entry of a list if it is the one that is expected.
func (e *editor) entry(list string, place int, expected any) {
	path := list + "/" + itoa(place)
	e.do(verdict.Test, path, expected)
	e.do(verdict.Remove, path, nil)
}

// servedSubject is a subject as the API server returns it.
func servedSubject(s rbacv1.Subject) rbacv1.Subject {
	if s.APIGroup == "" && s.Kind != rbacv1.ServiceAccountKind {
		s.APIGroup = rbacv1.GroupName
	}
	return s
}

// shrunkRole takes a right from a role that only one binding names. It is empty if that cannot be
// done, or if a binding to what is left of the role would give nothing.
func (s *solver) shrunkRole(g grant, target string) []verdict.Change {
	if g.role == none || g.right == none || s.keys[g.right].kind != isRight {
		return nil
	}
	role := s.keys[g.role].role
	r := &s.roles[role]
	if r.Default || r.Sources != nil || s.world.usesOf[role] != 1 || r.Role.Namespace == "" && r.Role.Name == clusterAdmin {
		return nil
	}
	e := editor{apiVersion: rbacAPI, object: objectOf(r.Role)}
	left := len(r.Rules)
	for i := range slices.Backward(r.Rules) {
		rule := &r.Rules[i]
		gives := func(rule *rbacv1.PolicyRule) bool { return s.givesRight(rule, s.keys[g.right], target) }
		if !gives(rule) {
			continue
		}
		path := "/rules/" + itoa(i)
		e.do(verdict.Test, path, rule)
		switch field, kept := smaller(rule, gives); {
		case field != "":
			e.do(verdict.Replace, path+field, kept)
		default:
			left--
			e.do(verdict.Remove, path, nil)
		}
	}
	if left == 0 {
		return nil
	}
	return e.changes
}

// clusterAdmin is the role that an API server needs.
const clusterAdmin = "cluster-admin"

// givesRight reports whether a rule gives a right, or one that is alike, for the object that the step is
// about.
func (s *solver) givesRight(rule *rbacv1.PolicyRule, wanted key, target string) bool {
	return slices.ContainsFunc(right(wanted.variant).alike(), func(r right) bool {
		return slices.ContainsFunc(rightOf(r, rule, s.world.websockets), func(g granted) bool {
			return g.any || g.name == wanted.name || wanted.name == "" && g.name == target
		})
	})
}

// smaller finds the resources or verbs that are left of a rule so that it no longer gives a right.
// The field is empty if nothing is left.
func smaller(rule *rbacv1.PolicyRule, gives func(*rbacv1.PolicyRule) bool) (field string, kept []string) {
	for _, part := range [...]struct {
		field string
		set   func(*rbacv1.PolicyRule, []string)
		all   []string
	}{
		{"/resources", func(r *rbacv1.PolicyRule, list []string) { r.Resources = list }, rule.Resources},
		{"/verbs", func(r *rbacv1.PolicyRule, list []string) { r.Verbs = list }, rule.Verbs},
	} {
		kept := slices.DeleteFunc(slices.Clone(part.all), func(one string) bool {
			changed := *rule
			part.set(&changed, []string{one})
			return gives(&changed)
		})
		if len(kept) > 0 {
			return part.field, kept
		}
	}
	return "", nil
}
