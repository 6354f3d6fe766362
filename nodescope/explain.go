package nodescope

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Explanation is an Answer with its full reason.
type Explanation struct {
	Answer
	Reason verdict.Reason `json:"reason"`
}

// Explain decides like Decide and explains why.
func (a *Authorizer) Explain(req *access.Request) Explanation {
	answer := a.Decide(req)
	return Explanation{Answer: answer, Reason: Reason(req, &answer)}
}

// Reason returns the reason of an answer that Decide gave to a request. It names the NodeScope and its
// rule, which not every account may know; [Summary] does not.
func Reason(req *access.Request, answer *Answer) verdict.Reason {
	reason := verdict.Reason{Code: answer.Code, Message: Summary(answer.Code)}
	switch answer.Code {
	case NotInScope:
		reason.Message = fmt.Sprintf("no NodeScope is about user %s", req.User)
		return reason
	case ScopePassed:
		reason.Message = passed(answer)
		return reason
	}
	reason.Message = refused(req, answer)
	reason.Hint = hint(answer)
	return reason
}

func passed(answer *Answer) string {
	switch {
	case answer.Rule != "":
		return fmt.Sprintf("rule %s of NodeScope %s lets the request pass; later authorizers decide", answer.Rule, answer.Scope)
	case answer.Node == "":
		return fmt.Sprintf("NodeScope %s lets requests without a node pass", answer.Scope)
	}
	return fmt.Sprintf("NodeScope %s lets pass what none of its rules names", answer.Scope)
}

func refused(req *access.Request, answer *Answer) string {
	verb := "refuses"
	if answer.Mode == v1alpha1.Observe {
		verb = "would refuse, in the mode Enforce,"
	}
	what := fmt.Sprintf("NodeScope %s %s to let %s %s", answer.Scope, verb, req.User, described(req))
	switch answer.Code {
	case ScopeTokenWithoutNode:
		return what + ": the token is bound to no node"
	case ScopeTokenNodeAmbiguous:
		return what + ": its extra values name several nodes, or an empty one"
	case ScopeInvalid:
		return what + ": the NodeScope is not valid, and was never valid"
	case ScopeNoRule:
		return what + ": no rule names this"
	}
	if answer.Code == ScopeAggregatedAPI {
		return what + fmt.Sprintf(": rule %s would let it pass, but another API server serves %s, which neither asks admission "+
			"nor need obey selectors", answer.Rule, groupVersion(req))
	}
	what += fmt.Sprintf(": rule %s lets pass only what is %s; the token is bound to node %s",
		answer.Rule, answer.rule.info().requires, answer.Node)
	if answer.rule.kind == selectsNode {
		what += fmt.Sprintf(", and the field selector is %s=%s", answer.rule.field, answer.Node)
	}
	if answer.rule.kind == asNode && nodeauthz.Summary(answer.NodeCode) != "" {
		what += fmt.Sprintf(" (%s: %s)", answer.NodeCode, nodeauthz.Summary(answer.NodeCode))
	}
	return what
}

func hint(answer *Answer) string {
	switch answer.Code {
	case ScopeTokenWithoutNode, ScopeTokenNodeAmbiguous:
		return "use a token that is bound to a pod: a projected volume, or a TokenRequest with boundObjectRef; " +
			"or set tokensWithoutNode to Allow"
	case ScopeInvalid:
		return "correct the NodeScope: its condition Accepted says what is not valid"
	case ScopeAggregatedAPI:
		return "read and write single objects by name; " +
			"what the agent needs beyond that goes into anywhere, which does not hold it to its node"
	case ScopeNoRule:
		return "if the agent needs this, add a rule to the NodeScope"
	}
	return answer.rule.info().hint
}

func groupVersion(req *access.Request) string {
	if req.Version == "" || req.Version == "*" {
		return req.Group
	}
	return req.Group + "/" + req.Version
}

// described says what is requested: "get secrets shop/db".
func described(req *access.Request) string {
	if !req.ResourceRequest {
		return req.Verb + " " + req.Path
	}
	var b strings.Builder
	b.WriteString(req.Verb + " " + req.Resource)
	if req.Group != "" {
		b.WriteString("." + req.Group)
	}
	if req.Subresource != "" {
		b.WriteString("/" + req.Subresource)
	}
	switch {
	case req.Name != "" && req.Namespace != "":
		b.WriteString(" " + req.Namespace + "/" + req.Name)
	case req.Name != "":
		b.WriteString(" " + req.Name)
	case req.Namespace != "":
		b.WriteString(" in namespace " + req.Namespace)
	}
	return b.String()
}
