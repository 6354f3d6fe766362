package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// token is a bootstrap token. It does not print.
type token string

func (token) String() string   { return "(a token)" }
func (token) GoString() string { return "(a token)" }

var (
	// tokenForm is the format of https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/#token-format.
	tokenForm = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	// reasonForm matches the code and the summary of a refusal.
	reasonForm = regexp.MustCompile(`^([A-Z][A-Za-z0-9]{1,62}): (.+)$`)
)

// maxSummary limits the text of an answer that is shown to people, in bytes.
const maxSummary = 300

// answer is an HTTP response, with a body of limited size.
type answer struct {
	status   int
	location string
	// mediaType is the media type of the body.
	mediaType string
	after     time.Duration
	body      []byte
}

// registration is the body of an answer, as defined by kops' node-authorizer.
type registration struct {
	Spec struct {
		NodeName string
	}
	Status struct {
		Allowed bool
		Token   string
		Reason  string
	}
}

// token reads an answer with status 200. An answer without a token is a failure of the
// service, so the client retries.
func (a *answer) token(name string) (token, error) {
	var r registration
	if err := json.Unmarshal(a.body, &r); err != nil {
		return "", a.retry(errors.New("the bootstrap service answered 200 OK with a body that is not its own"))
	}
	switch {
	case !r.Status.Allowed:
		return "", a.refusal(r.Status.Reason)
	case r.Status.Token == "":
		return "", a.retry(errors.New("the bootstrap service answered 200 OK without a token"))
	case !tokenForm.MatchString(r.Status.Token):
		return "", a.retry(errors.New("the bootstrap service answered 200 OK with a token that is not a bootstrap token"))
	case r.Spec.NodeName != "" && r.Spec.NodeName != name:
		return "", a.retry(fmt.Errorf("the bootstrap service answered for node %q instead of %q", cut(r.Spec.NodeName), name))
	}
	return token(r.Status.Token), nil
}

// challenge reads an answer with status 200.
func (a *answer) challenge() (string, error) {
	var c struct{ Challenge string }
	if err := json.Unmarshal(a.body, &c); err != nil || c.Challenge == "" {
		return "", a.retry(errors.New("the bootstrap service answered 200 OK without the challenge that it was asked for"))
	}
	return c.Challenge, nil
}

// failure reads an answer with another status.
func (a *answer) failure() error {
	switch a.status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return a.retry(fmt.Errorf("the bootstrap service answered %s", a.reason()))
	case http.StatusForbidden:
		return a.refusal(a.reason())
	}
	switch {
	case a.status >= 500:
		return a.retry(fmt.Errorf("the bootstrap service answered %s", a.reason()))
	case a.location != "":
		return &Refused{Status: a.status, Summary: fmt.Sprintf(
			"it answered %s and points to %s, which is not followed", a.text(), cut(a.location))}
	case a.reason() == a.text():
		return &Refused{Status: a.status, Summary: fmt.Sprintf("it answered %s; is its URL right?", a.text())}
	}
	return a.refusal(a.reason())
}

// text is the text of the status: "403 Forbidden".
func (a *answer) text() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", a.status, http.StatusText(a.status)))
}

// reason is the reason in the body, or else the text of the status.
func (a *answer) reason() string {
	var r registration
	if err := json.Unmarshal(a.body, &r); err != nil || r.Status.Reason == "" {
		return a.text()
	}
	if reason := cut(r.Status.Reason); reasonForm.MatchString(reason) {
		return reason
	}
	return a.text() + ": " + cut(r.Status.Reason)
}

// refusal is final, unless its cause may be temporary.
func (a *answer) refusal(reason string) error {
	refused := &Refused{Status: a.status, Summary: cut(reason)}
	if found := reasonForm.FindStringSubmatch(refused.Summary); found != nil {
		refused.Code, refused.Summary = verdict.Code(found[1]), found[2]
	}
	if refused.Summary == "" {
		refused.Summary = "it gives no reason"
	}
	if refused.temporary() {
		return a.retry(refused)
	}
	return refused
}

func (a *answer) retry(err error) error { return &retryable{err: err, connected: true, after: a.after} }

// cut limits a text from the network and puts it on one line.
func cut(text string) string {
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	if len(text) <= maxSummary {
		return text
	}
	return strings.ToValidUTF8(text[:maxSummary], "") + "…"
}
