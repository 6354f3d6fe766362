package machines

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ecdsa"
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
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/approve"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/oidc"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeissuer"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// identityTokens are two servers that accept the tokens of an issuer.
type identityTokens struct {
	*fakeissuer.Issuer
	replicas []*Replica
}

func newIdentityTokens(t *testing.T) *identityTokens {
	i := &identityTokens{Issuer: fakeissuer.New(t)}
	authority := filepath.Join(t.TempDir(), "issuer.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw})
	orFatal(t, os.WriteFile(authority, text, 0o600))
	config := fmt.Sprintf(`attestor: oidc
  rateLimit: {perSecond: 1000, burst: 1000, perSource: {perSecond: 1000, burst: 1000}}
  oidc:
    issuerURL: %s
    certificateAuthorityFile: %s
    clusterID: %s
    conditions:
    - expression: claims.google.compute_engine.project_id == "shop-prod-1"
      message: the instance is of another project
    nodeName: claims.google.compute_engine.instance_name
    instanceID: claims.google.compute_engine.instance_id
`, i.URL, authority, Name)
	for n := range 2 {
		name := fmt.Sprintf("tokens-%d-%s", n, strings.ToLower(t.Name()))
		replica, err := blue.AddReplica(t.Context(), name, WithConfig("attestor: aws\n", config))
		orFatal(t, err)
		t.Cleanup(func() {
			if err := errors.Join(replica.Stop(), replica.APIProxy.Close()); err != nil {
				t.Error(err)
			}
		})
		i.replicas = append(i.replicas, replica)
	}
	return i
}

// tokenMachine is an instance of Google Cloud.
type tokenMachine struct {
	fakeissuer.Instance
	dir, metadata string
	replica       *Replica
}

func (i *identityTokens) machine(t *testing.T, n int) *tokenMachine {
	instance := fakeissuer.Instance{
		Project: "shop-prod-1", Zone: "europe-west1-b", ID: fmt.Sprintf("15298666223293%04d", n), Name: fmt.Sprintf("token-%d", n),
	}
	return &tokenMachine{instance, t.TempDir(), i.Metadata(t, instance), i.replicas[n%len(i.replicas)]}
}

func (m *tokenMachine) kubeconfig() string { return filepath.Join(m.dir, "kubelet.conf") }
func (m *tokenMachine) pair() string {
	return filepath.Join(m.dir, "pki", "kubelet-client-current.pem")
}

// client runs the client, until it ends or is killed.
func (m *tokenMachine) client(ctx context.Context) (string, error) {
	_, port, err := net.SplitHostPort(m.replica.Address)
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, blue.Program, "client", "--authorizer=oidc", "--cluster-id="+Name, "--credential=certificate",
		"--node-url=https://localhost:"+port, "--kubeapi-url="+blue.Server(), "--tls-client-ca="+blue.CAFile(),
		"--kubeconfig="+m.kubeconfig(), "--cert-dir="+filepath.Join(m.dir, "pki"), "--interval=500ms")
	command.Env = server.Environment("GCE_METADATA_HOST=" + m.metadata)
	output, err := command.CombinedOutput()
	return string(output), err
}

func (m *tokenMachine) entry(ctx context.Context) (*v1alpha1.NodeAttestation, error) {
	return blue.Ledger.Get(ctx, "oidc-"+m.ID)
}

// requests are the certificate signing requests for the machine's node.
func (m *tokenMachine) requests(t *testing.T) []certificatesv1.CertificateSigningRequest {
	return requestsFor(t, m.Name)
}

func requestsFor(t *testing.T, node string) (all []certificatesv1.CertificateSigningRequest) {
	list, err := blue.Client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	orFatal(t, err)
	for _, r := range list.Items {
		parsed, err := x509.ParseCertificateRequest(block(t, r.Spec.Request))
		orFatal(t, err)
		if parsed.Subject.CommonName == "system:node:"+node {
			all = append(all, r)
		}
	}
	return all
}

