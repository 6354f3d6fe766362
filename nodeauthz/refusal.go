package nodeauthz

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// refusal returns the reasons that need no graph.
func refusal(req *access.Request, answer Answer, features kubeversion.Features, reason *verdict.Reason) {
	switch answer.Code {
	case NoRuleForResource:
		if !req.ResourceRequest {
			reason.Message = fmt.Sprintf("the Node authorizer gives nodes no access to paths such as %s", req.Path)
		} else {
			reason.Message = fmt.Sprintf("the Node authorizer gives nodes no access to %s", resourceName(req))
		}
		reason.Hint = "if nodes need this, grant it to them with RBAC"
	case SubresourceNotAllowed:
		reason.Message = fmt.Sprintf("nodes have no access to %s", resourceName(req))
		reason.Hint = answer.entry.allowed()
	case VerbNotAllowed:
		reason.Message = fmt.Sprintf("nodes may not %s %s", req.Verb, resourceName(req))
		reason.Hint = answer.entry.allowed()
	case FeatureDisabled:
		gates := answer.entry.gatesFor(req.Subresource, verb(req.Verb), features)
		reason.Message = fmt.Sprintf("nodes may %s %s only with feature gate %s, which is off", req.Verb, resourceName(req),
			strings.Join(gates, " or "))
		reason.Hint = fmt.Sprintf("kube-apiserver --feature-gates=%s=true turns it on", gates[0])
	case NamespaceRequired:
		reason.Message = fmt.Sprintf("nodes may %s %s only in one namespace, and the request has none", req.Verb, resourceName(req))
	case ClusterScoped:
		reason.Message = fmt.Sprintf("%s have no namespace, but the request has namespace %s", resourceName(req), req.Namespace)
		reason.Hint = "ask without a namespace"
	case NameRequired:
		reason.Message = fmt.Sprintf("nodes may %s %s only one by one, by name", req.Verb, resourceName(req))
		reason.Hint = singleObjectHint(req, "NAME")
	case NotOwnNode:
		reason.Message = fmt.Sprintf("node %s may read only its own Node object", answer.Node)
		if req.Name != "" {
			reason.Message += ", not node " + req.Name
		} else {
			reason.Hint = singleObjectHint(req, answer.Node)
		}
	case NotOwnCSINode, NotOwnLease:
		reason.Message = fmt.Sprintf("%s, %s; %s", Summary(answer.Code), answer.Node, given("name", req.Name))
	case NotLeaseNamespace:
		reason.Message = fmt.Sprintf("%s; %s", Summary(answer.Code), given("namespace", req.Namespace))
	case FieldSelectorRequired:
		reason.Message = fmt.Sprintf("node %s may %s %s only with the field selector %s=%s", answer.Node, req.Verb,
			resourceName(req), nodeNameField, answer.Node)
		reason.Hint = fmt.Sprintf("add the field selector %s=%s", nodeNameField, answer.Node)
	}
}

// singleObjectHint is for lists and watches without a name.
func singleObjectHint(req *access.Request, name string) string {
	if verb(req.Verb)&(list|watch) == 0 {
		return ""
	}
	return fmt.Sprintf("%s a single object with the field selector metadata.name=%s, which reaches authorizers as the name", req.Verb, name)
}

// given describes the value in a request where another one is required.
func given(what, value string) string {
	if value == "" {
		return "the request has no " + what
	}
	return fmt.Sprintf("the request has %s %s", what, value)
}

func resourceName(req *access.Request) string {
	return qualified(req.Group, req.Resource, req.Subresource)
}

// allowed describes what the rules of a resource allow.
func (e *entry) allowed() string {
	var all []string
	for i := range e.rules {
		all = append(all, e.rules[i].describe(e))
	}
	if len(all) == 0 {
		return ""
	}
	return "nodes may " + strings.Join(all, "; ")
}

// gatesFor names the feature gates that a verb requires.
func (e *entry) gatesFor(subresource string, v verbSet, f kubeversion.Features) (names []string) {
	for i := range e.off {
		r := &e.off[i]
		if r.verbs&v == 0 || !r.covers(subresource) {
			continue
		}
		for _, gate := range r.when.missing(f) {
			names = append(names, string(gate))
		}
		return names
	}
	return nil
}
