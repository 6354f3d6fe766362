package tpm

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-tpm/tpm2"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/nametemplate"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// Name is the name of the provider.
const Name = "tpm"

// Options are settings of an [Attestor].
type Options struct {
	// TPM has the settings of the configuration. The files with authorities are not read.
	configv1alpha1.TPM
	// Machines are the registered machines.
	Machines machines.Finder
	// Authorities are the authorities of vendors for certificates of endorsement keys; nil: only registered machines may join.
	Authorities *x509.CertPool
	// Sealer seals what the service has to remember between the rounds.
	Sealer Sealer
	// Clock returns the current time; nil: time.Now.
	Clock func() time.Time
}

// Sealer seals state; see [attest.Challenges].
type Sealer interface {
	Seal(purpose string, state []byte) (string, error)
	Open(purpose, text string) ([]byte, time.Time, error)
}

// Attestor is the server's half of the provider.
type Attestor struct {
	options Options
	name    *nametemplate.Template
	pcrs    []int
	log     bool
}

var _ attest.Attestor = (*Attestor)(nil)

// New returns an attestor, or an error that says what is wrong with the options.
func New(options Options) (*Attestor, error) {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	a := &Attestor{options: options, pcrs: quotedPCRs(options.Policies)}
	a.log = slices.ContainsFunc(options.Policies, func(p configv1alpha1.TPMPolicy) bool { return (*policy)(&p).needsLog() })
	var err error
	if options.NodeName != "" {
		a.name, err = ParseName(options.NodeName)
	}
	return a, err
}

// ekHash is the placeholder in names.
const ekHash = "EKHash"

// ParseName parses a template for names of nodes: "tpm-{{.EKHash}}". The hash has 20 digits.
func ParseName(text string) (*nametemplate.Template, error) {
	parsed, err := nametemplate.Parse(text, ekHash)
	if err == nil && parsed.Execute(map[string]string{ekHash: "1"}) == parsed.Execute(map[string]string{ekHash: "2"}) {
		err = fmt.Errorf("all machines would have one name: use {{.%s}}", ekHash)
	}
	return parsed, err
}

// Name returns "tpm".
func (a *Attestor) Name() string { return Name }

// Attest verifies one round of evidence.
func (a *Attestor) Attest(ctx context.Context, req *attest.Request) (*attest.Identity, error) {
	var body evidence
	err := strictjson.Unmarshal(req.Body, &body, strictjson.Options{})
	switch {
	case err != nil:
		return nil, attest.Malformed(TPMEvidenceInvalid, "%s", strictjson.Explain(err))
	case (body.Keys == nil) == (body.Answer == nil):
		return nil, attest.Malformed(TPMEvidenceInvalid, "want either the keys of a TPM or an answer")
	case body.Keys != nil:
		return nil, a.challenge(req, body.Keys)
	}
	return a.answer(ctx, req, body.Answer)
}

// state is what the service has to remember between the rounds.
type state struct {
	NodeName  string `json:"nodeName"`
	PublicKey string `json:"publicKey,omitempty"`
	// EKHash is the hash of the endorsement key. Trusted and Vouched are about its certificate.
	EKHash  string `json:"ekHash"`
	Trusted bool   `json:"trusted,omitempty"`
	Vouched string `json:"vouched"`
	// Model describes the TPM.
	Model string          `json:"model"`
	AK    *attestationKey `json:"ak"`
	// Secret is what only the TPM can decrypt.
	Secret []byte `json:"secret"`
	PCRs   []int  `json:"pcrs"`
}

