package oidc

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/time/rate"
)

const (
	// keyAge is how long keys are used before the issuer, or the file, is asked again: a key that
	// was withdrawn is not accepted longer.
	keyAge = 10 * time.Minute
	// The issuer is asked for keys at this rate at most: a token with an unknown key asks for them.
	askEvery, askBurst = 10 * time.Second, 6
	askTimeout         = 10 * time.Second
	// maxDocument bounds what the issuer answers.
	maxDocument = 1 << 20
)

// keys are the keys of the issuer.
type keys struct {
	load func(context.Context) (oidc.KeySet, error)
	now  func() time.Time
	// loading has one element while one request loads.
	loading chan struct{}
	// set and loaded belong to the request that loads.
	set    oidc.KeySet
	loaded time.Time
}

func newKeys(o *Options) *keys {
	k := &keys{now: o.Clock, loading: make(chan struct{}, 1)}
	if o.KeysFile != "" {
		k.load = func(context.Context) (oidc.KeySet, error) { return ReadKeys(o.KeysFile) }
		return k
	}
	client := issuerClient(o.Authorities)
	k.load = func(ctx context.Context) (oidc.KeySet, error) {
		ctx = oidc.ClientContext(ctx, client)
		provider, err := oidc.NewProvider(ctx, o.IssuerURL)
		if err != nil {
			return nil, fmt.Errorf("discover the keys of issuer %s: %w", o.IssuerURL, err)
		}
		var document struct {
			JWKSURI string `json:"jwks_uri"`
		}
		if err := provider.Claims(&document); err != nil {
			return nil, fmt.Errorf("discover the keys of issuer %s: %w", o.IssuerURL, err)
		}
		return oidc.NewRemoteKeySet(ctx, document.JWKSURI), nil
	}
	return k
}

// current returns keys that are not too old.
func (k *keys) current(ctx context.Context) (oidc.KeySet, error) {
	select {
	case k.loading <- struct{}{}:
		defer func() { <-k.loading }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the keys of the issuer: %w", ctx.Err())
	}
	if k.set != nil && k.now().Sub(k.loaded) < keyAge {
		return k.set, nil
	}
	set, err := k.load(ctx)
	if err != nil {
		return nil, err
	}
	k.set, k.loaded = set, k.now()
	return set, nil
}

// ReadKeys reads a file with a JSON Web Key Set (RFC 7517).
func ReadKeys(path string) (oidc.KeySet, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the keys of the issuer: %w", err)
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(text, &set); err != nil {
		return nil, fmt.Errorf("read the keys of the issuer: %s: %w", path, err)
	}
	var public []crypto.PublicKey
	for _, key := range set.Keys {
		if !key.IsPublic() {
			return nil, fmt.Errorf("%s has a key that is not public: the service needs only public keys; replace the key", path)
		}
		public = append(public, key.Key)
	}
	if len(public) == 0 {
		return nil, fmt.Errorf("%s has no key: want a JSON Web Key Set", path)
	}
	return &oidc.StaticKeySet{PublicKeys: public}, nil
}

// wrongSignature are the errors of key sets that were read, and do not verify a signature.
var wrongSignature = map[string]bool{
	"failed to verify id token signature": true, "no public keys able to verify jwt": true,
}

// verification is one use of the keys. It tells a wrong signature from keys that could not be
// read: the library makes both one error.
type verification struct {
	set    oidc.KeySet
	unread error
}

func (v *verification) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := v.set.VerifySignature(ctx, token)
	if err != nil && !wrongSignature[err.Error()] {
		v.unread = err
	}
	return payload, err
}

// issuerClient returns a client for the issuer, with its authorities; nil: the authorities of the system.
func issuerClient(authorities *x509.CertPool) *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig.RootCAs = authorities
	return &http.Client{
		Timeout:       askTimeout,
		Transport:     &limitedTransport{transport, rate.NewLimiter(rate.Every(askEvery), askBurst)},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// limitedTransport limits the rate of requests and the size of answers.
type limitedTransport struct {
	http.RoundTripper
	limit *rate.Limiter
}

var errTooOften = errors.New("the issuer was asked too often in the last minute: try again later")

func (l *limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !l.limit.Allow() {
		return nil, errTooOften
	}
	response, err := l.RoundTripper.RoundTrip(r)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxDocument)
	}
	return response, err
}
