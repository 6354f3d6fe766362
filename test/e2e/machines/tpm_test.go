package machines

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/machines"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/tpm"
	"github.com/node-authorizer/node-authorizer/internal/testing/swtpm"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// tpms are two servers that accept registered TPMs, which are emulated.
type tpms struct {
	authority *swtpm.Authority
	replicas  []*Replica
	client    *machines.Client
}

func newTPMs(t *testing.T) *tpms {
	t.Helper()
	all := &tpms{authority: swtpm.NewAuthority(t)}
	var err error
	all.client, err = machines.NewClient(blue.AdminConfig())
	orFatal(t, err)
	for n := range 2 {
		name := fmt.Sprintf("tpm-%d-%s", n, strings.ToLower(t.Name()))
		replica, err := blue.AddReplica(t.Context(), name, WithConfig("attestor: aws\n", `attestor: tpm
  rateLimit: {perSecond: 1000, burst: 1000, perSource: {perSecond: 1000, burst: 1000}}
`))
		orFatal(t, err)
		t.Cleanup(func() {
			if err := errors.Join(replica.Stop(), replica.APIProxy.Close()); err != nil {
				t.Error(err)
			}
		})
		all.replicas = append(all.replicas, replica)
	}
	return all
}

// tpmMachine is a machine with a TPM.
type tpmMachine struct {
	name, socket, hash, dir string
	replica                 *Replica
}

// machine starts a TPM.
func (all *tpms) machine(t *testing.T, n int) *tpmMachine {
	t.Helper()
	m := &tpmMachine{name: fmt.Sprintf("tpm-%d", n), socket: all.authority.Start(t), dir: t.TempDir(), replica: all.replicas[n%2]}
	var err error
	m.hash, err = m.collector().EKHash()
	orFatal(t, err)
	return m
}

func (m *tpmMachine) collector() *tpm.Collector {
	return tpm.NewCollector(tpm.CollectorOptions{Device: m.socket})
}

// register writes the Machine of a TPM, until the end of the test.
func (all *tpms) register(t *testing.T, m *tpmMachine) {
	t.Helper()
	_, err := all.client.Create(t.Context(), &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: m.name},
		Spec:       v1alpha1.MachineSpec{NodeName: m.name, TPM: &v1alpha1.MachineTPM{EKHashes: []string{m.hash}}},
	}, metav1.CreateOptions{})
	orFatal(t, err)
	t.Cleanup(func() {
		if err := all.client.Delete(context.Background(), m.name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func (m *tpmMachine) kubeconfig() string { return filepath.Join(m.dir, "kubelet.conf") }

// join runs the client.
func (m *tpmMachine) join(ctx context.Context) error {
	_, port, err := net.SplitHostPort(m.replica.Address)
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, blue.Program, "client", "--authorizer=tpm", "--tpm-device="+m.socket, "--credential=certificate",
		"--node-name="+m.name, "--node-url=https://localhost:"+port, "--kubeapi-url="+blue.Server(), "--tls-client-ca="+blue.CAFile(),
		"--kubeconfig="+m.kubeconfig(), "--cert-dir="+filepath.Join(m.dir, "pki"), "--interval=500ms", "--timeout=60s")
	command.Env = server.Environment()
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", m.name, err, output)
	}
	return nil
}

// TestTwentyMachinesJoinWithTPMs: each has one certificate, for the key in its TPM's quote. The kubelets of some start with it.
func TestTwentyMachinesJoinWithTPMs(t *testing.T) {
	all := newTPMs(t)
	joined := make([]*tpmMachine, atOnce)
	var joining errgroup.Group
	for n := range joined {
		joined[n] = all.machine(t, n)
		all.register(t, joined[n])
	}
	for _, m := range joined {
		joining.Go(func() error { return m.join(t.Context()) })
	}
	orFatal(t, joining.Wait())
	list, err := blue.Client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	orFatal(t, err)
	for _, m := range joined {
		entry, err := blue.Ledger.Get(t.Context(), m.entry())
		orFatal(t, err)
		if entry.Spec.NodeName != m.name || entry.Spec.PublicKey == "" || !strings.Contains(entry.Spec.Description, "IBM SWTPM") {
			t.Errorf("the ledger has %+v", entry.Spec)
		}
		if keys := keysOf(t, list.Items, m.name); len(keys) != 1 || !keys[entry.Spec.PublicKey] {
			t.Errorf("%s: requests for the keys %v, the quote has %s", m.name, keys, entry.Spec.PublicKey)
		}
		noTokenIn(t, m.dir)
	}
	var starting errgroup.Group
	nodes := make([]*localplane.Node, 2)
	for n, m := range joined[:len(nodes)] {
		starting.Go(func() (err error) {
			config, err := clientcmd.LoadFromFile(m.kubeconfig())
			if err != nil {
				return err
			}
			user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
			nodes[n], err = blue.AddNode(t.Context(), m.name, localplane.NodeOptions{Credential: user})
			return err
		})
	}
	orFatal(t, starting.Wait()) // each is Ready
	for _, node := range nodes {
		orFatal(t, node.Stop())
	}
}

// entry is the name of the machine's NodeAttestation.
func (m *tpmMachine) entry() string { return "tpm-" + strings.TrimPrefix(m.hash, "sha256:")[:40] }

// keysOf returns the hashes of the keys for which certificates of a node were requested.
func keysOf(t *testing.T, requests []certificatesv1.CertificateSigningRequest, node string) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	for _, r := range requests {
		parsed, err := x509.ParseCertificateRequest(block(t, r.Spec.Request))
		orFatal(t, err)
		if parsed.Subject.CommonName == "system:node:"+node {
			keys[approve.PublicKey(r.Spec.Request)] = true
		}
	}
	return keys
}

