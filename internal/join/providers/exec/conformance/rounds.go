package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/exec"
)

// errNoMachine is the result of a program that asks for another round, where nothing can answer.
var errNoMachine = errors.New("the program asks for another round of evidence: use --collector-command, or an AttestRequest " +
	"with the state and the evidence of the last round")

// unsealed leaves the state of a program as it is. A service seals it, so that no machine can read or change it.
type unsealed struct{}

func (unsealed) Check(string) error                          { return nil }
func (unsealed) Seal(_ string, state []byte) (string, error) { return string(state), nil }
func (unsealed) Open(_, text string) ([]byte, time.Time, error) {
	return []byte(text), time.Time{}, nil
}

// allRounds returns the machine of the good request, and the requests of the rounds before the last one. Good becomes the request
// of the last round.
func (t *trial) allRounds(ctx context.Context) (id *attest.Identity, before []*v1alpha1.AttestRequest, err error) {
	for range exec.MaxRounds {
		id, err = t.ask(ctx, t.Good)
		var more *attest.Continue
		if !errors.As(err, &more) {
			return id, before, err
		}
		if t.Machine == nil {
			return nil, nil, errNoMachine
		}
		before = append(before, t.Good)
		if t.Good, err = t.next(ctx, more); err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("the program asks for more than %d rounds of evidence", exec.MaxRounds)
}

// next is the machine's request after a challenge.
func (t *trial) next(ctx context.Context, more *attest.Continue) (*v1alpha1.AttestRequest, error) {
	text, err := t.Machine.Respond(ctx, attest.Binding{Challenge: t.Good.Challenge, PublicKey: t.Good.PublicKey}, more.Challenge)
	if err != nil {
		return nil, fmt.Errorf("answer the challenge of the program: %w", err)
	}
	var body struct {
		State    string
		Evidence json.RawMessage
	}
	var state struct{ State json.RawMessage }
	if err := errors.Join(json.Unmarshal(text, &body), json.Unmarshal([]byte(body.State), &state)); err != nil {
		return nil, err
	}
	return t.with(func(r *v1alpha1.AttestRequest) { r.Evidence, r.State = body.Evidence, state.State }), nil
}
