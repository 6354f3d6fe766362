package ledger_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// The store is restored, and the API server keeps running: it lists and watches an entry that the store does not have any
// more. Within twice the limit the cache may not be used, until the API server lists the objects of its store.
func TestRestoredStoreBehindAnAPIServerThatKeepsRunning(t *testing.T) {
	const limit = 2 * time.Minute
	for _, watchList := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server := fakeapiserver.New(fakeapiserver.Options{WatchList: watchList})
			client, err := ledger.NewClient(server.InMemory(nil))
			if err != nil {
				t.Fatal(err)
			}
			create(t, client, entry("i-1", "worker-1"))
			cache := ledger.NewCache(client)
			cache.LimitAge(limit, nil)
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = cache.Run(ctx) })
			defer running.Wait()
			defer stop()
			time.Sleep(limit)
			before := server.Version()
			dropped := create(t, client, entry("i-2", "worker-2"))
			for range 20 {
				time.Sleep(20 * time.Second)
				if _, known := cache.Get(dropped.Name); !known || cache.Fresh() != nil {
					t.Fatalf("the entry is known: %v, the cache: %v", known, cache.Fresh())
				}
			}
			server.RestoreStore(before)
			time.Sleep(2 * limit)
			for range 20 {
				err := cache.Fresh()
				if err == nil || !strings.Contains(err.Error(), "restart this kube-apiserver: its store has "+dropped.Name) {
					t.Fatalf("the cache may be used: %v", err)
				}
				time.Sleep(20 * time.Second)
			}
			server.Restart()
			time.Sleep(limit)
			if _, known := cache.Get(dropped.Name); known || cache.Fresh() != nil {
				t.Errorf("the entry is known: %v, the cache: %v", known, cache.Fresh())
			}
		})
	}
}
