package instances_test

import (
	"context"
	"fmt"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/ec2instances"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam/instances"
)

// EC2 returns the instance, and IAM the roles of its profile.
func Example() {
	ctx := context.Background()
	client, err := ec2instances.Load(ctx, ec2instances.Options{}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	askIAM, region, err := instances.NewIAM(ctx, "eu-west-1", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	known := instances.New(instances.Options{
		EC2: client, Region: region, IAM: askIAM, TTL: 2 * time.Minute, Size: 20_000, PerSecond: 10, Burst: 20,
	})
	instance, err := known.Instance(ctx, "i-0123456789abcdef0", true)
	fmt.Println(instance, err)
}
