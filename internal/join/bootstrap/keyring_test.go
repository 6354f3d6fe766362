package bootstrap

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// forgetKey changes an entry to the form of a version that did not derive tokens.
func (w *testCluster) forgetKey(name string) {
	w.t.Helper()
	entry := w.entry(name)
	entry.Spec.TokenKeyID = ""
	if _, err := w.ledger.Update(context.Background(), entry); err != nil {
		w.t.Fatal(err)
	}
}

// keyReads returns how often the key was read since the last call.
func (w *testCluster) keyReads() int {
	n := 0
	for _, call := range w.server.Calls() {
		if call == "get secrets node-authorizer-key" {
			n++
		}
	}
	return n
}

// The token is replaced at either replica: one has read the new key already, the other one
// has the old key.
func TestATokenWhoseKeyIsGoneIsReplaced(t *testing.T) {
	for _, first := range []int{0, 1} {
		w := newTestCluster(t)
		replicas, id := []*Service{w.service(nil), w.service(nil)}, machine("i-1", "worker-1")
		before := redeem(t, replicas[0], id)
		w.rotateKey()
		redeem(t, replicas[1], machine("i-2", "worker-2"))
		var after *Grant
		for i := range 4 {
			after = redeem(t, replicas[(first+i)%2], id)
			if err := w.oneToken(id, after); err != nil {
				t.Error(err)
			}
		}
		if again := redeem(t, replicas[first], id); again.Token.Value() != after.Token.Value() {
			t.Error("two replicas give two tokens")
		}
		w.advanceClock(keyTTL)
		again := redeem(t, replicas[0], id)
		if again.Token.ID == before.Token.ID || again.Token.Value() != redeem(t, replicas[1], id).Token.Value() {
			t.Errorf("%s is given, and %s was derived from a key that is gone", again.Token, before.Token)
		}
	}
}

// A replica that has the old key reads the new key when an entry names it.
func TestAnEntryWithANewerKeyKeepsItsToken(t *testing.T) {
	w := newTestCluster(t)
	old, id := w.service(nil), machine("i-1", "worker-1")
	redeem(t, old, machine("i-2", "worker-2"))
	w.rotateKey()
	given := redeem(t, w.service(nil), id)
	if again := redeem(t, old, id); again.Token.Value() != given.Token.Value() {
		t.Errorf("%s and %s were given", given.Token, again.Token)
	}
}

func TestATokenOfAnEarlierVersionIsReplacedUnlessItWasUsed(t *testing.T) {
	w := newTestCluster(t)
	s, id := w.service(nil), machine("i-1", "worker-1")
	before := redeem(t, s, id)
	w.forgetKey("test-i-1")
	after := redeem(t, s, id)
	if after.Token.ID == before.Token.ID || after.Repeated {
		t.Errorf("%s was given, which cannot be derived", after.Token)
	}
	if err := w.oneToken(id, after); err != nil {
		t.Error(err)
	}
	w.forgetKey("test-i-1")
	w.bind("test-i-1")
	_, err := s.Redeem(t.Context(), request(id), id)
	refusedWith(t, err, "AlreadyAttested")
}

// The sender of valid evidence can send any number of requests.
func TestRequestsDoNotReadTheKeyEachTime(t *testing.T) {
	w := newTestCluster(t)
	s, repeated, used := w.service(nil), machine("i-1", "worker-1"), machine("i-2", "worker-2")
	redeem(t, s, repeated)
	redeem(t, s, used)
	w.bind("test-i-2")
	w.rotateKey()
	w.keyReads()
	for range 20 {
		redeem(t, s, repeated)
		_, err := s.Redeem(t.Context(), request(used), used)
		refusedWith(t, err, "AlreadyAttested")
	}
	if n := w.keyReads(); n != 0 {
		t.Errorf("the key was read %d times within keyTTL", n)
	}
	w.advanceClock(keyTTL)
	for range 20 {
		redeem(t, s, repeated)
		_, err := s.Redeem(t.Context(), request(used), used)
		refusedWith(t, err, "AlreadyAttested")
	}
	// Once because it is old, once because the entry names another.
	if n := w.keyReads(); n > 2 {
		t.Errorf("the key was read %d times", n)
	}
}