// TestRoundsOfTPMs: what a thief has copied is of no use, and each round may go to another replica.
func TestRoundsOfTPMs(t *testing.T) {
	all := newTPMs(t)
	m, other := all.machine(t, 100), all.machine(t, 101)
	all.register(t, m)
	own, thiefs := newKey(t), newKey(t)
	// first shows the keys of a TPM to a replica, and returns the challenge.
	first := func(t *testing.T, c *tpm.Collector, about attest.Binding) []byte {
		t.Helper()
		body, err := c.Collect(t.Context(), about)
		orFatal(t, err)
		answer := all.post(t, 0, m.name, body)
		if answer.Status != http.StatusUnauthorized {
			t.Fatalf("%d %s", answer.Status, answer.Body)
		}
		return []byte(answer.Body)
	}
	about := attest.Binding{PublicKey: hashOf(t, own)}
	collector := m.collector()
	challenge := first(t, collector, about)
	body, err := collector.Respond(t.Context(), about, challenge)
	orFatal(t, err)
	var given struct{ Answer json.RawMessage }
	orFatal(t, json.Unmarshal(body, &given))

	t.Run("another TPM cannot answer", func(t *testing.T) {
		c := other.collector()
		_, err := c.Collect(t.Context(), about)
		orFatal(t, err)
		if _, err := c.Respond(t.Context(), about, challenge); err == nil {
			t.Error("it decrypted the secret")
		}
	})
	t.Run("a TPM that is not registered", func(t *testing.T) {
		c := other.collector()
		challenge := first(t, c, about)
		body, err := c.Respond(t.Context(), about, challenge)
		orFatal(t, err)
		refused(t, all.post(t, 1, m.name, body), http.StatusForbidden, machines.MachineNotRegistered)
	})
	t.Run("the answer for another node", func(t *testing.T) {
		refused(t, all.post(t, 1, "tpm-102", body), http.StatusForbidden, attest.ChallengeInvalid)
	})
	t.Run("a changed answer", func(t *testing.T) {
		changed := bytes.Replace(body, []byte(`"pcrs":["`), []byte(`"pcrs":["/`), 1)
		changed = bytes.Replace(changed, []byte(`A="`), []byte(`="`), 1)
		if answer := all.post(t, 1, m.name, changed); answer.Status != http.StatusForbidden && answer.Status != http.StatusBadRequest {
			t.Errorf("%d %s", answer.Status, answer.Body)
		}
	})
	answer := all.post(t, 1, m.name, body).parse(t)
	if !answer.Status.Allowed {
		t.Fatalf("the machine itself, at the other replica: %+v", answer)
	}
	t.Run("the same answer again", func(t *testing.T) {
		for n := range all.replicas {
			refused(t, all.post(t, n, m.name, body), http.StatusForbidden, bootstrap.EvidenceUsed)
		}
	})
	t.Run("a second machine with the same TPM", func(t *testing.T) {
		c := m.collector()
		about := attest.Binding{PublicKey: hashOf(t, thiefs)}
		body, err := c.Respond(t.Context(), about, first(t, c, about))
		orFatal(t, err)
		refused(t, all.post(t, 0, m.name, body), http.StatusForbidden, bootstrap.PublicKeyChanged)
	})
	config := withToken(blue, answer.Status.Token)
	t.Run("the bootstrap token with another key", func(t *testing.T) {
		deniedWith(t, blue, config, clientRequest(m.name), thiefs, approve.KeyNotAttested)
	})
	t.Run("the machine itself", func(t *testing.T) { issued(t, blue, config, clientRequest(m.name), own) })
}

// TestTheServiceIsKilledBetweenTheRounds: another replica answers the second one.
func TestTheServiceIsKilledBetweenTheRounds(t *testing.T) {
	all := newTPMs(t)
	m := all.machine(t, 110)
	all.register(t, m)
	about := attest.Binding{PublicKey: hashOf(t, newKey(t))}
	collector := m.collector()
	body, err := collector.Collect(t.Context(), about)
	orFatal(t, err)
	challenge := all.post(t, 0, m.name, body)
	orFatal(t, all.replicas[0].Kill())
	body, err = collector.Respond(t.Context(), about, []byte(challenge.Body))
	orFatal(t, err)
	if answer := all.post(t, 1, m.name, body).parse(t); !answer.Status.Allowed {
		t.Errorf("%+v", answer)
	}
}

func (all *tpms) post(t *testing.T, replica int, name string, body []byte) Answer {
	t.Helper()
	client, err := all.replicas[replica].Client()
	orFatal(t, err)
	answer, err := server.Post(t.Context(), client, "https://"+all.replicas[replica].Address+"/authorize/"+name, "application/json", body)
	orFatal(t, err)
	return Answer(answer)
}