// challenge checks the keys of a TPM. If they are accepted, the error is the challenge for it.
func (a *Attestor) challenge(req *attest.Request, k *keys) error {
	if k.PublicKey != "" && !v1alpha1.IsPublicKeyHash(k.PublicKey) {
		return attest.Malformed(TPMEvidenceInvalid, "publicKey: want sha256: and 64 hexadecimal digits")
	}
	ek, err := a.endorsement(k)
	if err != nil {
		return err
	}
	ak, err := attestation(k.AK)
	if err != nil {
		return err
	}
	s := &state{
		NodeName: req.NodeName, PublicKey: k.PublicKey, EKHash: ek.hash, Trusted: ek.trusted, Vouched: ek.vouched,
		Model: fmt.Sprintf("it says that it is %.*s", maxModel, strconv.QuoteToASCII(k.Model)), // so that it says nothing else
		AK:    ak, Secret: make([]byte, sha256.Size), PCRs: a.pcrs,
	}
	_, _ = rand.Read(s.Secret) // It never fails.
	c := &challenge{PCRs: a.pcrs, EventLog: a.log}
	if c.Credential, c.Secret, err = tpm2.CreateCredential(rand.Reader, ek.public, ak.Name, s.Secret); err != nil {
		return attest.Refuse(EKNotAccepted, "no secret can be encrypted for the endorsement key: %.200s", err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode the state of the challenge: %w", err)
	}
	if c.Sealed, err = a.options.Sealer.Seal(Name, text); err != nil {
		return fmt.Errorf("seal the state of the challenge: %w", err)
	}
	if text, err = json.Marshal(c); err != nil {
		return fmt.Errorf("encode the challenge: %w", err)
	}
	return &attest.Continue{Challenge: text}
}

// maxModel limits what a TPM says about itself, in bytes.
const maxModel = 100

// answer checks the answer to a challenge.
func (a *Attestor) answer(ctx context.Context, req *attest.Request, got *answer) (*attest.Identity, error) {
	text, made, err := a.options.Sealer.Open(Name, got.Sealed)
	if err != nil {
		return nil, attest.Refuse(attest.ChallengeInvalid, "the challenge: %s", err)
	}
	var s state
	if err := json.Unmarshal(text, &s); err != nil || s.AK == nil {
		return nil, attest.Refuse(attest.ChallengeInvalid, "the challenge was made by another version of the service")
	}
	switch {
	case s.NodeName != req.NodeName:
		return nil, attest.Refuse(attest.ChallengeInvalid, "the challenge was made for node %.253q", s.NodeName)
	case !slices.Equal(s.PCRs, a.pcrs):
		return nil, attest.Refuse(attest.ChallengeInvalid, "the challenge is about other PCRs: the policies have changed")
	case subtle.ConstantTimeCompare(s.Secret, got.Secret) != 1:
		return nil, attest.Refuse(CredentialNotActivated,
			"the TPM with the endorsement key did not decrypt the secret for this attestation key")
	}
	counters, err := checkQuote(s.AK, s.PCRs, s.PublicKey, got)
	if err != nil {
		return nil, err
	}
	return a.identity(ctx, req, &s, counters, got, made)
}

// hashDigits are the digits of the hash of an endorsement key in the id of a machine, and nameDigits in a name.
const (
	hashDigits = 40
	nameDigits = 20
)

// identity finds the name of a TPM whose answer is right, and checks what its machine has booted.
func (a *Attestor) identity(
	ctx context.Context, req *attest.Request, s *state, counters string, got *answer, made time.Time,
) (*attest.Identity, error) {
	digits := strings.TrimPrefix(s.EKHash, "sha256:")
	id := &attest.Identity{
		Provider: Name, InstanceID: digits[:hashDigits], PublicKey: s.PublicKey,
		// The challenge is good for once, whatever the answer.
		SingleUse: true, Digest: sha256.Sum256([]byte(got.Sealed)), Issued: made,
		Description: strings.Join([]string{s.Vouched, counters, s.Model}, "; "),
	}
	only := ""
	machine, err := a.machine(ctx, req, s, id.Description)
	switch {
	case err != nil:
		return nil, err
	case machine != nil:
		id.NodeName, id.Names = machine.Spec.NodeName, append([]string{machine.Spec.NodeName}, machine.Spec.Names...)
		id.Addresses, only = machines.Addresses(machine), machine.Spec.TPM.Policy
	default:
		id.NodeName = a.name.Execute(map[string]string{ekHash: digits[:nameDigits]})
		id.Names = []string{id.NodeName}
		err = attest.CheckName(id.NodeName)
	}
	if err != nil {
		return nil, err
	}
	b := &booted{values: map[int][]byte{}, log: got.EventLog}
	for i, pcr := range s.PCRs {
		b.values[pcr] = got.PCRs[i]
	}
	allowing, err := allowed(a.options.Policies, only, b)
	if err != nil {
		return nil, err
	}
	if allowing != "" {
		id.Description += "; policy " + allowing
	}
	return id, nil
}

// machine returns the registered machine; nil if there is none and none is necessary.
func (a *Attestor) machine(ctx context.Context, req *attest.Request, s *state, description string) (*v1alpha1.Machine, error) {
	machine, err := a.options.Machines.Find(ctx, req, &machines.Proof{EKHash: s.EKHash, Description: description})
	refused, ok := errors.AsType[*attest.Refusal](err)
	switch {
	case !ok || refused.Code != machines.MachineNotRegistered || a.name == nil:
		return machine, err
	case !s.Trusted:
		return nil, attest.Refuse(EKNotTrusted, "%s, and no Machine has the endorsement key %s", s.Vouched, s.EKHash)
	}
	return nil, nil
}