func block(t *testing.T, text []byte) []byte {
	decoded, _ := pem.Decode(text)
	if decoded == nil {
		t.Fatalf("no PEM: %s", text)
	}
	return decoded.Bytes
}

// TestTwentyMachinesJoinWithIdentityTokens: each has one certificate for the key that its token names, and no token in a file.
// The kubelets of some start with it; TOKEN_KUBELETS=20 starts all.
func TestTwentyMachinesJoinWithIdentityTokens(t *testing.T) {
	i := newIdentityTokens(t)
	var machines []*tokenMachine
	for n := range atOnce {
		machines = append(machines, i.machine(t, n))
	}
	var joining errgroup.Group
	for _, m := range machines {
		joining.Go(func() error {
			if output, err := m.client(t.Context()); err != nil {
				return fmt.Errorf("%s: %w: %s", m.Name, err, output)
			}
			return nil
		})
	}
	orFatal(t, joining.Wait())
	for _, m := range machines {
		entry, err := m.entry(t.Context())
		orFatal(t, err)
		all := m.requests(t)
		if len(all) != 1 || approve.PublicKey(all[0].Spec.Request) != entry.Spec.PublicKey {
			t.Errorf("%s: %d requests, the key of the evidence is %s", m.Name, len(all), entry.Spec.PublicKey)
		}
		noTokenIn(t, m.dir)
		if output, err := m.client(t.Context()); err != nil || !strings.Contains(output, "nothing to do") {
			t.Errorf("%s again: %v %s", m.Name, err, output)
		}
	}
	kubelets, err := strconv.Atoi(cmp.Or(os.Getenv("TOKEN_KUBELETS"), "3"))
	orFatal(t, err)
	var starting errgroup.Group
	nodes := make([]*localplane.Node, kubelets)
	for n, m := range machines[:kubelets] {
		starting.Go(func() (err error) {
			config, err := clientcmd.LoadFromFile(m.kubeconfig())
			if err != nil {
				return err
			}
			user := config.AuthInfos[config.Contexts[config.CurrentContext].AuthInfo]
			nodes[n], err = blue.AddNode(t.Context(), m.Name, localplane.NodeOptions{Credential: user})
			return err
		})
	}
	orFatal(t, starting.Wait()) // each is Ready
	for _, node := range nodes {
		orFatal(t, node.Stop())
	}
}

// noTokenIn checks that no file has a bootstrap token, or the key twice.
func noTokenIn(t *testing.T, dir string) {
	t.Helper()
	orFatal(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte("token")) || strings.HasSuffix(path, ".key.tmp") {
			t.Errorf("%s: %s", path, bytes.SplitN(text, []byte("\n"), 2)[0])
		}
		return err
	}))
}

