package approver_test

import (
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/approver"
	"github.com/node-authorizer/node-authorizer/internal/fakeapiserver"
)

// credential names the certificate that a request led to, as API servers do.
func (s *stand) credential(request string) string {
	s.t.Helper()
	block, _ := pem.Decode(s.request(request).Status.Certificate)
	if block == nil {
		s.t.Fatalf("request %s has no certificate", request)
	}
	return fmt.Sprintf("X509SHA256=%x", sha256.Sum256(block.Bytes))
}

// askedWith is a request of a node that authenticated with a certificate.
func askedWith(t *testing.T, credential, node string, sans ...string) *certificatesv1.CertificateSigningRequest {
	csr := ofNode(t, node, sans...)
	csr.Spec.Extra = map[string]certificatesv1.ExtraValue{"authentication.kubernetes.io/credential-id": {credential}}
	return csr
}

// TestACertificateOfTheMachineBefore: two machines have one name after each
// other, and somebody has what the first one got, and got by renewal.
func TestACertificateOfTheMachineBefore(t *testing.T) {
	s := newStand(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	s.start(approver.Options{})
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	remembered := func(entry string, requests ...string) {
		s.until("the ledger has the certificates of "+entry, func() bool {
			var want []string
			for _, r := range requests {
				want = append(want, s.credential(r))
			}
			return slices.Equal(s.entry(entry).Status.Credentials, want)
		})
	}

	s.put(requestPath("a-first"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	s.await("a-first", "Approved ClientCertificateApproved")
	s.issue("a-first", end)
	remembered("aws-i-1", "a-first")
	s.put(requestPath("a-second"), askedWith(t, s.credential("a-first"), "worker-1"))
	s.await("a-second", "Approved RenewalApproved")
	s.issue("a-second", end)
	remembered("aws-i-1", "a-first", "a-second")

	s.revoke("aws-i-1")
	s.machine("aws-i-2", "worker-1", "bbbbbb")
	s.put(requestPath("b-first"), withToken(t, "bbbbbb", newKey(t), "worker-1"))
	s.await("b-first", "Approved ClientCertificateApproved")
	s.issue("b-first", end)
	remembered("aws-i-2", "b-first")

	for _, stolen := range []string{"a-first", "a-second"} {
		s.put(requestPath("renewal-"+stolen), askedWith(t, s.credential(stolen), "worker-1"))
		s.await("renewal-"+stolen, "Denied AnotherMachinesCredential")
		s.put(requestPath("serving-"+stolen), askedWith(t, s.credential(stolen), "worker-1", "10.0.0.7"))
		s.await("serving-"+stolen, "Denied AnotherMachinesCredential")
	}
	s.put(requestPath("b-second"), askedWith(t, s.credential("b-first"), "worker-1"))
	s.await("b-second", "Approved RenewalApproved")
	s.issue("b-second", end)
	remembered("aws-i-2", "b-first", "b-second")
	remembered("aws-i-1", "a-first", "a-second")
}

// TestManyRenewalsAreRememberedOnce: a node that renews without end gets no
// endless list, and the controller comes to rest.
func TestManyRenewalsAreRememberedOnce(t *testing.T) {
	s := newStand(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	s.start(approver.Options{})
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	last := "r-000"
	s.put(requestPath(last), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	s.await(last, "Approved ClientCertificateApproved")
	s.issue(last, end)
	const most = v1alpha1.MaxCredentials
	for i := 1; i <= most+3; i++ {
		next := fmt.Sprintf("r-%03d", i)
		s.put(requestPath(next), askedWith(t, s.credential(last), "worker-1"))
		s.await(next, "Approved RenewalApproved")
		s.issue(next, end)
		last = next
	}
	s.until("the last certificate is in the ledger", func() bool { return slices.Contains(s.entry("aws-i-1").Status.Credentials, s.credential(last)) })
	status := s.entry("aws-i-1")
	if n := len(status.Status.Credentials); n != most {
		t.Errorf("%d certificates are remembered, want the last %d", n, most)
	}
	// Another change makes it look at all of them again.
	s.put(requestPath("other"), askedWith(t, s.credential(last), "worker-1", "10.0.0.99"))
	s.await("other", "Denied AddressNotAttested")
	if again := s.entry("aws-i-1"); !slices.Equal(again.Status.Credentials, status.Status.Credentials) {
		t.Error("the same certificates are remembered otherwise the second time")
	}
}
