package bootstrap

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
)

// quarantines is a fake: names of Quarantines by node, or an error.
type quarantines struct {
	nodes map[string]string
	err   error
}

func (q quarantines) Quarantined(node string) (string, bool, error) {
	name, found := q.nodes[node]
	return name, found && q.err == nil, q.err
}

func quarantined(nodes ...string) func(*Options) {
	q := quarantines{nodes: map[string]string{}}
	for _, node := range nodes {
		q.nodes[node] = "incident-7"
	}
	return func(o *Options) { o.Quarantines, o.Reattestation = q, Always }
}

func TestMachinesOfQuarantinedNodesGetNoToken(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		before func(*testCluster)
		node   string
		code   string // empty: a token
	}{
		{"a machine that was never attested", nil, "worker-1", "NodeQuarantined"},
		{"a machine that has a token", func(w *testCluster) {
			redeem(w.t, w.service(nil), machine("i-1", "worker-1"))
		}, "worker-1", "NodeQuarantined"},
		{"a machine that has used its token", func(w *testCluster) {
			redeem(w.t, w.service(nil), machine("i-1", "worker-1"))
			w.certified("test-i-1")
		}, "worker-1", "NodeQuarantined"},
		{"a machine that was attested as the node, under another name", func(w *testCluster) {
			redeem(w.t, w.service(nil), machine("i-1", "worker-1"))
			w.waitForCache(w.known)
		}, "worker-2", "NodeQuarantined"},
		{"a revoked machine", func(w *testCluster) {
			redeem(w.t, w.service(nil), machine("i-1", "worker-1"))
			w.setPhase("test-i-1", v1alpha1.Revoked)
		}, "worker-1", "AttestationRevoked"},
		{"a machine of another node", nil, "worker-2", ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			w := newTestCluster(t)
			if tc.before != nil {
				tc.before(w)
			}
			tokens := len(w.tokens())
			id := machine("i-1", tc.node)
			_, err := w.service(quarantined("worker-1")).Redeem(context.Background(), request(id), id)
			if tc.code == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			refusedWith(t, err, tc.code)
			if got := len(w.tokens()); got != tokens {
				t.Errorf("%d tokens, before %d", got, tokens)
			}
		})
	}
}

// A machine is neither refused nor given a token while the Quarantines are unknown.
func TestUnknownQuarantinesAreAnError(t *testing.T) {
	w := newTestCluster(t)
	unread := errors.New("quarantines have not been read yet")
	s := w.service(func(o *Options) { o.Quarantines = quarantines{err: unread} })
	id := machine("i-1", "worker-1")
	_, err := s.Redeem(context.Background(), request(id), id)
	var refusal *attest.Refusal
	if !errors.Is(err, unread) || errors.As(err, &refusal) {
		t.Errorf("error is %v", err)
	}
	if tokens := w.tokens(); len(tokens) > 0 {
		t.Errorf("tokens %v", tokens)
	}
}

// The machine gets the code, but not the name of the Quarantine. The operator finds both in the ledger.
func TestTheRefusalOfAQuarantinedMachineIsRecorded(t *testing.T) {
	l := listen(t, quarantined("worker-1"), HTTPOptions{})
	redeem(t, l.service(nil), machine("i-1", "worker-1"))
	l.waitForCache(l.known)
	l.advanceClock(time.Hour)
	w := l.answer(ask("worker-1", `{}`))
	if w.Code != http.StatusForbidden {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	golden(t, "quarantined-answer", w.Body.String())
	condition := meta.FindStatusCondition(l.entry("test-i-1").Status.Conditions, v1alpha1.ConditionRefused)
	const want = "a request from 10.0.0.1 was refused: i-1 asks for a token, and Quarantine incident-7 cuts off node worker-1"
	if condition == nil || condition.Reason != string(policyv1alpha1.NodeQuarantined) || condition.Message != want {
		t.Errorf("the condition is %+v", condition)
	}
	if event := l.event(); event.Outcome != Refused || event.Code != policyv1alpha1.NodeQuarantined {
		t.Errorf("the event is %+v", event)
	}
}
