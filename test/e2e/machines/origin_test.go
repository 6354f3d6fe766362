package machines

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// The tests in this file are about the mistakes of the node-authorizer of kops.

// TestNameComesFromTheEvidence: it took the node name from the URL.
func TestNameComesFromTheEvidence(t *testing.T) {
	m, other := launch(t, blue), launch(t, blue)
	for _, name := range []string{other.NodeName(), "kube-apiserver", "control-plane-1", m.Instance.ID} {
		t.Run(name, func(t *testing.T) {
			refused(t, ask(t, m, blue.Replicas[0], name, evidence(t, m)), http.StatusForbidden, bootstrap.NameMismatch)
		})
	}
	nothingWritten(t, blue, m)
	nothingWritten(t, blue, other)
}

// TestTokensAreAsStrongAsKubernetesAllows: they had 64 bits, in hexadecimal, and the
// usage "signing". TestTokensThatNobodyUsesEnd checks the whole Secret.
func TestTokensAreAsStrongAsKubernetesAllows(t *testing.T) {
	form := regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	var all string
	for range 20 {
		m := launch(t, blue)
		given := token(t, m, blue.Replicas[0])
		if !form.MatchString(given) {
			t.Errorf("a token of %d characters is not of the form of bootstrap tokens", len(given))
		}
		all += given
		secret, err := blue.Client.CoreV1().Secrets(ledger.TokenNamespace).Get(t.Context(), ledger.TokenSecretName(given[:6]),
			metav1.GetOptions{})
		orFatal(t, err)
		for key := range secret.Data {
			if strings.HasPrefix(key, "usage-") && key != "usage-bootstrap-authentication" {
				t.Errorf("the token has %s", key)
			}
		}
	}
	for _, letter := range "abcdefghijklmnopqrstuvwxyz0123456789" {
		if !strings.ContainsRune(all, letter) {
			t.Errorf("440 characters of tokens have no %q", letter)
		}
	}
}

// strict starts a server with a stricter config file than deploy/bootstrap has.
func strict(t *testing.T, name string) *Replica {
	t.Helper()
	replica, err := blue.AddReplica(t.Context(), name, WithConfig(
		"attestor: aws\n", "attestor: aws\n  reattestation: NewerEvidence\n  requestTimeout: 2s\n",
		"clusterName: "+Name+"\n", "clusterName: "+Name+"\n    instanceProfiles: [nodes."+Name+"]\n",
	))
	orFatal(t, err)
	t.Cleanup(func() {
		if err := errors.Join(replica.Stop(), replica.APIProxy.Close()); err != nil {
			t.Error(err)
		}
	})
	return replica
}

// TestStrictServer sends requests to a server that is stricter than the server of
// deploy/bootstrap.
func TestStrictServer(t *testing.T) {
	replica := strict(t, "strict")
	// It compared the ARN of an instance profile with the ARN of a role.
	t.Run("an instance has to have the profile of nodes", func(t *testing.T) {
		for name, profile := range map[string]string{"another": blue.profile("masters"), "none": ""} {
			m := launch(t, blue, func(i *fakeaws.Instance) {
				if i.Profile = profile; profile == "" {
					i.Role = ""
				}
			})
			t.Run(name, func(t *testing.T) {
				refused(t, ask(t, m, replica, m.NodeName(), evidence(t, m)), http.StatusForbidden, aws.WrongInstanceProfile)
			})
		}
		token(t, launch(t, blue), replica)
	})
	t.Run("the same document after stop and start is refused", func(t *testing.T) { stopAndStart(t, replica) })
	// It answered 200 with an empty token when it could not make one.
	t.Run("there is no answer without a token", func(t *testing.T) { noEmptyToken(t, replica) })
	// Bodies had no limits of size and time.
	t.Run("a slow body is not waited for", func(t *testing.T) { slowBody(t, replica) })
	// It handled SIGINT only.
	t.Run("requests are answered during shutdown", func(t *testing.T) { drains(t, replica) })
}

// stopAndStart shows that evidence that is not newer than the used one is refused, and
// that a machine that was stopped and started has newer evidence.
func stopAndStart(t *testing.T, replica *Replica) {
	m := launch(t, blue)
	old := evidence(t, m)
	certified(t, blue, m)
	inPhase(t, blue, m, v1alpha1.Certified)
	refused(t, ask(t, m, replica, m.NodeName(), old), http.StatusForbidden, bootstrap.AlreadyAttested)
	blue.Cloud.Stop(m.Instance.ID)
	refused(t, ask(t, m, replica, m.NodeName(), old), http.StatusForbidden, aws.InstanceNotRunning)
	blue.Cloud.Start(m.Instance.ID)
	refused(t, ask(t, m, replica, m.NodeName(), old), http.StatusForbidden, bootstrap.AlreadyAttested)

	t.Run("newer evidence", func(t *testing.T) {
		refused(t, ask(t, m, blue.Replicas[0], m.NodeName(), evidence(t, m)), http.StatusForbidden, bootstrap.AlreadyAttested)
		given := token(t, m, replica)
		issued(t, blue, withToken(blue, given), clientRequest(m.NodeName()), newKey(t))
	})
}

