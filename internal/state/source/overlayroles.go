package source

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/rbac"
)

// aggregate sets the rules of aggregated cluster roles as the cluster's controller does.
func (c *changer) aggregate() {
	if len(c.roles) == 0 {
		return
	}
	for _, name := range c.RBAC.Aggregate(c.roles) {
		ref := ObjectRef{Kind: "ClusterRole", Group: rbacv1.GroupName, Name: name}
		if at, ok := c.index[ref]; ok {
			c.applied[at].Because = ", whose rules come from the roles that it selects"
			continue
		}
		role, _ := c.RBAC.ClusterRole(name)
		done := Applied{Action: Replaced, ObjectRef: ref, Because: ", which aggregates " + c.selectedText(role)}
		if from := c.selected(role); from != nil {
			done.File, done.Line = from.File, from.Line
		}
		c.note(done)
	}
}

// selected is a change of a role that an aggregated role selects, one with a place if there is one.
func (c *changer) selected(role *rbacv1.ClusterRole) *Applied {
	var found *Applied
	for i := range c.applied {
		a := &c.applied[i]
		if a.Kind != "ClusterRole" || !slices.ContainsFunc(c.roles, func(r *rbacv1.ClusterRole) bool {
			return r.Name == a.Name && rbac.Selects(role, r)
		}) {
			continue
		}
		if found == nil || found.File == "" && a.File != "" {
			found = a
		}
	}
	return found
}

func (c *changer) selectedText(role *rbacv1.ClusterRole) string {
	if from := c.selected(role); from != nil {
		return from.ObjectRef.String()
	}
	return "other cluster roles that changed"
}
