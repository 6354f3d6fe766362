package aws

import (
	"context"
	"fmt"

	"github.com/node-authorizer/node-authorizer/attest"
)

// ec2Tries is high: a machine waits for its answer until the deadline of its request.
const ec2Tries = 8

// lookUp looks up an instance in EC2. If there is none, the error is a refusal.
func (a *Attestor) lookUp(ctx context.Context, region, id string) (*instance, error) {
	found, err := a.options.EC2.Instance(ctx, region, id, ec2Tries)
	if err != nil {
		return nil, fmt.Errorf("look up instance %[2]s in EC2 in %[1]s: %[3]w", region, id, err)
	}
	if found.Instance == nil {
		return nil, attest.Refuse(InstanceNotFound, "EC2 has no instance %s in %s that this account may see", id, region)
	}
	return readInstance(found.Instance, found.Account, region), nil
}
