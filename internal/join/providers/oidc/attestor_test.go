package oidc_test

import (
	"context"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/oidc"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeissuer"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const aKey = "sha256:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

// situation is an issuer, and an attestor that accepts its tokens.
type situation struct {
	*fakeissuer.Issuer
	challenges *attest.Challenges
	options    oidc.Options
	attestor   *oidc.Attestor
}

func newSituation(t testing.TB, changes ...func(*oidc.Options)) *situation {
	t.Helper()
	s := &situation{Issuer: fakeissuer.New(t)}
	var err error
	if s.challenges, err = attest.NewChallenges(make([]byte, attest.ChallengeKeySize), nil); err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AddCert(s.Certificate())
	s.options = oidc.Options{
		OIDC: v1alpha1.OIDC{
			IssuerURL: s.URL, ClusterID: "shop", MaxAge: metav1.Duration{Duration: 5 * time.Minute},
			Conditions: []v1alpha1.OIDCCondition{{Expression: `claims.tenant == "shop"`, Message: "the machine is of another tenant"}},
			NodeName:   "claims.machine", InstanceID: `"m-" + claims.machine`,
		},
		Authorities: authorities, Challenger: s.challenges,
	}
	for _, change := range changes {
		change(&s.options)
	}
	if s.attestor, err = oidc.New(t.Context(), s.options); err != nil {
		t.Fatal(err)
	}
	return s
}

// claims returns the claims of a machine that may join.
func (s *situation) claims(changes map[string]any) map[string]any {
	claims := s.Claims(oidc.Audience("shop", attest.Binding{Challenge: s.challenges.Challenge(), PublicKey: aKey}),
		map[string]any{"tenant": "shop", "machine": "worker-1"})
	for name, value := range changes {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

func (s *situation) attest(ctx context.Context, token string) (*attest.Identity, error) {
	body, err := json.Marshal(map[string]string{"identityToken": token})
	if err != nil {
		return nil, err
	}
	return s.attestor.Attest(ctx, &attest.Request{NodeName: "worker-1", RemoteAddr: netip.MustParseAddr("192.0.2.7"), Body: body})
}

func TestTheTokenIdentifiesTheMachine(t *testing.T) {
	s := newSituation(t)
	claims := s.claims(nil)
	id, err := s.attest(t.Context(), s.Sign(t, claims))
	if err != nil {
		t.Fatal(err)
	}
	if id.Provider != "oidc" || id.InstanceID != "m-worker-1" || id.NodeName != "worker-1" || id.PublicKey != aKey || !id.SingleUse ||
		id.Issued.Unix() != claims["iat"] || len(id.Addresses) > 0 {
		t.Errorf("%+v", id)
	}
}

func TestRefusals(t *testing.T) {
	s := newSituation(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	audience := func(parts ...string) map[string]any { return map[string]any{"aud": strings.Join(parts, "/")} }
	foreign, err := attest.NewChallenges([]byte(strings.Repeat("k", attest.ChallengeKeySize)), nil)
	if err != nil {
		t.Fatal(err)
	}
	old, err := attest.NewChallenges(make([]byte, attest.ChallengeKeySize), func() time.Time { return time.Now().Add(-3 * time.Minute) })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, tc := range []struct {
		rule    string
		changes map[string]any
		code    verdict.Code
	}{
		{"another issuer", map[string]any{"iss": "https://issuer.example.com"}, oidc.WrongIssuer},
		{"the issuer with a slash", map[string]any{"iss": s.URL + "/"}, oidc.WrongIssuer},
		{"no issuer", map[string]any{"iss": nil}, oidc.WrongIssuer},
		{"another audience", audience("https://sts.example.com"), oidc.WrongAudience},
		{"two audiences", map[string]any{"aud": []string{"a", "b"}}, oidc.WrongAudience},
		{"no audience", map[string]any{"aud": nil}, oidc.WrongAudience},
		{"another cluster", audience("node-authorizer", "dev", s.challenges.Challenge(), aKey), oidc.WrongAudience},
		{"a key that is no hash", audience("node-authorizer", "shop", s.challenges.Challenge(), "sha256:00"), oidc.WrongAudience},
		{"something after the key", audience("node-authorizer", "shop", s.challenges.Challenge(), aKey, "x"), oidc.WrongAudience},
		{"no challenge", audience("node-authorizer", "shop"), oidc.WrongAudience},
		{"an empty challenge", audience("node-authorizer", "shop", "", aKey), attest.ChallengeInvalid},
		{"a challenge of another service", audience("node-authorizer", "shop", foreign.Challenge(), aKey), attest.ChallengeInvalid},
		{"a challenge of three minutes ago", audience("node-authorizer", "shop", old.Challenge(), aKey), attest.ChallengeInvalid},
		{"expired", map[string]any{"exp": now.Add(-time.Second).Unix()}, oidc.IdentityTokenExpired},
		{"no expiry", map[string]any{"exp": nil}, oidc.IdentityTokenExpired},
		{"older than the maximum", map[string]any{"iat": now.Add(-6 * time.Minute).Unix()}, oidc.IdentityTokenExpired},
		{"of the future", map[string]any{"iat": now.Add(3 * time.Minute).Unix()}, oidc.IdentityTokenExpired},
		{"no time of issue", map[string]any{"iat": nil}, oidc.IdentityTokenExpired},
		{"not valid yet", map[string]any{"nbf": now.Add(time.Hour).Unix()}, oidc.IdentityTokenInvalid},
		{"a condition is false", map[string]any{"tenant": "dev"}, oidc.ConditionNotMet},
		{"a condition has no claim", map[string]any{"tenant": nil}, oidc.ClaimsNotMapped},
		{"the name of a service of the cluster", map[string]any{"machine": "kubernetes.default"}, attest.ReservedName},
		{"a name that reads as an address", map[string]any{"machine": "10.0.0.7"}, attest.ReservedName},
		{"no name", map[string]any{"machine": nil}, oidc.ClaimsNotMapped},
		{"a name that is no text", map[string]any{"machine": 7}, oidc.ClaimsNotMapped},
		{"an instance id that is no name", map[string]any{"machine": "worker_1"}, oidc.ClaimsNotMapped},
	} {
		t.Run(tc.rule, func(t *testing.T) { refused(t, s, s.Sign(t, s.claims(tc.changes)), tc.code) })
	}
	claims := s.claims(nil)
	good := s.Sign(t, claims)
	parts := strings.Split(good, ".")
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + parts[1] + "."
	another := strings.Split(s.Sign(t, s.claims(map[string]any{"machine": "worker-2"})), ".")[1]
	for rule, token := range map[string]string{
		"no token": "", "no form of a token": "token", "without a signature": parts[0] + "." + parts[1] + ".", "algorithm none": none,
		"signed with another key":                     fakeissuer.Sign(t, jose.SigningKey{Algorithm: jose.RS256, Key: rsaKey}, claims),
		"signed with a secret that is the public key": fakeissuer.Sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: s.Keys()}, claims),
		"claims of another token":                     strings.Join([]string{parts[0], another, parts[2]}, "."),
		"signed with a weak algorithm":                fakeissuer.Sign(t, jose.SigningKey{Algorithm: jose.PS256, Key: rsaKey}, claims),
	} {
		t.Run(rule, func(t *testing.T) { refused(t, s, token, oidc.IdentityTokenInvalid) })
	}
	if _, err := s.attest(t.Context(), good); err != nil {
		t.Errorf("the token without a change: %v", err)
	}
}

func refused(t *testing.T, s *situation, token string, code verdict.Code) {
	t.Helper()
	id, err := s.attest(t.Context(), token)
	var refusal *attest.Refusal
	if !errors.As(err, &refusal) || refusal.Code != code || id != nil {
		t.Errorf("%+v, %v; want a refusal with %s", id, err, code)
	}
	if err != nil && len(token) > 20 && strings.Contains(err.Error(), token[len(token)/2:]) {
		t.Errorf("the error has the token: %v", err)
	}
}

// TestEachBitOfATokenCounts flips each bit of a token. A form of the same token that is accepted has the same digest, so
// that it is no second use.
func TestEachBitOfATokenCounts(t *testing.T) {
	s := newSituation(t)
	token := s.Sign(t, s.claims(nil))
	want, err := s.attest(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	same := 0
	for i := range len(token) {
		for bit := range 8 {
			changed := []byte(token)
			changed[i] ^= 1 << bit
			id, err := s.attest(t.Context(), string(changed))
			if err == nil && id.Digest != want.Digest {
				t.Fatalf("bit %d of byte %d: another token %+v", bit, i, id)
			}
			if err == nil {
				same++
			}
		}
	}
	if most := 3 * 6; same > most {
		t.Errorf("%d changes are accepted, want at most %d: the last bits of three texts in base64", same, most)
	}
}

// TestAnotherSignatureOfTheSameClaims: with ECDSA, (r, n-s) is a signature too.
func TestAnotherSignatureOfTheSameClaims(t *testing.T) {
	s := newSituation(t)
	token := s.Sign(t, s.claims(nil))
	at := strings.LastIndexByte(token, '.') + 1
	signature, err := base64.RawURLEncoding.DecodeString(token[at:])
	if err != nil {
		t.Fatal(err)
	}
	half := len(signature) / 2
	other := new(big.Int).Sub(elliptic.P256().Params().N, new(big.Int).SetBytes(signature[half:]))
	other.FillBytes(signature[half:])
	first, err := s.attest(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.attest(t.Context(), token[:at]+base64.RawURLEncoding.EncodeToString(signature))
	if err != nil || second.Digest != first.Digest {
		t.Errorf("%+v %v, want the digest of the first", second, err)
	}
}

func TestAudiencesThatMachinesCannotChoose(t *testing.T) {
	s := newSituation(t, func(o *oidc.Options) { o.ClusterID, o.Audiences, o.Challenger = "", []string{"api://nodes"}, nil })
	id, err := s.attest(t.Context(), s.Sign(t, s.claims(map[string]any{"aud": "api://nodes"})))
	if err != nil || id.PublicKey != "" || !id.SingleUse {
		t.Errorf("%+v %v", id, err)
	}
	refused(t, s, s.Sign(t, s.claims(nil)), oidc.WrongAudience)
}

func TestAlgorithms(t *testing.T) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for algorithm, key := range map[jose.SignatureAlgorithm]any{jose.EdDSA: private, jose.RS256: rsaKey} {
		signing := jose.JSONWebKey{Key: key, KeyID: "file", Algorithm: string(algorithm)}
		text, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{signing.Public()}})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "keys.json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		s := newSituation(t, func(o *oidc.Options) { o.KeysFile = path })
		token := fakeissuer.Sign(t, jose.SigningKey{Algorithm: algorithm, Key: signing}, s.claims(nil))
		if _, err := s.attest(t.Context(), token); err != nil {
			t.Errorf("%s with keys of a file: %v", algorithm, err)
		}
		refused(t, s, s.Sign(t, s.claims(nil)), oidc.IdentityTokenInvalid)
		if s.Asked.Load() > 0 {
			t.Error("the issuer was asked, though its keys are in a file")
		}
	}
}

func TestKeysFilesWithoutUse(t *testing.T) {
	private, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: []byte("0123456789abcdef")}}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{string(private): "is not public", `{"keys": []}`: "has no key", "{": "unexpected end"} {
		path := filepath.Join(t.TempDir(), "keys.json")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := newSituation(t)
		s.options.KeysFile = path
		if _, err := oidc.New(t.Context(), s.options); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestTheIssuersKeys: what the issuer does not answer is no refusal.
func TestTheIssuersKeys(t *testing.T) {
	now := time.Now()
	s := newSituation(t, func(o *oidc.Options) { o.Clock = func() time.Time { return now } })
	attested := func(rule string) {
		t.Helper()
		claims := s.claims(map[string]any{"iat": now.Unix(), "exp": now.Add(time.Hour).Unix()})
		if _, err := s.attest(t.Context(), s.Sign(t, claims)); err != nil {
			t.Errorf("%s: %v", rule, err)
		}
	}
	undecided := func(rule string) {
		t.Helper()
		_, err := s.attest(t.Context(), s.Sign(t, s.claims(nil)))
		var refusal *attest.Refusal
		if err == nil || errors.As(err, &refusal) {
			t.Errorf("%s: %v; want an error that is no refusal", rule, err)
		}
	}
	attested("the first token")
	s.Down.Store(true)
	attested("a known key while the issuer is down")
	s.Rotate(t)
	undecided("an unknown key while the issuer is down")
	s.Down.Store(false)
	attested("a new key")
	asked := s.Asked.Load()
	forged := fakeissuer.New(t)
	var last error
	for range 20 {
		_, last = s.attest(t.Context(), forged.Sign(t, s.claims(nil)))
	}
	if more := s.Asked.Load() - asked; more > 6 {
		t.Errorf("20 forged tokens made the issuer answer %d times", more)
	}
	if last == nil {
		t.Error("a forged token is accepted")
	}
	attested("a known key after a flood of forged tokens")
	s.Down.Store(true)
	now = now.Add(11 * time.Minute)
	undecided("keys of eleven minutes ago")
}

func TestAnIssuerThatCannotBeReached(t *testing.T) {
	s := newSituation(t)
	s.Down.Store(true)
	if _, err := oidc.New(t.Context(), s.options); err == nil || !strings.Contains(err.Error(), s.URL) {
		t.Errorf("%v; want the issuer", err)
	}
}

func TestWrongExpressions(t *testing.T) {
	for _, tc := range []struct {
		rule, field, want string
		change            func(*oidc.Options)
	}{
		{"a condition that is no CEL", "conditions[0].expression", "not a CEL expression", func(o *oidc.Options) {
			o.Conditions[0].Expression = "claims.tenant =="
		}},
		{"a condition that is a text", "conditions[0].expression", "has the type string, want bool", func(o *oidc.Options) {
			o.Conditions[0].Expression = `"true"`
		}},
		{"a variable that does not exist", "nodeName", "undeclared reference to 'user'", func(o *oidc.Options) {
			o.NodeName = "user.name"
		}},
		{"a number for a name", "instanceID", "has the type int, want string", func(o *oidc.Options) { o.InstanceID = "7" }},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := newSituation(t)
			tc.change(&s.options)
			wrong := s.options.Check()
			if len(wrong) != 1 || wrong[0].Field != tc.field || !strings.Contains(wrong[0].Error(), tc.want) {
				t.Errorf("%v, want %s: %q", wrong, tc.field, tc.want)
			}
			if _, err := oidc.New(t.Context(), s.options); err == nil {
				t.Error("the attestor starts")
			}
		})
	}
}

