package controller_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

func TestAMachineBecomesANode(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	reported := &events{}
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	key := newKey(t)
	s.start(controller.Options{Observer: reported})

	s.put(requestPath("first"), withToken(t, "aaaaaa", key, "worker-1"))
	s.await("first", "Approved ClientCertificateApproved")
	got, first := s.entry("aws-i-1").Status.Binding, s.request("first")
	if got == nil || got.TokenID != "aaaaaa" || got.PublicKey != approve.PublicKey(first.Spec.Request) || got.RequestUID != first.UID ||
		!got.ApproveUntil.After(time.Now()) || got.ApproveUntil.After(time.Now().Add(15*time.Minute)) {
		t.Errorf("the token is bound by %+v", got)
	}
	if phase := s.entry("aws-i-1").Phase(); phase != v1alpha1.Issued {
		t.Errorf("before the certificate is issued, the phase is %s", phase)
	}

	firstEnd := time.Now().Add(time.Hour).Truncate(time.Second)
	s.issue("first", firstEnd)
	s.until("the entry is Certified", func() bool { return s.entry("aws-i-1").Phase() == v1alpha1.Certified })
	status := s.entry("aws-i-1").Status
	if status.Binding == nil || status.CertificateRequest != "first" || status.TokenID != "aaaaaa" ||
		!status.CertificateExpiration.Time.Equal(firstEnd) ||
		!meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionCertified) {
		t.Errorf("the status is %+v", status)
	}

	s.put("/api/v1/nodes/worker-1", &corev1.Node{})
	s.until("the entry is Registered", func() bool { return s.entry("aws-i-1").Phase() == v1alpha1.Registered })
	node := &corev1.Node{}
	found, err := s.api.Get("/api/v1/nodes/worker-1", node)
	if err != nil || !found || s.entry("aws-i-1").Status.NodeUID != string(node.UID) {
		t.Errorf("the node's UID is %s (%v), in the ledger it is %s", node.UID, err, s.entry("aws-i-1").Status.NodeUID)
	}

	s.put(requestPath("serving"), ofNode(t, "worker-1", "worker-1", "10.0.0.7"))
	s.await("serving", "Approved ServingCertificateApproved")
	s.put(requestPath("renewal"), ofNode(t, "worker-1"))
	s.await("renewal", "Approved RenewalApproved")
	s.issue("renewal", firstEnd.Add(time.Hour))
	s.until("the renewal is in the ledger", func() bool {
		return s.entry("aws-i-1").Status.CertificateExpiration.Time.Equal(firstEnd.Add(time.Hour))
	})
	for name, want := range map[string]string{
		"first":   "approve ClientCertificateApproved",
		"serving": "approve ServingCertificateApproved",
		"renewal": "approve RenewalApproved",
	} {
		s.until("the decision about "+name+" is reported", func() bool { return len(reported.of(name)) > 0 })
		if got := reported.of(name); !slices.Equal(got, []string{want}) {
			t.Errorf("reported about %s: %v, want %s once", name, got, want)
		}
	}
}

