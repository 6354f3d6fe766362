package evaluate

import (
	"errors"
	"slices"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// manyRoles is the number of roles from which a kind is read whole, and not each role by its name.
const manyRoles = 64

// readBound reads what RBAC's answer to a request depends on, with all bindings that apply to it,
// which an explanation names. A refusal names the kinds that the user may not list.
func (e *Evaluator) readBound(req *access.Request) error {
	if err := e.readAll(func() []source.Part { return e.boundParts(req) }); err != nil {
		return err
	}
	if e.State.RBAC.Evaluate(req).Allowed {
		return nil
	}
	return e.State.Probe(source.RBACKinds())
}

// boundParts returns unread parts of the cluster that RBAC's answer to a request depends on: the
// bindings of its scope, and then the roles of those that apply to the user. When they have been
// read, there may be more.
func (e *Evaluator) boundParts(req *access.Request) []source.Part {
	bindings := []source.Part{{Kinds: source.ClusterRoleBindings}}
	if req.Namespace != "" {
		bindings = append(bindings, source.Part{Kinds: source.RoleBindings, Namespace: req.Namespace})
	}
	if bindings = slices.DeleteFunc(bindings, e.State.HasRead); len(bindings) > 0 {
		return bindings
	}
	var roles []rbac.Ref
	for _, explained := range e.State.RBAC.Explain(req) {
		if errors.Is(explained.Err, rbac.ErrRoleNotFound) {
			roles = append(roles, explained.Grant.Role)
		}
	}
	return e.roleParts(roles)
}

// ReadUser reads the bindings, and the roles of those that apply to a user. The kinds of roles and
// bindings that the caller may not list are then known.
func (e *Evaluator) ReadUser(user string, groups []string) error {
	if err := e.readAll(func() []source.Part { return e.grantParts(user, groups) }); err != nil {
		return err
	}
	return e.State.Probe(source.RBACKinds())
}

// grantParts returns unread parts of the cluster that the rights of a user by RBAC depend on. When
// they have been read, there may be more.
func (e *Evaluator) grantParts(user string, groups []string) []source.Part {
	bindings := source.Part{Kinds: source.ClusterRoleBindings | source.RoleBindings}
	if !e.State.HasRead(bindings) {
		return []source.Part{bindings}
	}
	_, err := e.State.RBAC.Grants(user, groups)
	var roles []rbac.Ref
	for _, u := range unresolvedIn(err) {
		roles = append(roles, u.Role)
	}
	return e.roleParts(roles)
}

// roleParts returns the unread parts that have the roles: each by its name, or all of a kind if
// there are many.
func (e *Evaluator) roleParts(roles []rbac.Ref) []source.Part {
	var parts []source.Part
	for _, kind := range []struct {
		name       string
		kinds      source.Kinds
		namespaced bool
	}{{"ClusterRole", source.ClusterRoles, false}, {"Role", source.Roles, true}} {
		named := map[source.Part]struct{}{}
		for _, role := range roles {
			// No object has an empty name, and a cluster role binding cannot name a role of a namespace.
			if role.Kind != kind.name || role.Name == "" || kind.namespaced != (role.Namespace != "") {
				continue
			}
			part := source.Part{Kinds: kind.kinds, Namespace: role.Namespace, Name: role.Name}
			if !e.State.HasRead(part) {
				named[part] = struct{}{}
			}
		}
		if len(named) > manyRoles {
			named = map[source.Part]struct{}{{Kinds: kind.kinds}: {}}
		}
		for part := range named {
			parts = append(parts, part)
		}
	}
	return parts
}
