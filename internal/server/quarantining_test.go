package server

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
)

const quarantinePath = "/apis/policy.node-authorizer.io/v1alpha1/quarantines/incident-7"

func ofNode(node string) *policyv1alpha1.Quarantine {
	return &policyv1alpha1.Quarantine{
		ObjectMeta: metav1.ObjectMeta{Name: "incident-7", Generation: 1}, Spec: policyv1alpha1.QuarantineSpec{Node: node},
	}
}

func quarantining(c *v1alpha1.ServerConfiguration) { c.Containment.Quarantines = v1alpha1.Enabled }

// A server that only lets machines join follows quarantines too.
func TestAQuarantinedMachineDoesNotJoin(t *testing.T) {
	t.Parallel()
	s := newJoinServer(t, quarantining).ready()
	token := s.join("worker-1")
	s.put("/api/v1/nodes/other", &corev1.Node{})
	s.put(quarantinePath, ofNode("worker-1"))
	machine := s.callers.client("node-authorizer-client")
	eventually(t, "the machine is refused", func() bool {
		status, answer := s.ask(machine, "worker-1", "{}")
		return status == http.StatusForbidden && strings.HasPrefix(answer.Status.Reason, "NodeQuarantined: ") && answer.Status.Token == ""
	})
	s.request("csr-1", token, "worker-1")
	if got := s.decided("csr-1"); got != "Denied NodeQuarantined" {
		t.Errorf("the request of the quarantined machine: %s", got)
	}

	other := s.join("worker-2")
	s.request("csr-2", other, "worker-2")
	if got := s.decided("csr-2"); got != "Approved ClientCertificateApproved" {
		t.Errorf("the request of another machine: %s", got)
	}

	s.cluster.Remove(quarantinePath)
	eventually(t, "the machine gets its token again", func() bool {
		status, answer := s.ask(machine, "worker-1", "{}")
		return status == http.StatusOK && answer.Status.Token == token
	})
	s.request("csr-3", token, "worker-1")
	if got := s.decided("csr-3"); got != "Approved ClientCertificateApproved" {
		t.Errorf("the request of the released machine: %s", got)
	}
	for name, want := range map[string]string{
		`node_authorizer_attestations_total{attestor="alwaysallow",code="NodeQuarantined",outcome="refused"}`: "",
		`node_authorizer_certificate_requests_total{code="NodeQuarantined",kind="client",outcome="denied"}`:   "1",
	} {
		if got := s.metric(name); got == "" || want != "" && got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

// While Quarantines cannot be read, machines and their requests wait, and the server is not ready.
func TestNoMachineJoinsWhileQuarantinesCannotBeRead(t *testing.T) {
	t.Parallel()
	asked := &requests{forbidden: "/quarantines"}
	s := newJoinServerIn(t, asked, quarantining)
	machine := s.callers.client("node-authorizer-client")
	eventually(t, "a request fails because of it", func() bool {
		status, answer := s.ask(machine, "worker-1", "{}")
		if status != http.StatusServiceUnavailable || answer.Status.Token != "" {
			t.Fatalf("got %d %+v", status, answer)
		}
		return strings.Contains(s.log.String(), "look for a quarantine of node worker-1: ")
	})
	if got := s.probe(); got.status != http.StatusServiceUnavailable || !strings.Contains(got.body, "join-quarantines") {
		t.Errorf("readiness: %d %s", got.status, got.body)
	}
	asked.forbid("")
	s.ready()
	token := s.join("worker-1")

	s.request("csr-1", token, "worker-1")
	if got := s.decided("csr-1"); got != "Approved ClientCertificateApproved" {
		t.Errorf("the machine's request: %s", got)
	}
}

func TestTheRoleOfAQuarantinedNodeGetsNoUser(t *testing.T) { // sets the environment of the SDK
	s := newAuthenticationServer(t, nodeRoles+opsRoles, func(c *v1alpha1.ServerConfiguration) {
		quarantining(c)
		c.Containment.MaxQuarantinedNodes = "1"
	})
	s.ready()
	worker, other := s.launch("node"), s.launch("node")
	of := func(i fakeaws.Instance) string { return s.user(s.tokenOf(s.cloud.Role(i.ID))) }
	name := "system:node:" + worker.PrivateDNSName
	if got := of(worker); got != name {
		t.Errorf("before the quarantine, got %s", got)
	}
	if err := s.cluster.Put(quarantinePath, ofNode(worker.PrivateDNSName)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the node is refused", func() bool { return of(worker) == "NodeQuarantined" })
	if got, want := of(other), "system:node:"+other.PrivateDNSName; got != want {
		t.Errorf("another node is %s, want %s", got, want)
	}
	if got := s.user(s.tokenOf(s.cloud.Session(account, "ops", "ada"))); got != "ops:ada" {
		t.Errorf("a person is %s", got)
	}
	s.cluster.Remove(quarantinePath)
	eventually(t, "the node is released", func() bool { return of(worker) == name })
}

// While Quarantines cannot be read, tokens of nodes are errors, and tokens of people are not.
func TestTokensOfNodesAreErrorsWhileQuarantinesCannotBeRead(t *testing.T) { // sets the environment of the SDK
	s := newAuthenticationServer(t, nodeRoles+opsRoles, quarantining, func(s *authenticationServer) { s.asked.forbid("/quarantines") })
	ada := s.tokenOf(s.cloud.Session(account, "ops", "ada"))
	eventually(t, "a person is authenticated", func() bool { return s.user(ada) == "ops:ada" })
	worker := s.tokenOf(s.cloud.Role(s.launch("node").ID))
	eventually(t, "a node fails because of it", func() bool {
		if got := s.user(worker); got != "503" {
			t.Fatalf("a node is %s", got)
		}
		return strings.Contains(s.log.String(), "look for a quarantine of node ")
	})
	s.asked.forbid("")
	s.ready()
	if got := s.user(worker); !strings.HasPrefix(got, "system:node:") {
		t.Errorf("a node is %s", got)
	}
}
