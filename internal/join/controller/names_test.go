package controller_test

import (
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// API servers accept names of any length with nearly any characters. The ledger's schema does not:
// a status with such a name could not be written, and the certificates of the machine would not be
// recorded.
func TestARequestWithALongName(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	s.start(controller.Options{Workers: 1})
	long := "a" + strings.Repeat("n", 300)
	key := newKey(t)
	s.put(requestPath(long), withToken(t, "aaaaaa", key, "worker-1"))
	s.put(requestPath("it"), withToken(t, "aaaaaa", key, "worker-1"))
	s.await("it", "Approved ClientCertificateApproved")
	if got := decision(s.request(long)); got != "" {
		t.Errorf("a request with a name of %d bytes is %s, want no decision", len(long), got)
	}
	// Another approver approves it.
	csr := s.request(long)
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Manual"},
	}
	s.put(requestPath(long), csr)
	s.issue(long, time.Now().Add(time.Hour))
	s.until("the certificate is in the ledger", func() bool { return len(s.entry("aws-i-1").Status.Credentials) == 1 })
	if got := s.entry("aws-i-1").Status.CertificateRequest; len(got) > 253 {
		t.Errorf("the ledger has a request's name of %d bytes, and its schema allows 253", len(got))
	}
}

// The entry's condition quotes texts that others write to a request.
func TestConditionsOfTheLedgerAreOneLine(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	csr := withToken(t, "aaaaaa", newKey(t), "worker-1")
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue,
		Reason: "Manual", Message: "no\n\x1b[31mé" + strings.Repeat("\n", 2000),
	}}
	s.put(requestPath("it"), csr)
	s.start(controller.Options{})
	var condition string
	s.until("the denial is in the ledger", func() bool {
		if c := meta.FindStatusCondition(s.entry("aws-i-1").Status.Conditions, v1alpha1.ConditionCertified); c != nil {
			condition = c.Message
		}
		return condition != ""
	})
	want := `certificate signing request it: no\n\x1b[31mé\n`
	if !strings.HasPrefix(condition, want) || strings.ContainsAny(condition, "\n\x1b") || len(condition) > 1024 {
		t.Errorf("the condition has %d bytes: %.80q, want it to begin with %q", len(condition), condition, want)
	}
}

// A decision does not remove the parts of a request that the informer does not keep.
func TestLargeRequestsAreDecidedLikeSmallOnes(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	s.start(controller.Options{})
	for name, tc := range map[string]struct {
		csr  *certificatesv1.CertificateSigningRequest
		want string
	}{
		"client":  {withToken(t, "aaaaaa", newKey(t), "worker-1"), "Approved ClientCertificateApproved"},
		"renewal": {ofNode(t, "worker-1"), "Approved RenewalApproved"},
		"serving": {ofNode(t, "worker-1", "10.0.0.7"), "Approved ServingCertificateApproved"},
		"denied":  {ofNode(t, "worker-1", "10.0.0.8"), "Denied AddressNotAttested"},
	} {
		tc.csr.Annotations = map[string]string{"a": strings.Repeat("x", 200<<10)}
		tc.csr.Finalizers = []string{"example.com/keep"}
		tc.csr.Spec.Extra = map[string]certificatesv1.ExtraValue{"b": {strings.Repeat("x", 200<<10)}}
		s.put(requestPath(name), tc.csr)
		s.await(name, tc.want)
		csr := s.request(name)
		if len(csr.Annotations["a"]) != 200<<10 || len(csr.Spec.Extra["b"][0]) != 200<<10 ||
			len(csr.Finalizers) != 1 || len(csr.Spec.Request) == 0 {
			t.Errorf("request %s lost a part when it was decided", name)
		}
	}
}
