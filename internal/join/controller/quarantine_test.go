package controller_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// quarantines is a fake of the quarantines that a server follows.
type quarantines struct {
	mu                 sync.Mutex
	err                error
	nodes, credentials map[string]string
	asked              int
}

func (q *quarantines) Quarantined(node string) (string, bool, error) { return q.find(q.nodes, node) }

func (q *quarantines) QuarantinedCredential(id string) (string, bool, error) {
	return q.find(q.credentials, id)
}

func (q *quarantines) find(in map[string]string, what string) (string, bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asked++
	if q.err != nil {
		return "", false, q.err
	}
	name, found := in[what]
	return name, found, nil
}

// set changes the quarantines.
func (q *quarantines) set(change func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
}

func (q *quarantines) questions() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.asked
}

const (
	theCredential   = "X509SHA256=0000000000000000000000000000000000000000000000000000000000000001"
	otherCredential = "X509SHA256=0000000000000000000000000000000000000000000000000000000000000002"
)

// requestsByKind are the requests of worker-1 and of its machine, made with theCredential.
func requestsByKind(t *testing.T) map[string]*certificatesv1.CertificateSigningRequest {
	requests := map[string]*certificatesv1.CertificateSigningRequest{
		"client":  withToken(t, "aaaaaa", newKey(t), "worker-1"),
		"renewal": ofNode(t, "worker-1"),
		"serving": ofNode(t, "worker-1", "10.0.0.7"),
	}
	for _, csr := range requests {
		csr.Spec.Extra = map[string]certificatesv1.ExtraValue{"authentication.kubernetes.io/credential-id": {theCredential}}
	}
	return requests
}

func approvals() map[string]string {
	return map[string]string{
		"client": "Approved ClientCertificateApproved", "renewal": "Approved RenewalApproved",
		"serving": "Approved ServingCertificateApproved",
	}
}

func TestQuarantinedNodesGetNoCertificates(t *testing.T) {
	for _, tc := range []struct {
		rule        string
		quarantines *quarantines
		want        string // empty: approved
	}{
		{"the node", &quarantines{nodes: map[string]string{"worker-1": "incident-7"}}, "Denied NodeQuarantined"},
		{"the credential", &quarantines{credentials: map[string]string{theCredential: "incident-7"}}, "Denied CredentialQuarantined"},
		{"another node", &quarantines{nodes: map[string]string{"worker-2": "incident-7"}}, ""},
		{"another credential", &quarantines{credentials: map[string]string{otherCredential: "incident-7"}}, ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := newTestCluster(t, fakeapiserver.Options{})
			s.machine("aws-i-1", "worker-1", "aaaaaa")
			s.start(controller.Options{Quarantines: tc.quarantines})
			for kind, csr := range requestsByKind(t) {
				want := tc.want
				if want == "" {
					want = approvals()[kind]
				}
				s.put(requestPath(kind), csr)
				s.await(kind, want)
			}
			if binding := s.entry("aws-i-1").Status.Binding; (binding != nil) != (tc.want == "") {
				t.Errorf("the token is bound by %+v", binding)
			}
		})
	}
}

// The API server names one credential. A requester who was impersonated may have more.
func TestOneOfSeveralCredentialsIsQuarantined(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	s.start(controller.Options{Quarantines: &quarantines{credentials: map[string]string{theCredential: "incident-7"}}})
	csr := ofNode(t, "worker-1")
	csr.Spec.Extra = map[string]certificatesv1.ExtraValue{
		"authentication.kubernetes.io/credential-id": {theCredential, otherCredential},
	}
	s.put(requestPath("it"), csr)
	s.await("it", "Denied CredentialQuarantined")
}

// Requests wait while the Quarantines are unknown. None is denied, or left to other
// approvers for good.
func TestRequestsWaitForTheQuarantines(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		err    error
		tooOld bool
	}{
		{"they have not been read", errors.New("quarantines have not been read yet"), false},
		{"they are too old", &staleness.Error{}, true},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := newTestCluster(t, fakeapiserver.Options{})
			s.machine("aws-i-1", "worker-1", "aaaaaa")
			known, reported := &quarantines{err: tc.err}, &events{}
			s.start(controller.Options{Quarantines: known, Observer: reported})
			requests := requestsByKind(t)
			for kind, csr := range requests {
				s.put(requestPath(kind), csr)
			}
			s.until("requests are tried again", func() bool { return known.questions() > 3*len(requests) })
			for kind := range requests {
				if got := decision(s.request(kind)); got != "" {
					t.Errorf("%s: %s", kind, got)
				}
				for _, event := range reported.of(kind) {
					if event != "error" {
						t.Errorf("%s: reported %s", kind, event)
					}
				}
			}
			if counted := reported.tooOld.Load() > 0; counted != tc.tooOld {
				t.Errorf("counted as too old: %v", counted)
			}
			if binding := s.entry("aws-i-1").Status.Binding; binding != nil {
				t.Errorf("the token is bound by %+v", binding)
			}
			known.set(func() { known.err = nil })
			for kind, want := range approvals() {
				s.await(kind, want)
			}
		})
	}
}

// A node is quarantined while the approver asks the API server for its rights.
func TestANodeIsQuarantinedWhileItsRequestIsDecided(t *testing.T) {
	known := &quarantines{nodes: map[string]string{}}
	s := newTestCluster(t, fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
		if strings.HasSuffix(r.URL.Path, "/subjectaccessreviews") {
			known.set(func() { known.nodes["worker-1"] = "incident-7" })
		}
		return fakeapiserver.NoFault
	}})
	s.machine("aws-i-1", "worker-1", "aaaaaa", func(e *v1alpha1.NodeAttestation) { e.Status.Phase = v1alpha1.Registered })
	s.start(controller.Options{Quarantines: known, ServingAddresses: string(approve.ServingLedger)})
	s.put(requestPath("it"), ofNode(t, "worker-1", "10.0.0.7"))
	s.await("it", "Denied NodeQuarantined")
}
