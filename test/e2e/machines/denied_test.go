package machines

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/identitydocument"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// TestTokenOfOneMachineForTheNameOfAnother: a token is for one name.
func TestTokenOfOneMachineForTheNameOfAnother(t *testing.T) {
	a, b := launch(t, blue), launch(t, blue)
	config := withToken(blue, token(t, a, blue.Replicas[0]))
	denied(t, blue, config, clientRequest(b.NodeName()), approve.WrongNodeName)
	denied(t, blue, config, clientRequest("kube-apiserver"), approve.WrongNodeName)

	t.Run("the token is still good for its own name", func(t *testing.T) {
		issued(t, blue, config, clientRequest(a.NodeName()), newKey(t))
	})
}

// TestEvidenceReplayedByAnotherMachine: evidence is good from the address of its
// machine only, and for its name only.
func TestEvidenceReplayedByAnotherMachine(t *testing.T) {
	a, b := launch(t, blue), launch(t, blue)
	stolen := evidence(t, a)
	refused(t, ask(t, b, blue.Replicas[0], a.NodeName(), stolen), http.StatusForbidden, aws.WrongSourceAddress)
	refused(t, ask(t, b, blue.Replicas[1], b.NodeName(), stolen), http.StatusForbidden, aws.WrongSourceAddress)
	nothingWritten(t, blue, a)
	nothingWritten(t, blue, b)
}

// TestPodJoinsAfterItsNode: a pod that can read the metadata service of a joined machine
// gets no token, even when its node is deleted.
func TestPodJoinsAfterItsNode(t *testing.T) {
	m := launch(t, blue)
	node := certified(t, blue, m)
	inPhase(t, blue, m, v1alpha1.Certified)
	again := func(code verdict.Code) {
		t.Helper()
		for _, replica := range blue.Replicas {
			refused(t, ask(t, m, replica, m.NodeName(), evidence(t, m)), http.StatusForbidden, code)
		}
	}
	again(bootstrap.AlreadyAttested)

	_, err := clientFor(t, node).CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.NodeName()}},
		metav1.CreateOptions{})
	orFatal(t, err)
	inPhase(t, blue, m, v1alpha1.Registered)
	again(bootstrap.AlreadyRegistered)

	orFatal(t, blue.Client.CoreV1().Nodes().Delete(t.Context(), m.NodeName(), metav1.DeleteOptions{}))
	again(bootstrap.AlreadyAttested)
	if outcome, err := m.Client(t.Context()); err != nil || outcome.Status != 1 ||
		!strings.Contains(outcome.Output, string(bootstrap.AlreadyAttested)) {
		t.Errorf("the client ended with %d: %s (%v)", outcome.Status, outcome.Output, err)
	}
}

// TestSignedDocumentBesideAnotherClearOne: only the signed document is read.
func TestSignedDocumentBesideAnotherClearOne(t *testing.T) {
	m, victim := launch(t, blue), launch(t, blue)
	form := func(m *Machine, name string) []byte {
		text, err := m.form(t.Context(), name)
		orFatal(t, err)
		return text
	}
	signature := string(form(m, "signature"))
	for name, test := range map[string]struct {
		document []byte
		code     verdict.Code
	}{
		"the clear document of another": {form(victim, "document"), identitydocument.SignatureInvalid},
		"its own with another id": {
			bytes.ReplaceAll(form(m, "document"), []byte(m.Instance.ID), []byte(victim.Instance.ID)),
			identitydocument.SignatureInvalid,
		},
	} {
		t.Run(name, func(t *testing.T) {
			body := Body(map[string]string{"Document": encode(test.document), "Signature": signature})
			for _, asked := range []string{m.NodeName(), victim.NodeName()} {
				refused(t, ask(t, m, blue.Replicas[0], asked, body), http.StatusForbidden, test.code)
			}
		})
	}
	t.Run("its own as it is", func(t *testing.T) {
		body := Body(map[string]string{"Document": encode(form(m, "document")), "Signature": signature})
		if answer := ask(t, m, blue.Replicas[0], m.NodeName(), body).parse(t); !answer.Status.Allowed {
			t.Errorf("refused: %s", answer.Status.Reason)
		}
	})
	nothingWritten(t, blue, victim)
}

