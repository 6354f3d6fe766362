package approve_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/nametemplate"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func names(t testing.TB, source approve.Source, templates ...string) approve.Source {
	t.Helper()
	for _, text := range templates {
		parsed, err := nametemplate.Parse(text, nametemplate.NodeName)
		if err != nil {
			t.Fatal(err)
		}
		source.Names = append(source.Names, parsed)
	}
	return source
}

func networks(source approve.Source, cidrs ...string) approve.Source {
	for _, cidr := range cidrs {
		source.Networks = append(source.Networks, netip.MustParsePrefix(cidr))
	}
	return source
}

// unattestedQuestion is a serving request of node worker-1, which the ledger does not have.
func unattestedQuestion(t testing.TB, sources []approve.Source, sans ...string) *approve.Question {
	t.Helper()
	q := servingQuestion(t)
	q.Entries, q.Others, q.Sources = nil, nil, sources
	q.Request.Spec.Request = encoded(t, theKey(t), servingTemplate(sans...))
	return q
}

// The expectations of TestSources, in addition to codes.
const (
	approved     verdict.Code = ""
	notVouched                = approve.NamesNotVouched
	undetermined verdict.Code = "undetermined"
)

func wantsOfSources(t *testing.T, answer approve.Answer, want verdict.Code) {
	t.Helper()
	if want != undetermined {
		wants(t, answer, want)
		if answer.Missing != nil {
			t.Errorf("facts are missing: %+v", answer)
		}
		return
	}
	if answer.Missing == nil || answer.Outcome != approve.Leave || answer.Message == "" {
		t.Errorf("want an undetermined answer, got %+v", answer)
	}
}

