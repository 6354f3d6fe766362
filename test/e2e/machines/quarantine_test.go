package machines

import (
	"context"
	"crypto/ecdsa"
	"net/http"
	"slices"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/rest"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/test/e2e/apiproxy"
	"github.com/node-authorizer/node-authorizer/test/e2e/quarantines"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

// inForce is a Quarantine that both replicas apply.
type inForce struct{ *quarantines.Quarantine }

// quarantine writes a Quarantine, and waits until both replicas apply it. It ends with the test.
func quarantine(t *testing.T, spec policyv1alpha1.QuarantineSpec) inForce {
	t.Helper()
	q := begun(t, spec)
	orFatal(t, q.InForce(t.Context(), servers()...))
	return q
}

// begun does not wait for the effect.
func begun(t *testing.T, spec policyv1alpha1.QuarantineSpec) inForce {
	t.Helper()
	q, err := quarantines.Create(t.Context(), blue.AdminConfig(), "incident-7", spec)
	orFatal(t, err)
	t.Cleanup(func() {
		if err := q.End(context.WithoutCancel(t.Context()), servers()...); err != nil {
			t.Error(err)
		}
	})
	return inForce{q}
}

// end waits until no replica applies the Quarantine.
func (q inForce) end(t *testing.T) {
	t.Helper()
	orFatal(t, q.End(t.Context(), servers()...))
}

func servers() (all []*server.Server) {
	for _, replica := range blue.Replicas {
		all = append(all, replica.Server)
	}
	return all
}

// TestMachineOfAQuarantinedNodeGetsNoToken: neither replica gives it one, and another machine gets
// one. After the end of the Quarantine it joins.
func TestMachineOfAQuarantinedNodeGetsNoToken(t *testing.T) {
	m, other := launch(t, blue), launch(t, blue)
	q := quarantine(t, policyv1alpha1.QuarantineSpec{Node: m.NodeName(), Reason: "its disk was stolen"})
	for _, replica := range blue.Replicas {
		answer := ask(t, m, replica, m.NodeName(), evidence(t, m))
		refused(t, answer, http.StatusForbidden, policyv1alpha1.NodeQuarantined)
		if strings.Contains(answer.Body, "stolen") {
			t.Errorf("the machine learns the reason: %s", answer.Body)
		}
		token(t, other, replica)
	}
	if outcome, err := m.Client(t.Context()); err != nil || outcome.Status != 1 ||
		!strings.Contains(outcome.Output, string(policyv1alpha1.NodeQuarantined)) {
		t.Errorf("the client ended with %d: %s (%v)", outcome.Status, outcome.Output, err)
	}
	nothingWritten(t, blue, m)
	q.end(t)
	if outcome, err := m.Client(t.Context()); err != nil || outcome.Status != 0 {
		t.Errorf("after the end, the client ended with %d: %s (%v)", outcome.Status, outcome.Output, err)
	}
}

// TestTokenOfAQuarantinedNode: a token that was not used gets no certificate, and is not given again.
// It remains valid, and gets its certificate after the end of the Quarantine.
func TestTokenOfAQuarantinedNode(t *testing.T) {
	m := launch(t, blue)
	given := token(t, m, blue.Replicas[0])
	q := quarantine(t, policyv1alpha1.QuarantineSpec{Node: m.NodeName()})
	for _, replica := range blue.Replicas {
		refused(t, ask(t, m, replica, m.NodeName(), evidence(t, m)), http.StatusForbidden, policyv1alpha1.NodeQuarantined)
	}
	denied(t, blue, withToken(blue, given), clientRequest(m.NodeName()), policyv1alpha1.NodeQuarantined)
	if entry, err := blue.Entry(t.Context(), m); err != nil || entry.Phase() != v1alpha1.Issued || entry.Status.Binding != nil {
		t.Errorf("the token is used: %+v (%v)", entry, err)
	}
	certified(t, blue, launch(t, blue))
	q.end(t)
	if again := token(t, m, blue.Replicas[1]); again != given {
		t.Error("it gets another token after the end")
	}
	issued(t, blue, withToken(blue, given), clientRequest(m.NodeName()), newKey(t))
}

// member is a machine with a certificate, and the credentials to ask for each kind of certificate.
type member struct {
	*Machine
	// token and key are the credentials of its first request, node is its certificate.
	token, node *rest.Config
	key         *ecdsa.PrivateKey
}

func join(t *testing.T) member {
	t.Helper()
	m := member{Machine: launch(t, blue), key: newKey(t)}
	m.token = withToken(blue, token(t, m.Machine, blue.Replicas[0]))
	m.node = withCertificate(t, blue, issued(t, blue, m.token, clientRequest(m.NodeName()), m.key), m.key)
	return m
}

// kinds are the kinds of certificates that a machine asks for.
var kinds = []string{"client", "renewal", "serving"}

// ask submits a request of a kind that the approver approves, and returns its name.
func (m member) ask(t *testing.T, kind string) string {
	t.Helper()
	switch kind {
	case "client": // the same again
		return submit(t, m.token, clientRequest(m.NodeName()), m.key).Name
	case "renewal":
		return submit(t, m.node, clientRequest(m.NodeName()), newKey(t)).Name
	default:
		return submit(t, m.node, servingRequest(m.NodeName(), m.Address.String()), newKey(t)).Name
	}
}

// asks submits a request of each kind.
func (m member) asks(t *testing.T) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, kind := range kinds {
		names[kind] = m.ask(t, kind)
	}
	return names
}