// TestEveryFormOfTheDocumentIsTaken shows the valid requests of which the attacks are
// variations.
func TestEveryFormOfTheDocumentIsTaken(t *testing.T) {
	for _, form := range []string{"pkcs7", "rsa2048"} {
		t.Run(form, func(t *testing.T) {
			m := launch(t, blue)
			text, err := m.form(t.Context(), form)
			orFatal(t, err)
			answer := ask(t, m, blue.Replicas[0], m.NodeName(), Body(map[string]string{"Document": encode(text)})).parse(t)
			if !answer.Status.Allowed {
				t.Errorf("refused: %s", answer.Status.Reason)
			}
		})
	}
}

// TestMachinesThatDoNotRun: evidence is refused if EC2 says that the machine does not run.
func TestMachinesThatDoNotRun(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(id string)
		code verdict.Code
	}{
		"terminated": {blue.Cloud.Terminate, aws.InstanceTerminated},
		"stopped":    {blue.Cloud.Stop, aws.InstanceNotRunning},
		"forgotten":  {blue.Cloud.Forget, aws.InstanceNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			m := launch(t, blue)
			kept := evidence(t, m)
			test.end(m.Instance.ID)
			refused(t, ask(t, m, blue.Replicas[0], m.NodeName(), kept), http.StatusForbidden, test.code)
			nothingWritten(t, blue, m)
		})
	}
}

// TestMachinesFromElsewhere: genuine evidence of machines that are not part of the
// cluster is refused.
func TestMachinesFromElsewhere(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fakeaws.Instance)
		code   verdict.Code
	}{
		"another account": {func(i *fakeaws.Instance) { i.Account = "444455556666" }, aws.WrongAccount},
		"another region":  {func(i *fakeaws.Instance) { i.Region = "us-east-1" }, aws.WrongRegion},
		"another VPC":     {func(i *fakeaws.Instance) { i.VPC = "vpc-0fedcba9876543210" }, aws.WrongVPC},
		"another cluster": {func(i *fakeaws.Instance) { i.Tags = map[string]string{"KubernetesCluster": "green"} }, aws.WrongCluster},
	} {
		t.Run(name, func(t *testing.T) {
			m := launch(t, blue, test.change)
			refused(t, ask(t, m, blue.Replicas[0], m.NodeName(), evidence(t, m)), http.StatusForbidden, test.code)
			nothingWritten(t, blue, m)
		})
	}
}

// TestParallelRedemptions: twenty requests of one machine to two replicas get one
// token, and that one certificate.
func TestParallelRedemptions(t *testing.T) {
	m := launch(t, blue)
	body := evidence(t, m)
	var mu sync.Mutex
	tokens, reasons := map[string]int{}, map[string]int{}
	var asking sync.WaitGroup
	for i := range 20 {
		asking.Go(func() {
			answer, err := m.Ask(t.Context(), blue.Replicas[i%2], m.NodeName(), body)
			if err != nil {
				t.Error(err)
				return
			}
			parsed := answer.parse(t)
			mu.Lock()
			defer mu.Unlock()
			if parsed.Status.Token != "" {
				tokens[parsed.Status.Token]++
			} else {
				reasons[parsed.Status.Reason]++
			}
		})
	}
	asking.Wait()
	if len(tokens) != 1 {
		t.Fatalf("%d tokens were given: %v; refusals: %v", len(tokens), tokens, reasons)
	}
	if ids := tokensOf(t, blue, m); len(ids) != 1 {
		t.Errorf("the Secrets of the machine are %v", ids)
	}
	for given := range tokens {
		config := withToken(blue, given)
		key := newKey(t)
		issued(t, blue, config, clientRequest(m.NodeName()), key)
		t.Run("another key", func(t *testing.T) {
			deniedWith(t, blue, config, clientRequest(m.NodeName()), newKey(t), approve.TokenAlreadyUsed)
		})
		t.Run("the same key again", func(t *testing.T) { issued(t, blue, config, clientRequest(m.NodeName()), key) })
	}
}

