package containmentserver

import (
	"context"
	"fmt"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
)

// The paths of the custom resources.
const (
	NodeScopes  = "/apis/policy.node-authorizer.io/v1alpha1/nodescopes"
	Quarantines = "/apis/policy.node-authorizer.io/v1alpha1/quarantines"
)

// Getter gets the object at a path of an API server.
type Getter func(ctx context.Context, path string, into any) error

// Condition is the condition Accepted.
type Condition struct {
	Status, Reason, Message string
}

// ConditionOf returns the condition of the current generation of an object; empty if there is none.
func ConditionOf(ctx context.Context, get Getter, path string) (Condition, error) {
	var o struct {
		Metadata struct{ Generation int64 }
		Status   struct {
			ObservedGeneration int64
			Conditions         []Condition
		}
	}
	if err := get(ctx, path, &o); err != nil {
		return Condition{}, err
	}
	if o.Status.ObservedGeneration != o.Metadata.Generation || len(o.Status.Conditions) != 1 {
		return Condition{}, nil
	}
	return o.Status.Conditions[0], nil
}

// AwaitAccepted waits until a server uses the current generation of an object.
func AwaitAccepted(ctx context.Context, get Getter, path string) error {
	return await.Until(ctx, path+" is accepted", func(ctx context.Context) error {
		c, err := ConditionOf(ctx, get, path)
		if err == nil && c.Status != "True" {
			err = fmt.Errorf("its condition is %+v", c)
		}
		return err
	})
}