func TestDenials(t *testing.T) {
	type request = certificatesv1.CertificateSigningRequest
	first := func(t *testing.T) *request { return withToken(t, "aaaaaa", newKey(t), "worker-1") }
	past := metav1.NewTime(time.Now().Add(-time.Second))
	for _, tc := range []struct {
		rule    string
		prepare func(*testing.T, *testCluster) *request
		want    string
	}{
		{"the token of machine A, a request for B", func(t *testing.T, s *testCluster) *request {
			s.machine("aws-i-b", "worker-2", "bbbbbb")
			return withToken(t, "aaaaaa", newKey(t), "worker-2")
		}, "Denied WrongNodeName"},
		{"a token that has expired", func(t *testing.T, s *testCluster) *request {
			s.change("aws-i-1", func(e *v1alpha1.NodeAttestation) { e.Spec.TokenExpiration = past })
			return first(t)
		}, "Denied TokenExpired"},
		{"an entry that is being deleted", func(t *testing.T, s *testCluster) *request {
			s.change("aws-i-1", func(e *v1alpha1.NodeAttestation) { e.DeletionTimestamp = &past })
			return first(t)
		}, "Denied TokenUnknown"},
		{"a token bound to another key", func(t *testing.T, s *testCluster) *request {
			s.change("aws-i-1", bound("sha256:00"))
			return first(t)
		}, "Denied TokenAlreadyUsed"},
		{"a token that no entry names", func(t *testing.T, s *testCluster) *request {
			s.api.Remove(entryPath("aws-i-1"))
			return first(t)
		}, "Denied TokenUnknown"},
		{"a token of an entry that was created again", func(t *testing.T, s *testCluster) *request {
			s.api.Remove(entryPath("aws-i-1"))
			s.machine("aws-i-1", "worker-1", "cccccc")
			return first(t)
		}, "Denied TokenUnknown"},
		{"a token that two entries name", func(t *testing.T, s *testCluster) *request {
			s.machine("aws-i-2", "worker-2", "aaaaaa")
			return first(t)
		}, "Denied TokenUnknown"},
		{"a token that another entry was given before", func(t *testing.T, s *testCluster) *request {
			s.machine("aws-i-2", "worker-2", "bbbbbb", func(e *v1alpha1.NodeAttestation) { e.Status.TokenID = "aaaaaa" })
			return first(t)
		}, "Denied TokenUnknown"},
		{"a token that another entry used before", func(t *testing.T, s *testCluster) *request {
			s.machine("aws-i-2", "worker-2", "bbbbbb", func(e *v1alpha1.NodeAttestation) {
				e.Status.Binding = &v1alpha1.TokenBinding{TokenID: "aaaaaa", PublicKey: "sha256:00"}
			})
			return first(t)
		}, "Denied TokenUnknown"},
		{"a replaced token", func(t *testing.T, s *testCluster) *request {
			entry := s.entry("aws-i-1")
			entry.Spec.TokenID = "cccccc"
			s.put(entryPath("aws-i-1"), entry)
			return first(t)
		}, "Denied TokenUnknown"},
		{"a revoked machine", func(t *testing.T, s *testCluster) *request {
			s.revoke("aws-i-1")
			return first(t)
		}, "Denied AttestationRevoked"},
		{"an older machine has the name", func(t *testing.T, s *testCluster) *request {
			s.machine("aws-i-0", "worker-1", "bbbbbb", func(e *v1alpha1.NodeAttestation) {
				e.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
			})
			return first(t)
		}, "Denied NameTaken"},
		{"a younger machine with a used token has the name", func(t *testing.T, s *testCluster) *request {
			s.machine("aws-i-2", "worker-1", "bbbbbb", bound("sha256:00"))
			return first(t)
		}, "Denied NameTaken"},
		{"the renewal of a node that the ledger does not have", func(t *testing.T, _ *testCluster) *request {
			return ofNode(t, "worker-9")
		}, "Denied NotAttested"},
		{"the renewal of a revoked machine", func(t *testing.T, s *testCluster) *request {
			s.revoke("aws-i-1")
			return ofNode(t, "worker-1")
		}, "Denied AttestationRevoked"},
		{"a serving certificate for the API server's name", func(t *testing.T, _ *testCluster) *request {
			return ofNode(t, "worker-1", "worker-1", "kubernetes.default")
		}, "Denied AddressNotAttested"},
		{"a serving certificate with another node's address", func(t *testing.T, s *testCluster) *request {
			s.machine("aws-i-b", "worker-2", "bbbbbb", func(e *v1alpha1.NodeAttestation) { e.Spec.Addresses = []string{"10.0.0.8"} })
			return ofNode(t, "worker-1", "10.0.0.8")
		}, "Denied AddressNotAttested"},
		{"a serving certificate with an address that only the node's own status has", func(t *testing.T, s *testCluster) *request {
			s.put("/api/v1/nodes/worker-1", nodeWithAddress("10.0.0.9"))
			return ofNode(t, "worker-1", "10.0.0.9")
		}, "Denied AddressNotAttested"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Parallel()
			s := newTestCluster(t, fakeapiserver.Options{})
			s.machine("aws-i-1", "worker-1", "aaaaaa")
			csr := tc.prepare(t, s)
			s.start(controller.Options{})
			s.put(requestPath("it"), csr)
			s.await("it", tc.want)
		})
	}
}

// nodeWithAddress returns a Node with an internal IP.
func nodeWithAddress(address string) *corev1.Node {
	return &corev1.Node{Status: corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: address}},
	}}
}

// revoke changes an entry as the command does.
func (s *testCluster) revoke(name string) {
	entry := s.entry(name)
	entry.Status.Phase = v1alpha1.Revoked
	s.put(entryPath(name), entry)
}

