package machines

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// TestRevokedMachines: a revoked machine gets no token and no certificate any more.
func TestRevokedMachines(t *testing.T) {
	t.Run("with its certificate", func(t *testing.T) {
		m := launch(t, blue)
		config := certified(t, blue, m)
		inPhase(t, blue, m, v1alpha1.Certified)
		said := revoke(t, m)
		for _, want := range []string{"What this cannot undo", "is valid until", m.EntryName()} {
			if !strings.Contains(said, want) {
				t.Errorf("the command does not say %q:\n%s", want, said)
			}
		}
		denied(t, blue, config, clientRequest(m.NodeName()), v1alpha1.AttestationRevoked)
		denied(t, blue, config, servingRequest(m.NodeName(), m.Address.String()), v1alpha1.AttestationRevoked)
		notAgain(t, m)
	})
	t.Run("with a token that it has not used", func(t *testing.T) {
		m := launch(t, blue)
		given := token(t, m, blue.Replicas[0])
		revoke(t, m)
		if ids := tokensOf(t, blue, m); len(ids) != 0 {
			t.Errorf("it has the tokens %v", ids)
		}
		eventually(t, "kube-apiserver refuses the token", func(context.Context) error {
			_, err := create(t, withToken(blue, given), clientRequest(m.NodeName()), newKey(t))
			if apierrors.IsUnauthorized(err) {
				return nil
			}
			return fmt.Errorf("it answers %v", err)
		})
		notAgain(t, m)
	})
	t.Run("and may join again when its entry is deleted", func(t *testing.T) {
		m := launch(t, blue)
		token(t, m, blue.Replicas[0])
		revoke(t, m)
		orFatal(t, blue.Ledger.Delete(t.Context(), m.EntryName(), nil))
		issued(t, blue, withToken(blue, token(t, m, blue.Replicas[1])), clientRequest(m.NodeName()), newKey(t))
	})
}

// revoke runs the command as an administrator does, and returns its output.
func revoke(t *testing.T, m *Machine) string {
	t.Helper()
	outcome, err := m.Run(t.Context(), nil, "revoke", m.NodeName(), "--kubeconfig="+blue.AdminKubeconfig(), "--reason=stolen")
	orFatal(t, err)
	if outcome.Status != 0 {
		t.Fatalf("the command ended with status %d: %s", outcome.Status, outcome.Output)
	}
	inPhase(t, blue, m, v1alpha1.Revoked)
	return outcome.Output
}

// notAgain checks that both replicas refuse the machine, and that its client ends with
// an error.
func notAgain(t *testing.T, m *Machine) {
	t.Helper()
	for _, replica := range blue.Replicas {
		refused(t, ask(t, m, replica, m.NodeName(), evidence(t, m)), http.StatusForbidden, v1alpha1.AttestationRevoked)
	}
	if outcome, err := m.Client(t.Context()); err != nil || outcome.Status != 1 ||
		!strings.Contains(outcome.Output, string(v1alpha1.AttestationRevoked)) {
		t.Errorf("the client ended with %d: %s (%v)", outcome.Status, outcome.Output, err)
	}
}
