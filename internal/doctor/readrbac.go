package doctor

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/internal/manifest"
)

// defaultsSeen records for each kind of RBAC whether a default object was read, which kube-apiserver
// creates in every cluster. If so, the input has all objects of the kind: files have either all
// objects of a kind, or only those that users wrote.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings
type defaultsSeen struct{ clusterRole, clusterRoleBinding, role, roleBinding bool }

func (d defaultsSeen) whole() bool {
	return d.clusterRole && d.clusterRoleBinding && d.role && d.roleBinding
}

// The default objects that show that the input has all objects of a kind.
const (
	defaultClusterRole = "cluster-admin" // the binding has the same name
	defaultRole        = "extension-apiserver-authentication-reader"
	defaultRoleBinding = "system::" + defaultRole
)

func (r *reader) clusterRole(d *manifest.Document) error {
	var role rbacv1.ClusterRole
	if err := decode(d, &role); err != nil {
		return err
	}
	r.rbac.clusterRole = r.rbac.clusterRole || role.Name == defaultClusterRole
	r.cluster.RBAC.SetClusterRole(&role)
	return nil
}

func (r *reader) role(d *manifest.Document) error {
	var role rbacv1.Role
	if err := decode(d, &role); err != nil {
		return err
	}
	role.Namespace = namespaceOr(role.Namespace, "default")
	r.rbac.role = r.rbac.role || role.Namespace == kubeSystem && role.Name == defaultRole
	r.cluster.RBAC.SetRole(&role)
	return nil
}

func (r *reader) clusterRoleBinding(d *manifest.Document) error {
	var b rbacv1.ClusterRoleBinding
	if err := decode(d, &b); err != nil {
		return err
	}
	r.rbac.clusterRoleBinding = r.rbac.clusterRoleBinding || b.Name == defaultClusterRole
	r.cluster.addClusterRoleBinding(&b, place(d))
	return nil
}

func (r *reader) roleBinding(d *manifest.Document) error {
	var b rbacv1.RoleBinding
	if err := decode(d, &b); err != nil {
		return err
	}
	b.Namespace = namespaceOr(b.Namespace, "default")
	r.rbac.roleBinding = r.rbac.roleBinding || b.Namespace == kubeSystem && b.Name == defaultRoleBinding
	r.cluster.addRoleBinding(&b, place(d))
	return nil
}
