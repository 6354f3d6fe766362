package machines

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	registry "github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/key"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// registeredMachines are two servers that accept registered machines.
type registeredMachines struct {
	client   *registry.Client
	replicas []*Replica
}

func newRegisteredMachines(t *testing.T, approval string) *registeredMachines {
	r := &registeredMachines{}
	var err error
	r.client, err = registry.NewClient(blue.AdminConfig())
	orFatal(t, err)
	config := fmt.Sprintf(`attestor: key
  approval: %s
  rateLimit: {perSecond: 1000, burst: 1000, perSource: {perSecond: 1000, burst: 1000}}
  key: {clusterID: %s}
`, approval, Name)
	for n := range 2 {
		name := fmt.Sprintf("keys-%d-%s", n, strings.ToLower(t.Name()))
		replica, err := blue.AddReplica(t.Context(), name, WithConfig("attestor: aws\n", config))
		orFatal(t, err)
		t.Cleanup(func() {
			if err := errors.Join(replica.Stop(), replica.APIProxy.Close()); err != nil {
				t.Error(err)
			}
		})
		r.replicas = append(r.replicas, replica)
	}
	return r
}

// keyMachine is a machine with a host key of OpenSSH.
type keyMachine struct {
	name, dir string
	public    ssh.PublicKey
	der       []byte
	replica   *Replica
}

func (r *registeredMachines) machine(t *testing.T, name string) *keyMachine {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	orFatal(t, err)
	m := &keyMachine{name: name, dir: t.TempDir(), replica: r.replicas[len(name)%2]}
	m.public, err = ssh.NewPublicKey(public)
	orFatal(t, err)
	m.der, err = x509.MarshalPKIXPublicKey(public)
	orFatal(t, err)
	block, err := ssh.MarshalPrivateKey(private, name)
	orFatal(t, err)
	orFatal(t, os.WriteFile(m.keyFile(), pem.EncodeToMemory(block), 0o600))
	return m
}

func (m *keyMachine) keyFile() string    { return filepath.Join(m.dir, "host_key") }
func (m *keyMachine) kubeconfig() string { return filepath.Join(m.dir, "kubelet.conf") }
func (m *keyMachine) hash() string       { return v1alpha1.PublicKeyHash(m.der) }
func (m *keyMachine) entry() string      { return "key-" + strings.TrimPrefix(m.hash(), "sha256:")[:40] }

func (m *keyMachine) pending() string { return "key-" + strings.TrimPrefix(m.hash(), "sha256:")[:20] }

// register writes the Machine as an operator does.
func (r *registeredMachines) register(t *testing.T, m *keyMachine, change func(*v1alpha1.MachineSpec)) {
	t.Helper()
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: m.name}, Spec: v1alpha1.MachineSpec{
		NodeName: m.name, PublicKeys: []string{string(ssh.MarshalAuthorizedKey(m.public))}, Addresses: []string{"127.0.0.1", "::1"},
	}}
	change(&machine.Spec)
	_, err := r.client.Create(t.Context(), machine, metav1.CreateOptions{})
	orFatal(t, err)
}

func unchanged(*v1alpha1.MachineSpec) {}

// join runs the client until it ends.
func (m *keyMachine) join(ctx context.Context) (string, error) {
	_, port, err := net.SplitHostPort(m.replica.Address)
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, blue.Program, "client", "--authorizer=key", "--cluster-id="+Name, "--key-file="+m.keyFile(),
		"--node-name="+m.name, "--credential=certificate", "--node-url=https://localhost:"+port, "--kubeapi-url="+blue.Server(),
		"--tls-client-ca="+blue.CAFile(), "--kubeconfig="+m.kubeconfig(), "--cert-dir="+filepath.Join(m.dir, "pki"), "--interval=500ms")
	command.Env = server.Environment()
	output, err := command.CombinedOutput()
	return string(output), err
}

