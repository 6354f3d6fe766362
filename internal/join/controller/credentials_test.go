package controller_test

import (
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// credential returns the id of the certificate of a request, in the format of API servers.
func (s *testCluster) credential(request string) string {
	s.t.Helper()
	block, _ := pem.Decode(s.request(request).Status.Certificate)
	if block == nil {
		s.t.Fatalf("request %s has no certificate", request)
	}
	return fmt.Sprintf("X509SHA256=%x", sha256.Sum256(block.Bytes))
}

// askedWith returns a request of a node that authenticated with a certificate.
func askedWith(t *testing.T, credential, node string, sans ...string) *certificatesv1.CertificateSigningRequest {
	csr := ofNode(t, node, sans...)
	csr.Spec.Extra = map[string]certificatesv1.ExtraValue{"authentication.kubernetes.io/credential-id": {credential}}
	return csr
}

// Two machines have one name in succession, and an attacker has the certificates of the first
// one, including its renewal.
func TestCertificatesOfTheFormerMachine(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	s.start(controller.Options{})
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	recorded := func(entry string, requests ...string) {
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
	recorded("aws-i-1", "a-first")
	s.put(requestPath("a-second"), askedWith(t, s.credential("a-first"), "worker-1"))
	s.await("a-second", "Approved RenewalApproved")
	s.issue("a-second", end)
	recorded("aws-i-1", "a-first", "a-second")

	s.revoke("aws-i-1")
	s.machine("aws-i-2", "worker-1", "bbbbbb")
	s.put(requestPath("b-first"), withToken(t, "bbbbbb", newKey(t), "worker-1"))
	s.await("b-first", "Approved ClientCertificateApproved")
	s.issue("b-first", end)
	recorded("aws-i-2", "b-first")

	for _, stolen := range []string{"a-first", "a-second"} {
		s.put(requestPath("renewal-"+stolen), askedWith(t, s.credential(stolen), "worker-1"))
		s.await("renewal-"+stolen, "Denied AnotherMachinesCredential")
		s.put(requestPath("serving-"+stolen), askedWith(t, s.credential(stolen), "worker-1", "10.0.0.7"))
		s.await("serving-"+stolen, "Denied AnotherMachinesCredential")
	}
	s.put(requestPath("b-second"), askedWith(t, s.credential("b-first"), "worker-1"))
	s.await("b-second", "Approved RenewalApproved")
	s.issue("b-second", end)
	recorded("aws-i-2", "b-first", "b-second")
	recorded("aws-i-1", "a-first", "a-second")
}

// The list of a node that renews without end is limited, and the controller becomes idle.
func TestTheNumberOfRecordedCertificatesIsLimited(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	s.start(controller.Options{})
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
	s.until("the last certificate is in the ledger", func() bool {
		return slices.Contains(s.entry("aws-i-1").Status.Credentials, s.credential(last))
	})
	status := s.entry("aws-i-1")
	if n := len(status.Status.Credentials); n != most {
		t.Errorf("%d certificates are recorded, want the last %d", n, most)
	}
	// Another change makes the approver evaluate all of them again.
	s.put(requestPath("other"), askedWith(t, s.credential(last), "worker-1", "10.0.0.99"))
	s.await("other", "Denied AddressNotAttested")
	if again := s.entry("aws-i-1"); !slices.Equal(again.Status.Credentials, status.Status.Credentials) {
		t.Error("the second evaluation recorded other certificates")
	}
}

// node is a cluster in which machines have the name worker-1 in succession.
type node struct {
	*testCluster
	end time.Time
}

func newNode(t *testing.T, opts fakeapiserver.Options) *node {
	return &node{newTestCluster(t, opts), time.Now().Add(time.Hour).Truncate(time.Second)}
}

// aMinuteOld makes an entry older than the requests, whose times have the precision of a second.
func aMinuteOld(e *v1alpha1.NodeAttestation) {
	e.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute))
}

// join gets a certificate for a machine's token, and waits until it is in the ledger.
func (n *node) join(entry, token, request string) {
	n.t.Helper()
	n.machine(entry, "worker-1", token, aMinuteOld)
	n.put(requestPath(request), withToken(n.t, token, newKey(n.t), "worker-1"))
	n.await(request, "Approved ClientCertificateApproved")
	n.issue(request, n.end)
	n.recorded(entry, request)
}

// renew renews a certificate.
func (n *node) renew(with, request string) {
	n.t.Helper()
	n.renewWith(n.credential(with), request)
}

func (n *node) renewWith(credential, request string) {
	n.t.Helper()
	n.put(requestPath(request), askedWith(n.t, credential, "worker-1"))
	n.await(request, "Approved RenewalApproved")
	n.issue(request, n.end)
}

func (n *node) recorded(entry, request string) {
	n.t.Helper()
	n.until("the certificate of "+request+" is in the ledger", func() bool {
		return slices.Contains(n.entry(entry).Status.Credentials, n.credential(request))
	})
}

