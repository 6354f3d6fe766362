package aws

import (
	"context"
	"fmt"

	"github.com/node-authorizer/node-authorizer/attest"
)

// ec2Tries are many: a machine waits for its answer, as long as the deadline of its
// request lets it.
const ec2Tries = 8

// lookUp asks EC2 about an instance. If there is none, the error is a refusal.
func (a *Attestor) lookUp(ctx context.Context, region, id string) (*instance, error) {
	found, err := a.options.EC2.Instance(ctx, region, id, ec2Tries)
	if err != nil {
		return nil, fmt.Errorf("asking EC2 in %s about instance %s: %w", region, id, err)
	}
	if found.Instance == nil {
		return nil, attest.Refuse(InstanceNotFound, "EC2 knows no instance %s in %s that this account may see", id, region)
	}
	return readInstance(found.Instance, found.Account, region), nil
}