// Requests at the same time share one reading of the key.
func TestManyEntriesOfAKeyThatIsGoneReadItOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestCluster(t)
		s := w.service(nil)
		ids := make([]*attest.Identity, 50)
		for i := range ids {
			name := "worker-" + string(rune('a'+i%26)) + string(rune('a'+i/26))
			ids[i] = machine("i-"+name, name)
			redeem(t, s, ids[i])
		}
		w.rotateKey()
		w.keyReads()
		w.advanceClock(keyTTL)
		w.server.Intercept(func(_ context.Context, _ fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
			time.Sleep(5 * time.Millisecond)
			return do(), nil
		})
		var running sync.WaitGroup
		for _, id := range ids {
			running.Go(func() { redeem(t, s, id) })
		}
		running.Wait()
		if n := w.keyReads(); n > 4 {
			t.Errorf("the key was read %d times", n)
		}
	})
}

// A key that cannot be read is an error, not a refusal. Nothing is written without the key.
func TestWithoutTheKeyNoTokenIsGiven(t *testing.T) {
	w := newTestCluster(t)
	id := machine("i-1", "worker-1")
	w.server.Intercept(func(_ context.Context, c fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
		if c.Verb == "get" && c.Resource == "secrets" {
			return fakeapiserver.Failure("etcd is away"), nil
		}
		return do(), nil
	})
	version := w.server.ResourceVersion()
	grant, err := w.service(nil).Redeem(t.Context(), request(id), id)
	var refusal *attest.Refusal
	if err == nil || errors.As(err, &refusal) || !strings.Contains(err.Error(), "secret kube-system/node-authorizer-key") {
		t.Errorf("got %v, %v", grant, err)
	}
	if w.server.ResourceVersion() != version {
		t.Error("something was written")
	}
}

// An id that an entry names, or has named, is not used for another token.
func TestATokenIDIsThatOfOneEntry(t *testing.T) {
	w := newTestCluster(t)
	redeem(t, w.service(nil), machine("i-1", "worker-1"))
	w.certified("test-i-1")
	used := w.entry("test-i-1").Spec.TokenID
	redeem(t, w.service(with(Always)), machine("i-1", "worker-1"))
	w.waitForCache(w.known)
	current := w.entry("test-i-1").Spec.TokenID
	ids := []string{used, current, "zzzzzz"}
	got := freeID(w.known, func() string {
		id := ids[0]
		ids = ids[1:]
		return id
	})
	if got != "zzzzzz" {
		t.Errorf("a new token has the id %s of another entry", got)
	}
}

// A reading that started before the call is not used.
func TestLatestReadsTheKeyAfterTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		text, reads := slices.Repeat([]byte{1}, ledger.ServiceKeyBytes), 0
		k := newKeyring(func(context.Context) ([]byte, error) {
			mu.Lock()
			reads++
			now := slices.Clone(text)
			mu.Unlock()
			time.Sleep(time.Second) // the response is in flight
			return now, nil
		}, time.Now)
		var running sync.WaitGroup
		running.Go(func() {
			if _, err := k.current(t.Context()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Millisecond)
		mu.Lock()
		text = slices.Repeat([]byte{2}, ledger.ServiceKeyBytes)
		mu.Unlock()
		want, err := ledger.NewTokenKey(text)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			running.Go(func() {
				if key, err := k.latest(t.Context()); err != nil || key.ID() != want.ID() {
					t.Errorf("the latest key is %v (%v), want %v", key, err, want)
				}
			})
		}
		running.Wait()
		if reads != 2 {
			t.Errorf("the key was read %d times, want 2", reads)
		}
	})
}
