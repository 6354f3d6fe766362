package learn

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/rbac"
)

// readVerbs are the verbs that change nothing.
var readVerbs = []string{"get", "list", "watch"}

// namedLikeNodes are resources whose objects have the names of nodes, with their group.
var namedLikeNodes = []group{
	{resource: "nodes"},
	{resource: "nodes/status"},
	{resource: "nodes/proxy"},
	{resource: "nodes/finalizers"},
	{apiGroup: "storage.k8s.io", resource: "csinodes"},
}

// namedLikePods are resources whose objects have the names of pods.
var namedLikePods = []group{
	{apiGroup: "cilium.io", resource: "ciliumendpoints"},
	{apiGroup: "cilium.io", resource: "ciliumendpoints/status"},
}

// FromRoles returns a NodeScope from what roles grant, without a log. It guesses only for writes whose
// meaning is known, and allows the rest anywhere.
func FromRoles(namespace, name string, grants []rbac.Grant) *Suggestion {
	s := newSuggestion(namespace, name, Roles)
	s.Notes = append(s.Notes, "without an audit log (--audit), nothing shows what the account needs. Writes of nodes, pods and "+
		"CiliumEndpoints are limited to the token's node; everything else that roles grant is allowed anywhere")
	var all []ruled
	for i, g := range grants {
		for _, right := range rightsOf(g) {
			for _, verb := range right.Verbs {
				all = append(all, guess(right, verb, i))
			}
		}
	}
	s.addRules(all, grants)
	s.validate()
	return s
}

func guess(right Right, verb string, grant int) ruled {
	r := ruled{
		kind: anywhere, group: group{verb: verb}, grants: map[int]bool{grant: true},
		guess: "granted, and nothing shows a tighter rule",
	}
	if right.NonResourceURL != "" {
		r.path = right.NonResourceURL
		return r
	}
	r.apiGroup, r.resource = right.rule.APIGroups[0], right.rule.Resources[0]
	if right.Namespace != "" {
		r.namespaces = []string{right.Namespace}
	}
	resource, sub, _ := strings.Cut(r.resource, "/")
	switch {
	case slices.Contains(readVerbs, verb) || verb == "*" || r.apiGroup == "*" || strings.Contains(r.resource, "*"):
	case slices.Contains(namedLikeNodes, group{apiGroup: r.apiGroup, resource: r.resource}) && verb != "deletecollection":
		r.kind, r.guess = named, "a write of an object that has the name of a node"
		return r
	case r.apiGroup == "" && resource == "pods" && (sub != "" || verb != "create") && verb != "deletecollection":
		r.kind, r.guess = onNode, "a write of a pod"
		return r
	case slices.Contains(namedLikePods, group{apiGroup: r.apiGroup, resource: r.resource}) && verb != "deletecollection":
		r.kind, r.guess = onNode, "a write of an object that has the name of a pod"
		return r
	case r.apiGroup == "" && r.resource == "serviceaccounts/token" && verb == "create":
		r.kind, r.guess, r.namespaces = asNode, "a token, which a node may have for pods that run on it", nil
		return r
	}
	if sorted := slices.Sorted(slices.Values(right.ResourceNames)); verb != "create" && verb != "deletecollection" {
		r.names = sorted
	}
	return r
}
