package noderestriction

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// HTTP statuses, as in net/http.
const (
	statusOK            = 200
	statusForbidden     = 403
	statusNotFound      = 404
	statusInternalError = 500
)

func allow(code verdict.Code, node, rule string) Answer {
	return Answer{
		Decision: verdict.Allow, Code: code, Node: node, Rule: rule, Status: statusOK,
		Reason: verdict.Reason{Code: code, Message: allowed(code)},
	}
}

func allowed(code verdict.Code) string {
	switch code {
	case NotANode:
		return "the user is not a node, and only nodes are restricted"
	case NotRestricted:
		return "no restriction of nodes is about this"
	}
	return "all that is required of a node here holds"
}

// refusal is the reason why a check fails.
type refusal struct {
	code    verdict.Code
	message string
	status  int
	stale   bool
	err     error
}

// forbid returns a permanent refusal: HTTP status 403.
func forbid(code verdict.Code, format string, args ...any) *refusal {
	for i := range args {
		switch arg := args[i].(type) {
		case string:
			args[i] = clipped(arg)
		case types.UID:
			args[i] = clipped(string(arg))
		}
	}
	return &refusal{code: code, message: fmt.Sprintf(format, args...), status: statusForbidden}
}

// maxQuoted is how many bytes of a value in the request a message quotes.
const maxQuoted = 1 << 10

func clipped(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + "…"
}

// lagging marks a refusal that a lagging state could cause.
func (r *refusal) lagging(could bool) *refusal {
	r.stale = could
	return r
}

func (r *refusal) withStatus(status int) *refusal {
	r.status = status
	return r
}

func (r *refusal) because(err error) *refusal {
	r.err = err
	return r
}

// settled returns an error in place of a refusal that a missing object could cause, if the state has not synced.
func (r *refusal) settled(synced bool) *refusal {
	if synced || !r.stale {
		return r
	}
	return forbid(r.code, "%v", ErrNotSynced).withStatus(statusInternalError).because(ErrNotSynced).lagging(true)
}

func (r *refusal) answer(node, rule string) Answer {
	return Answer{
		Decision: verdict.Deny, Code: r.code, Node: node, Rule: rule, Status: r.status, StatusReason: statusReason(r.status),
		Reason: verdict.Reason{Code: r.code, Message: r.message, Hint: hint(r.code)},
		Stale:  r.stale, Err: r.err,
	}
}

func statusReason(status int) metav1.StatusReason {
	switch status {
	case statusForbidden:
		return metav1.StatusReasonForbidden
	case statusNotFound:
		return metav1.StatusReasonNotFound
	}
	return metav1.StatusReasonUnknown
}

func unnamedNode(req *Request) *refusal {
	return forbid(UnnamedNode, "unknown node for user %q: nothing follows %s", req.User, nodeidentity.UserPrefix)
}

func unknownOperation(req *Request) *refusal {
	return forbid(OperationNotAllowed, "admission knows no operation %q", req.Operation)
}
