package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/nametemplate"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// fakeDNS has a zone. While failure is set, it answers nothing.
type fakeDNS struct {
	mu      sync.Mutex
	zone    map[string][]string
	failure error
	asked   []string
}

func (d *fakeDNS) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, network+" "+host)
	if d.failure != nil {
		return nil, d.failure
	}
	var found []netip.Addr
	for _, text := range d.zone[host] {
		if a := netip.MustParseAddr(text); a.Is4() == (network == "ip4") {
			found = append(found, a)
		}
	}
	if len(found) == 0 {
		return nil, &net.DNSError{Name: host, Err: "no such host", IsNotFound: true}
	}
	return found, nil
}

func (d *fakeDNS) set(failure error, host string, addresses ...string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failure = failure
	if d.zone == nil {
		d.zone = map[string][]string{}
	}
	d.zone[host] = addresses
}

func dnsSource(t *testing.T) approve.Source {
	t.Helper()
	parsed, err := nametemplate.Parse("{{.NodeName}}.example.com", nametemplate.NodeName)
	if err != nil {
		t.Fatal(err)
	}
	return approve.Source{Names: []*nametemplate.Template{parsed}, DNS: true}
}

const leave = string(approve.LeaveUnattested)

func TestServingCertificatesOfUnattestedNodes(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	s.put("/api/v1/nodes/worker-3", nodeWithAddress("10.0.0.3"))
	s.put("/api/v1/nodes/worker-4", nodeWithAddress("10.0.0.4"))
	dns, reported := &fakeDNS{}, &events{}
	dns.set(nil, "worker-2.example.com.", "10.0.0.2", "fd00::2")
	s.start(controller.Options{
		UnattestedNodes: leave, Observer: reported, Resolver: dns,
		ServingSources: []approve.Source{dnsSource(t), {NodeAddresses: true}},
	})

	s.put("/api/v1/nodes/worker-2", nodeWithAddress("10.0.0.9"))
	s.put(requestPath("dns"), ofNode(t, "worker-2", "worker-2.example.com", "10.0.0.2", "fd00::2"))
	s.await("dns", "Approved ServingCertificateApproved")
	s.put(requestPath("status"), ofNode(t, "worker-3", "10.0.0.3"))
	s.await("status", "Approved ServingCertificateApproved")

	for name, csr := range map[string][]string{
		"foreign-address": {"worker-3", "10.0.0.3", "10.0.0.8"},
		"foreign-name":    {"worker-3", "auth.example.com", "10.0.0.3"},
		"of-another-node": {"worker-3", "10.0.0.4"},
	} {
		s.put(requestPath(name), ofNode(t, csr[0], csr[1:]...))
		s.until(name+" is left", func() bool { return slices.Contains(reported.of(name), "leave NamesNotVouched") })
		if got := decision(s.request(name)); got != "" {
			t.Errorf("%s is %s", name, got)
		}
	}
	s.put(requestPath("attested"), ofNode(t, "worker-1", "worker-1", "10.0.0.8"))
	s.await("attested", "Denied AddressNotAttested")
	dns.mu.Lock()
	defer dns.mu.Unlock()
	if want := []string{"ip4 worker-2.example.com.", "ip6 worker-2.example.com."}; !slices.Equal(dns.asked, want) {
		t.Errorf("DNS was asked %v, want %v", dns.asked, want)
	}
}

// A kubelet without a cloud provider writes any address into its Node's status.
func TestANodeGetsNoAddressOfAnotherNode(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	other := nodeWithAddress("10.0.0.1")
	other.Status.Addresses = append(other.Status.Addresses,
		corev1.NodeAddress{Type: corev1.NodeInternalDNS, Address: "API.example.com."},
		corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "FD00::0:1"})
	s.put("/api/v1/nodes/control-plane", other)
	liar := nodeWithAddress("10.0.0.1")
	for _, name := range []string{"control-plane", "api.example.com", "fd00::1"} {
		kind := corev1.NodeInternalDNS
		if strings.Contains(name, ":") {
			kind = corev1.NodeInternalIP
		}
		liar.Status.Addresses = append(liar.Status.Addresses, corev1.NodeAddress{Type: kind, Address: name})
	}
	s.put("/api/v1/nodes/liar", liar)
	s.start(controller.Options{ServingSources: []approve.Source{{NodeAddresses: true}}})
	for i, text := range []string{"10.0.0.1", "fd00::1", "control-plane", "api.example.com"} {
		name := fmt.Sprintf("serving-%d", i)
		s.put(requestPath(name), ofNode(t, "liar", text))
		s.await(name, "Denied NamesNotVouched")
		want := fmt.Sprintf("node control-plane has %q", text)
		if message := s.request(name).Status.Conditions[0].Message; !strings.Contains(message, want) {
			t.Error(message)
		}
	}
}

