package controller_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	registered "github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// registry follows the Machines of the cluster until the test ends.
func (s *testCluster) registry(options registered.Options) *registered.Registry {
	s.t.Helper()
	var err error
	if options.Client, err = registered.NewClient(s.api.Config()); err != nil {
		s.t.Fatal(err)
	}
	registry := registered.New(options)
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	running.Go(func() { registry.Run(ctx) })
	s.t.Cleanup(func() { stop(); running.Wait() })
	return registry
}

// register registers a machine for a node.
func (s *testCluster) register(name, node string, approval v1alpha1.Approval, expires *metav1.Time, addresses ...string) {
	s.t.Helper()
	s.put("/apis/node-authorizer.io/v1alpha1/machines/"+name, &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{
		NodeName: node, Approval: approval, Expires: expires, Addresses: addresses, Names: []string{node + ".example.com"},
	}})
}

func TestRegisteredMachinesVouchForServingCertificates(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	past := metav1.NewTime(time.Now().Add(-time.Hour))
	s.register("of-2", "worker-2", v1alpha1.Approved, nil, "10.0.0.2")
	s.register("of-3-old", "worker-3", v1alpha1.Approved, &past, "10.0.0.3")
	s.register("of-4-a", "worker-4", v1alpha1.Approved, nil, "10.0.0.4")
	s.register("of-4-b", "worker-4", v1alpha1.Approved, nil, "10.0.0.4")
	s.register("of-5", "worker-5", v1alpha1.Pending, nil, "10.0.0.5")
	s.register("of-5-old", "worker-5", v1alpha1.Approved, &past, "10.0.0.5")
	s.register("of-7-pending", "worker-7", v1alpha1.Pending, nil, "10.0.0.8")
	s.register("of-7", "worker-7", v1alpha1.Approved, nil, "10.0.0.7")
	registry, reported := s.registry(registered.Options{}), &events{}
	s.until("the machines are read", func() bool { return registry.Fresh() == nil })
	s.start(controller.Options{
		UnattestedNodes: leave, Observer: reported, Machines: registry.Approved, ServingSources: []approve.Source{{Machine: true}},
	})
	s.put(requestPath("own"), ofNode(t, "worker-2", "worker-2", "worker-2.example.com", "10.0.0.2"))
	s.put(requestPath("beside-pending"), ofNode(t, "worker-7", "worker-7", "10.0.0.7"))
	for _, name := range []string{"own", "beside-pending"} {
		s.await(name, "Approved ServingCertificateApproved")
	}
	for name, csr := range map[string][]string{
		"foreign-address": {"worker-2", "worker-2", "10.0.0.3"},
		"foreign-name":    {"worker-2", "worker-3.example.com", "10.0.0.2"},
		"expired":         {"worker-3", "10.0.0.3"},
		"ambiguous":       {"worker-4", "10.0.0.4"},
		"pending":         {"worker-5", "10.0.0.5"},
		"of-a-pending":    {"worker-7", "10.0.0.8"},
		"not-registered":  {"worker-6", "worker-6"},
	} {
		s.put(requestPath(name), ofNode(t, csr[0], csr[1:]...))
		s.until(name+" is left", func() bool { return slices.Contains(reported.of(name), "leave NamesNotVouched") })
		if got := decision(s.request(name)); got != "" {
			t.Errorf("%s is %s", name, got)
		}
	}
}

// A copy of the Machines that is too old, or that was not read, is no reason to deny, although the source is the only one.
func TestNothingIsDecidedWithoutCurrentMachines(t *testing.T) {
	const limit = time.Minute
	s := newTestCluster(t, fakeapiserver.Options{})
	var elapsed atomic.Int64
	// Only the Machines are too old.
	clock := func() time.Time { return time.Now().Add(time.Duration(elapsed.Load())) }
	registry := s.registry(registered.Options{MaxAge: limit, Clock: clock})
	s.until("the machines are read", func() bool { return registry.Fresh() == nil })
	elapsed.Store(int64(limit + time.Second))
	reported := &events{}
	s.start(controller.Options{Observer: reported, Machines: registry.Approved, ServingSources: []approve.Source{{Machine: true}}})
	s.put(requestPath("serving"), ofNode(t, "worker-2", "worker-2", "10.0.0.2"))
	s.until("two tries are counted", func() bool { return reported.tooOld.Load() > 1 })
	isDecision := func(event string) bool { return event != "error" }
	if got := decision(s.request("serving")); got != "" || slices.ContainsFunc(reported.of("serving"), isDecision) {
		t.Errorf("%s, reported %v", got, reported.of("serving"))
	}
	s.register("of-2", "worker-2", v1alpha1.Approved, nil, "10.0.0.2")
	s.await("serving", "Approved ServingCertificateApproved")
}
