package attackpaths_test

import (
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// customTechniques are the steps of custom techniques, verb by verb.
func (n *naive) customTechniques() {
	for _, t := range n.c.Custom {
		for _, r := range t.AllowedBy {
			for _, ns := range n.customScopes(r, "") {
				for _, verb := range r.Verbs {
					from := []fact{n.customRight(r, verb, ns)}
					for i, with := range t.With {
						from = append(from, n.customWith(t, i, with, ns))
					}
					possible := t.DependsOn != "" || n.customGuarded(r, verb, ns)
					for _, h := range t.Gives {
						for _, to := range n.customGiven(h, ns) {
							n.step(1, possible, to, from...)
						}
					}
				}
			}
		}
	}
}

// customScopes are the namespaces in which a request can be made; the empty one for resources
// without a namespace.
func (n *naive) customScopes(r attackpaths.CustomRequest, same string) []string {
	if r.ClusterScoped {
		return []string{""}
	}
	var all []string
	for ns := range n.namespaces {
		if r.Namespace == "" || r.Namespace == ns || r.Namespace == attackpaths.SameNamespace && ns == same {
			all = append(all, ns)
		}
	}
	return all
}

func (n *naive) customRight(r attackpaths.CustomRequest, verb, ns string) fact {
	a := ask{verbs: verbs(verb), group: r.APIGroup, resource: r.Resource, sub: r.Subresource, ns: ns, name: r.Name, content: n.enforces()}
	f := fact{"custom right", "", fmt.Sprint(a)}
	nameless := verb == "create" && r.Subresource == ""
	if r.Name != "" && !nameless {
		n.step(0, false, f, n.right(a))
		return f
	}
	a.unlimited = true
	n.step(0, false, f, n.right(a))
	if nameless {
		return f
	}
	for _, name := range n.allNames() { // of an object that may not exist
		a.unlimited, a.limited, a.name = false, true, name
		n.step(0, true, f, n.right(a))
	}
	return f
}

func (n *naive) customWith(t attackpaths.CustomTechnique, i int, r attackpaths.CustomRequest, same string) fact {
	f := fact{"custom with", same, fmt.Sprint(t.Code, i)}
	for _, ns := range n.customScopes(r, same) {
		for _, verb := range r.Verbs {
			n.step(0, n.customGuarded(r, verb, ns), f, n.customRight(r, verb, ns))
		}
	}
	return f
}

func (n *naive) customGuarded(r attackpaths.CustomRequest, verb, ns string) bool {
	operation, asked := map[string]admissionv1.OperationType{
		"create": admissionv1.Create, "update": admissionv1.Update, "patch": admissionv1.Update,
		"delete": admissionv1.Delete, "deletecollection": admissionv1.Delete,
	}[verb]
	if r.Resource == "pods" && r.Subresource == "exec" {
		operation, asked = admissionv1.Connect, true
	}
	return asked && n.guarded(operation, r.APIGroup, r.Resource, r.Subresource, ns)
}

func (n *naive) customGiven(h attackpaths.Holding, same string) []fact {
	is := func(pattern, name string) bool {
		return pattern == name || strings.HasSuffix(pattern, "*") && strings.HasPrefix(name, strings.TrimSuffix(pattern, "*"))
	}
	in := func(ns string) bool {
		return h.Namespace == "*" || h.Namespace == ns || h.Namespace == attackpaths.SameNamespace && ns == same
	}
	var all []fact
	switch h.Kind {
	case attackpaths.Node:
		for _, node := range n.nodes {
			if is(h.Name, node.Name) {
				all = append(all, nodeHolding(node.Name))
			}
		}
	case attackpaths.Namespace:
		for ns := range n.namespaces {
			if is(h.Name, ns) || h.Name == attackpaths.SameNamespace && ns == same {
				made, _ := n.newPods(ns, inventory.Write{Operation: admissionv1.Create, Resource: "pods"})
				all = append(all, made)
			}
		}
	case attackpaths.ServiceAccount:
		for a := range n.accounts {
			if in(a.Namespace) && is(h.Name, a.Name) {
				all = append(all, n.startOf(a))
			}
		}
	case attackpaths.Secret:
		for s := range n.secrets {
			if in(s.Namespace) && is(h.Name, s.Name) {
				all = append(all, secretOf(s))
			}
		}
	default:
		all = append(all, fact{h.Kind, h.Namespace, h.Name})
	}
	return all
}

// customIdentities are users and groups that custom techniques give.
func (n *naive) customIdentities(kind string) []string {
	var all []string
	for _, t := range n.c.Custom {
		for _, h := range t.Gives {
			if h.Kind == kind {
				all = append(all, h.Name)
			}
		}
	}
	return all
}

// The resources of the random operator: widgets have a namespace, stores have none.
const (
	operatorGroup = "operator.example.com"
	randomCustom  = "Custom"
)

var randomObjects = []string{"w1", "w2"}

// customs returns random custom techniques.
func (rc *randomCluster) customs() []attackpaths.CustomTechnique {
	var all []attackpaths.CustomTechnique
	for i := range rc.IntN(4) {
		t := attackpaths.CustomTechnique{Technique: attackpaths.Technique{Code: attackpaths.Code(fmt.Sprint(randomCustom, i))}}
		inNamespaces := true
		for range 1 + rc.IntN(2) {
			r := rc.customRequest([]string{"", "", "a", "kube-system", "missing"})
			inNamespaces = inNamespaces && !r.ClusterScoped
			t.AllowedBy = append(t.AllowedBy, r)
		}
		namespaces := []string{"", "a"}
		if inNamespaces {
			namespaces = append(namespaces, attackpaths.SameNamespace, attackpaths.SameNamespace)
		}
		for range max(0, rc.IntN(4)-1) {
			t.With = append(t.With, rc.customRequest(namespaces))
		}
		for range 1 + rc.IntN(2) {
			t.Gives = append(t.Gives, rc.customHolding(inNamespaces))
		}
		if rc.chance(3) {
			t.DependsOn = "the weather"
		}
		all = append(all, t)
	}
	return all
}

func (rc *randomCluster) customRequest(namespaces []string) attackpaths.CustomRequest {
	r := attackpaths.CustomRequest{APIGroup: operatorGroup, Resource: "widgets", Namespace: pick(rc, namespaces)}
	r.Verbs = rc.some([]string{"create", "create", "update", "patch", "delete", "list", "deletecollection"})
	switch rc.IntN(8) {
	case 0, 1, 2:
		r.Resource, r.ClusterScoped, r.Namespace = "stores", true, ""
	case 3:
		r.Subresource = "finish"
	case 4:
		r.APIGroup, r.Resource, r.Subresource, r.Verbs = "", "pods", "exec", verbs("create")
	case 5:
		r.APIGroup, r.Resource = "", pick(rc, []string{"pods", "persistentvolumeclaims"})
	}
	if rc.chance(4) {
		r.Name = pick(rc, append([]string{"p1"}, randomObjects...))
	}
	return r
}

func (rc *randomCluster) customHolding(inNamespaces bool) attackpaths.Holding {
	namespaces := []string{"a", "kube-system", "*"}
	if inNamespaces {
		namespaces = append(namespaces, attackpaths.SameNamespace, attackpaths.SameNamespace)
	}
	switch rc.IntN(9) {
	case 0:
		return attackpaths.Holding{Kind: attackpaths.ClusterAdmin}
	case 1:
		return attackpaths.Holding{Kind: attackpaths.User, Name: pick(rc, []string{"alice", "carol"})}
	case 2:
		return attackpaths.Holding{Kind: attackpaths.Group, Name: pick(rc, []string{"g1", "g2", "system:masters"})}
	case 3:
		return attackpaths.Holding{Kind: attackpaths.Node, Name: pick(rc, []string{"n1", "n*", "*", "x"})}
	case 4, 5:
		return attackpaths.Holding{Kind: attackpaths.Secret, Namespace: pick(rc, namespaces), Name: pick(rc, []string{"s1", "s*", "*"})}
	case 6:
		names := slices.DeleteFunc(namespaces, func(ns string) bool { return ns == "*" })
		return attackpaths.Holding{Kind: attackpaths.Namespace, Name: pick(rc, names)}
	}
	return attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: pick(rc, namespaces), Name: pick(rc, []string{"x", "y", "*"})}
}
