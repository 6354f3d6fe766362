package containment

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/test/e2e/testmain"
)

// The tests share one control plane.
var plane *world

func TestMain(m *testing.M) {
	os.Exit(testmain.Run(m, 10*time.Minute, func(ctx context.Context, dir string) error {
		return testmain.StartAll(ctx, func(ctx context.Context) (err error) {
			plane, err = startWorld(ctx, dir)
			return err
		})
	}, func() error { return plane.Stop() }))
}

// agentOf returns a client with the token of an account's pod on a node.
func agentOf(t *testing.T, namespace, account, node string) *client {
	t.Helper()
	c, err := plane.agentClient(t.Context(), namespace, account, node)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func send(t *testing.T, c *client, r request) answer {
	t.Helper()
	a, err := c.do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// enforceScope applies a NodeScope until the test ends.
func enforceScope(t *testing.T, name string, spec v1alpha1.NodeScopeSpec) {
	t.Helper()
	must(t, plane.put(t.Context(), scopesPath, v1alpha1.NodeScopeKind, name, spec))
	t.Cleanup(func() { must(t, plane.drop(context.Background(), scopesPath+"/"+name)) })
}