// TestClientsThatAreKilled: whenever a client is killed, the next one ends with one certificate for the same key.
func TestClientsThatAreKilled(t *testing.T) {
	i := newIdentityTokens(t)
	for n, tc := range []struct {
		step    string
		reached func(*tokenMachine) bool
	}{
		{"it has a key", func(m *tokenMachine) bool { return exists(filepath.Join(m.dir, "pki", "kubelet-client.key.tmp")) }},
		{"it is in the ledger", func(m *tokenMachine) bool { _, err := m.entry(t.Context()); return err == nil }},
		{"its request exists", func(m *tokenMachine) bool { return len(m.requests(t)) > 0 }},
		{"its certificate is issued", func(m *tokenMachine) bool {
			return slices.ContainsFunc(m.requests(t), func(r certificatesv1.CertificateSigningRequest) bool {
				return len(r.Status.Certificate) > 0
			})
		}},
		{"its certificate is stored", func(m *tokenMachine) bool { return exists(m.pair()) }},
	} {
		t.Run(tc.step, func(t *testing.T) {
			m := i.machine(t, 100+n)
			ctx, kill := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = m.client(ctx) // it is killed, or was faster
			}()
			eventually(t, tc.step, func(context.Context) error {
				if !tc.reached(m) {
					return errors.New("not yet")
				}
				return nil
			})
			kill()
			<-ended
			if output, err := m.client(t.Context()); err != nil {
				t.Fatalf("%v: %s", err, output)
			}
			keys := map[string]bool{}
			for _, r := range m.requests(t) {
				keys[approve.PublicKey(r.Spec.Request)] = true
			}
			if len(keys) != 1 {
				t.Errorf("requests for %d keys", len(keys))
			}
			config, err := clientcmd.BuildConfigFromFlags("", m.kubeconfig())
			orFatal(t, err)
			noTokenIn(t, m.dir)
			review, err := clientFor(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
				&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			orFatal(t, err)
			if review.Status.UserInfo.Username != "system:node:"+m.Name {
				t.Errorf("the certificate is of %s", review.Status.UserInfo.Username)
			}
		})
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// TestStolenIdentityTokens: what a thief copies from a machine gives no certificate for the thief's key.
func TestStolenIdentityTokens(t *testing.T) {
	i := newIdentityTokens(t)
	m := i.machine(t, 200)
	own, thiefs := newKey(t), newKey(t)
	token := i.Sign(t, i.Claims(oidc.Audience(Name, attest.Binding{Challenge: i.challenge(t), PublicKey: hashOf(t, own)}), m.Claims()))
	answer := i.authorize(t, m.replica, m.Name, token).parse(t)
	if !answer.Status.Allowed {
		t.Fatalf("%+v", answer)
	}
	t.Run("the same token again", func(t *testing.T) {
		for _, replica := range i.replicas {
			refused(t, i.authorize(t, replica, m.Name, token), http.StatusForbidden, bootstrap.EvidenceUsed)
		}
	})
	t.Run("a new token of the same machine for another key", func(t *testing.T) {
		audience := oidc.Audience(Name, attest.Binding{Challenge: i.challenge(t), PublicKey: hashOf(t, thiefs)})
		again := i.authorize(t, m.replica, m.Name, i.Sign(t, i.Claims(audience, m.Claims())))
		refused(t, again, http.StatusForbidden, bootstrap.PublicKeyChanged)
	})
	config := withToken(blue, answer.Status.Token)
	t.Run("the bootstrap token with another key", func(t *testing.T) {
		deniedWith(t, blue, config, clientRequest(m.Name), thiefs, approve.KeyNotAttested)
	})
	t.Run("the bootstrap token for another node", func(t *testing.T) {
		deniedWith(t, blue, config, clientRequest("token-201"), own, approve.WrongNodeName)
	})
	t.Run("the machine itself", func(t *testing.T) { issued(t, blue, config, clientRequest(m.Name), own) })
}

// challenge asks a server for a challenge.
func (i *identityTokens) challenge(t *testing.T) string {
	t.Helper()
	response, err := i.client(t).Get("https://" + i.replicas[0].Address + "/challenge")
	orFatal(t, err)
	defer response.Body.Close()
	var c struct{ Challenge string }
	orFatal(t, json.NewDecoder(response.Body).Decode(&c))
	return c.Challenge
}

func (i *identityTokens) client(t *testing.T) *http.Client {
	client, err := i.replicas[0].Client()
	orFatal(t, err)
	return client
}

func (i *identityTokens) authorize(t *testing.T, replica *Replica, name, token string) Answer {
	t.Helper()
	body, err := json.Marshal(map[string]string{"identityToken": token})
	orFatal(t, err)
	answer, err := server.Post(t.Context(), i.client(t), "https://"+replica.Address+"/authorize/"+name, "application/json", body)
	orFatal(t, err)
	return Answer(answer)
}

func hashOf(t *testing.T, key *ecdsa.PrivateKey) string {
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	orFatal(t, err)
	return v1alpha1.PublicKeyHash(der)
}
