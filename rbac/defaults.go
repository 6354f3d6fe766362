package rbac

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// DefaultRules returns the rules of a default role that matter to who has it, for objects that were
// given without it: every API server makes it. It returns false for a role that is not a default role
// of which these rules are known.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/rbac/#default-roles-and-role-bindings
func DefaultRules(role Ref) ([]rbacv1.PolicyRule, bool) {
	if role.Kind != "ClusterRole" {
		return nil, false
	}
	switch role.Name {
	case "cluster-admin":
		return []rbacv1.PolicyRule{allow("*", "*", "*")}, true
	case "system:node":
		return []rbacv1.PolicyRule{
			allow("", "nodes", "create", "get", "list", "watch", "update", "patch"),
			allow("", "nodes/status", "update", "patch"),
			allow("", "pods", "get", "list", "watch", "create", "delete"),
			allow("", "pods/status", "update", "patch"),
			allow("", "secrets", "get", "list", "watch"),
			allow("", "configmaps", "get", "list", "watch"),
			allow("", "serviceaccounts/token", "create"),
		}, true
	case "admin", "edit":
		writes := []string{"create", "delete", "deletecollection", "patch", "update"}
		return []rbacv1.PolicyRule{
			allow("", "secrets", "get", "list", "watch"),
			allow("", "serviceaccounts", "impersonate"),
			allow("", "serviceaccounts/token", "create"),
			allow("", "pods", writes...),
			allow("", "pods/exec", "get", "create"),
			allow("apps", "daemonsets", writes...),
			allow("batch", "jobs", writes...),
		}, true
	case "system:certificates.k8s.io:certificatesigningrequests:nodeclient":
		return []rbacv1.PolicyRule{allow(certificatesv1.GroupName, "certificatesigningrequests/nodeclient", "create")}, true
	case "system:certificates.k8s.io:kubelet-serving-approver", "system:certificates.k8s.io:kube-apiserver-client-approver",
		"system:certificates.k8s.io:kube-apiserver-client-kubelet-approver":
		return []rbacv1.PolicyRule{allow(certificatesv1.GroupName, "signers", "approve")}, true
	case "view", "system:basic-user", "system:discovery", "system:public-info-viewer", "system:node-bootstrapper",
		"system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", "system:monitoring",
		"system:service-account-issuer-discovery", "system:cluster-trust-bundle-discovery", "system:node-proxier":
		return nil, true
	}
	return nil, false
}

func allow(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}}
}
