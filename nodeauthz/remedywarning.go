package nodeauthz

import (
	"fmt"
	"slices"

	"github.com/node-authorizer/node-authorizer/access"
)

// warning says what a role for the node gives besides.
func (d *draft) warning(node string) string {
	what := fmt.Sprintf("whoever takes over node %s can then %s %s", node, d.req.Verb, scope(&d.req))
	if leadsToCluster(&d.req) {
		what += ", which can give them the whole cluster"
	}
	return what + "; if an agent on the node needs this, give a service account of its own to the agent instead"
}

// scope describes the objects of a request.
func scope(req *access.Request) string {
	switch {
	case !req.ResourceRequest:
		return req.Path
	case req.Name != "":
		return target(req)
	case req.Namespace != "":
		return "all " + resourceName(req) + " in namespace " + req.Namespace
	}
	return "all " + resourceName(req) + " of the cluster"
}

// leadsToCluster reports whether a right leads to other rights that nobody meant to give: rights
// about identities and roles, code in any pod, credentials of unknown others, and wildcards.
func leadsToCluster(req *access.Request) bool {
	switch {
	case !req.ResourceRequest:
		return req.Path == "*"
	case slices.Contains([]string{"impersonate", "bind", "escalate", "approve", "sign", "attest", "*"}, req.Verb):
		return true
	case req.Resource == "*" || req.Group == "*":
		return true
	case verb(req.Verb)&read == 0 && req.Group == "rbac.authorization.k8s.io":
		return true
	case req.Resource == "secrets" && req.Name == "":
		return true
	case req.Resource == "nodes" && req.Subresource == "proxy":
		return true
	}
	return req.Resource == "pods" &&
		slices.Contains([]string{"exec", "attach", "portforward", "proxy", "ephemeralcontainers", "binding"}, req.Subresource)
}
