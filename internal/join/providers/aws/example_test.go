package aws_test

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
)

// The client collects evidence, and the server verifies it.
func Example() {
	ctx := context.Background()
	collector, err := aws.NewCollector(ctx, aws.CollectorOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	evidence, err := collector.Collect(ctx, attest.Binding{})
	if err != nil {
		fmt.Println(err)
		return
	}

	attestor, err := aws.New(ctx, aws.Options{ClusterName: "shop"})
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := attestor.Attest(ctx, &attest.Request{RemoteAddr: netip.MustParseAddr("10.0.0.7"), Body: evidence})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(id.InstanceID, id.NodeName)
}
