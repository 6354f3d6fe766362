package server

import (
	"crypto/tls"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// All three files are replaced while callers send requests continuously, some on one connection and
// some on new ones. No request fails.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil).serve(parts{})
	newServer, newCallers := newAuthority(t, "new servers"), newAuthority(t, "new callers")
	oldCaller, newCaller := s.callers.client("kube-apiserver"), newCallers.client("kube-apiserver")
	trusted := pool(s.server, newServer)

	var current atomic.Pointer[tls.Certificate]
	current.Store(oldCaller)
	var stop atomic.Bool
	var asked atomic.Int64
	var callers sync.WaitGroup
	for i := range 4 {
		connect := func() (*http.Client, *tls.Certificate) {
			certificate := current.Load()
			client := callerWith(&tls.Config{RootCAs: trusted}, certificate)
			client.Transport.(*http.Transport).DisableKeepAlives = i%2 == 0
			return client, certificate
		}
		callers.Go(func() {
			client, certificate := connect()
			for !stop.Load() {
				if current.Load() != certificate {
					client.CloseIdleConnections()
					client, certificate = connect()
				}
				if got, err := s.post(client, "/authorize", "question"); err != nil || got.status != 200 {
					t.Errorf("got %+v, %v", got, err)
					return
				}
				asked.Add(1)
			}
		})
	}
	under := func() { // load
		from := asked.Load()
		eventually(t, "callers are answered", func() bool { return asked.Load() > from+50 })
	}
	status := func(certificate *tls.Certificate) func(want int) bool {
		client := callerWith(&tls.Config{RootCAs: trusted}, certificate)
		return func(want int) bool {
			got, err := s.post(client, "/authorize", "")
			return err == nil && got.status == want
		}
	}
	under()

	// Both authorities are accepted before the old one is removed.
	write(t, s.authorities, slices.Concat(s.callers.pem, newCallers.pem))
	eventually(t, "the new authority is accepted", func() bool { return status(newCaller)(200) })
	under()
	current.Store(newCaller)
	under()
	onOpenConnection := status(oldCaller)
	if !onOpenConnection(200) {
		t.Fatal("the old authority is not accepted any more")
	}
	callersLeft := asked.Load()
	eventually(t, "no caller uses the old certificate", func() bool { return asked.Load() > callersLeft+8 })
	write(t, s.authorities, newCallers.pem)
	eventually(t, "the old authority is refused on an open connection", func() bool { return onOpenConnection(401) })
	if _, err := s.post(callerWith(&tls.Config{RootCAs: trusted}, oldCaller), "/authorize", ""); err == nil {
		t.Error("the old authority is accepted in a handshake")
	}
	under()

	certificate, key := newServer.server()
	write(t, s.certificate, certificate)
	write(t, s.key, key)
	onlyNew := callerWith(&tls.Config{RootCAs: pool(newServer)}, newCaller)
	eventually(t, "the new certificate is used", func() bool {
		_, err := s.post(onlyNew, "/authorize", "")
		return err == nil
	})
	under()
	stop.Store(true)
	callers.Wait()
	if note, err := s.listeners.webhook.certificates.state(); note != "" || err != nil {
		t.Errorf("after the rotation: %s, %v", note, err)
	}
}

func TestInvalidFilesAreNotUsed(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	s.serve(parts{})
	client := s.caller(s.callers.client("kube-apiserver"))
	_, otherKey := s.server.server()
	for i, tc := range []struct {
		rule, file string
		text       []byte
		says       string
	}{
		{"the key of another certificate", s.key, otherKey, "private key does not match public key"},
		{"an empty certificate", s.certificate, nil, "failed to find any PEM data"},
		{"authorities without a certificate", s.authorities, []byte("none"), "it holds no certificate in PEM form"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			good, err := os.ReadFile(tc.file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, tc.file, tc.text)
			eventually(t, "the failure is counted", func() bool { return s.events.failures() == i+1 })
			got, err := s.get(client, "/readyz?verbose")
			if err != nil || got.status != 200 || !strings.Contains(got.body, tc.says) ||
				!strings.Contains(got.body, "[+]certificates ok: changed files are not used: ") {
				t.Errorf("readyz: got %+v, %v; want a note with %q", got, err, tc.says)
			}
			if got, err := s.post(s.caller(s.callers.client("kube-apiserver")), "/authorize", ""); err != nil || got.status != 200 {
				t.Errorf("a new connection: got %+v, %v", got, err)
			}
			write(t, tc.file, good)
			eventually(t, "good files are used", func() bool {
				note, _ := s.listeners.webhook.certificates.state()
				return note == ""
			})
		})
	}
	log, failed := s.log.String(), "changed certificate files cannot be used"
	if strings.Count(log, failed) != 3 || strings.Contains(log, "PRIVATE KEY") {
		t.Errorf("logged %d times, want 3:\n%s", strings.Count(log, failed), log)
	}
}

func TestMissingFilesAreNotUsed(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	s.close()
	s.listeners.webhook.certificates.files.key = s.key + ".gone"
	for range 3 { // a change is applied at the second check
		s.listeners.webhook.certificates.look()
	}
	if n := s.events.failures(); n != 1 {
		t.Errorf("counted %d times, want once", n)
	}
	if note, err := s.listeners.webhook.certificates.state(); err != nil || !strings.Contains(note, "read webhook.keyFile: open") {
		t.Errorf("got %q, %v", note, err)
	}
	s.listeners.webhook.certificates.files.key = s.key
	s.listeners.webhook.certificates.look()
	s.listeners.webhook.certificates.look()
	if note, err := s.listeners.webhook.certificates.state(); note != "" || err != nil {
		t.Errorf("after the file exists again: %q, %v", note, err)
	}
}

func TestFilesAreAppliedWhenTheyAreStable(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	s.close()
	before := s.listeners.webhook.certificates.current.Load()
	certificate, key := s.server.server()
	write(t, s.certificate, certificate)
	s.listeners.webhook.certificates.look()
	write(t, s.key, key)
	s.listeners.webhook.certificates.look()
	if s.listeners.webhook.certificates.current.Load() != before || s.events.failures() != 0 {
		t.Error("files were read while they were being written")
	}
	s.listeners.webhook.certificates.look()
	if s.listeners.webhook.certificates.current.Load() == before {
		t.Error("the new files are not in use")
	}
}

func TestAnExpiredCertificateFailsReadiness(t *testing.T) {
	t.Parallel()
	s := newTestListeners(t, nil)
	s.close()
	expires := time.Now().Add(-time.Minute).Truncate(time.Second)
	certificate, key := s.server.leaf("node-authorizer", 1, expires)
	write(t, s.certificate, certificate)
	write(t, s.key, key)
	s.listeners.webhook.certificates.look()
	s.listeners.webhook.certificates.look()
	_, err := s.listeners.webhook.certificates.state()
	if err == nil || !strings.Contains(err.Error(), "expired at "+expires.UTC().Format(time.RFC3339)) {
		t.Errorf("got %v", err)
	}
	if got := s.events.expires; !got["tls.crt"].Equal(expires) || !got["ca.crt"].Equal(s.callers.certificate.NotAfter) {
		t.Errorf("observed %v, want tls.crt %v and ca.crt %v", got, expires, s.callers.certificate.NotAfter)
	}
}