func TestSources(t *testing.T) {
	any := approve.Source{}
	byName := names(t, any, "{{.NodeName}}", "{{.NodeName}}.example.com")
	byNetwork := networks(any, "10.0.0.0/24", "fd00::/64")
	both := networks(byName, "10.0.0.0/24", "fd00::/64")
	byNode := approve.Source{NodeAddresses: true}
	nodeInNetwork := networks(byNode, "10.0.0.0/24")
	nodeWithName := names(t, byNode, "{{.NodeName}}.example.com")
	byDNS := names(t, approve.Source{DNS: true}, "{{.NodeName}}.example.com", "{{.NodeName}}")
	dnsInNetwork := networks(byDNS, "10.0.0.0/24")

	status := []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "worker-1"},
		{Type: corev1.NodeInternalDNS, Address: "worker-1.example.com"},
		{Type: corev1.NodeInternalDNS, Address: "kubernetes.default"},
		{Type: corev1.NodeInternalDNS, Address: "Worker-2"},
		{Type: corev1.NodeInternalDNS, Address: "worker-2."},
		{Type: corev1.NodeInternalIP, Address: "10.0.0.7"},
		{Type: corev1.NodeExternalIP, Address: "192.0.2.7"},
		{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
	}
	none := map[string][]netip.Addr{}
	resolved := func(text ...string) map[string][]netip.Addr {
		all := map[string][]netip.Addr{"worker-1.example.com": {}}
		for _, a := range text {
			all["worker-1.example.com"] = append(all["worker-1.example.com"], netip.MustParseAddr(a))
		}
		return all
	}
	for _, tc := range []struct {
		rule   string
		source approve.Source
		sans   string
		dns    map[string][]netip.Addr
		want   verdict.Code
	}{
		{"names: the node's name", byName, "worker-1", none, approved},
		{"names: the node's name in a domain", byName, "worker-1 worker-1.example.com", none, approved},
		{"names: another node's name", byName, "worker-2.example.com", none, notVouched},
		{"names: another name beside its own", byName, "worker-1 worker-2", none, notVouched},
		{"names: a longer name", byName, "worker-1.example.com.example.org", none, notVouched},
		{"names: a name below its own", byName, "x.worker-1", none, notVouched},
		{"names: another case", byName, "Worker-1", none, notVouched},
		{"names: an absolute name", byName, "worker-1.", none, notVouched},
		{"names: a wildcard", byName, "*.example.com", none, notVouched},
		{"names vouch for no address", byName, "worker-1 10.0.0.7", none, notVouched},

		{"networks: an address in them", byNetwork, "10.0.0.7", none, approved},
		{"networks: both families", byNetwork, "10.0.0.7 fd00::7", none, approved},
		{"networks: an address outside", byNetwork, "10.0.1.7", none, notVouched},
		{"networks: an address outside beside one inside", byNetwork, "10.0.0.7 10.0.1.7", none, notVouched},
		{"networks vouch for no name", byNetwork, "worker-1 10.0.0.7", none, notVouched},
		{"networks: never a loopback address", networks(any, "127.0.0.0/8", "::/1"), "127.0.0.1", none, notVouched},
		{"networks: never a link-local address", networks(any, "169.254.0.0/16"), "169.254.169.254", none, notVouched},
		{"networks: never a multicast address", networks(any, "224.0.0.0/4"), "224.0.0.1", none, notVouched},

		{"names and networks: each by its own", both, "worker-1 worker-1.example.com 10.0.0.7 fd00::7", none, approved},
		{"names and networks: a foreign address", both, "worker-1 10.0.1.7", none, notVouched},
		{"names and networks: a foreign name", both, "worker-2 10.0.0.7", none, notVouched},

		{"the Node's status: its names and addresses", byNode, "worker-1 worker-1.example.com 10.0.0.7 192.0.2.7", none, approved},
		{"the Node's status: another address", byNode, "worker-1 10.0.0.8", none, notVouched},
		{"the Node's status: another name", byNode, "worker-2 10.0.0.7", none, notVouched},
		{"the Node's status: never a name of the cluster", byNode, "kubernetes.default 10.0.0.7", none, notVouched},
		{"the Node's status: never a name in another case, which TLS ignores", byNode, "Worker-2", none, notVouched},
		{"the Node's status: never an absolute name", byNode, "worker-2.", none, notVouched},
		{"the Node's status: never a loopback address", byNode, "127.0.0.1", none, notVouched},
		{"the Node's status in networks", nodeInNetwork, "worker-1 10.0.0.7", none, approved},
		{"the Node's status outside the networks", nodeInNetwork, "worker-1 192.0.2.7", none, notVouched},
		{"networks without the Node's status", nodeInNetwork, "worker-1 10.0.0.8", none, notVouched},
		{"the Node's status with a name", nodeWithName, "worker-1.example.com 10.0.0.7", none, approved},
		{"the Node's status has a name that the names do not", nodeWithName, "worker-1 10.0.0.7", none, notVouched},

		{"DNS: the name has the address", byDNS, "worker-1.example.com 10.0.0.7", resolved("10.0.0.7"), approved},
		{"DNS: an IPv4 address in the form of IPv6", byDNS, "worker-1.example.com 10.0.0.7", resolved("::ffff:10.0.0.7"), approved},
		{"DNS: the name has both addresses", byDNS, "worker-1.example.com 10.0.0.7 fd00::7", resolved("10.0.0.7", "fd00::7"), approved},
		{"DNS: the name has another address", byDNS, "worker-1.example.com 10.0.0.7", resolved("10.0.0.8"), notVouched},
		{"DNS: the name has one address more", byDNS, "worker-1.example.com 10.0.0.7", resolved("10.0.0.7", "10.0.0.8"), notVouched},
		{"DNS: the request has one more", byDNS, "worker-1.example.com 10.0.0.7 10.0.0.8", resolved("10.0.0.7"), notVouched},
		{"DNS: the name does not exist", byDNS, "worker-1.example.com 10.0.0.7", resolved(), notVouched},
		{"DNS: not resolved", byDNS, "worker-1.example.com 10.0.0.7", none, undetermined},
		{"DNS: one of two is not resolved", byDNS, "worker-1 worker-1.example.com 10.0.0.7", resolved("10.0.0.7"), undetermined},
		{"DNS: one is wrong, one not resolved", byDNS, "worker-1 worker-1.example.com 10.0.0.7", resolved("10.0.0.8"), notVouched},
		{"DNS: a foreign name is not resolved", byDNS, "auth.example.com 10.0.0.7", none, notVouched},
		{"DNS: an address without a name", byDNS, "10.0.0.7", none, notVouched},
		{"DNS: a name without an address", byDNS, "worker-1.example.com", resolved("10.0.0.7"), notVouched},
		{"DNS: never a loopback address", byDNS, "worker-1.example.com 127.0.0.1", resolved("127.0.0.1"), notVouched},
		{"DNS in networks", dnsInNetwork, "worker-1.example.com 10.0.0.7", resolved("10.0.0.7"), approved},
		{"DNS outside the networks is not resolved", dnsInNetwork, "worker-1.example.com 192.0.2.7", none, notVouched},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			q := unattestedQuestion(t, []approve.Source{tc.source}, strings.Fields(tc.sans)...)
			q.NodeAddresses, q.Resolved = status, tc.dns
			wantsOfSources(t, approve.Decide(q), tc.want)
		})
	}
}

