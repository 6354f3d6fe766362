package sts_test

import (
	"context"
	"fmt"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam/sts"
)

// A verifier sends requests only to the hosts of STS in the partition.
func Example() {
	ctx := context.Background()
	hosts, err := sts.NewHosts(ctx, "aws", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	verifier, err := sts.New(sts.Options{
		ClusterID: "shop", Hosts: hosts, Timeout: 10 * time.Second,
		MaxInFlight: 32, PerSecond: 50, Burst: 100, CacheTTL: time.Minute, CacheSize: 1000,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = verifier.Verify(ctx, "not a token")
	fmt.Println(err)
	// Output: TokenPrefixMissing: the token does not begin with "k8s-aws-v1."
}
