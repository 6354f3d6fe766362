package ledger_test

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
)

// A cache finds the entry of a node name without a request to the API server.
func Example() {
	client, err := ledger.NewClient(&rest.Config{Host: "https://10.0.0.1:6443"})
	if err != nil {
		fmt.Println(err)
		return
	}
	cache := ledger.NewCache(client)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _ = cache.Run(ctx) }()

	fmt.Println(cache.Synced(), len(cache.ByNode("worker-1")))
}
