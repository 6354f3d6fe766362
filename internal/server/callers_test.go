package server

import (
	"crypto/x509"
	"net/http"
	"sync"
	"testing"
	"time"
)

// The test counts the verifications that connections remember, in both versions of HTTP.
func TestCertificatesAreVerifiedOnceAConnection(t *testing.T) {
	t.Parallel()
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(proto, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			seen := map[*verified]int{}
			s := newTestListeners(t, nil)
			handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				seen[connectionOf(r.Context()).good.Load()]++
			})
			s.serve(parts{webhooks: map[string]http.Handler{"/authorize": handler}})
			client := s.caller(s.callers.client("kube-apiserver"))
			client.Transport.(*http.Transport).ForceAttemptHTTP2 = proto == "HTTP/2.0"
			for range 3 {
				if got, err := s.post(client, "/authorize", ""); err != nil || got.proto != proto {
					t.Fatalf("got %+v, %v", got, err)
				}
			}
			if len(seen) != 1 || seen[nil] != 0 {
				t.Errorf("verified %d times for 3 requests, want once", len(seen))
			}
		})
	}
}

func TestAVerificationHoldsUntilTheChainExpires(t *testing.T) {
	t.Parallel()
	a := newAuthority(t, "callers")
	until := time.Now().Add(time.Minute).Truncate(time.Second)
	text, _ := a.leaf("kube-apiserver", x509.ExtKeyUsageClientAuth, until)
	shown, err := parseAuthorities(text)
	if err != nil {
		t.Fatal(err)
	}
	c, authorities := &limitedConn{}, pool(a)
	if err := c.check(shown, authorities); err != nil {
		t.Fatal(err)
	}
	first := c.good.Load()
	if !first.until.Equal(until) {
		t.Errorf("holds until %v, want %v", first.until, until)
	}
	if err := c.check(shown, authorities); err != nil || c.good.Load() != first {
		t.Errorf("verified again: %v", err)
	}
	c.good.Store(&verified{authorities, time.Now().Add(-time.Second)})
	if err := c.check(shown, authorities); err != nil || !c.good.Load().until.Equal(until) {
		t.Errorf("not verified again after it expired: %v", err)
	}
	if err := c.check(shown, pool(newAuthority(t, "others"))); err == nil {
		t.Error("other authorities accept the certificate")
	}
}
