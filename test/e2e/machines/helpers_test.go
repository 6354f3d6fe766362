package machines

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeaws"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/faultproxy"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func orFatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	orFatal(t, await.Until(t.Context(), what, condition))
}

func launch(t *testing.T, c *Cluster, changes ...func(*fakeaws.Instance)) *Machine {
	t.Helper()
	m, err := c.Launch(changes...)
	orFatal(t, err)
	return m
}

// stopKubelets stops the kubelets of machines: together they would use up a user's inotify instances,
// and a kubelet without one registers no storage driver.
func stopKubelets(t *testing.T, machines []*Machine) {
	t.Helper()
	var stopping errgroup.Group
	for _, m := range machines {
		stopping.Go(m.Node.Stop)
	}
	orFatal(t, stopping.Wait())
}

// evidence returns the request body of the machine's client.
func evidence(t *testing.T, m *Machine) []byte {
	t.Helper()
	body, err := m.Evidence(t.Context())
	orFatal(t, err)
	return body
}

func ask(t *testing.T, m *Machine, replica *Replica, name string, body []byte) Answer {
	t.Helper()
	answer, err := m.Ask(t.Context(), replica, name, body)
	orFatal(t, err)
	return answer
}

// answered is the answer in the format of the original node-authorizer.
type answered struct {
	Spec   struct{ NodeName, RemoteAddr string }
	Status struct {
		Allowed       bool
		Token, Reason string
	}
}

func (a Answer) parse(t *testing.T) answered {
	t.Helper()
	var parsed answered
	if err := json.Unmarshal([]byte(a.Body), &parsed); err != nil {
		t.Fatalf("the answer %d %q is not JSON: %v", a.Status, a.Body, err)
	}
	return parsed
}

// token redeems the machine's evidence.
func token(t *testing.T, m *Machine, replica *Replica) string {
	t.Helper()
	answer := ask(t, m, replica, m.NodeName(), evidence(t, m))
	parsed := answer.parse(t)
	if answer.Status != http.StatusOK || !parsed.Status.Allowed || parsed.Status.Token == "" {
		t.Fatalf("%s gets no token: %d %s", m.NodeName(), answer.Status, parsed.Status.Reason)
	}
	return parsed.Status.Token
}

// refused checks that an answer is a refusal with a code, and holds no token.
func refused(t *testing.T, answer Answer, status int, code verdict.Code) {
	t.Helper()
	parsed := answer.parse(t)
	if parsed.Status.Allowed || parsed.Status.Token != "" {
		t.Errorf("it was allowed: %s", answer.Body)
	}
	got, _, _ := strings.Cut(parsed.Status.Reason, ":")
	if answer.Status != status || got != string(code) {
		t.Errorf("answered %d %q, want %d %s", answer.Status, parsed.Status.Reason, status, code)
	}
}

// nothingWritten checks that the ledger has no entry for a machine.
func nothingWritten(t *testing.T, c *Cluster, m *Machine) {
	t.Helper()
	if entry, err := c.Entry(t.Context(), m); !apierrors.IsNotFound(err) {
		t.Errorf("the ledger has %+v (%v)", entry, err)
	}
}

// tokensOf returns the ids of the tokens owned by the machine's entry.
func tokensOf(t *testing.T, c *Cluster, m *Machine) []string {
	t.Helper()
	secrets, err := c.Client.CoreV1().Secrets(ledger.TokenNamespace).List(t.Context(), metav1.ListOptions{})
	orFatal(t, err)
	var ids []string
	for _, secret := range secrets.Items {
		if owner := metav1.GetControllerOf(&secret); owner != nil && owner.Name == m.EntryName() {
			ids = append(ids, strings.TrimPrefix(secret.Name, "bootstrap-token-"))
		}
	}
	return ids
}

// inPhase waits until the entry of a machine is in a phase.
func inPhase(t *testing.T, c *Cluster, m *Machine, phase v1alpha1.Phase) *v1alpha1.NodeAttestation {
	t.Helper()
	var entry *v1alpha1.NodeAttestation
	eventually(t, fmt.Sprintf("%s is %s", m.EntryName(), phase), func(ctx context.Context) (err error) {
		entry, err = c.Entry(ctx, m)
		if err == nil && entry.Phase() != phase {
			err = fmt.Errorf("it is %s: %+v", entry.Phase(), entry.Status)
		}
		return err
	})
	return entry
}

// through returns a URL of one server, which sees connections from the machine's address.
func (m *Machine) through(replica *Replica) (serviceURL string, closing func() error, err error) {
	p, err := faultproxy.ListenFrom(m.Address.String(), replica.Address)
	if err != nil {
		return "", nil, err
	}
	return urlOf(p), p.Close, nil
}

// token is the one in the bootstrap kubeconfig.
func (m *Machine) token() (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", m.Kubeconfig())
	if err != nil {
		return "", err
	}
	return config.BearerToken, nil
}