func TestOneSourceVouchesForAllNames(t *testing.T) {
	byName, byNetwork := names(t, approve.Source{}, "{{.NodeName}}"), networks(approve.Source{}, "10.0.0.0/24")
	byDNS := names(t, approve.Source{DNS: true}, "{{.NodeName}}")
	for _, tc := range []struct {
		rule    string
		sources []approve.Source
		sans    string
		want    verdict.Code
	}{
		{"two sources do not add up", []approve.Source{byName, byNetwork}, "worker-1 10.0.0.7", notVouched},
		{"the second vouches", []approve.Source{byName, byNetwork}, "10.0.0.7", approved},
		{
			"the second vouches while DNS does not answer the first",
			[]approve.Source{byDNS, networks(byName, "10.0.0.0/24")},
			"worker-1 10.0.0.7", approved,
		},
		{"DNS does not answer, and the second does not vouch", []approve.Source{byDNS, byNetwork}, "worker-1 10.0.0.7", undetermined},
		{"the Node does not exist yet", []approve.Source{{NodeAddresses: true}}, "worker-1 10.0.0.7", undetermined},
		{"an empty source vouches for nothing", []approve.Source{{}}, "worker-1", notVouched},
		{"an empty source vouches for no address", []approve.Source{{}}, "10.0.0.7", notVouched},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			wantsOfSources(t, approve.Decide(unattestedQuestion(t, tc.sources, strings.Fields(tc.sans)...)), tc.want)
		})
	}
}