// stolen checks that a certificate cannot be used while another machine has the name.
func (n *node) stolen(credential string) {
	n.t.Helper()
	name := fmt.Sprintf("with-%.20x", credential[len(credential)-10:])
	n.put(requestPath("renewal-"+name), askedWith(n.t, credential, "worker-1"))
	n.await("renewal-"+name, "Denied AnotherMachinesCredential")
	n.put(requestPath("serving-"+name), askedWith(n.t, credential, "worker-1", "10.0.0.7"))
	n.await("serving-"+name, "Denied AnotherMachinesCredential")
}

// A machine renews until its entry has dropped its first certificate. That certificate is its own
// while it has the name, and invalid afterwards.
func TestADroppedCertificate(t *testing.T) {
	n := newNode(t, fakeapiserver.Options{})
	n.start(controller.Options{})
	n.join("aws-i-1", "aaaaaa", "a-000")
	last := "a-000"
	for i := 1; i <= v1alpha1.MaxCredentials; i++ {
		next := fmt.Sprintf("a-%03d", i)
		n.renew(last, next)
		last = next
	}
	n.until("the first certificate is dropped", func() bool {
		return !slices.Contains(n.entry("aws-i-1").Status.Credentials, n.credential("a-000"))
	})
	dropped := n.credential("a-000")
	for i := range v1alpha1.MaxCredentials + 1 { // kube-controller-manager deletes requests
		n.api.Remove(requestPath(fmt.Sprintf("a-%03d", i)))
	}
	n.renewWith(dropped, "again")
	n.recorded("aws-i-1", "again")
	n.renew("again", "again-and-again")
	n.recorded("aws-i-1", "again-and-again")

	n.revoke("aws-i-1")
	n.join("aws-i-2", "bbbbbb", "b-first")
	n.stolen(dropped)
	n.stolen(n.credential("again"))
	n.renew("b-first", "b-second")
	n.recorded("aws-i-2", "b-second")
}

// A kubelet requests its serving certificate at once, and the entry cannot be written.
func TestACertificateThatIsNotRecordedYet(t *testing.T) {
	f := &faults{}
	n := newNode(t, fakeapiserver.Options{Fault: f.of})
	n.start(controller.Options{})
	n.join("aws-i-1", "aaaaaa", "a-first")
	n.revoke("aws-i-1")
	n.machine("aws-i-2", "worker-1", "bbbbbb")
	n.put(requestPath("b-first"), withToken(t, "bbbbbb", newKey(t), "worker-1"))
	n.await("b-first", "Approved ClientCertificateApproved")
	f.fail("/nodeattestations/aws-i-2/status")
	n.issue("b-first", n.end)
	n.put(requestPath("b-serving"), askedWith(t, n.credential("b-first"), "worker-1", "10.0.0.7"))
	n.await("b-serving", "Approved ServingCertificateApproved")
	n.renew("b-first", "b-second")
	n.renew("b-second", "b-third")
	n.stolen(n.credential("a-first"))
	if got := n.entry("aws-i-2").Status.Credentials; len(got) != 0 {
		t.Errorf("the entry has %v, want none", got)
	}
}

// The entry of the machine has another node name now.
func TestACertificateOfARenamedMachine(t *testing.T) {
	n := newNode(t, fakeapiserver.Options{})
	n.start(controller.Options{})
	n.join("aws-i-1", "aaaaaa", "a-first")
	n.change("aws-i-1", func(e *v1alpha1.NodeAttestation) { e.Spec.NodeName, e.Spec.TokenID = "worker-2", "cccccc" })
	n.join("aws-i-2", "bbbbbb", "b-first")
	n.stolen(n.credential("a-first"))
	n.renew("b-first", "b-second")
}

// An operator deleted a machine's entry, and the machine was attested again. Its certificates
// count as its own until another machine has the name.
func TestACertificateOfAReplacedEntry(t *testing.T) {
	n := newNode(t, fakeapiserver.Options{})
	n.start(controller.Options{})
	n.join("aws-i-1", "aaaaaa", "a-first")
	n.api.Remove(entryPath("aws-i-1"))
	n.until("the entry is gone", func() bool {
		found, err := n.api.Get(entryPath("aws-i-1"), &v1alpha1.NodeAttestation{})
		return err == nil && !found
	})
	n.machine("aws-i-1", "worker-1", "cccccc", aMinuteOld)
	n.renew("a-first", "a-second")
	n.recorded("aws-i-1", "a-first")
	n.recorded("aws-i-1", "a-second")

	n.revoke("aws-i-1")
	n.join("aws-i-2", "bbbbbb", "b-first")
	n.stolen(n.credential("a-first"))
	n.stolen(n.credential("a-second"))
	n.renew("b-first", "b-second")
}
