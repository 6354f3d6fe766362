package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
)

// Collector is the machine's half of the provider.
type Collector struct{ runner *runner }

var _ interface {
	attest.Collector
	attest.Responder
} = (*Collector)(nil)

// NewCollector returns a collector. It does not run the program.
func NewCollector(program Program) *Collector { return &Collector{newRunner(program)} }

// NodeName asks the program for the name of the node; the default is the host's name.
func (c *Collector) NodeName(ctx context.Context) (string, error) {
	answer, err := c.collect(ctx, v1alpha1.CollectRequest{})
	if err == nil && answer.NodeName == "" {
		return alwaysallow.Hostname()
	}
	return answer.NodeName, err
}

// Collect returns the evidence of the first round.
func (c *Collector) Collect(ctx context.Context, about attest.Binding) ([]byte, error) {
	if about.Challenge == "" {
		return nil, errors.New("the service sends no challenge: is bootstrap.attestor in its configuration exec?")
	}
	answer, err := c.evidence(ctx, v1alpha1.CollectRequest{Challenge: about.Challenge, PublicKey: about.PublicKey})
	return encoded(body{Challenge: about.Challenge, PublicKey: about.PublicKey, Evidence: answer}, err)
}

// Respond returns the evidence of another round.
func (c *Collector) Respond(ctx context.Context, about attest.Binding, challenge []byte) ([]byte, error) {
	var asked next
	if err := json.Unmarshal(challenge, &asked); err != nil {
		return nil, fmt.Errorf("read the challenge of the service: %w", err)
	}
	answer, err := c.evidence(ctx, v1alpha1.CollectRequest{
		Challenge: about.Challenge, PublicKey: about.PublicKey, Document: asked.Document,
	})
	return encoded(body{State: asked.State, Evidence: answer}, err)
}

func encoded(b body, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return json.Marshal(b)
}

func (c *Collector) evidence(ctx context.Context, request v1alpha1.CollectRequest) (json.RawMessage, error) {
	answer, err := c.collect(ctx, request)
	if err == nil && len(answer.Evidence) == 0 {
		err = c.runner.invalid("evidence is missing")
	}
	return answer.Evidence, err
}

func (c *Collector) collect(ctx context.Context, request v1alpha1.CollectRequest) (answer v1alpha1.CollectResponse, err error) {
	request.TypeMeta = Header(v1alpha1.CollectRequestKind)
	text, err := json.Marshal(request)
	if err == nil {
		err = c.runner.exchange(ctx, text, &answer, v1alpha1.CollectResponseKind)
	}
	return answer, err
}
