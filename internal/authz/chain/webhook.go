package chain

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// webhook is an authorization webhook. Kubernetes' own client makes its calls, with
// the cache, match conditions and failure policy.
type webhook struct {
	name       string
	authorizer authorizer.Authorizer
	onError    verdict.Decision // the failure policy: NoOpinion or Deny
	// connection is a hint that explains where address and credentials come from.
	connection string
}

func (w *webhook) Name() string { return w.name }

func (w *webhook) Authorize(ctx context.Context, req *access.Request, detail Detail) (Opinion, error) {
	if detail == DecisionOnly {
		return w.decide(ctx, req)
	}
	answer := w.ask(ctx, req)
	if detail == Full {
		return w.opinion(&answer, w.message(&answer))
	}
	return w.opinion(&answer, w.briefMessage(&answer))
}

// decide returns only the decision, without a trace.
func (w *webhook) decide(ctx context.Context, req *access.Request) (Opinion, error) {
	answer, _, err := w.authorizer.Authorize(ctx, req.Attributes())
	decision := decisionOf(answer)
	if decision == verdict.Deny {
		err = nil // the failure policy's
	}
	return Opinion{Decision: decision}, withoutQuery(err)
}

// withoutQuery removes the query from the address in an error. The client added it
// for the remaining timeout.
func withoutQuery(err error) error {
	failed := new(url.Error)
	if !errors.As(err, &failed) {
		return err
	}
	address, _, _ := strings.Cut(failed.URL, "?")
	return &url.Error{Op: failed.Op, URL: address, Err: failed.Err}
}

// briefMessage leaves out match conditions and addresses.
func (w *webhook) briefMessage(a *answer) string {
	switch {
	case a.code == CodeWebhookFailed:
		return "the webhook failed, and " + w.outcome(a)
	case a.code == CodeWebhookNotAsked:
		return "the webhook is not asked about such requests"
	case a.reason != "":
		return a.reason
	case a.code == CodeWebhookAllows:
		return "the webhook allows it"
	case a.code == CodeWebhookDenies:
		return "the webhook denies it"
	}
	return "the webhook has no opinion"
}

// answer is the result of one request.
type answer struct {
	trace
	decision verdict.Decision
	code     verdict.Code
	reason   string // the webhook's own
	err      error
	// repeatable is true for an error that depends only on the request, the
	// configuration and the webhook's answer: no connection failed.
	repeatable bool
}

func (w *webhook) ask(ctx context.Context, req *access.Request) (a answer) {
	decision, reason, err := w.authorizer.Authorize(withTrace(ctx, &a.trace), req.Attributes())
	a.decision, a.reason, a.err = decisionOf(decision), oneLine(reason), withoutQuery(err)
	switch {
	case err != nil:
		a.code = CodeWebhookFailed
		// Without a call, the error comes from a condition or a cached answer.
		a.repeatable = a.conditionFailed || a.answered || a.calls == 0 && ctx.Err() == nil
	case a.excludedBy != "":
		a.code = CodeWebhookNotAsked
	case a.decision == verdict.Allow:
		a.code = CodeWebhookAllows
	case a.decision == verdict.Deny:
		a.code = CodeWebhookDenies
	default:
		a.code = CodeWebhookNoOpinion
	}
	return a
}

// opinion turns an error into a decision only where Kubernetes does, and says so.
func (w *webhook) opinion(a *answer, message string) (Opinion, error) {
	o := Opinion{Decision: a.decision, Reason: verdict.Reason{Code: a.code, Message: message}}
	if a.err == nil {
		return o, nil
	}
	o.Hint, o.Repeatable = w.connection, a.repeatable
	if a.decision != verdict.Deny {
		return o, a.err
	}
	o.Error = oneLine(a.err.Error())
	return o, nil
}

func (w *webhook) message(a *answer) string {
	source := "webhook " + w.name
	if a.calls == 0 {
		source = "a cached answer of " + source
	}
	if a.reason != "" {
		source += ": " + a.reason
	}
	switch a.code {
	case CodeWebhookFailed:
		return fmt.Sprintf("webhook %s failed, and %s: %s", w.name, w.outcome(a), oneLine(a.err.Error()))
	case CodeWebhookNotAsked:
		return fmt.Sprintf("webhook %s is not asked: its match condition %q is false", w.name, oneLine(a.excludedBy))
	case CodeWebhookAllows:
		return "allowed by " + source
	case CodeWebhookDenies:
		return "denied by " + source
	}
	return "no opinion in " + source
}

// outcome describes how an error is decided. A webhook that both allows and denies
// fails too; Kubernetes then denies regardless of the policy.
func (w *webhook) outcome(a *answer) string {
	switch {
	case a.decision != verdict.Deny:
		return "its failure policy passes the request to the next authorizers"
	case w.onError == verdict.Deny && (a.conditionFailed || !a.repeatable):
		return "its failure policy denies the request"
	}
	return "the request is denied"
}

// maxLine is the maximum length of untrusted text, in bytes.
const maxLine = 1024

// oneLine returns untrusted text as one line without control characters.
func oneLine(text string) string {
	unfit := func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsGraphic(r) }
	line := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), unfit), " ")
	if len(line) > maxLine {
		return strings.ToValidUTF8(line[:maxLine], "") + "…"
	}
	return line
}

// decisionOf fails closed for unknown decisions.
func decisionOf(d authorizer.Decision) verdict.Decision {
	switch d {
	case authorizer.DecisionAllow:
		return verdict.Allow
	case authorizer.DecisionNoOpinion:
		return verdict.NoOpinion
	}
	return verdict.Deny
}
