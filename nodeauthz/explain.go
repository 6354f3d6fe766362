package nodeauthz

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Explanation is an Answer with its full reason.
type Explanation struct {
	Answer
	// Rule is the rule that was applied, in words: the verbs, the resource and the
	// condition. Empty if there is none.
	Rule   string         `json:"rule,omitempty"`
	Reason verdict.Reason `json:"reason"`
	// Nearest has the references to an object to which the node has no path.
	Nearest *graph.Nearest `json:"nearest,omitempty"`
}

// nearestLimit is the maximum number of other nodes and paths in an explanation.
const nearestLimit = 3

// Explain decides like Decide and explains why.
func (a *Authorizer) Explain(req *access.Request) Explanation {
	return a.explain(req, a.Decide(req))
}

// Message returns only the message of Explain's reason, which is much cheaper. The
// answer is the one that Decide gave to the request, even if the graph has changed
// since. For an answer that was decoded from JSON, the message is the message of its code.
func (a *Authorizer) Message(req *access.Request, answer Answer) string {
	switch {
	case !answer.detailed():
		return Summary(answer.Code)
	case answer.Code == NoPathToObject && a.relatedNow(req):
		return relatedSince(req, answer)
	case answer.Code == NoPathToObject:
		return noPathMessage(req, answer, a.nearest(answer.entry.kind, req.Namespace, req.Name, 1))
	}
	return a.reason(req, answer).Message
}

// detailed reports whether an answer has the details for its reason. One that was
// decoded from JSON does not.
func (a Answer) detailed() bool {
	switch a.Code {
	case NotANode, UnnamedNode, NoRuleForResource:
		return true
	}
	return a.entry != nil
}

// relatedNow reports whether the missing relation of an answer exists now.
func (a *Authorizer) relatedNow(req *access.Request) bool {
	return a.Decide(req).Decision == verdict.Allow
}

func (a *Authorizer) explain(req *access.Request, answer Answer) Explanation {
	e := Explanation{Answer: answer}
	if answer.rule != nil {
		e.Rule = answer.rule.describe(answer.entry)
	}
	if answer.Code == NoPathToObject && a.relatedNow(req) {
		e.Reason = verdict.Reason{Code: NoPathToObject, Message: relatedSince(req, answer)}
		return e
	}
	if answer.Code == NoPathToObject {
		nearest := a.nearest(answer.entry.kind, req.Namespace, req.Name, nearestLimit)
		e.Nearest = &nearest
		e.Reason = noPath(req, answer, nearest)
		return e
	}
	e.Reason = a.reason(req, answer)
	return e
}

// describe renders a rule: "get, list, watch secrets (related to the node)".
func (r *rule) describe(e *entry) string {
	subresource := r.subresource
	if subresource == anySubresource {
		subresource = ""
	}
	return fmt.Sprintf("%s %s (%s)", r.verbs, qualified(e.group, e.name, subresource), r.words())
}

// qualified returns a resource in kubectl's notation:
// "csinodes.storage.k8s.io/status".
func qualified(group, resource, subresource string) string {
	if group != "" {
		resource += "." + group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return resource
}

// reason builds the text of an answer.
func (a *Authorizer) reason(req *access.Request, answer Answer) verdict.Reason {
	reason := verdict.Reason{Code: answer.Code, Message: Summary(answer.Code)}
	switch answer.Code {
	case PathToObject:
		reason.Path = a.path(answer.Node, answer.entry.kind, req.Namespace, req.Name)
		reason.Message = pathMessage(reason.Path)
	case OwnName:
		reason.Message = fmt.Sprintf("the object's name is the node's own, %s", req.Name)
	case OwnFieldSelector:
		reason.Message = fmt.Sprintf("the field selector %s=%s limits the request to this node", nodeNameField, answer.Node)
	case GrantedToNodes:
		reason.Message = fmt.Sprintf("every node may %s %s", req.Verb, target(req))
	case NotANode:
		reason.Message = notANode(req)
		reason.Hint = fmt.Sprintf("a kubelet's user is %s<node name> in group %s", nodeidentity.UserPrefix, nodeidentity.Group)
	case UnnamedNode:
		reason.Message = fmt.Sprintf("unknown node for user %q", req.User)
		reason.Hint = fmt.Sprintf("the user name must be %s followed by the node's name", nodeidentity.UserPrefix)
	default:
		refusal(req, answer, a.features, &reason)
	}
	return reason
}

func notANode(req *access.Request) string {
	if strings.HasPrefix(req.User, nodeidentity.UserPrefix) {
		return fmt.Sprintf("user %q is not in group %s", req.User, nodeidentity.Group)
	}
	return fmt.Sprintf("user %q is not a node", req.User)
}

// target describes the object of a request: "secrets shop/db", "pods/eviction".
func target(req *access.Request) string {
	t := resourceName(req)
	switch {
	case req.Name != "" && req.Namespace != "":
		t += " " + req.Namespace + "/" + req.Name
	case req.Name != "":
		t += " " + req.Name
	}
	return t
}
