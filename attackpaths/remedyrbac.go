package attackpaths

import (
	"slices"
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
