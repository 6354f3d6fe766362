package exec

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Name is the name of the attestor in configurations. The names of ledger entries begin with the
// name of the provider that is configured.
const Name = "exec"

// MaxRounds is how many rounds of evidence a program may ask for, maxState the size of its state.
const (
	MaxRounds = 4
	maxState  = 8 << 10
)

// Challenger verifies challenges, and seals state; see [attest.Challenges].
type Challenger interface {
	Check(challenge string) error
	Seal(purpose string, state []byte) (string, error)
	Open(purpose, text string) (state []byte, sealed time.Time, err error)
}

// Options are settings of an [Attestor].
type Options struct {
	// Provider is the name of the provider: a DNS label.
	Provider   string
	Program    Program
	Challenger Challenger
	// Clock returns the current time; nil: time.Now.
	Clock func() time.Time
}

// Attestor is the server's half of the provider.
type Attestor struct {
	options Options
	runner  *runner
}

var _ attest.Attestor = (*Attestor)(nil)

// New returns an attestor. It does not run the program.
func New(options Options) *Attestor {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	return &Attestor{options, newRunner(options.Program)}
}

// Name returns the name of the provider.
func (a *Attestor) Name() string { return a.options.Provider }

// body is the body of a request. State answers a challenge, and has the other fields of the round before.
type body struct {
	Challenge string          `json:"challenge,omitempty"`
	PublicKey string          `json:"publicKey,omitempty"`
	State     string          `json:"state,omitempty"`
	Evidence  json.RawMessage `json:"evidence"`
}

// next is the challenge for a [Collector].
type next struct {
	Document json.RawMessage `json:"document"`
	State    string          `json:"state"`
}

// sealed is what the service remembers between rounds.
type sealed struct {
	Rounds    int             `json:"rounds"`
	NodeName  string          `json:"nodeName"`
	Challenge string          `json:"challenge"`
	PublicKey string          `json:"publicKey,omitempty"`
	State     json.RawMessage `json:"state,omitempty"`
}

// Attest lets the program decide.
func (a *Attestor) Attest(ctx context.Context, req *attest.Request) (*attest.Identity, error) {
	var b body
	if err := strictjson.Unmarshal(req.Body, &b, strictjson.Options{}); err != nil {
		return nil, attest.Malformed(alwaysallow.EvidenceMalformed, "%s", err)
	}
	if len(b.Evidence) == 0 {
		return nil, attest.Malformed(alwaysallow.EvidenceMalformed, "the request has no evidence")
	}
	round, err := a.round(req, &b)
	if err != nil {
		return nil, err
	}
	request := &v1alpha1.AttestRequest{
		TypeMeta: Header(v1alpha1.AttestRequestKind),
		NodeName: req.NodeName, RemoteAddress: req.RemoteAddr.String(),
		Challenge: round.Challenge, PublicKey: round.PublicKey, Evidence: b.Evidence, State: round.State,
	}
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	return a.ask(ctx, text, round, request)
}

// Ask lets the program decide about a text that should be the request. It does not count rounds.
func (a *Attestor) Ask(ctx context.Context, text []byte, request *v1alpha1.AttestRequest) (*attest.Identity, error) {
	return a.ask(ctx, text, &sealed{NodeName: request.NodeName, Challenge: request.Challenge, PublicKey: request.PublicKey}, request)
}

func (a *Attestor) ask(ctx context.Context, text []byte, round *sealed, request *v1alpha1.AttestRequest) (*attest.Identity, error) {
	var answer v1alpha1.AttestResponse
	if err := a.runner.exchange(ctx, text, &answer, v1alpha1.AttestResponseKind); err != nil {
		return nil, err
	}
	return a.outcome(&answer, round, request)
}