func TestSelfNodeServerIsAsked(t *testing.T) {
	var asked map[string]any
	s := newTestCluster(t, fakeapiserver.Options{Allow: func(spec map[string]any) bool { asked = spec; return false }})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	s.start(controller.Options{})
	s.put(requestPath("serving"), ofNode(t, "worker-1", "10.0.0.7"))
	s.await("serving", "Denied SelfNodeServerNotAllowed")
	what, _ := asked["resourceAttributes"].(map[string]any)
	if asked["user"] != "system:node:worker-1" || what["verb"] != "create" || what["resource"] != "certificatesigningrequests" ||
		what["subresource"] != "selfnodeserver" || what["group"] != "certificates.k8s.io" {
		t.Errorf("the API server was asked %v", asked)
	}
}

func TestServingAddressesOfTheNode(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	s.put("/api/v1/nodes/worker-1", nodeWithAddress("10.0.0.9"))
	s.start(controller.Options{ServingAddresses: string(approve.ServingLedgerAndNode)})
	s.put(requestPath("serving"), ofNode(t, "worker-1", "10.0.0.7", "10.0.0.9"))
	s.await("serving", "Approved ServingCertificateApproved")
}

// The approver decides a request of its own after all the others, so that it has handled them.
func TestRequestsOfOthersAreNotDecided(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	kubeadm := withToken(t, "aaaaaa", newKey(t), "worker-1")
	kubeadm.Spec.Groups = []string{"system:bootstrappers", "system:bootstrappers:kubeadm:default-node-token"}
	otherSigner := withToken(t, "aaaaaa", newKey(t), "worker-1")
	otherSigner.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName
	person := ofNode(t, "worker-1")
	person.Spec.Username, person.Spec.Groups = "admin", []string{"system:masters"}
	noNode := ofNode(t, "worker-1")
	noNode.Spec.Groups = []string{"system:authenticated"}
	decided := func(kind certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
		csr := withToken(t, "aaaaaa", newKey(t), "worker-1")
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: kind, Status: corev1.ConditionTrue, Reason: "Manual"},
		}
		return csr
	}
	others := map[string]*certificatesv1.CertificateSigningRequest{
		"kubeadm-token": kubeadm, "other-signer": otherSigner, "person": person, "no-node": noNode,
		"unattested": ofNode(t, "worker-9"), "approved": decided(certificatesv1.CertificateApproved),
		"denied": decided(certificatesv1.CertificateDenied), "failed": decided(certificatesv1.CertificateFailed),
	}
	for name, csr := range others {
		s.put(requestPath(name), csr)
	}
	reported := &events{}
	s.start(controller.Options{Workers: 1, UnattestedNodes: string(approve.LeaveUnattested), Observer: reported})
	s.until("the unattested node is left", func() bool { return len(reported.of("unattested")) > 0 })
	s.put(requestPath("ours"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	s.await("ours", "Approved ClientCertificateApproved")
	for name := range others {
		if versions, err := s.api.History(requestPath(name)); err != nil || len(versions) != 1 {
			t.Errorf("request %s was changed: %v, %v", name, versions, err)
		}
	}
	if got := reported.of("unattested"); !slices.Equal(got, []string{"leave NotAttested"}) {
		t.Errorf("reported %v", got)
	}
}

func TestFailedCallsAreRetried(t *testing.T) {
	f := &faults{}
	s := newTestCluster(t, fakeapiserver.Options{Fault: f.of})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	reported := &events{}
	s.start(controller.Options{Observer: reported})
	for _, path := range []string{
		"/nodeattestations/aws-i-1/status", "/nodeattestations/aws-i-1", "/subjectaccessreviews", "/approval",
	} {
		f.fail(path)
		name := "it" + strings.ReplaceAll(strings.ToLower(path), "/", "-")
		want := "Approved ServingCertificateApproved"
		csr := ofNode(t, "worker-1", "10.0.0.7")
		if strings.HasSuffix(path, "/status") {
			csr, want = withToken(t, "aaaaaa", newKey(t), "worker-1"), "Approved ClientCertificateApproved"
		}
		s.put(requestPath(name), csr)
		s.until("two tries have failed", func() bool { return len(reported.of(name)) >= 2 })
		if got := decision(s.request(name)); got != "" {
			t.Errorf("while %s fails, the request is %s", path, got)
		}
		f.fail("")
		s.await(name, want)
		s.until("the approval is reported", func() bool {
			got := reported.of(name)
			return got[0] == "error" && strings.HasPrefix(got[len(got)-1], "approve ")
		})
	}
}

func TestARestartedKubeletMayRetry(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	key := newKey(t)
	stop := s.start(controller.Options{})
	s.put(requestPath("first"), withToken(t, "aaaaaa", key, "worker-1"))
	s.await("first", "Approved ClientCertificateApproved")
	stop()

	s.api.Remove(requestPath("first"))
	s.put(requestPath("first"), withToken(t, "aaaaaa", key, "worker-1"))
	s.put(requestPath("stolen"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	s.start(controller.Options{})
	s.await("first", "Approved ClientCertificateApproved")
	s.await("stolen", "Denied TokenAlreadyUsed")
	if keys := s.keysOf("aws-i-1"); !slices.Equal(keys, []string{approve.PublicKey(s.request("first").Spec.Request)}) {
		t.Errorf("the token was bound to %v, want only the first key", keys)
	}
}

// The approver bound the token, and could not write the approval for most of the token's
// lifetime.
func TestABoundTokenOutlastsAnOutage(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	csr := withToken(t, "aaaaaa", newKey(t), "worker-1")
	s.machine("aws-i-1", "worker-1", "aaaaaa", bound(approve.PublicKey(csr.Spec.Request)))
	s.put(requestPath("stolen"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	s.put(requestPath("it"), csr)
	s.start(controller.Options{Clock: func() time.Time { return time.Now().Add(4 * time.Minute) }})
	s.await("it", "Approved ClientCertificateApproved")
	s.await("stolen", "Denied TokenAlreadyUsed")
}

// The token was bound, the approval could not be written, and the next approver finds the token
// expired.
func TestABoundTokenExpiresBeforeTheApproval(t *testing.T) {
	f := &faults{}
	s := newTestCluster(t, fakeapiserver.Options{Fault: f.of})
	key := newKey(t)
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	f.fail("/approval")
	reported := &events{}
	stop := s.start(controller.Options{Observer: reported})
	s.put(requestPath("it"), withToken(t, "aaaaaa", key, "worker-1"))
	s.until("the approval has failed", func() bool { return len(reported.of("it")) > 0 })
	stop()
	f.fail("")
	s.put(requestPath("second"), withToken(t, "aaaaaa", key, "worker-1"))
	s.put(requestPath("stolen"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	stop = s.start(controller.Options{Clock: func() time.Time { return time.Now().Add(6 * time.Minute) }})
	s.await("it", "Approved ClientCertificateApproved")
	s.await("second", "Denied TokenExpired")
	s.await("stolen", "Denied TokenExpired")
	stop()

	// A request of the same name is another request.
	s.api.Remove(requestPath("it"))
	s.put(requestPath("it"), withToken(t, "aaaaaa", key, "worker-1"))
	s.start(controller.Options{Clock: func() time.Time { return time.Now().Add(6 * time.Minute) }})
	s.await("it", "Denied TokenExpired")
}

// The approver was unavailable for longer than a kubelet waits.
func TestABindingHasATimeLimit(t *testing.T) {
	f := &faults{}
	s := newTestCluster(t, fakeapiserver.Options{Fault: f.of})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	f.fail("/approval")
	reported := &events{}
	stop := s.start(controller.Options{Observer: reported})
	s.put(requestPath("it"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	s.until("the approval has failed", func() bool { return len(reported.of("it")) > 0 })
	stop()
	f.fail("")
	s.start(controller.Options{Clock: func() time.Time { return time.Now().Add(16 * time.Minute) }})
	s.await("it", "Denied TokenExpired")
}

// The approver of an earlier version did not write the key to the entry.
func TestATokenThatAnEarlierVersionApprovedIsValidForOneKey(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-1", "worker-1", "aaaaaa")
	key := newKey(t)
	first := withToken(t, "aaaaaa", key, "worker-1")
	first.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: string(approve.ClientCertificateApproved),
	}}
	s.put(requestPath("first"), first)
	s.start(controller.Options{})
	s.put(requestPath("second"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	s.await("second", "Denied TokenAlreadyUsed")
	s.put(requestPath("retry"), withToken(t, "aaaaaa", key, "worker-1"))
	s.await("retry", "Approved ClientCertificateApproved")
}

// An older entry has the same name, and its machine sends its request later.
func TestAMachineThatUsedItsTokenKeepsItsName(t *testing.T) {
	s := newTestCluster(t, fakeapiserver.Options{})
	s.machine("aws-i-2", "worker-1", "bbbbbb")
	s.start(controller.Options{})
	s.put(requestPath("first"), withToken(t, "bbbbbb", newKey(t), "worker-1"))
	s.await("first", "Approved ClientCertificateApproved")

	s.machine("aws-i-1", "worker-1", "aaaaaa", func(e *v1alpha1.NodeAttestation) {
		e.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	})
	s.put(requestPath("second"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	s.await("second", "Denied NameTaken")
}
