package source

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/graph"
)

// The store was restored, and the API server keeps running: it lists and watches from its cache, which has the
// old history. Within MaxStaleness the state is dropped, and no list of that API server is used. When it lists what its
// store has, the state is read.
func TestRestoredStoreBehindAnAPIServerThatKeepsRunning(t *testing.T) {
	for rule, tc := range map[string]struct {
		restore func(*stubServer)
		cause   string
	}{
		"the resource version has passed the old one": {
			func(s *stubServer) { s.missing = map[string]bool{"shop/api": true} }, "its store has shop/api at resource version",
		},
		"the resource version is lower": {func(s *stubServer) { s.behind = true }, "its store does not have resource version"},
	} {
		t.Run(rule, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
				time.Sleep(5 * time.Minute)
				s.mu.Lock()
				tc.restore(s)
				s.mu.Unlock()
				time.Sleep(maxAge)
				for range 20 {
					requireStale(t, live, "the store was restored", tc.cause)
					// Other kinds have nothing of the old history.
					time.Sleep(time.Minute)
				}
				if resets := r.withPrefix("reset"); len(resets) != 1 || !strings.Contains(resets[0], "restart this kube-apiserver") {
					t.Errorf("resets: %q", resets)
				}
				s.mu.Lock()
				s.missing, s.behind = nil, false
				s.mu.Unlock()
				s.restore(100_000, boundPod("shop", "other", "worker", "past"))
				time.Sleep(2 * time.Minute)
				requireFresh(t, live, "the API server was restarted")
				g := live.State().Graph
				if g.HasPath("worker", graph.Secret, "shop", "db") || !g.HasPath("worker", graph.Secret, "shop", "past") {
					t.Error("the state is not the store's")
				}
			})
		})
	}
}

// A pod that the watch deleted exists again in the restored store.
func TestRestoredStoreHasADeletedPodAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		for i := range 5 {
			s.set("pods", boundPod("shop", fmt.Sprint("job-", i), "worker", "db"))
		}
		synctest.Wait()
		s.delete("pods", "shop/job-1")
		time.Sleep(5 * time.Minute)
		requireFresh(t, live, "before")
		s.mu.Lock()
		for i, e := range s.log {
			if e.kind == "DELETED" {
				s.log[i].resource = "none"
			}
		}
		s.mu.Unlock()
		time.Sleep(maxAge)
		requireStale(t, live, "restored", "its store has shop/job-1 at resource version")
		if len(r.withPrefix("reset")) != 1 {
			t.Errorf("reported: %q", r.withPrefix(""))
		}
	})
}

// A server that starts when the API server's cache is not its store's uses nothing of it.
func TestACacheThatIsNotTheStoresIsNotRead(t *testing.T) {
	for _, watchList := range []bool{false, true} {
		t.Run(fmt.Sprintf("watch with all objects %t", watchList), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := newPodStub(t)
				s.watchList = watchList
				s.missing = map[string]bool{"shop/api": true}
				live, err := Watch(t.Context(), s.config(), LiveOptions{MaxStaleness: maxAge})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(live.Stop)
				time.Sleep(10 * time.Minute)
				if live.Synced() || !strings.Contains(live.pendingKinds(), "its store has shop/api") {
					t.Errorf("pods are read, or it is not said why they are not: %s", live.pendingKinds())
				}
				s.mu.Lock()
				s.missing = nil
				s.mu.Unlock()
				time.Sleep(5 * time.Minute)
				if !live.Synced() {
					t.Errorf("not read: %s", live.pendingKinds())
				}
			})
		})
	}
}
