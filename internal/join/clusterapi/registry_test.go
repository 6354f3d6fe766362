package clusterapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/clusterapi"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const (
	path       = "/apis/cluster.x-k8s.io/v1beta2/namespaces/"
	providerID = "aws:///eu-west-1a/i-1"
)

type object = fakeapiserver.Object

// world is a management cluster that serves versions of the resource, with one registry.
type world struct {
	*testing.T
	server   *fakeapiserver.Server
	registry *clusterapi.Registry
	now      atomic.Int64
}

func (w *world) clock() time.Time { return time.Unix(w.now.Load(), 0) }

func newWorld(t *testing.T, machines map[string]object, versions ...string) *world {
	t.Helper()
	w := &world{T: t}
	w.now.Store(1_800_000_000)
	served := map[string]map[string]string{}
	for _, version := range versions {
		served["cluster.x-k8s.io/"+version] = map[string]string{"machines": "Machine"}
	}
	w.server = fakeapiserver.New(fakeapiserver.Options{
		Clock: w.clock, Resources: served,
	})
	for name, machine := range machines {
		w.put(name, machine)
	}
	w.registry = clusterapi.New(clusterapi.Options{
		Client: dynamic.NewForConfigOrDie(w.server.InMemory(nil)), Namespaces: []string{"fleet", "edge"}, ClusterName: "shop",
		MaxAge: 2 * time.Minute, Clock: w.clock,
	})
	if err := w.check(identity()); err == nil || errors.As(err, new(*attest.Refusal)) {
		t.Fatalf("before the Machines were read: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.registry.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return w
}

func (w *world) put(name string, machine object) {
	w.Helper()
	namespace, name, _ := strings.Cut(name, "/")
	if err := w.server.Put(path+namespace+"/machines/"+name, machine); err != nil {
		w.Fatal(err)
	}
}

func (w *world) check(id *attest.Identity) error {
	return w.registry.Check(&attest.Request{RemoteAddr: netip.MustParseAddr("10.0.0.7")}, id)
}

func (w *world) eventually(condition func() bool) {
	w.Helper()
	err := wait.PollUntilContextTimeout(w.Context(), time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		w.Fatal(err)
	}
}

// listed waits until each namespace was listed in each version, at least.
func (w *world) listed() {
	w.Helper()
	calls := 0
	w.eventually(func() bool {
		calls += len(w.server.Calls())
		return calls >= 4
	})
}

func identity() *attest.Identity {
	return &attest.Identity{Provider: "aws", InstanceID: "i-1", ProviderID: providerID, NodeName: "worker-1"}
}

// machine is a Machine of a Cluster with the fields that both versions have.
func machine(cluster, providerID string, status object) object {
	spec := object{"clusterName": cluster, "version": "v1.37.1"}
	if providerID != "" {
		spec["providerID"] = providerID
	}
	return object{"metadata": object{"labels": object{"a": "b"}}, "spec": spec, "status": status}
}

func addresses(all ...string) object {
	var list []any
	for _, a := range all {
		list = append(list, object{"type": "InternalIP", "address": a})
	}
	return object{"addresses": list}
}

func attested(own ...string) *attest.Identity {
	id := identity()
	for _, a := range own {
		id.Addresses = append(id.Addresses, netip.MustParseAddr(a))
	}
	return id
}

func TestAMachineOfClusterAPIRegisters(t *testing.T) {
	registered := machine("shop", providerID, nil)
	deleted := machine("shop", providerID, nil)
	deleted["metadata"] = object{"deletionTimestamp": "2026-11-28T08:00:00Z"}
	node := func(name string) object {
		return machine("shop", providerID, object{"nodeRef": object{"apiVersion": "v1", "kind": "Node", "name": name}})
	}
	for rule, tc := range map[string]struct {
		machines map[string]object
		id       *attest.Identity
		want     verdict.Code
	}{
		"its provider ID":             {map[string]object{"fleet/a": registered}, identity(), ""},
		"in another namespace of two": {map[string]object{"edge/a": registered}, identity(), ""},
		"no Machine":                  {nil, identity(), clusterapi.MachineNotFound},
		"a Machine without a provider ID": {
			map[string]object{"fleet/a": machine("shop", "", nil)}, identity(), clusterapi.MachineNotFound,
		},
		"the provider ID of another machine": {
			map[string]object{"fleet/a": machine("shop", "aws:///eu-west-1a/i-2", nil)}, identity(), clusterapi.MachineNotFound,
		},
		"the same instance id in another zone": {
			map[string]object{"fleet/a": machine("shop", "aws:///eu-west-1b/i-1", nil)}, identity(), clusterapi.MachineNotFound,
		},
		"the same instance id of another provider": {
			map[string]object{"fleet/a": machine("shop", "hcloud://i-1", nil)}, identity(), clusterapi.MachineNotFound,
		},
		"a Machine of another cluster": {
			map[string]object{"fleet/a": machine("web", providerID, nil)}, identity(), clusterapi.MachineNotFound,
		},
		"a namespace that is not configured": {map[string]object{"other/a": registered}, identity(), clusterapi.MachineNotFound},
		"a Machine that is being deleted":    {map[string]object{"fleet/a": deleted}, identity(), clusterapi.MachineDeleting},
		"two Machines in a namespace": {
			map[string]object{"fleet/a": registered, "fleet/b": registered}, identity(), clusterapi.MachineAmbiguous,
		},
		"two Machines in two namespaces": {
			map[string]object{"fleet/a": registered, "edge/a": deleted}, identity(), clusterapi.MachineAmbiguous,
		},
		"the node of the Machine": {map[string]object{"fleet/a": node("worker-1")}, identity(), ""},
		"another node":            {map[string]object{"fleet/a": node("worker-2")}, identity(), clusterapi.NodeMismatch},
		"an attested address": {
			map[string]object{"fleet/a": machine("shop", providerID, addresses("192.0.2.1", "::ffff:10.0.0.1", "a.example.com"))},
			attested("10.0.0.9", "10.0.0.1"), "",
		},
		"other addresses than the attested ones": {
			map[string]object{"fleet/a": machine("shop", providerID, addresses("10.0.0.7"))},
			attested("10.0.0.1"),
			clusterapi.AddressMismatch,
		},
		"the source, without attested addresses": {
			map[string]object{"fleet/a": machine("shop", providerID, addresses("10.0.0.7"))}, identity(), "",
		},
		"another source, without attested addresses": {
			map[string]object{"fleet/a": machine("shop", providerID, addresses("10.0.0.8"))}, identity(), clusterapi.AddressMismatch,
		},
		"DNS names only": {
			map[string]object{"fleet/a": machine("shop", providerID, addresses("a.example.com"))}, attested("10.0.0.1"), "",
		},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			for _, version := range []string{"v1beta1", "v1beta2"} {
				w := newWorld(t, tc.machines, version)
				w.eventually(func() bool { return w.registry.Fresh() == nil })
				err := w.check(tc.id)
				refusal, _ := errors.AsType[*attest.Refusal](err)
				if tc.want == "" && err != nil || tc.want != "" && (refusal == nil || refusal.Code != tc.want) {
					t.Errorf("%s: %v, want %q", version, err, tc.want)
				}
			}
		})
	}
}

