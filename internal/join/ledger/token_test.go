package ledger_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
)

// serviceKey returns a key of 32 equal bytes.
func serviceKey(b byte) []byte {
	return []byte(strings.Repeat(string(rune(b)), ledger.ServiceKeyBytes))
}

func tokenKey(t testing.TB, b byte) *ledger.TokenKey {
	t.Helper()
	key, err := ledger.NewTokenKey(serviceKey(b))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// entryWithToken returns an entry that names a token.
func entryWithToken() *v1alpha1.NodeAttestation {
	e := entry("i-1", "worker-1")
	e.UID = "4c8c3b8f-5a4e-4a57-8f0a-6a5f6f4f3b11"
	e.Spec.TokenExpiration = metav1.NewTime(time.Date(2026, 11, 20, 13, 5, 0, 0, time.FixedZone("CET", 3600)))
	return e
}

// The expected values come from another implementation of RFC 5869 and RFC 2104. Replicas
// of different versions must derive the same values.
func TestDerivedTokensMatchTheVectors(t *testing.T) {
	key := tokenKey(t, 'k')
	if got, want := key.ID(), "59b3603f9fe739b5"; got != want {
		t.Errorf("the key ID is %s, want %s", got, want)
	}
	if got, want := key.Token(entryWithToken()).Value(), "abc123.iwnby6gvkwhfxbvz"; got != want {
		t.Errorf("the token is %s, want %s", got, want)
	}
}

func TestWhatATokenDependsOn(t *testing.T) {
	first := tokenKey(t, 'k').Token(entryWithToken()).Value()
	later := entryWithToken()
	later.ResourceVersion, later.Spec.NodeName, later.Status.Phase = "9", "worker-2", v1alpha1.Revoked
	if got := tokenKey(t, 'k').Token(later).Value(); got != first {
		t.Error("the token depends on other fields of the entry")
	}
	for rule, other := range map[string]func() *ledger.Token{
		"of another key": func() *ledger.Token { return tokenKey(t, 'l').Token(entryWithToken()) },
		"of an entry that was deleted and created again": func() *ledger.Token {
			e := entryWithToken()
			e.UID = "5c8c3b8f-5a4e-4a57-8f0a-6a5f6f4f3b11"
			return tokenKey(t, 'k').Token(e)
		},
		"of another id": func() *ledger.Token {
			e := entryWithToken()
			e.Spec.TokenID = "abc124"
			return tokenKey(t, 'k').Token(e)
		},
	} {
		if strings.Split(other().Value(), ".")[1] == strings.Split(first, ".")[1] {
			t.Errorf("the token %s has the same secret", rule)
		}
	}
	if tokenKey(t, 'k').ID() == tokenKey(t, 'l').ID() {
		t.Error("two keys have the same ID")
	}
}

func TestKeysOfAnotherLengthAreErrors(t *testing.T) {
	for _, n := range []int{0, 16, 31, 33} {
		if key, err := ledger.NewTokenKey(make([]byte, n)); err == nil || key != nil {
			t.Errorf("a key of %d bytes is accepted", n)
		}
	}
}

func TestTheSecretOfAToken(t *testing.T) {
	token := tokenKey(t, 'k').Token(entryWithToken())
	secret := token.Secret()
	if secret.Name != "bootstrap-token-abc123" || secret.Namespace != "kube-system" || secret.Type != "bootstrap.kubernetes.io/token" {
		t.Errorf("it is %s/%s of type %s", secret.Namespace, secret.Name, secret.Type)
	}
	if got := string(secret.Data["token-id"]) + "." + string(secret.Data["token-secret"]); got != token.Value() {
		t.Error("it holds another token")
	}
	if got := string(secret.Data["expiration"]); got != "2026-11-20T12:05:00Z" {
		t.Errorf("it expires at %s", got)
	}
	if owner := metav1.GetControllerOf(secret); owner == nil || owner.Name != "test-i-1" || owner.UID != entryWithToken().UID {
		t.Errorf("it is owned by %+v", owner)
	}
}

func TestKeysAndTokensAreNotPrinted(t *testing.T) {
	key := tokenKey(t, 'k')
	token := key.Token(entryWithToken())
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, printed := range []string{
			fmt.Sprintf(verb, token), fmt.Sprintf(verb, *token), fmt.Sprintf(verb, key), fmt.Sprintf(verb, *key),
		} {
			if printed != "bootstrap token abc123" && printed != "key "+key.ID() {
				t.Errorf("%s prints %s", verb, printed)
			}
		}
	}
}

func TestSecretHalvesAreUniform(t *testing.T) {
	const samples = 20_000
	counts, key := map[rune]int{}, tokenKey(t, 'k')
	for i := range samples {
		e := entryWithToken()
		e.Spec.TokenID = fmt.Sprintf("%06d", i)
		_, secret, _ := strings.Cut(key.Token(e).Value(), ".")
		if len(secret) != ledger.TokenSecretLength {
			t.Fatalf("a secret half has %d characters", len(secret))
		}
		for _, c := range secret {
			counts[c]++
		}
	}
	mean := float64(samples*ledger.TokenSecretLength) / float64(len(v1alpha1.TokenAlphabet))
	var chi2 float64
	for _, c := range v1alpha1.TokenAlphabet {
		d := float64(counts[c]) - mean
		chi2 += d * d / mean
	}
	// 35 degrees of freedom: one key in ten million exceeds 100. Bytes modulo 36 give more
	// than 200.
	if len(counts) != len(v1alpha1.TokenAlphabet) || chi2 > 100 {
		t.Errorf("%d different characters, chi square %.0f", len(counts), chi2)
	}
}
