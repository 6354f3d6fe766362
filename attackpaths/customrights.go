package attackpaths

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// customRequest is a request of a custom technique, with those of its verbs about which
// admission is asked in the same way.
type customRequest struct {
	CustomRequest
	// operation is empty for what admission is not asked about.
	operation admissionv1.OperationType
	// technique is the place of the technique, and with that in its list With; -1 for a request
	// of AllowedBy.
	technique, with int32
	// impersonates is true for requests that impersonate.
	impersonates bool
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
				return c.operation == operation && c.impersonates == impersonates
			})
			if i < 0 {
				i = len(all) - first
				all = append(all, customRequest{
					CustomRequest: r, operation: operation, technique: technique, with: with, impersonates: impersonates,
				})
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

// customGrant is a request that a role allows: for the object that the request names or for
// any, or, with a name, for an object of this name alone.
type customGrant struct {
	request int32
	name    string
}

// customGrants lists what a role allows of the requests of custom techniques.
func (b *builder) customGrants(role int32) []customGrant {
	if all, ok := b.grantsOfRole[role]; ok {
		return all
	}
	var all []customGrant
	for i := range b.requests {
		names := map[string]bool{}
		for j := range b.roles[role].Rules {
			for _, name := range b.requests[i].grantedBy(&b.roles[role].Rules[j]) {
				names[name] = true
			}
		}
		if names[""] {
			names = map[string]bool{"": true}
		}
		for _, name := range sortedKeys(names) {
			all = append(all, customGrant{request: int32(i), name: name})
		}
	}
	b.grantsOfRole[role] = all
	return all
}

func sortedKeys(set map[string]bool) []string {
	keys := make([]string, 0, len(set))
	for k := range set {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// grantedBy lists the names of objects for which a rule allows the request; the empty name is
// any, or that of the request.
func (r *customRequest) grantedBy(rule *rbacv1.PolicyRule) []string {
	nameless, named := r.byName()
	switch {
	case len(rule.ResourceNames) == 0:
		if r.allowed(rule, r.Verbs, r.Name) {
			return []string{""}
		}
		return nil
	case r.allowed(rule, nameless, ""):
		return []string{""}
	case r.Name != "":
		if r.allowed(rule, named, r.Name) {
			return []string{""}
		}
		return nil
	}
	var names []string
	for _, name := range rule.ResourceNames {
		if name != "" && r.allowed(rule, named, name) {
			names = append(names, name)
		}
	}
	return names
}

// byName separates the verbs of requests that have no name from those that have one. Lists and
// watches may have one.
func (r *customRequest) byName() (nameless, named []string) {
	for _, verb := range r.Verbs {
		switch {
		case verb == "create" && r.Subresource == "", verb == "deletecollection":
			nameless = append(nameless, verb)
		case verb == "list" || verb == "watch":
			nameless, named = append(nameless, verb), append(named, verb)
		default:
			named = append(named, verb)
		}
	}
	return nameless, named
}

func (r *customRequest) allowed(rule *rbacv1.PolicyRule, verbs []string, name string) bool {
	return slices.ContainsFunc(verbs, func(verb string) bool {
		return rbac.RuleAllows(rule, &access.Request{
			ResourceRequest: true, Verb: verb, Group: r.APIGroup, Resource: r.Resource, Subresource: r.Subresource, Name: name,
		})
	})
}

// holdsIn reports whether a role that is held in a scope can allow the request.
func (r *customRequest) holdsIn(scope string) bool {
	return scope == "" || !r.ClusterScoped && (r.Namespace == "" || r.Namespace == SameNamespace || r.Namespace == scope)
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

// guardsOfCustom names what admission is asked about the request in a namespace.
func (b *builder) guardsOfCustom(r *customRequest, namespace string) string {
	if r.operation == "" {
		return ""
	}
	return b.namedGuards(inventory.Write{
		Operation: r.operation, Group: r.APIGroup, Resource: r.Resource, Subresource: r.Subresource, Namespaced: !r.ClusterScoped,
	}, namespace)
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
