package oidc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// Name is the name of the provider.
const Name = "oidc"

// clockSkew is how far the clock of the issuer may be ahead.
const clockSkew = time.Minute

// Attestor is the server's half of the provider.
type Attestor struct {
	options Options
	rules   *rules
	keys    *keys
}

var _ attest.Attestor = (*Attestor)(nil)

// New returns an attestor, once the keys of the issuer can be read.
func New(ctx context.Context, options Options) (*Attestor, error) {
	if options.Clock == nil {
		options.Clock = time.Now
	}
	compiled, wrong := options.compile()
	if len(wrong) > 0 {
		return nil, wrong[0]
	}
	a := &Attestor{options: options, rules: compiled}
	a.keys = newKeys(&a.options)
	_, err := a.keys.current(ctx)
	return a, err
}

// Name returns "oidc".
func (a *Attestor) Name() string { return Name }

// evidence is the body of a request.
type evidence struct {
	IdentityToken string `json:"identityToken"`
}

// Attest verifies the token's signature, issuer, audience and times, and then the conditions.
func (a *Attestor) Attest(ctx context.Context, req *attest.Request) (*attest.Identity, error) {
	var body evidence
	if err := strictjson.Unmarshal(req.Body, &body, strictjson.Options{}); err != nil || body.IdentityToken == "" {
		return nil, attest.Malformed(IdentityTokenInvalid, "the request has no identityToken")
	}
	token, err := a.verify(ctx, body.IdentityToken)
	if err != nil {
		return nil, err
	}
	publicKey, err := a.audience(token.Audience)
	if err != nil {
		return nil, err
	}
	if err := a.times(token); err != nil {
		return nil, err
	}
	return a.identity(ctx, req, token, publicKey)
}

// verify verifies the signature, the issuer and the expiry.
func (a *Attestor) verify(ctx context.Context, text string) (*oidc.IDToken, error) {
	set, err := a.keys.current(ctx)
	if err != nil {
		return nil, err
	}
	used := &verification{set: set}
	verifier := oidc.NewVerifier(a.options.IssuerURL, used, &oidc.Config{
		SkipClientIDCheck: true, SkipIssuerCheck: true, // see below and audience
		SupportedSigningAlgs: []string{oidc.RS256, oidc.ES256, oidc.EdDSA},
		Now:                  a.options.Clock,
	})
	token, err := verifier.Verify(ctx, text)
	var expired *oidc.TokenExpiredError
	switch {
	case used.unread != nil:
		return nil, fmt.Errorf("read the keys of issuer %s: %w", a.options.IssuerURL, used.unread)
	case errors.As(err, &expired):
		return nil, attest.Refuse(IdentityTokenExpired, "the token has expired at %s", expired.Expiry.UTC().Format(time.RFC3339))
	case err != nil:
		return nil, attest.Refuse(IdentityTokenInvalid, "%.300s", err)
	case token.Issuer != a.options.IssuerURL:
		return nil, attest.Refuse(WrongIssuer, "the token is of issuer %.253q", token.Issuer)
	}
	return token, nil
}

// times checks the age of a token. The library checks its expiry.
func (a *Attestor) times(token *oidc.IDToken) error {
	switch age := a.options.Clock().Sub(token.IssuedAt); {
	case token.IssuedAt.IsZero():
		return attest.Refuse(IdentityTokenExpired, "the token does not say when it was issued")
	case age > a.options.MaxAge.Duration:
		return attest.Refuse(IdentityTokenExpired, "the token was issued %s ago, want at most %s", age.Round(time.Second),
			a.options.MaxAge.Duration)
	case age < -clockSkew:
		return attest.Refuse(IdentityTokenExpired, "the token will be issued in %s: compare the clocks", -age.Round(time.Second))
	}
	return nil
}

// identity evaluates the expressions.
func (a *Attestor) identity(ctx context.Context, req *attest.Request, token *oidc.IDToken, publicKey string) (*attest.Identity, error) {
	var text rawClaims
	if err := token.Claims(&text); err != nil {
		return nil, attest.Refuse(IdentityTokenInvalid, "read the claims: %s", err)
	}
	var claims map[string]any
	if err := json.Unmarshal(text, &claims); err != nil { // keeps whole numbers whole
		return nil, attest.Refuse(IdentityTokenInvalid, "read the claims: %s", err)
	}
	variables := map[string]any{claimsVariable: claims, requestVariable: map[string]string{
		"nodeName": req.NodeName, "remoteAddress": req.RemoteAddr.String(), "publicKey": publicKey,
	}}
	for i, condition := range a.rules.conditions {
		met, err := evaluate[bool](ctx, condition, variables)
		if err != nil {
			return nil, err
		}
		if !met {
			return nil, attest.Refuse(ConditionNotMet, "%s: %q is false", a.options.Conditions[i].Message, condition.text)
		}
	}
	name, err := evaluate[string](ctx, a.rules.nodeName, variables)
	if err != nil {
		return nil, err
	}
	if err := attest.CheckName(name); err != nil {
		return nil, err
	}
	instance, err := evaluate[string](ctx, a.rules.instanceID, variables)
	if err != nil {
		return nil, err
	}
	if problems := validation.IsDNS1123Subdomain(instance); len(problems) > 0 {
		return nil, attest.Refuse(ClaimsNotMapped, "the instance id is %.253q: %s", instance, problems[0])
	}
	providerID, err := evaluate[string](ctx, a.rules.providerID, variables)
	if err != nil {
		return nil, err
	}
	return &attest.Identity{
		Provider: Name, InstanceID: instance, NodeName: name, Names: []string{name}, ProviderID: providerID,
		PublicKey: publicKey, SingleUse: true, Issued: token.IssuedAt,
		// The text of a token has several forms with the same claims: whoever copies it can change the last bits in
		// base64, and the sign of a signature with ECDSA.
		Digest: sha256.Sum256(text),
	}, nil
}

// rawClaims are claims that are not decoded.
type rawClaims []byte

func (r *rawClaims) UnmarshalJSON(text []byte) error {
	*r = append(rawClaims(nil), text...)
	return nil
}