func TestAnApprovalNamesTheSource(t *testing.T) {
	q := unattestedQuestion(t, []approve.Source{{}, networks(approve.Source{}, "10.0.0.0/24")}, "10.0.0.7")
	const want = "node worker-1 asks for a certificate with its own addresses only, by approver.servingCertificates[1]"
	if got := approve.Decide(q).Message; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestWhatNoSourceMayVouchFor(t *testing.T) {
	var many []string
	for i := range 33 {
		many = append(many, fmt.Sprintf("10.0.0.%d", i+1))
	}
	all := networks(names(t, approve.Source{}, "{{.NodeName}}", "{{.NodeName}}.svc"), "10.0.0.0/8")
	for _, tc := range []struct {
		rule   string
		change func(*approve.Question)
		sans   []string
		want   verdict.Code
	}{
		{"32 names", nil, many[:32], approved},
		{"more than 32 names", nil, many, notVouched},
		{"a name of the cluster's services", nil, []string{"worker-1.svc"}, notVouched},
		{"another node has the name", func(q *approve.Question) {
			q.OtherNode = func(text string) string { return map[string]string{"worker-1": "worker-2"}[text] }
		}, []string{"worker-1", "10.0.0.7"}, notVouched},
		{"another node has the address", func(q *approve.Question) {
			q.OtherNode = func(text string) string { return map[string]string{"10.0.0.7": "worker-2"}[text] }
		}, []string{"worker-1", "10.0.0.7"}, notVouched},
		{"seven newer requests", func(q *approve.Question) { q.Newer = 7 }, []string{"worker-1"}, approved},
		{"eight newer requests", func(q *approve.Question) { q.Newer = 8 }, []string{"worker-1"}, notVouched},
		{"a quarantined node", func(q *approve.Question) { q.NodeQuarantine = "q" }, []string{"worker-1"}, policyv1alpha1.NodeQuarantined},
		{
			"without the right", func(q *approve.Question) { q.SelfNodeServer = false },
			[]string{"worker-1"},
			approve.SelfNodeServerNotAllowed,
		},
		{"a revoked machine", func(q *approve.Question) {
			revoked := newEntry()
			revoked.Status.Phase = v1alpha1.Revoked
			q.Entries = []*v1alpha1.NodeAttestation{revoked}
		}, []string{"worker-1"}, v1alpha1.AttestationRevoked},
		{"a name that is no node's", func(q *approve.Question) {
			q.Request.Spec.Username = "system:node:worker_1"
			made := servingTemplate("worker_1")
			made.Subject.CommonName = "system:node:worker_1"
			q.Request.Spec.Request = encoded(t, theKey(t), made)
		}, []string{"worker-1"}, notVouched},
		{"an attested machine has its own addresses", func(q *approve.Question) {
			q.Entries = []*v1alpha1.NodeAttestation{newEntry()}
		}, []string{"worker-1", "10.0.0.7"}, approved},
		{"an attested machine has no others", func(q *approve.Question) {
			q.Entries = []*v1alpha1.NodeAttestation{newEntry()}
		}, []string{"worker-1", "10.0.0.8"}, approve.AddressNotAttested},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			q := unattestedQuestion(t, []approve.Source{all}, tc.sans...)
			if tc.change != nil {
				tc.change(q)
			}
			wantsOfSources(t, approve.Decide(q), tc.want)
		})
	}
}

// A request that no source vouches for is denied only if requests of unattested nodes are.
func TestUnattestedSaysWhatHappensToOtherNames(t *testing.T) {
	for unattested, want := range map[approve.Unattested]approve.Outcome{
		approve.DenyUnattested: approve.Deny, approve.LeaveUnattested: approve.Leave, approve.ApproveUnattested: approve.Leave,
	} {
		q := unattestedQuestion(t, []approve.Source{networks(approve.Source{}, "10.0.0.0/24")}, "10.0.1.7")
		q.Unattested, q.ServingAddresses = unattested, approve.ServingLedgerAndNode
		q.NodeAddresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.1.7"}}
		if answer := approve.Decide(q); answer.Outcome != want || answer.Code != approve.NamesNotVouched {
			t.Errorf("unattested nodes %s: %+v", unattested, answer)
		}
	}
}

// FuzzNames compares names with the template of names. Only the node's own names are approved.
func FuzzNames(f *testing.F) {
	f.Add("worker-1", "worker-1.example.com")
	f.Add("a.example.com", "a.example.com")
	f.Add("worker-1", "worker-1\x00.example.com")
	f.Fuzz(func(t *testing.T, node, name string) {
		made := servingTemplate(name)
		if made.Subject.CommonName = "system:node:" + node; len(made.DNSNames) == 0 {
			return // an address
		}
		for _, r := range node + name {
			if r > '~' {
				return // crypto/x509 makes no such request
			}
		}
		q := unattestedQuestion(t, []approve.Source{names(t, approve.Source{}, "{{.NodeName}}.example.com")}, "worker-1")
		q.Request.Spec.Username = made.Subject.CommonName
		q.Request.Spec.Request = encoded(t, theKey(t), made)
		if answer := approve.Decide(q); answer.Outcome == approve.Approve && name != node+".example.com" {
			t.Errorf("node %q gets a certificate for %q: %+v", node, name, answer)
		}
	})
}
