package attackpaths

import (
	"slices"
	"strings"
)

// customKinds are the requests of a technique as rows of the table of rights: one row for each operation, because a webhook for
// updates does not hinder who may create.
func customKinds(t *CustomTechnique, technique int32) []requestKind {
	var all []requestKind
	for i, r := range slices.Concat(t.AllowedBy, t.With) {
		first := len(all)
		for _, verb := range r.Verbs {
			k := requestKind{
				verbs: []string{verb}, group: r.APIGroup, resource: r.Resource, subresource: r.Subresource, name: r.Name,
				namespaced: !r.ClusterScoped, custom: true, technique: technique, with: int32(max(i-len(t.AllowedBy), -1)),
			}
			if r.Namespace != SameNamespace {
				k.namespace = r.Namespace
			}
			k.refused = k.refusedToNodes()
			same := slices.IndexFunc(all[first:], func(o requestKind) bool {
				return o.operation() == k.operation() && o.impersonates() == k.impersonates()
			})
			if same < 0 {
				all = append(all, k)
			} else {
				all[first+same].verbs = append(all[first+same].verbs, verb)
			}
		}
	}
	return all
}

// String says in one line what may be done: "create or update applications.argoproj.io in
// namespace argocd".
func (r CustomRequest) String() string {
	text := strings.Join(r.Verbs, " or ") + " " + objectText(r.APIGroup, r.Resource, r.Subresource)
	if r.Name != "" {
		text += " " + r.Name
	}
	switch {
	case r.ClusterScoped:
		return text
	case r.Namespace == "":
		return text + " in any namespace"
	case r.Namespace == SameNamespace:
		return text + " in the same namespace"
	}
	return text + scopeText(r.Namespace)
}

// text says what may be done in a scope: "create applications.argoproj.io in namespace argocd".
func (k *requestKind) text(namespace string) string {
	return CustomRequest{k.verbs, k.group, k.resource, k.subresource, !k.namespaced, namespace, k.name}.String()
}
