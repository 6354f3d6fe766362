package containment_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// The store is restored, and the API server keeps running: it lists and watches objects that the store does not have any more.
// Within twice MaxStaleness nothing of it is used, until the API server lists the objects of its store.
func TestRestoredStoreBehindAnAPIServerThatKeepsRunning(t *testing.T) {
	const limit = 2 * time.Minute
	for _, resource := range []string{v1alpha1.NodeScopeResource, v1alpha1.QuarantineResource} {
		t.Run(resource, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fakeapiserver.New(fakeapiserver.Options{})
				c := &cluster{Server: s, t: t}
				write := func(resource, name string) {
					t.Helper()
					if resource == v1alpha1.QuarantineResource {
						c.quarantine(name, "node-of-"+name)
					} else {
						c.put(scopePath(name), &v1alpha1.NodeScope{})
					}
				}
				live, err := containment.New(containment.Options{
					Cluster: s.InMemory(nil), NodeScopes: true, Quarantines: true, MaxStaleness: limit,
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() { live.Run(ctx) })
				defer running.Wait()
				defer stop()
				fresh := map[string]func() error{
					v1alpha1.NodeScopeResource: live.NodeScopesFresh, v1alpha1.QuarantineResource: live.QuarantinesFresh,
				}
				// changing checks something again and again. Meanwhile new objects keep the watches from being silent.
				changes := 0
				changing := func(during time.Duration, check func()) {
					t.Helper()
					for end := time.Now().Add(during); time.Now().Before(end); changes++ {
						for of := range fresh {
							write(of, fmt.Sprint("new-", changes))
						}
						time.Sleep(20 * time.Second)
						check()
					}
				}
				// quiet does so without changes.
				quiet := func(during time.Duration, check func()) {
					t.Helper()
					for end := time.Now().Add(during); time.Now().Before(end); {
						time.Sleep(20 * time.Second)
						check()
					}
				}
				usable := func() {
					t.Helper()
					if err := live.Fresh(); err != nil {
						t.Fatal(err)
					}
				}
				changing(limit, func() {})
				before := s.Version()
				write(resource, "dropped")
				quiet(3*limit, usable)
				s.RestoreStore(before)

				quiet(2*limit, func() {})
				quiet(5*limit, func() {
					err := fresh[resource]()
					if err == nil || !strings.Contains(err.Error(), "restart this kube-apiserver: its store has dropped at") {
						t.Fatalf("it may be used: %v", err)
					}
				})
				s.Restart()
				changing(limit, func() {})
				changing(2*limit, usable)
				if name := quarantined(live, "node-of-dropped"); name != "" {
					t.Errorf("after the restart, %s counts", name)
				}
			})
		})
	}
}
