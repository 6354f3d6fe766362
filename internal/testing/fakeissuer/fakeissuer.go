// Package fakeissuer is an issuer of identity tokens, and a metadata service that has them, as in Google Cloud.
package fakeissuer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Issuer signs tokens, and answers where its keys are.
type Issuer struct {
	*httptest.Server
	// Down makes it answer 503.
	Down atomic.Bool
	// Asked counts the requests for keys.
	Asked atomic.Int32

	mu   sync.Mutex
	keys []jose.JSONWebKey
}

// New starts an issuer with one key.
func New(t testing.TB) *Issuer {
	i := &Issuer{}
	i.Rotate(t)
	i.Server = httptest.NewTLSServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	return i
}

// Rotate replaces the key.
func (i *Issuer) Rotate(t testing.TB) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = []jose.JSONWebKey{{Key: key, KeyID: fmt.Sprintf("key-%d", time.Now().UnixNano()), Algorithm: string(jose.ES256), Use: "sig"}}
}

// Keys returns the JSON Web Key Set.
func (i *Issuer) Keys() []byte {
	i.mu.Lock()
	defer i.mu.Unlock()
	set := jose.JSONWebKeySet{}
	for _, key := range i.keys {
		set.Keys = append(set.Keys, key.Public())
	}
	text, err := json.Marshal(set)
	if err != nil {
		panic(err) // keys of known types have a form in JSON
	}
	return text
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	if i.Down.Load() {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		fmt.Fprintf(w, `{"issuer": %q, "jwks_uri": %q}`, i.URL, i.URL+"/keys")
	case "/keys":
		i.Asked.Add(1)
		_, _ = w.Write(i.Keys())
	default:
		http.NotFound(w, r)
	}
}

// Claims returns the claims of a token that was just issued for an audience.
func (i *Issuer) Claims(audience string, more map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{"iss": i.URL, "aud": audience, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, more)
	return claims
}

// Sign signs claims with the current key.
func (i *Issuer) Sign(t testing.TB, claims map[string]any) string {
	i.mu.Lock()
	key := i.keys[0]
	i.mu.Unlock()
	return Sign(t, jose.SigningKey{Algorithm: jose.ES256, Key: key}, claims)
}

// Sign signs claims with any key.
func Sign(t testing.TB, with jose.SigningKey, claims map[string]any) string {
	signer, err := jose.NewSigner(with, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// PublicKey returns the current public key.
func (i *Issuer) PublicKey() crypto.PublicKey {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.keys[0].Public().Key
}

// Instance is an instance of Google Cloud.
type Instance struct{ Project, Zone, ID, Name string }

// Claims are the claims about an instance in tokens of the format full.
func (n Instance) Claims() map[string]any {
	return map[string]any{"sub": "1" + n.ID, "google": map[string]any{"compute_engine": map[string]any{
		"project_id": n.Project, "zone": n.Zone, "instance_id": n.ID, "instance_name": n.Name,
		"instance_creation_timestamp": 1_700_000_000,
	}}}
}

// Metadata starts the metadata service of an instance, and returns its host and port.
func (i *Issuer) Metadata(t testing.TB, n Instance) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" {
			http.Error(w, "the header Metadata-Flavor is missing", http.StatusForbidden)
			return
		}
		w.Header().Set("Metadata-Flavor", "Google")
		switch r.URL.Path {
		case "/computeMetadata/v1/instance/name":
			fmt.Fprint(w, n.Name)
		case "/computeMetadata/v1/instance/service-accounts/default/identity":
			if r.URL.Query().Get("format") != "full" {
				http.Error(w, "want the format full", http.StatusBadRequest)
				return
			}
			fmt.Fprint(w, i.Sign(t, i.Claims(r.URL.Query().Get("audience"), n.Claims())))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}