// certificateOf checks that a machine has a certificate of its node.
func certificateOf(t *testing.T, m *keyMachine) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", m.kubeconfig())
	orFatal(t, err)
	review, err := clientFor(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	orFatal(t, err)
	if review.Status.UserInfo.Username != "system:node:"+m.name {
		t.Errorf("the certificate is of %s", review.Status.UserInfo.Username)
	}
}

// TestTwentyRegisteredMachinesJoin at once, at two replicas.
func TestTwentyRegisteredMachinesJoin(t *testing.T) {
	r := newRegisteredMachines(t, "Registered")
	var joining errgroup.Group
	var all []*keyMachine
	for n := range atOnce {
		m := r.machine(t, fmt.Sprintf("registered-%d", n))
		m.replica = r.replicas[n%2]
		r.register(t, m, unchanged)
		all = append(all, m)
	}
	for _, m := range all {
		joining.Go(func() error {
			if output, err := m.join(t.Context()); err != nil {
				return fmt.Errorf("%s: %w: %s", m.name, err, output)
			}
			return nil
		})
	}
	orFatal(t, joining.Wait())
	for _, m := range all {
		certificateOf(t, m)
		entry, err := blue.Ledger.Get(t.Context(), m.entry())
		orFatal(t, err)
		if entry.Spec.NodeName != m.name || entry.Spec.PublicKey == "" || len(entry.Spec.Addresses) != 2 {
			t.Errorf("%+v", entry.Spec)
		}
	}
}

// TestStolenAnswersOfRegisteredMachines: what a thief copies from a machine gives no certificate for the thief's key.
func TestStolenAnswersOfRegisteredMachines(t *testing.T) {
	r := newRegisteredMachines(t, "Registered")
	m := r.machine(t, "registered-200")
	r.register(t, m, unchanged)
	own, thiefs := newKey(t), newKey(t)
	body := r.answer(t, m, own)
	var answer Answer
	eventually(t, "the machine is known", func(context.Context) error {
		if answer = r.authorize(t, m.replica, m.name, body); answer.parse(t).Status.Allowed {
			return nil
		}
		return fmt.Errorf("%+v", answer)
	})
	token := answer.parse(t).Status.Token
	for _, tc := range []struct {
		rule string
		node string
		body []byte
		want verdict.Code
	}{
		{"the same answer again", m.name, body, bootstrap.EvidenceUsed},
		{"the answer for another node", "registered-201", body, key.SignatureInvalid},
		{"the answer with another key to certify", m.name, replaced(t, body, "certifiedKey", hashOf(t, thiefs)), key.SignatureInvalid},
		{"a challenge that the thief made", m.name, replaced(t, body, "challenge", "AAAA"), attest.ChallengeInvalid},
		{"a new answer of the machine for another key", m.name, r.answer(t, m, thiefs), bootstrap.PublicKeyChanged},
		{"a key that nobody registered", m.name, r.answer(t, r.machine(t, m.name), thiefs), registry.MachineNotRegistered},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			for _, replica := range r.replicas {
				refused(t, r.authorize(t, replica, tc.node, tc.body), http.StatusForbidden, tc.want)
			}
		})
	}
	for rule, tc := range map[string]struct {
		change func(*v1alpha1.MachineSpec)
		want   verdict.Code
	}{
		"an expired registration": {func(s *v1alpha1.MachineSpec) {
			s.Expires = &metav1.Time{Time: time.Now().Add(-time.Minute)}
		}, registry.MachineExpired},
		"another address": {func(s *v1alpha1.MachineSpec) { s.Addresses = []string{"192.0.2.1"} }, registry.AddressNotRegistered},
	} {
		t.Run(rule, func(t *testing.T) {
			other := r.machine(t, "registered-"+strings.ToLower(string(tc.want)))
			r.register(t, other, tc.change)
			eventually(t, "it is refused", func(context.Context) error {
				answer := r.authorize(t, r.replicas[0], other.name, r.answer(t, other, own))
				if reason := answer.parse(t).Status.Reason; !strings.HasPrefix(reason, string(tc.want)+":") {
					return errors.New(reason)
				}
				return nil
			})
		})
	}
	config := withToken(blue, token)
	deniedWith(t, blue, config, clientRequest(m.name), thiefs, approve.KeyNotAttested)
	issued(t, blue, config, clientRequest(m.name), own)
}