// TestCertificateRequestsOfATokenThatNoKubeletMakes: a token is valid for one form of
// request only.
func TestCertificateRequestsOfATokenThatNoKubeletMakes(t *testing.T) {
	m := launch(t, blue)
	config := withToken(blue, token(t, m, blue.Replicas[0]))
	own := clientRequest(m.NodeName())
	changed := func(change func(*request)) request { r := own; change(&r); return r }
	for name, test := range map[string]struct {
		request request
		code    verdict.Code
	}{
		"an extra organization": {
			changed(func(r *request) { r.organizations = []string{"system:nodes", "system:masters"} }), approve.WrongSubject,
		},
		"another organization": {changed(func(r *request) { r.organizations = []string{"system:masters"} }), approve.WrongSubject},
		"no organization":      {changed(func(r *request) { r.organizations = nil }), approve.WrongSubject},
		"no node":              {changed(func(r *request) { r.commonName = "system:node:" }), approve.WrongSubject},
		"a user":               {changed(func(r *request) { r.commonName = "admin" }), approve.WrongSubject},
		"a DNS name": {
			changed(func(r *request) { r.dnsNames = []string{"kubernetes.default"} }), approve.SubjectAltNamesNotAllowed,
		},
		"an address": {
			changed(func(r *request) { r.addresses = []string{m.Address.String()} }), approve.SubjectAltNamesNotAllowed,
		},
		"for serving too": {
			changed(func(r *request) { r.usages = append(r.usages[:2:2], certificatesv1.UsageServerAuth) }),
			approve.WrongUsages,
		},
		"without client auth": {
			changed(func(r *request) { r.usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature} }),
			approve.WrongUsages,
		},
		"a serving certificate": {servingRequest(m.NodeName(), m.Address.String()), approve.WrongSigner},
	} {
		t.Run(name, func(t *testing.T) { denied(t, blue, config, test.request, test.code) })
	}
	t.Run("the kubelet's own", func(t *testing.T) { issued(t, blue, config, own, newKey(t)) })
}

// TestServingCertificatesForNamesThatAreNotTheMachines: a node gets no serving certificate
// for other names or addresses.
func TestServingCertificatesForNamesThatAreNotTheMachines(t *testing.T) {
	m, other := launch(t, blue), launch(t, blue)
	certified(t, blue, other)
	config := certified(t, blue, m)
	node, own := m.NodeName(), m.Address.String()
	named := func(names ...string) request {
		r := servingRequest(node, own)
		r.dnsNames = names
		return r
	}
	for name, test := range map[string]struct {
		request request
		code    verdict.Code
	}{
		"kubernetes.default":        {named("kubernetes.default"), approve.AddressNotAttested},
		"a name beside its own":     {named(node, "kubernetes.default.svc"), approve.AddressNotAttested},
		"a wildcard":                {named("*.compute.internal"), approve.AddressNotAttested},
		"the name of another node":  {named(other.NodeName()), approve.AddressNotAttested},
		"another node's IP":         {servingRequest(node, other.Address.String()), approve.AddressNotAttested},
		"another IP beside its own": {servingRequest(node, own, other.Address.String()), approve.AddressNotAttested},
		"no name and no address":    {servingRequest(node), approve.SubjectAltNamesNotAllowed},
	} {
		t.Run(name, func(t *testing.T) { denied(t, blue, config, test.request, test.code) })
	}
	t.Run("for another node", func(t *testing.T) {
		forbidden(t, config, servingRequest(other.NodeName(), other.Address.String()))
	})
	t.Run("its own name and address", func(t *testing.T) {
		r := named(node)
		certificate := issued(t, blue, config, r, newKey(t))
		orFatal(t, certificate.VerifyHostname(own))
		orFatal(t, certificate.VerifyHostname(node))
	})
}

// TestRenewalForAnotherNode: a node's certificate cannot be renewed for another node.
func TestRenewalForAnotherNode(t *testing.T) {
	m, other := launch(t, blue), launch(t, blue)
	certified(t, blue, other)
	config := certified(t, blue, m)
	forbidden(t, config, clientRequest(other.NodeName()))
	for name, change := range map[string]func(*request){
		"for an administrator": func(r *request) { r.organizations = []string{"system:nodes", "system:masters"} },
		"to serve too":         func(r *request) { r.usages = append(r.usages[:2:2], certificatesv1.UsageServerAuth) },
	} {
		t.Run(name, func(t *testing.T) {
			r := clientRequest(m.NodeName())
			change(&r)
			created, err := create(t, config, r, newKey(t))
			if apierrors.IsForbidden(err) {
				return
			}
			orFatal(t, err)
			if condition := decided(t, blue, created.Name); condition.Type != certificatesv1.CertificateDenied {
				t.Errorf("%s %s", condition.Type, condition.Reason)
			}
		})
	}
	t.Run("its own", func(t *testing.T) { issued(t, blue, config, clientRequest(m.NodeName()), newKey(t)) })
}

