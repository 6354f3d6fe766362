package attackpaths

import (
	"strconv"
	"strings"

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
	// clusterAdmin is the role that an API server needs.
	clusterAdmin = "cluster-admin"
)

// withoutSubjects removes subjects from a binding, which stays: whoever wants the rights back adds them again.
//
// The API server gives system:masters its rights without a binding, so that the subject of the
// binding cluster-admin stays: then nothing has to be kept from being restored.
func withoutSubjects(bound *rbac.BoundRole, gone places) []verdict.Change {
	e := editor{apiVersion: rbacAPI, object: objectOf(bound.Binding)}
	ofAdmin := keepsMasters(bound)
	for i := len(bound.Subjects) - 1; i >= 0; i-- {
		if gone.has(i) && !(ofAdmin && isMasters(bound.Subjects[i])) {
			e.entry("/subjects", i, servedSubject(bound.Subjects[i]))
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

// entry removes an entry of a list if it is the one that is expected.
func (e *editor) entry(list string, place int, expected any) {
	path := list + "/" + strconv.Itoa(place)
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

// isDefault reports whether Kubernetes makes an object of RBAC itself.
func isDefault(name string, labeled bool) bool { return labeled || strings.HasPrefix(name, "system:") }

// withRules replaces rules of a role by what is left of each.
func withRules(r *rbac.RoleRules, left [][]rbacv1.PolicyRule) []verdict.Change {
	e := editor{apiVersion: rbacAPI, object: objectOf(r.Role)}
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
		e.replaceLists(path, rule, &left[i][0])
		for j := len(left[i]) - 1; j > 0; j-- {
			e.do(verdict.Add, "/rules/"+strconv.Itoa(i+1), &left[i][j])
		}
	}
	if r.Default {
		e.do(verdict.Add, "/metadata/annotations/"+escaped(keepChanged), "false")
	}
	return e.changes
}

// replaceLists replaces the lists of a rule that are others then.
func (e *editor) replaceLists(path string, rule, now *rbacv1.PolicyRule) {
	for _, list := range [...]struct {
		field       string
		before, now []string
	}{
		{"/resources", rule.Resources, now.Resources},
		{"/verbs", rule.Verbs, now.Verbs},
		{"/resourceNames", rule.ResourceNames, now.ResourceNames},
	} {
		if len(list.before) != len(list.now) || strings.Join(list.before, "\n") != strings.Join(list.now, "\n") {
			e.do(verdict.Replace, path+list.field, list.now)
		}
	}
}