func TestChangesOfMachinesCount(t *testing.T) {
	w := newWorld(t, nil, "v1beta1", "v1beta2")
	w.eventually(func() bool { return w.registry.Fresh() == nil })
	has := func(code verdict.Code) func() bool {
		return func() bool {
			refusal, _ := errors.AsType[*attest.Refusal](w.check(identity()))
			return refusal != nil && refusal.Code == code
		}
	}
	w.eventually(has(clusterapi.MachineNotFound))
	w.put("fleet/a", machine("shop", "", nil))
	w.put("fleet/a", machine("shop", providerID, nil))
	w.eventually(func() bool { return w.check(identity()) == nil })
	w.server.Remove(path + "fleet/machines/a")
	w.eventually(has(clusterapi.MachineNotFound))
}

// What cannot be read or is too old is an error, which is not a decision.
func TestAnErrorIsNotARefusal(t *testing.T) {
	undecided := func(w *world, text string) func() bool {
		return func() bool {
			err := w.check(identity())
			return err != nil && !errors.As(err, new(*attest.Refusal)) && strings.Contains(err.Error(), text)
		}
	}
	registered := map[string]object{"fleet/a": machine("shop", providerID, nil)}
	t.Run("no version is served", func(t *testing.T) {
		w := newWorld(t, registered, "v1alpha4")
		w.listed()
		w.eventually(undecided(w, "install the custom resource machines.cluster.x-k8s.io"))
	})
	t.Run("a Machine that cannot be read", func(t *testing.T) {
		broken := machine("shop", providerID, object{"addresses": "10.0.0.7"})
		w := newWorld(t, map[string]object{"fleet/a": broken}, "v1beta2")
		w.listed()
		w.eventually(undecided(w, "reading the machines"))
	})
	t.Run("a copy that is too old", func(t *testing.T) {
		w := newWorld(t, registered, "v1beta2")
		w.eventually(func() bool { return w.check(identity()) == nil })
		w.server.Intercept(func(context.Context, fakeapiserver.Call, func() *http.Response) (*http.Response, error) {
			return fakeapiserver.Failure("not now"), nil
		})
		w.now.Add(121)
		err := w.check(identity())
		if _, old := errors.AsType[*staleness.Error](err); !old {
			t.Errorf("got %v", err)
		}
	})
	t.Run("an identity without a provider ID", func(t *testing.T) {
		w := newWorld(t, map[string]object{"fleet/a": machine("shop", "", nil)}, "v1beta2")
		w.eventually(func() bool { return w.registry.Fresh() == nil })
		id := identity()
		id.ProviderID = ""
		if err := w.check(id); err == nil || errors.As(err, new(*attest.Refusal)) {
			t.Errorf("got %v", err)
		}
	})
}