// forbidden checks that kube-apiserver, with NodeRestriction, refuses to create the
// request.
func forbidden(t *testing.T, config *rest.Config, r request) {
	t.Helper()
	if _, err := create(t, config, r, newKey(t)); !apierrors.IsForbidden(err) {
		t.Errorf("kube-apiserver answered %v", err)
	}
}

// TestRequestsOfOthersAreLeftAlone: of other signers, and of tokens that are not
// ours.
func TestRequestsOfOthersAreLeftAlone(t *testing.T) {
	const group = "system:bootstrappers:kubeadm:default-node-token"
	_, err := blue.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "kubeadm:kubelet-bootstrap"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node-bootstrapper"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}, metav1.CreateOptions{})
	orFatal(t, err)
	foreign, err := blue.CreateBootstrapToken(t.Context(), group)
	orFatal(t, err)
	var left []string
	eventually(t, "a token that is not ours may ask", func(context.Context) error {
		r, err := create(t, withToken(blue, foreign), clientRequest("kubeadm-1"), newKey(t))
		if err == nil {
			left = append(left, r.Name)
		}
		return err
	})
	left = append(left, submit(t, blue.AdminConfig(), request{
		signer: certificatesv1.KubeAPIServerClientSignerName, commonName: "somebody",
		usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
	}, newKey(t)).Name)

	// A later request has been decided, so the approver has seen these.
	certified(t, blue, launch(t, blue))
	for _, name := range left {
		r, err := blue.Client.CertificatesV1().CertificateSigningRequests().Get(t.Context(), name, metav1.GetOptions{})
		orFatal(t, err)
		if len(r.Status.Conditions) > 0 {
			t.Errorf("%s of %s was decided: %+v", r.Spec.SignerName, r.Spec.Username, r.Status.Conditions)
		}
	}
}

// TestBodiesThatNoClientSends: each is refused before the service calls AWS or
// kube-apiserver.
func TestBodiesThatNoClientSends(t *testing.T) {
	m := launch(t, blue)
	good := string(evidence(t, m))
	document := strings.TrimSuffix(strings.TrimPrefix(good, `{"Document":`), "}")
	before := blue.Cloud.EC2.Requests()
	for name, body := range map[string]string{
		"empty":                    "",
		"not JSON":                 "Document=",
		"huge":                     `{"Document":"` + strings.Repeat("A", 1<<20) + `"}`,
		"deep":                     strings.Repeat(`{"Document":`, 4000) + "1" + strings.Repeat("}", 4000),
		"a key twice":              fmt.Sprintf(`{"Document":%s,"Document":%s}`, document, document),
		"a key in two cases":       fmt.Sprintf(`{"Document":%s,"document":%s}`, document, document),
		"a key in another case":    fmt.Sprintf(`{"document":%s}`, document),
		"an unknown key":           fmt.Sprintf(`{"Document":%s,"NodeName":"kube-apiserver"}`, document),
		"more after it":            good + good,
		"an invalid document":      `{"Document":"bm9uZQ=="}`,
		"a document that is empty": `{"Document":""}`,
		"an array":                 "[" + good + "]",
	} {
		t.Run(name, func(t *testing.T) {
			// A machine may send ten requests at once, so each of these is from another machine.
			sender := launch(t, blue)
			answer, err := sender.Ask(t.Context(), blue.Replicas[0], m.NodeName(), []byte(body))
			want := http.StatusBadRequest
			if name == "huge" {
				// The server does not read the whole body, and closes the connection half
				// a second after its answer. A slow client may lose the answer.
				if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
					return
				}
				want = http.StatusRequestEntityTooLarge
			}
			orFatal(t, err)
			if parsed := answer.parse(t); answer.Status != want || parsed.Status.Allowed || parsed.Status.Token != "" {
				t.Errorf("answered %d %s", answer.Status, answer.Body)
			}
		})
	}
	if after := blue.Cloud.EC2.Requests(); after != before {
		t.Errorf("EC2 was asked %d times", after-before)
	}
	nothingWritten(t, blue, m)
}
