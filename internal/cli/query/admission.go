package query

import (
	"context"
	"fmt"
	"net/http"

	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const nameRestriction = "NodeRestriction"

// admit evaluates AdmissionReviews by NodeRestriction. If an unreadable resource could change
// a refusal, the status tells the client to retry. If missing objects in files could change
// it, the status is the status that Kubernetes returns, and the message says so.
func admit(ctx context.Context, s *command.Session, req *noderestriction.Request) noderestriction.Answer {
	a := s.Admit(ctx, req)
	answer := a.Answer
	if err := a.Contained; err != nil { // NodeScopes or Quarantines could refuse the write, and are not known
		return noderestriction.Answer{
			Decision: verdict.Deny, Code: command.CodeEvaluationFailed, Status: http.StatusInternalServerError,
			Reason: verdict.Reason{Code: command.CodeEvaluationFailed, Message: "could not decide: " + err.Error()},
		}
	}
	answer.Reason = undecidedReason(answer)
	if len(a.Unread) > 0 {
		answer.Status, answer.StatusReason = http.StatusInternalServerError, ""
		answer.Reason.Message += "; but " + (&evaluate.UnreadError{Resources: a.Unread}).Error()
	}
	if len(a.Lacks) > 0 {
		answer.Reason.Message += "; not decided: " + (&evaluate.LackError{Lacks: a.Lacks}).Error()
	}
	return answer
}

// undecidedReason returns the answer's reason, with the error if the chain could not answer
// an access review of NodeRestriction.
func undecidedReason(answer noderestriction.Answer) verdict.Reason {
	reason := answer.Reason
	if answer.Code == noderestriction.AuthorizationFailed {
		reason.Message += fmt.Sprintf(" (%v)", answer.Err)
	}
	return reason
}
