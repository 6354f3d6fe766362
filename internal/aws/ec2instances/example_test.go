package ec2instances_test

import (
	"context"
	"fmt"

	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
)

// A program has one client, so that all its parts share one rate limit.
func Example() {
	ctx := context.Background()
	client, err := ec2instances.Load(ctx, ec2instances.Options{PerSecond: 5}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := client.Instance(ctx, "eu-west-1", "i-0123456789abcdef0", 3)
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	fmt.Println(answer.Instance != nil)
}
