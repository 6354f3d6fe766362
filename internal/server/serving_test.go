package server

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	ledgerv1alpha1 "github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// The approver alone replaces an approver of serving certificates: the ledger is empty.
func TestServingCertificatesFromSources(t *testing.T) {
	t.Parallel()
	s := newJoinServer(t, func(c *v1alpha1.ServerConfiguration) {
		c.Bootstrap = v1alpha1.Bootstrap{}
		c.Approver.UnattestedNodes = v1alpha1.LeaveUnattested
		c.Approver.ServingCertificates = []v1alpha1.ServingSource{
			{Names: []string{"{{.NodeName}}.example.com"}, Networks: []string{"10.0.0.0/16"}},
		}
	})
	for name, address := range map[string]string{"csr-own": "10.0.0.7", "csr-foreign": "192.0.2.7"} {
		s.put(requestPath(name), servingRequest(t, "worker-1", "worker-1.example.com", address))
	}
	for name, want := range map[string]string{
		`node_authorizer_certificate_requests_total{code="ServingCertificateApproved",kind="serving",outcome="approved"}`: "1",
		`node_authorizer_certificate_requests_total{code="NamesNotVouched",kind="serving",outcome="left"}`:                "1",
	} {
		eventually(t, name+" is "+want, func() bool { return s.metric(name) == want })
	}
	for name, want := range map[string]int{"csr-own": 1, "csr-foreign": 0} {
		csr := &certificatesv1.CertificateSigningRequest{}
		found, err := s.cluster.Get(requestPath(name), csr)
		if err != nil || !found || len(csr.Status.Conditions) != want {
			t.Errorf("%s: %v %+v", name, err, csr.Status)
		}
	}
	eventually(t, "the request that is left is logged", func() bool {
		return strings.Contains(s.log.String(), `"certificate request left pending" "node"="worker-1" "request"="csr-foreign" `+
			`"kind"="serving" "code"="NamesNotVouched" "reason"="no source vouches for all names of node worker-1: `+
			`approver.servingCertificates[0]: it does not vouch for 192.0.2.7"`)
	})
	if !strings.Contains(s.log.String(), "does not bind addresses to nodes") {
		t.Error("the server does not warn of the source")
	}
}

// The approver alone reads Machines if a source asks for them.
func TestServingCertificatesOfRegisteredMachines(t *testing.T) {
	t.Parallel()
	s := newJoinServer(t, func(c *v1alpha1.ServerConfiguration) {
		c.Bootstrap = v1alpha1.Bootstrap{}
		c.Approver.ServingCertificates = []v1alpha1.ServingSource{{Machine: true}}
	})
	s.put("/apis/node-authorizer.io/v1alpha1/machines/m-1", &ledgerv1alpha1.Machine{
		Spec: ledgerv1alpha1.MachineSpec{NodeName: "worker-1", Names: []string{"worker-1.example.com"}, Addresses: []string{"10.0.0.7"}},
	})
	tries := 0
	eventually(t, "the server has the Machine", func() bool { // a request before that is denied
		tries++
		name := fmt.Sprintf("csr-own-%d", tries)
		s.put(requestPath(name), servingRequest(t, "worker-1", "worker-1.example.com", "10.0.0.7"))
		return s.decided(name) == "Approved ServingCertificateApproved"
	})
	s.put(requestPath("csr-foreign"), servingRequest(t, "worker-1", "worker-1.example.com", "10.0.0.8"))
	if got := s.decided("csr-foreign"); got != "Denied NamesNotVouched" {
		t.Errorf("a request for another address is %s", got)
	}
}

func TestWeakServingSourcesAreReported(t *testing.T) {
	names, networks := []string{"{{.NodeName}}"}, []string{"10.0.0.0/16"}
	for _, tc := range []struct {
		rule   string
		source v1alpha1.ServingSource
		want   string // empty: none
	}{
		{"names", v1alpha1.ServingSource{Names: names}, ""},
		{"DNS", v1alpha1.ServingSource{Names: names, Networks: networks, NodeAddresses: true, DNS: true}, ""},
		{"Machines", v1alpha1.ServingSource{Networks: networks, NodeAddresses: true, Machine: true}, ""},
		{"the status of Nodes", v1alpha1.ServingSource{Names: names, NodeAddresses: true}, "believes the status of Nodes"},
		{"networks", v1alpha1.ServingSource{Names: names, Networks: networks}, "does not bind addresses to nodes"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			config := v1alpha1.Defaults()
			config.Approver.Enabled, config.Approver.ServingCertificates = true, []v1alpha1.ServingSource{tc.source}
			var logged []string
			logger := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
			(&join{config: config, logger: logger}).warnOfInsecureSettings()
			if len(logged) != min(len(tc.want), 1) || !strings.Contains(strings.Join(logged, ""), tc.want) {
				t.Errorf("logged %q, want %q", logged, tc.want)
			}
		})
	}
}

// servingRequest is the request of a node for its serving certificate.
func servingRequest(t *testing.T, node, name, address string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	user, groups := nodeidentity.User(node)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:  pkix.Name{Organization: []string{nodeidentity.Group}, CommonName: user},
		DNSNames: []string{name}, IPAddresses: []net.IP{net.ParseIP(address)},
	}, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
		SignerName: certificatesv1.KubeletServingSignerName,
		Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		Username:   user, Groups: groups,
	}}
}
