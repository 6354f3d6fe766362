package attackpaths_test

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// creates is the fact that an object can be created: by a request without a name, or by one with the name of an object
// that does not exist.
func (n *naive) creates(a ask) fact {
	f := fact{"creates", "", fmt.Sprint(a)}
	if _, known := n.facts[f]; known {
		return f
	}
	n.step(0, false, f, n.right(a))
	for _, name := range append(n.allNames(), anyOtherName) {
		if n.isFree(a, name) {
			possible := a.resource == "certificatesigningrequests" && name != anyOtherName
			n.step(0, possible, f, n.together(byName(a, name)...))
		} else if a.resource == "pods" || a.resource == "persistentvolumes" {
			n.step(0, false, f, n.together(byName(a, name)...), n.deleted(a, name))
		}
	}
	return f
}

// deleted is the fact that an object does not exist any more. Volumes stay while a claim has them.
func (n *naive) deleted(a ask, name string) fact {
	f := fact{"deleted " + a.resource, a.ns, name}
	possible := n.guarded(admissionv1.Delete, a.group, a.resource, "", a.ns) || a.resource == "persistentvolumes"
	n.step(0, possible, f, n.right(ask{verbs: deleting, group: a.group, resource: a.resource, ns: a.ns, name: name}))
	return f
}

// byName are the requests for which the API server asks RBAC when one object is created by a request with its name. Who may
// create any object needs no name.
func byName(a ask, name string) [][]ask {
	create := ask{verbs: creating, group: a.group, resource: a.resource, ns: a.ns, name: name, hasName: true, limited: true}
	change := create
	change.limited = false
	change.verbs = patching
	if a.group == rbacGroup {
		change.verbs = changing // these are also made by a PUT
	}
	return [][]ask{{create}, {change}}
}

// isFree reports whether an object with a name can be made. One that may be changed when it exists is as good as new.
func (n *naive) isFree(a ask, name string) bool {
	in := inventory.Name{Namespace: a.ns, Name: name}
	i := n.c.Inventory
	switch a.resource {
	case "secrets":
		_, exists := n.secrets[in]
		return !exists
	case "serviceaccounts":
		return !n.accounts[in]
	case "pods":
		return a.ns == "" || !i.Has("Pod", a.ns, name)
	case "namespaces":
		_, exists := n.namespaces[name]
		return !exists
	case "persistentvolumeclaims":
		return !i.Has("PersistentVolumeClaim", a.ns, name)
	case "persistentvolumes":
		return !i.Has("PersistentVolume", "", name)
	case "mutatingwebhookconfigurations":
		return !i.Has("MutatingWebhookConfiguration", "", name)
	case "validatingwebhookconfigurations":
		return !i.Has("ValidatingWebhookConfiguration", "", name)
	case "roles", "clusterroles":
		return !slices.ContainsFunc(n.roles, func(r naiveRole) bool {
			return !r.missing && r.ref.Name == name && r.ref.Namespace == a.ns
		})
	case "rolebindings", "clusterrolebindings":
		return !slices.ContainsFunc(n.bindings, func(b rbac.BoundRole) bool { return b.Binding == bindingRef(a.ns, name) })
	}
	return true
}

func bindingRef(namespace, name string) rbac.Ref {
	if namespace == "" {
		return rbac.Ref{Kind: "ClusterRoleBinding", Name: name}
	}
	return rbac.Ref{Kind: "RoleBinding", Namespace: namespace, Name: name}
}

// createsAccount is the fact that an account that does not exist can be created.
func (n *naive) createsAccount(a inventory.Name) fact {
	create := ask{verbs: creating, resource: "serviceaccounts", ns: a.Namespace}
	f := fact{"creates the account", a.Namespace, a.Name}
	n.step(0, false, f, n.right(create))
	n.step(0, false, f, n.together(byName(create, a.Name)...))
	return f
}

// secretsByName leads to what secrets give that can be made by name: who may patch one reads it.
func (n *naive) secretsByName(ns string, guarded bool) {
	for _, name := range append(n.allNames(), anyOtherName) {
		a := ask{resource: "secrets", ns: ns}
		made := []fact{n.together(byName(a, name)...)}
		if !n.isFree(a, name) {
			made = append(made, n.deleted(a, name))
		}
		for account := range n.accounts {
			if account.Namespace == ns {
				n.step(1, guarded, n.credentialOfAccount(account), made...)
			}
		}
		if len(made) > 1 {
			continue
		}
		if id, ok := strings.CutPrefix(name, "bootstrap-token-"); ok && len(id) == 6 && ns == "kube-system" {
			for _, g := range n.bootstrapGroups() {
				n.step(1, true, g, made...)
			}
		}
	}
}
