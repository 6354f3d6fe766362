package approve_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// registered is a Machine of node worker-1; without addresses it has 10.0.0.7 and fd00::7. It ends at the offset from the
// decision, if that is not zero.
func registered(name string, ends time.Duration, addresses ...string) *v1alpha1.Machine {
	if len(addresses) == 0 {
		addresses = []string{"10.0.0.7", "fd00:0::7"}
	}
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.MachineSpec{
		NodeName: "worker-1", Names: []string{"worker-1.example.com", "*.example.com"}, Addresses: addresses,
	}}
	if ends != 0 {
		m.Spec.Expires = &metav1.Time{Time: now().Add(ends)}
	}
	return m
}

func TestMachineAsSource(t *testing.T) {
	byMachine := approve.Source{Machine: true}
	inNetwork := networks(byMachine, "10.0.0.0/24")
	withNode := approve.Source{Machine: true, NodeAddresses: true}
	withName := names(t, byMachine, "{{.NodeName}}.example.com")
	withDNS := names(t, approve.Source{Machine: true, DNS: true}, "{{.NodeName}}.example.com")
	one := []*v1alpha1.Machine{registered("m-1", 0)}
	for _, tc := range []struct {
		rule     string
		source   approve.Source
		machines []*v1alpha1.Machine
		sans     string
		want     verdict.Code
		message  string
	}{
		{"its names and addresses", byMachine, one, "worker-1 worker-1.example.com 10.0.0.7 fd00::7", approved, ""},
		{"another address", byMachine, one, "worker-1 10.0.0.8", notVouched, "does not vouch for 10.0.0.8"},
		{"another name", byMachine, one, "worker-2 10.0.0.7", notVouched, `does not vouch for "worker-2"`},
		{"no wildcard", byMachine, one, "*.example.com 10.0.0.7", notVouched, ""},
		{
			"never a loopback address", byMachine,
			[]*v1alpha1.Machine{registered("m-1", 0, "127.0.0.1")},
			"127.0.0.1", notVouched, "no node may have 127.0.0.1",
		},
		{"no Machine", byMachine, nil, "worker-1 10.0.0.7", notVouched, "no Machine is registered for it"},
		{
			"two Machines", byMachine,
			[]*v1alpha1.Machine{registered("m-1", 0), registered("m-2", 0)},
			"worker-1", notVouched, "the Machines m-1 and m-2 are both registered",
		},
		{
			"an expired Machine", byMachine,
			[]*v1alpha1.Machine{registered("m-1", -time.Second)},
			"worker-1", notVouched, "Machine m-1 has expired",
		},
		{"a Machine ends", byMachine, []*v1alpha1.Machine{registered("m-1", time.Second)}, "worker-1", approved, ""},
		{
			"the successor of an expired Machine", byMachine,
			[]*v1alpha1.Machine{registered("m-1", -time.Second, "10.0.0.8"), registered("m-2", 0)},
			"worker-1 10.0.0.7", approved, "",
		},
		{
			"an expired Machine's addresses", byMachine,
			[]*v1alpha1.Machine{registered("m-1", -time.Second, "10.0.0.8"), registered("m-2", 0)},
			"worker-1 10.0.0.8", notVouched, "",
		},
		{"in the networks", inNetwork, one, "worker-1 10.0.0.7", approved, ""},
		{"outside the networks", inNetwork, one, "worker-1 fd00::7", notVouched, ""},
		{"the networks have it, the Machine does not", inNetwork, one, "10.0.0.8", notVouched, ""},
		{"the status has it too", withNode, one, "worker-1 10.0.0.7", approved, ""},
		{"the status does not have it", withNode, one, "fd00::7", notVouched, ""},
		{"only the status has it", withNode, one, "192.0.2.7", notVouched, ""},
		{"a name that the names make", withName, one, "worker-1.example.com 10.0.0.7", approved, ""},
		{"a name that the names do not make", withName, one, "worker-1 10.0.0.7", notVouched, ""},
		{"DNS too", withDNS, one, "worker-1.example.com 10.0.0.7", approved, ""},
		{"DNS does not have it", withDNS, one, "worker-1.example.com fd00::7", notVouched, ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			q := unattestedQuestion(t, []approve.Source{tc.source}, strings.Fields(tc.sans)...)
			q.NodeAddresses = []corev1.NodeAddress{
				{Type: corev1.NodeHostName, Address: "worker-1"},
				{Type: corev1.NodeInternalIP, Address: "10.0.0.7"},
				{Type: corev1.NodeExternalIP, Address: "192.0.2.7"},
			}
			q.Resolved = map[string][]netip.Addr{"worker-1.example.com": {netip.MustParseAddr("10.0.0.7")}}
			q.Machines = func(node string) ([]*v1alpha1.Machine, error) {
				if node != "worker-1" {
					t.Errorf("asked for the Machines of %s", node)
				}
				return tc.machines, nil
			}
			answer := approve.Decide(q)
			wantsOfSources(t, answer, tc.want)
			if !strings.Contains(answer.Message, tc.message) {
				t.Error(answer.Message)
			}
		})
	}
}

// Machines that are not known are no reason to refuse. Another source may still vouch.
func TestMachinesThatAreNotKnown(t *testing.T) {
	unknown := errors.New("the copy is too old")
	for _, tc := range []struct {
		rule    string
		sources []approve.Source
		want    verdict.Code
	}{
		{"the only source", []approve.Source{{Machine: true}}, undetermined},
		{"before a source that does not vouch", []approve.Source{{Machine: true}, {NodeAddresses: true}}, undetermined},
		{"after a source that vouches", []approve.Source{networks(approve.Source{}, "10.0.0.0/24"), {Machine: true}}, approved},
		{"before a source that vouches", []approve.Source{{Machine: true}, networks(approve.Source{}, "10.0.0.0/24")}, approved},
		{"not asked for", []approve.Source{networks(approve.Source{}, "10.0.1.0/24")}, notVouched},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			q := unattestedQuestion(t, tc.sources, "10.0.0.7")
			q.NodeAddresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.8"}}
			q.Machines = func(string) ([]*v1alpha1.Machine, error) { return nil, unknown }
			answer := approve.Decide(q)
			wantsOfSources(t, answer, tc.want)
			if tc.want == undetermined && !errors.Is(answer.Missing.Machines, unknown) {
				t.Errorf("%+v", answer.Missing)
			}
		})
	}
}
