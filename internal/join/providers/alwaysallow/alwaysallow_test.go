package alwaysallow_test

import (
	"crypto/sha256"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func TestMachineGetsTheRequestedName(t *testing.T) {
	req := &attest.Request{NodeName: "Worker-1.Example", RemoteAddr: netip.MustParseAddr("10.0.0.7"), Body: []byte(`{"Document": "any"}`)}
	identity, err := alwaysallow.New().Attest(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if identity.Provider != "alwaysallow" || identity.InstanceID != "worker-1.example" || identity.NodeName != "worker-1.example" {
		t.Errorf("identity %+v", identity)
	}
	if !slices.Equal(identity.Names, []string{"worker-1.example"}) || !slices.Equal(identity.Addresses, []netip.Addr{req.RemoteAddr}) {
		t.Errorf("names %q, addresses %v", identity.Names, identity.Addresses)
	}
	if identity.Digest != sha256.Sum256(req.Body) || !identity.Issued.IsZero() {
		t.Errorf("digest %x, issued %v", identity.Digest, identity.Issued)
	}
}

func TestEvidenceOfTheClientIsAccepted(t *testing.T) {
	collector := alwaysallow.NewCollector()
	name, err := collector.NodeName(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if hostname, err := os.Hostname(); err != nil || name != strings.ToLower(hostname) {
		t.Errorf("name %q of host %q, %v", name, hostname, err)
	}
	body, err := collector.Collect(t.Context(), attest.Binding{Challenge: "challenge"})
	if err != nil {
		t.Fatal(err)
	}
	req := &attest.Request{NodeName: name, RemoteAddr: netip.MustParseAddr("10.0.0.7"), Body: body}
	if identity, err := alwaysallow.New().Attest(t.Context(), req); err != nil || identity.NodeName != name {
		t.Errorf("%+v, %v", identity, err)
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name, node, body string
		code             verdict.Code
	}{
		{"no body, as the client of kops sends it", "worker-1", "", ""},
		{"an empty line", "worker-1", "\n", alwaysallow.EvidenceMalformed},
		{"not JSON", "worker-1", "x", alwaysallow.EvidenceMalformed},
		{"a list", "worker-1", "[]", alwaysallow.EvidenceMalformed},
		{"null", "worker-1", "null", alwaysallow.EvidenceMalformed},
		{"two objects", "worker-1", "{}{}", alwaysallow.EvidenceMalformed},
		{"a key twice", "worker-1", `{"a":1,"a":2}`, alwaysallow.EvidenceMalformed},
		{"too deep", "worker-1", `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, alwaysallow.EvidenceMalformed},
		{"the API server's name", "kubernetes", "{}", attest.ReservedName},
		{"the API server's name in its namespace", "kubernetes.default", "{}", attest.ReservedName},
		{"the API server's name in the cluster", "Kubernetes.Default.svc.cluster.local", "{}", attest.ReservedName},
		{"a service's name", "web.shop.svc", "{}", attest.ReservedName},
		{"a service's name in the cluster", "web.shop.svc.cluster.local", "{}", attest.ReservedName},
		{"localhost", "localhost", "{}", attest.ReservedName},
		{"a machine's name", "kubernetes-1.example.com", "{}", ""},
		{"an API server's name with a domain", "kubernetes.example.com", "{}", attest.ReservedName},
		{"a name under localhost", "worker-1.localhost", "{}", attest.ReservedName},
		{"an IPv4 address", "10.0.0.7", "{}", attest.ReservedName},
		{"a short IPv4 address", "10.7", "{}", attest.ReservedName},
		{"a number", "167772167", "{}", attest.ReservedName},
		{"a small number", "1", "{}", attest.ReservedName},
		{"a hexadecimal number", "0X0A000007", "{}", attest.ReservedName},
		{"a name that ends in a number", "worker.1", "{}", attest.ReservedName},
		{"a name that ends in a hexadecimal number", "worker.0x1f", "{}", attest.ReservedName},
		{"a name that ends in an octal number", "worker.017", "{}", attest.ReservedName},
		{"a number with a domain", "10.example.com", "{}", ""},
		{"an address in a name", "ip-10-0-0-7", "{}", ""},
		{"a number in a name", "7-eleven", "{}", ""},
		{"hexadecimal digits in a name", "0xcafe-1", "{}", ""},
		{"an object with anything in it", "worker-1", `{"a":{"b":[1,null]}}`, ""},
	} {
		req := &attest.Request{NodeName: test.node, RemoteAddr: netip.MustParseAddr("10.0.0.7"), Body: []byte(test.body)}
		_, err := alwaysallow.New().Attest(t.Context(), req)
		var refusal *attest.Refusal
		switch errors.As(err, &refusal); {
		case test.code == "":
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
		case refusal == nil || refusal.Code != test.code || refusal.Malformed != (test.code == alwaysallow.EvidenceMalformed):
			t.Errorf("%s: %v, want %s", test.name, err, test.code)
		}
	}
}