func TestRequestsWaitForDNSAndTheNode(t *testing.T) {
	byNode := approve.Source{NodeAddresses: true}
	for name, tc := range map[string]struct {
		source approve.Source
		sans   []string
		begin  func(*testCluster, *fakeDNS)
	}{
		"DNS": {dnsSource(t), []string{"worker-2.example.com", "10.0.0.2"}, func(_ *testCluster, d *fakeDNS) {
			d.set(nil, "worker-2.example.com.", "10.0.0.2")
		}},
		"the Node": {byNode, []string{"10.0.0.2"}, func(s *testCluster, _ *fakeDNS) {
			s.put("/api/v1/nodes/worker-2", nodeWithAddress("10.0.0.2"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestCluster(t, fakeapiserver.Options{})
			dns, reported := &fakeDNS{}, &events{}
			dns.set(errors.New("server misbehaving"), "worker-2.example.com.")
			s.start(controller.Options{Observer: reported, Resolver: dns, ServingSources: []approve.Source{tc.source}})
			s.put(requestPath("serving"), ofNode(t, "worker-2", tc.sans...))
			s.until("two tries have failed", func() bool { return len(reported.of("serving")) >= 2 })
			if got := reported.of("serving"); slices.ContainsFunc(got, func(e string) bool { return e != "error" }) ||
				decision(s.request("serving")) != "" {
				t.Errorf("reported %v, the request is %q", got, decision(s.request("serving")))
			}
			tc.begin(s, dns)
			s.await("serving", "Approved ServingCertificateApproved")
		})
	}
}

// hangingDNS answers nothing until its context ends.
type hangingDNS struct{ asked chan struct{} }

func (d hangingDNS) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	d.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestMachinesJoinWhileDNSHangs: requests that need DNS do not occupy all workers.
func TestMachinesJoinWhileDNSHangs(t *testing.T) {
	const requests = 20
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	reported, dns := &events{}, hangingDNS{make(chan struct{}, 1000)}
	s.start(controller.Options{Observer: reported, Resolver: dns, ServingSources: []approve.Source{dnsSource(t)}, Workers: 2})
	for i := range requests {
		node := fmt.Sprintf("stuck-%d", i)
		s.put(requestPath(node), ofNode(t, node, node+".example.com", "10.0.0.2"))
	}
	<-dns.asked
	s.put(requestPath("first"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	s.await("first", "Approved ClientCertificateApproved")
	for i := range requests {
		if got := reported.of(fmt.Sprintf("stuck-%d", i)); len(got) > 0 {
			t.Errorf("the machine joined after a request had waited for DNS until the end: %v", got)
		}
	}
}

// A node can create any number of requests. Only its newest ones are compared with sources.
func TestOnlyTheNewestRequestsOfANodeCount(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	dns, reported := &fakeDNS{}, &events{}
	dns.set(errors.New("server misbehaving"), "worker-2.example.com.")
	s.start(controller.Options{
		UnattestedNodes: leave, Observer: reported, Resolver: dns, ServingSources: []approve.Source{dnsSource(t)},
	})
	for i := range approve.MostUndecided + 1 {
		s.put(requestPath(fmt.Sprintf("serving-%d", i)), ofNode(t, "worker-2", "worker-2.example.com", "10.0.0.2"))
	}
	s.until("the first request is left", func() bool {
		return slices.Contains(reported.of("serving-0"), "leave NamesNotVouched")
	})
	dns.set(nil, "worker-2.example.com.", "10.0.0.2")
	for i := range approve.MostUndecided {
		s.await(fmt.Sprintf("serving-%d", i+1), "Approved ServingCertificateApproved")
	}
}