// answer is what the client of a machine sends.
func (r *registeredMachines) answer(t *testing.T, m *keyMachine, certified *ecdsa.PrivateKey) []byte {
	t.Helper()
	response, err := r.http(t).Get("https://" + r.replicas[0].Address + "/challenge")
	orFatal(t, err)
	defer response.Body.Close()
	var c struct{ Challenge string }
	orFatal(t, json.NewDecoder(response.Body).Decode(&c))
	collector, err := key.NewCollector(key.CollectorOptions{KeyFile: m.keyFile(), ClusterID: Name, NodeName: m.name})
	orFatal(t, err)
	body, err := collector.Collect(t.Context(), attest.Binding{Challenge: c.Challenge, PublicKey: hashOf(t, certified)})
	orFatal(t, err)
	return body
}

func replaced(t *testing.T, body []byte, field, value string) []byte {
	t.Helper()
	var fields map[string]any
	orFatal(t, json.Unmarshal(body, &fields))
	fields[field] = value
	text, err := json.Marshal(fields)
	orFatal(t, err)
	return text
}

func (r *registeredMachines) http(t *testing.T) *http.Client {
	client, err := r.replicas[0].Client()
	orFatal(t, err)
	return client
}

func (r *registeredMachines) authorize(t *testing.T, replica *Replica, name string, body []byte) Answer {
	t.Helper()
	answer, err := server.Post(t.Context(), r.http(t), "https://"+replica.Address+"/authorize/"+name, "application/json", body)
	orFatal(t, err)
	return Answer(answer)
}

// TestAPersonApprovesWhileTheClientWaits: the client of a machine that nobody registered goes on once it is approved.
func TestAPersonApprovesWhileTheClientWaits(t *testing.T) {
	objects, err := manifests.Read(filepath.Join(blue.deploy(), "manual-approval", "rights.yaml"))
	orFatal(t, err)
	orFatal(t, manifests.Apply(t.Context(), blue.AdminConfig(), objects, func(*unstructured.Unstructured) {}))
	r := newRegisteredMachines(t, "Manual")
	m := r.machine(t, "waiting-1")
	var output string
	var joining errgroup.Group
	joining.Go(func() (err error) {
		output, err = m.join(t.Context())
		return err
	})
	eventually(t, "the machine waits", func(ctx context.Context) error {
		waiting, err := r.client.Get(ctx, m.pending(), metav1.GetOptions{})
		if err == nil && (waiting.IsApproved() || waiting.Spec.NodeName != m.name || waiting.Spec.PublicKeys[0] != m.hash()) {
			err = fmt.Errorf("%+v", waiting.Spec)
		}
		return err
	})
	if exists(m.kubeconfig()) {
		t.Error("the machine joined before it was approved")
	}
	confirm := func(expected string) (string, error) {
		text, err := exec.CommandContext(t.Context(), blue.Program, "approve", m.pending(), "--expect-key", expected,
			"--kubeconfig", blue.AdminKubeconfig()).CombinedOutput()
		return string(text), err
	}
	if text, err := confirm(string(ssh.MarshalAuthorizedKey(r.machine(t, "other").public))); err == nil {
		t.Errorf("another key: %s", text)
	}
	text, err := confirm(string(ssh.MarshalAuthorizedKey(m.public)))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if err := joining.Wait(); err != nil || !strings.Contains(output, "PendingApproval") {
		t.Fatalf("%v: %s", err, output)
	}
	certificateOf(t, m)
}
