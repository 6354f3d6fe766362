package machines

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// joinBound is how long after the end of a fault all machines are ready.
const joinBound = time.Minute

// TestMachinesAreReadySoonAfterAFreeze freezes a component while machines join, until the
// approver's leader has given up. internal/join/controller tests the bound with each single fault.
func TestMachinesAreReadySoonAfterAFreeze(t *testing.T) {
	for _, component := range []localplane.Component{localplane.APIServer, localplane.Etcd} {
		t.Run(string(component), func(t *testing.T) {
			t.Cleanup(func() { recovered(t) })
			var joining errgroup.Group
			var machines []*Machine
			for range 4 {
				m := launch(t, blue)
				machines = append(machines, m)
				joining.Go(func() error { return bootPatiently(t.Context(), m) })
			}
			eventually(t, "the first machine has its entry", func(ctx context.Context) error {
				_, err := blue.Entry(ctx, machines[0])
				return err
			})
			freeze(t, component)
			ready, cancel := context.WithTimeout(t.Context(), joinBound)
			defer cancel()
			for _, m := range machines {
				orFatal(t, await.Until(ready, "node "+m.NodeName()+" is ready", m.Ready))
			}
			orFatal(t, joining.Wait())
			stopKubelets(t, machines)
		})
	}
}

// bootPatiently boots a machine whose client waits longer than a freeze.
func bootPatiently(ctx context.Context, m *Machine) error {
	outcome, err := m.Client(ctx, "--timeout=5m")
	if err != nil {
		return err
	}
	if outcome.Status != 0 {
		return errors.New(outcome.Output)
	}
	return m.StartKubelet(ctx)
}

// freeze pauses a component until no replica leads.
func freeze(t *testing.T, component localplane.Component) {
	t.Helper()
	orFatal(t, blue.Pause(component))
	defer func() { orFatal(t, blue.Resume(component)) }()
	for _, replica := range blue.Replicas {
		eventually(t, "the replica does not lead", func(ctx context.Context) error {
			metrics, err := replica.Metrics(ctx)
			if err == nil && strings.Contains(metrics, "approver_leader 1") {
				err = errors.New("it leads")
			}
			return err
		})
	}
}