// noEmptyToken pauses etcd, so that no token can be written.
func noEmptyToken(t *testing.T, replica *Replica) {
	m := launch(t, blue)
	body := evidence(t, m)
	orFatal(t, blue.Pause(localplane.Etcd))
	answer, err := m.Ask(t.Context(), replica, m.NodeName(), body)
	orFatal(t, blue.Resume(localplane.Etcd))
	orFatal(t, err)
	refused(t, answer, http.StatusServiceUnavailable, bootstrap.BootstrapUnavailable)
	if answer.Header.Get("Retry-After") == "" {
		t.Error("it does not say when to try again")
	}
	eventually(t, "the machine gets its token", func(ctx context.Context) error {
		answer, err := m.Ask(ctx, replica, m.NodeName(), body)
		if err == nil && !answer.parse(t).Status.Allowed {
			err = errors.New(answer.Body)
		}
		return err
	})
}

// slowBody sends the beginning of a body and no more. The server closes the connection.
func slowBody(t *testing.T, replica *Replica) {
	m := launch(t, blue)
	roots, err := server.Roots(blue.CAFile())
	orFatal(t, err)
	connection, err := tls.DialWithDialer(dialerFrom(m.Address.String()), "tcp", replica.Address, &tls.Config{RootCAs: roots})
	orFatal(t, err)
	defer connection.Close()
	_, err = fmt.Fprintf(connection, "POST /authorize/%s HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000\r\n\r\n{", m.NodeName(),
		replica.Address)
	orFatal(t, err)
	answer := make([]byte, 1024)
	n, err := connection.Read(answer)
	if line, _, _ := strings.Cut(string(answer[:n]), "\r\n"); err == nil && strings.Contains(line, " 200 ") {
		t.Errorf("answered %s", line)
	}
}

// drains stops the server gracefully while it waits for kube-apiserver.
func drains(t *testing.T, replica *Replica) {
	m := launch(t, blue)
	body := evidence(t, m)
	hold := replica.APIProxy.HoldRequest(isTokenCreation)
	answers := make(chan Answer, 1)
	go func() {
		answer, err := m.Ask(t.Context(), replica, m.NodeName(), body)
		if err != nil {
			t.Error(err)
		}
		answers <- answer
	}()
	<-hold.Held
	stopped := make(chan error, 1)
	go func() { stopped <- replica.Stop() }()
	eventually(t, "the server says that it ends", func(ctx context.Context) error {
		if replica.Ready(ctx) == nil {
			return errors.New("it is ready")
		}
		return nil
	})
	hold.Release()
	if answer := <-answers; answer.Status != http.StatusOK || !answer.parse(t).Status.Allowed {
		t.Errorf("answered %d %s", answer.Status, answer.Body)
	}
	orFatal(t, <-stopped)
}

// TestMetricsOfJoins: one of its metrics was never observed.
func TestMetricsOfJoins(t *testing.T) {
	m := launch(t, blue)
	certified(t, blue, m)
	refused(t, ask(t, m, blue.Replicas[0], "kube-apiserver", evidence(t, m)), http.StatusForbidden, bootstrap.NameMismatch)
	var all string
	for _, replica := range blue.Replicas {
		text, err := replica.Metrics(t.Context())
		orFatal(t, err)
		all += text
	}
	for _, want := range []string{
		`node_authorizer_attestations_total{attestor="aws",code="TokenIssued",outcome="issued"}`,
		`node_authorizer_attestations_total{attestor="aws",code="NameMismatch",outcome="refused"}`,
		`node_authorizer_attestation_duration_seconds_count{attestor="aws",outcome="issued"}`,
		`node_authorizer_certificate_requests_total{code="ClientCertificateApproved",kind="client",outcome="approved"}`,
		`node_authorizer_certificate_request_duration_seconds_count`,
		`node_authorizer_ledger_entries{phase="Certified"}`,
		"node_authorizer_approver_leader 1",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no replica has the metric %s", want)
		}
	}
	for _, secret := range []string{m.NodeName(), m.Instance.ID, m.Address.String()} {
		if strings.Contains(all, secret) {
			t.Errorf("metrics contain %s", secret)
		}
	}
}

// TestLogsHoldNoSecrets searches the logs for every issued token, and for the evidence of
// a machine.
func TestLogsHoldNoSecrets(t *testing.T) {
	m := launch(t, blue)
	body := string(evidence(t, m))
	token(t, m, blue.Replicas[0])
	secrets, err := blue.Client.CoreV1().Secrets(ledger.TokenNamespace).List(t.Context(),
		metav1.ListOptions{FieldSelector: "type=bootstrap.kubernetes.io/token"})
	orFatal(t, err)
	hidden := []string{body[20:60]}
	for _, secret := range secrets.Items {
		hidden = append(hidden, string(secret.Data["token-secret"]))
	}
	for _, replica := range blue.Replicas {
		text, err := replica.Log()
		orFatal(t, err)
		for _, secret := range hidden {
			if strings.Contains(text, secret) {
				t.Errorf("%s holds a secret of %d characters", replica.LogFile(), len(secret))
			}
		}
	}
	text, err := blue.Replicas[0].Log()
	orFatal(t, err)
	for _, want := range []string{m.Instance.ID, m.NodeName(), string(bootstrap.TokenIssued)} {
		if !strings.Contains(text, want) {
			t.Errorf("the log of the replica that gave the token does not say %s", want)
		}
	}
}
