package attackpaths

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// customRequest is a request of a custom technique, with the verbs of it about which
// admission is asked in the same way.
type customRequest struct {
	CustomRequest
	// operation is empty for what admission is not asked about.
	operation admissionv1.OperationType
	// technique is the place of the technique, and with that in its list With; -1 for a request
	// of AllowedBy.
	technique, with int32
}

// splitRequests separates the requests of a technique by operation: a webhook for updates does
// not hinder who may create.
func splitRequests(t *CustomTechnique, technique int32) []customRequest {
	var all []customRequest
	add := func(r CustomRequest, with int32) {
		first := len(all)
		for _, verb := range r.Verbs {
			operation, impersonates := operationOf(verb, &r), strings.HasPrefix(verb, "impersonate")
			i := slices.IndexFunc(all[first:], func(c customRequest) bool {
				return c.operation == operation && strings.HasPrefix(c.Verbs[0], "impersonate") == impersonates
			})
			if i < 0 {
				i = len(all) - first
				all = append(all, customRequest{CustomRequest: r, operation: operation, technique: technique, with: with})
				all[first+i].Verbs = nil
			}
			all[first+i].Verbs = append(all[first+i].Verbs, verb)
		}
	}
	for _, r := range t.AllowedBy {
		add(r, -1)
	}
	for i, r := range t.With {
		add(r, int32(i))
	}
	return all
}

// operationOf is the operation of which admission is asked; empty if it is not asked.
func operationOf(verb string, r *CustomRequest) admissionv1.OperationType {
	if r.APIGroup == "" {
		switch r.Resource + "/" + r.Subresource {
		case "pods/exec", "pods/attach", "pods/portforward", "pods/proxy", "services/proxy", "nodes/proxy":
			return admissionv1.Connect
		}
	}
	return admissionv1.OperationType(noderestriction.OperationOf(verb))
}

// asKind is the request as a row of the table of rights.
func (r *customRequest) asKind() requestKind {
	k := requestKind{
		verbs: r.Verbs, group: r.APIGroup, resource: r.Resource, subresource: r.Subresource, name: r.Name,
		namespaced: !r.ClusterScoped, refused: r.refusedToNodes(), custom: true,
	}
	if r.Namespace != SameNamespace {
		k.namespace = r.Namespace
	}
	return k
}

// refusedToNodes reports whether NodeRestriction refuses the request to nodes.
func (r *customRequest) refusedToNodes() bool {
	change, create := r.operation == admissionv1.Update, r.operation == admissionv1.Create
	switch r.APIGroup + "/" + r.Resource + "/" + r.Subresource {
	case "/pods/":
		return create || change
	case "/pods/ephemeralcontainers":
		return change
	case "/persistentvolumeclaims/", "/serviceaccounts/token", certG + "/certificatesigningrequests/":
		return create
	}
	return false
}

// object names what the request is about: "applications.argoproj.io/status".
func (r *CustomRequest) object() string {
	text := r.Resource
	if r.APIGroup != "" {
		text += "." + r.APIGroup
	}
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	return text
}

// String says in one line what may be done: "create or update applications.argoproj.io in
// namespace argocd".
func (r CustomRequest) String() string {
	text := strings.Join(r.Verbs, " or ") + " " + r.object()
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
func (r *customRequest) text(namespace string) string {
	in := r.CustomRequest
	in.Namespace = namespace
	return in.String()
}
