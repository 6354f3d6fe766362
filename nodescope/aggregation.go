package nodescope

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Aggregation says which versions of API groups kube-apiserver passes on to extension API servers: the versions of the
// APIServices with spec.service. It runs no admission for their requests, and their servers may ignore selectors.
//
// Source: https://kubernetes.io/docs/concepts/extend-kubernetes/api-extension/apiserver-aggregation/
type Aggregation struct {
	// Versions are passed on, sorted by group and version.
	Versions []schema.GroupVersion
	// Local are served by kube-apiserver itself. It need not have any if Complete is true.
	Local []schema.GroupVersion
	// Complete is true if kube-apiserver serves all other versions itself. Otherwise they are unknown.
	Complete bool
}

// Of reports whether requests for a version of a group are passed on, as far as that is known. The versions "" and "*",
// which access reviews may have, stand for every version of the group: one that is passed on is enough.
func (a *Aggregation) Of(group, version string) (aggregated, known bool) {
	if version == "" || version == "*" {
		return a.any(group)
	}
	is := schema.GroupVersion{Group: group, Version: version}
	switch {
	case a == nil:
		return false, false
	case slices.Contains(a.Versions, is):
		return true, true
	}
	return false, a.Complete || slices.Contains(a.Local, is)
}

func (a *Aggregation) any(group string) (aggregated, known bool) {
	of := func(gv schema.GroupVersion) bool { return gv.Group == group }
	switch {
	case a == nil:
		return false, false
	case slices.ContainsFunc(a.Versions, of):
		return true, true
	}
	return false, a.Complete || slices.ContainsFunc(a.Local, of)
}

// Among returns the versions of some groups that are passed on. The group "*" is every one.
func (a *Aggregation) Among(groups []string) (versions []schema.GroupVersion) {
	if a == nil {
		return nil
	}
	for _, v := range a.Versions {
		if slices.Contains(groups, v.Group) || slices.Contains(groups, "*") {
			versions = append(versions, v)
		}
	}
	return versions
}

// servedBy is the server of the requested version.
type servedBy uint8

const (
	// unasked: no answer depends on it.
	unasked servedBy = iota
	kubeAPIServer
	extension
	unknownServer
)

// servedBy finds the server of the requested version.
func (q *question) servedBy() servedBy {
	q.uses |= UsesAPIServices
	switch aggregated, known := q.aggregation().Of(q.req.Group, q.req.Version); {
	case !known:
		return unknownServer
	case aggregated:
		return extension
	}
	return kubeAPIServer
}
