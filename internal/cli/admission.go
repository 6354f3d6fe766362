package cli

import (
	"context"
	"fmt"
	"net/http"

	"github.com/node-authorizer/node-authorizer/internal/evaluate"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// nameRestriction is the admission plugin's name, as API servers call it.
const nameRestriction = "NodeRestriction"

// admit puts AdmissionReviews to NodeRestriction. A refusal that an unreadable
// resource might turn is one that the API server's client may try again. One that
// files might turn has the status that Kubernetes has for such a state, and says so.
func (s *session) admit(ctx context.Context, req *noderestriction.Request) noderestriction.Answer {
	a := s.Admit(ctx, req)
	answer := a.Answer
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

func resourceNames(all []missing) []string {
	names := make([]string, len(all))
	for i, m := range all {
		names[i] = m.Resource
	}
	return names
}

// undecidedReason is the answer's reason, with what went wrong if the chain could
// not say what NodeRestriction asked it.
func undecidedReason(answer noderestriction.Answer) verdict.Reason {
	reason := answer.Reason
	if answer.Code == noderestriction.AuthorizationFailed {
		reason.Message += fmt.Sprintf(" (%v)", answer.Err)
	}
	return reason
}
