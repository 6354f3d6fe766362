package controller_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// The first binding of a token is delayed until the token has been read for both keys, so that
// both would bind it.
func TestTwoKeysAtOnce(t *testing.T) {
	var mu sync.Mutex
	reads, read := 0, make(chan struct{})
	s := newTestCluster(t, fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
		if !strings.Contains(r.URL.Path, "/secrets/") {
			return fakeapiserver.NoFault
		}
		if r.Method == http.MethodPut {
			<-read
			return fakeapiserver.NoFault
		}
		mu.Lock()
		defer mu.Unlock()
		if reads++; reads == 2 {
			close(read)
		}
		return fakeapiserver.NoFault
	}})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	for _, name := range []string{"one", "two"} {
		s.put(requestPath(name), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	}
	s.start(controller.Options{Workers: 2})
	decided := map[string]int{}
	for _, name := range []string{"one", "two"} {
		s.until(name+" is decided", func() bool { return decision(s.request(name)) != "" })
		decided[decision(s.request(name))]++
	}
	if decided["Approved ClientCertificateApproved"] != 1 || decided["Denied TokenAlreadyUsed"] != 1 {
		t.Errorf("of two keys: %v, want one approved and one denied", decided)
	}
	if keys := s.keysOf("aws-i-1"); len(keys) != 1 {
		t.Errorf("the token has been bound to %v", keys)
	}
}

// The leading approver ends, and the next one takes over.
func TestTheNextLeaderTakesOver(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	opts := controller.Options{
		// The first approver releases its lease when it ends: only the retry period counts.
		LeaderElection: configv1alpha1.LeaderElection{
			Namespace: "kube-system", Name: "approver",
			LeaseDuration: metav1.Duration{Duration: time.Hour}, RenewDeadline: metav1.Duration{Duration: 30 * time.Minute},
			RetryPeriod: metav1.Duration{Duration: 100 * time.Millisecond},
		},
	}
	first, second := &events{}, &events{}
	opts.Identity, opts.Observer = "first", first
	stop := s.start(opts)
	s.put(requestPath("one"), ofNode(t, "worker-1"))
	s.await("one", "Approved RenewalApproved")
	opts.Identity, opts.Observer = "second", second
	s.start(opts)
	stop()
	s.put(requestPath("two"), ofNode(t, "worker-1"))
	s.await("two", "Approved RenewalApproved")
	s.until("the second leads", func() bool {
		second.mu.Lock()
		defer second.mu.Unlock()
		return second.leads == 1
	})
	if decided := first.of("two"); len(decided) > 0 {
		t.Errorf("the first, which has ended, decided: %v", decided)
	}
}

func TestTheLedgerHasTheReasonForAMissingCertificate(t *testing.T) {
	conditions := func(kind certificatesv1.RequestConditionType, reason string) []certificatesv1.CertificateSigningRequestCondition {
		return []certificatesv1.CertificateSigningRequestCondition{
			{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "explanation"},
		}
	}
	for _, tc := range []struct {
		rule    string
		request func(*testing.T) *certificatesv1.CertificateSigningRequest
		want    string
	}{
		{"it asked for another node", func(t *testing.T) *certificatesv1.CertificateSigningRequest {
			return withToken(t, "aaaaaa", newKey(t), "worker-2")
		}, "WrongNodeName"},
		{"another approver denied it", func(t *testing.T) *certificatesv1.CertificateSigningRequest {
			csr := withToken(t, "aaaaaa", newKey(t), "worker-1")
			csr.Status.Conditions = conditions(certificatesv1.CertificateDenied, "Manual")
			return csr
		}, "DeniedElsewhere"},
		{"the signer failed", func(t *testing.T) *certificatesv1.CertificateSigningRequest {
			csr := withToken(t, "aaaaaa", newKey(t), "worker-1")
			csr.Status.Conditions = append(
				conditions(certificatesv1.CertificateApproved, "X"), conditions(certificatesv1.CertificateFailed, "Y")...)
			return csr
		}, "IssuanceFailed"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Parallel()
			s := newTestCluster(t, fakeapiserver.Options{})
			s.machine("aws-i-1", "worker-1", "aaaaaa")
			s.start(controller.Options{})
			s.put(requestPath("it"), tc.request(t))
			certified := func() *metav1.Condition {
				return meta.FindStatusCondition(s.entry("aws-i-1").Status.Conditions, v1alpha1.ConditionCertified)
			}
			s.until("the ledger has the reason", func() bool { return certified() != nil })
			c := certified()
			if c.Status != metav1.ConditionFalse || c.Reason != tc.want || s.entry("aws-i-1").Phase() != v1alpha1.Issued {
				t.Errorf("the condition is %+v, want False with %s; the phase is %s", c, tc.want, s.entry("aws-i-1").Phase())
			}
		})
	}
}

// The machine has the status of its former token until the new one is used.
func TestAMachineThatWasAttestedAgain(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	end := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second))
	s.machine("aws-i-1", "worker-1", "bbbbbb", func(e *v1alpha1.NodeAttestation) {
		e.Status = v1alpha1.NodeAttestationStatus{
			Phase: v1alpha1.Registered, TokenID: "aaaaaa", CertificateRequest: "former", NodeUID: "former",
			CertificateExpiration: &end,
		}
	})
	s.start(controller.Options{})
	s.put(requestPath("again"), withToken(t, "bbbbbb", newKey(t), "worker-1"))
	s.await("again", "Approved ClientCertificateApproved")
	if phase := s.entry("aws-i-1").Phase(); phase != v1alpha1.Issued {
		t.Errorf("before the new token is used the phase is %s", phase)
	}
	s.issue("again", end.Add(time.Hour))
	s.until("the entry is Certified again", func() bool { return s.entry("aws-i-1").Phase() == v1alpha1.Certified })
	status := s.entry("aws-i-1").Status
	if status.TokenID != "bbbbbb" || status.CertificateRequest != "again" || status.NodeUID != "" ||
		!status.CertificateExpiration.Time.Equal(end.Add(time.Hour)) {
		t.Errorf("the status is %+v", status)
	}
}

// The certificate of the machine is issued after the revocation.
func TestARevokedMachineStaysRevoked(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	s.start(controller.Options{})
	s.put(requestPath("it"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	s.await("it", "Approved ClientCertificateApproved")
	s.revoke("aws-i-1")
	end := time.Now().Add(time.Hour).Truncate(time.Second)
	s.issue("it", end)
	s.put("/api/v1/nodes/worker-1", &corev1.Node{})
	s.until("the expiration of the certificate is in the ledger", func() bool {
		return s.entry("aws-i-1").Status.CertificateExpiration != nil
	})
	if status := s.entry("aws-i-1").Status; status.Phase != v1alpha1.Revoked || !status.CertificateExpiration.Time.Equal(end) {
		t.Errorf("the status is %+v", status)
	}
}