func TestExpressionsKnowTheRequest(t *testing.T) {
	for expression, met := range map[string]bool{
		`request.nodeName == "worker-1"`:                                      true,
		`request.publicKey.startsWith("sha256:")`:                             true,
		`cidr("192.0.2.0/24").containsIP(request.remoteAddress)`:              true,
		`cidr("198.51.100.0/24").containsIP(request.remoteAddress)`:           false,
		`claims.exp - claims.iat == 3600`:                                     true,
		`claims.machine.matches("^worker-[0-9]+$") && !has(claims.forbidden)`: true,
	} {
		s := newSituation(t, func(o *oidc.Options) { o.Conditions = []v1alpha1.OIDCCondition{{Expression: expression}} })
		if _, err := s.attest(t.Context(), s.Sign(t, s.claims(nil))); (err == nil) != met {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

func TestExpressionsHaveALimitOfCost(t *testing.T) {
	s := newSituation(t, func(o *oidc.Options) {
		const costly = `claims.list.all(a, claims.list.all(b, claims.list.all(c, a + b + c < 1000000)))`
		o.Conditions = []v1alpha1.OIDCCondition{{Expression: costly}}
	})
	list := make([]int, 3000)
	refused(t, s, s.Sign(t, s.claims(map[string]any{"list": list})), oidc.ClaimsNotMapped)
}

// FuzzToken: no token and no body ends the server.
func FuzzToken(f *testing.F) {
	s := newSituation(f)
	token := s.Sign(f, s.claims(nil))
	f.Add([]byte(fmt.Sprintf(`{"identityToken": %q}`, token)))
	f.Add([]byte(`{"identityToken": "a.b.c"}`))
	f.Add([]byte(`{"identityToken": null, "identityToken": {}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		id, err := s.attestor.Attest(t.Context(), &attest.Request{NodeName: "worker-1", Body: body})
		if err == nil && !strings.Contains(string(body), token) {
			t.Errorf("%+v", id)
		}
	})
}

// BenchmarkAttest compares the whole verification with the signature alone.
func BenchmarkAttest(b *testing.B) {
	s := newSituation(b)
	token := s.Sign(b, s.claims(nil))
	b.Run("attest", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.attest(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("signature", func(b *testing.B) {
		for b.Loop() {
			parsed, err := jose.ParseSigned(token, []jose.SignatureAlgorithm{jose.ES256})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := parsed.Verify(s.PublicKey()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
