package alwaysallow_test

import (
	"context"
	"fmt"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
)

// The machine gets the name that it asks for.
func Example() {
	id, err := alwaysallow.New().Attest(context.Background(), &attest.Request{NodeName: "worker-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(id.Provider, id.InstanceID, id.NodeName)
	// Output: alwaysallow worker-1 worker-1
}