// approvedAll checks that requests of all kinds are approved.
func approvedAll(t *testing.T, names map[string]string) {
	t.Helper()
	for kind, name := range names {
		if c := decided(t, blue, name); c.Type != certificatesv1.CertificateApproved {
			t.Errorf("%s: %s %s: %s", kind, c.Type, c.Reason, c.Message)
		}
	}
}

// deniedAll checks that requests of all kinds are denied, and returns the replica that did it.
func deniedAll(t *testing.T, names map[string]string) (by *Replica) {
	t.Helper()
	for kind, name := range names {
		c := decided(t, blue, name)
		if c.Type != certificatesv1.CertificateDenied || c.Reason != string(policyv1alpha1.NodeQuarantined) {
			t.Errorf("%s: %s %s: %s", kind, c.Type, c.Reason, c.Message)
		}
		if by = decider(name); by == nil {
			t.Fatalf("%s: no replica decided it", kind)
		}
	}
	return by
}

// decider returns the replica that approved or denied a request.
func decider(name string) *Replica {
	for _, replica := range blue.Replicas {
		if slices.ContainsFunc(replica.APIProxy.Passed(), func(r apiproxy.Request) bool {
			return r.Method == http.MethodPut && strings.HasSuffix(r.Path, "/"+name+"/approval")
		}) {
			return replica
		}
	}
	return nil
}

// TestQuarantinedNodeGetsNoCertificate: whichever replica decides, no kind of request is approved,
// also not one that was pending when the Quarantine began. Requests of another node are approved.
func TestQuarantinedNodeGetsNoCertificate(t *testing.T) {
	t.Cleanup(func() { recovered(t) })
	m, other := join(t), join(t)
	for _, replica := range blue.Replicas {
		orFatal(t, replica.Stop())
	}
	pending := m.asks(t)
	q := begun(t, policyv1alpha1.QuarantineSpec{Node: m.NodeName()})
	for _, replica := range blue.Replicas {
		orFatal(t, replica.Start(t.Context()))
	}
	first := deniedAll(t, pending)
	orFatal(t, q.InForce(t.Context(), servers()...))
	approvedAll(t, other.asks(t))

	orFatal(t, first.Stop())
	second := deniedAll(t, m.asks(t))
	approvedAll(t, other.asks(t))
	if second == first {
		t.Error("one replica decided everything")
	}
	orFatal(t, first.Start(t.Context()))

	q.end(t)
	approvedAll(t, m.asks(t))
}

// TestQuarantinedCertificate: no request that was made with the certificate is approved, and those made
// with another one of the node are.
func TestQuarantinedCertificate(t *testing.T) {
	m := launch(t, blue)
	key, otherKey := newKey(t), newKey(t)
	stolen := issued(t, blue, withToken(blue, token(t, m, blue.Replicas[0])), clientRequest(m.NodeName()), key)
	thief := withCertificate(t, blue, stolen, key)
	node := withCertificate(t, blue, issued(t, blue, thief, clientRequest(m.NodeName()), otherKey), otherKey)
	both := []request{clientRequest(m.NodeName()), servingRequest(m.NodeName(), m.Address.String())}

	q := quarantine(t, policyv1alpha1.QuarantineSpec{Credential: approve.CredentialID(stolen)})
	for _, r := range both {
		denied(t, blue, thief, r, policyv1alpha1.CredentialQuarantined)
		issued(t, blue, node, r, newKey(t))
	}
	// It is the certificate that is quarantined, not the machine.
	refused(t, ask(t, m, blue.Replicas[0], m.NodeName(), evidence(t, m)), http.StatusForbidden, bootstrap.AlreadyAttested)
	q.end(t)
	for _, r := range both {
		issued(t, blue, thief, r, newKey(t))
	}
}