// round begins the first round, or opens the state of the one before.
func (a *Attestor) round(req *attest.Request, b *body) (*sealed, error) {
	if b.State == "" {
		if b.PublicKey != "" && !v1alpha1.IsPublicKeyHash(b.PublicKey) {
			return nil, attest.Malformed(alwaysallow.EvidenceMalformed,
				"publicKey is %.100q, want sha256: and the hash of a public key", b.PublicKey)
		}
		if err := a.options.Challenger.Check(b.Challenge); err != nil {
			return nil, attest.Refuse(attest.ChallengeInvalid, "the challenge of the request: %s", err)
		}
		return &sealed{NodeName: req.NodeName, Challenge: b.Challenge, PublicKey: b.PublicKey}, nil
	}
	if b.Challenge+b.PublicKey != "" {
		return nil, attest.Malformed(alwaysallow.EvidenceMalformed, "the request has a state, and a challenge or publicKey")
	}
	text, _, err := a.options.Challenger.Open(a.options.Provider, b.State)
	if err != nil {
		return nil, attest.Refuse(attest.ChallengeInvalid, "the state of the request: %s", err)
	}
	var before sealed
	if err := json.Unmarshal(text, &before); err != nil {
		return nil, fmt.Errorf("read the state of the round before: %w", err)
	}
	if before.NodeName != req.NodeName {
		return nil, attest.Refuse(attest.ChallengeInvalid, "the state of the request is for node %.253q", before.NodeName)
	}
	return &before, nil
}

// outcome checks the answer of the program.
func (a *Attestor) outcome(answer *v1alpha1.AttestResponse, round *sealed, request *v1alpha1.AttestRequest) (*attest.Identity, error) {
	outcomes := 0
	for _, has := range []bool{answer.Identity != nil, answer.Refusal != nil, answer.Challenge != nil} {
		if has {
			outcomes++
		}
	}
	switch {
	case outcomes != 1:
		return nil, a.runner.invalid("it has %d of identity, refusal and challenge, want one", outcomes)
	case answer.Refusal != nil:
		return nil, a.refusal(answer.Refusal, request.Evidence)
	case answer.Challenge != nil:
		return nil, a.challenge(answer.Challenge, round)
	}
	id, err := a.identity(answer.Identity, request)
	if err != nil {
		return nil, err
	}
	var evidence bytes.Buffer
	if err := json.Compact(&evidence, request.Evidence); err != nil {
		return nil, err
	}
	id.Digest = sha256.Sum256([]byte(cmp.Or(answer.Identity.EvidenceID, evidence.String())))
	return id, nil
}

// codeForm is the form of codes.
var codeForm = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,62}$`)

func (a *Attestor) refusal(r *v1alpha1.AttestRefusal, evidence []byte) error {
	if !codeForm.MatchString(r.Code) {
		return a.runner.invalid("refusal.code is %.100q, want up to 63 letters and digits in CamelCase", r.Code)
	}
	return &attest.Refusal{Code: verdict.Code(r.Code), Malformed: r.Malformed, Detail: a.runner.said(r.Message, evidence)}
}

// challenge seals the state of a program.
func (a *Attestor) challenge(c *v1alpha1.AttestChallenge, round *sealed) error {
	after := *round
	after.State, after.Rounds = c.State, round.Rounds+1
	switch {
	case len(c.Document) == 0:
		return a.runner.invalid("challenge.document is missing")
	case len(c.State) > maxState:
		return a.runner.invalid("challenge.state has %d bytes, want up to %d", len(c.State), maxState)
	case after.Rounds >= MaxRounds:
		return a.runner.invalid("it asks for more than %d rounds of evidence", MaxRounds)
	}
	text, err := json.Marshal(after)
	if err != nil {
		return err
	}
	state, err := a.options.Challenger.Seal(a.options.Provider, text)
	if err != nil {
		return fmt.Errorf("seal the state of the program: %w", err)
	}
	document, err := json.Marshal(next{c.Document, state})
	if err != nil {
		return err
	}
	return &attest.Continue{Challenge: document}
}
