package machines

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
)

// TestCallerIdentity runs two servers that require, in addition to the document, a
// request to STS that the machine has signed together with a challenge of the servers.
// The document alone is refused, even from the machine's address.
func TestCallerIdentity(t *testing.T) {
	option := WithConfig("clusterName: "+Name+"\n",
		"clusterName: "+Name+"\n    callerIdentity: {required: true, endpoint: \""+blue.Cloud.STS.URL+"\"}\n")
	var replicas []*Replica
	for _, name := range []string{"caller-1", "caller-2"} {
		replica, err := blue.AddReplica(t.Context(), name, option)
		orFatal(t, err)
		t.Cleanup(func() {
			if err := errors.Join(replica.Stop(), replica.APIProxy.Close()); err != nil {
				t.Error(err)
			}
		})
		replicas = append(replicas, replica)
	}
	t.Run("a machine with its role joins", func(t *testing.T) {
		m := launch(t, blue)
		if outcome := joinThrough(t, m, replicas[0]); outcome.Status != 0 {
			t.Fatalf("the client ended with status %d: %s", outcome.Status, outcome.Output)
		}
		joinedOnce(t, m)
	})
	t.Run("the document alone is refused", func(t *testing.T) {
		m := launch(t, blue)
		refused(t, ask(t, m, replicas[0], m.NodeName(), evidence(t, m)), http.StatusForbidden, aws.CallerIdentityMissing)
		nothingWritten(t, blue, m)
	})
	t.Run("a challenge of one server is good at the other, and no invented one is", func(t *testing.T) {
		given := challenge(t, replicas[0])
		for name, test := range map[string]struct {
			challenge string
			allowed   bool
		}{
			"its own":  {given, true},
			"invented": {strings.Repeat("A", len(given)), false},
		} {
			t.Run(name, func(t *testing.T) {
				m := launch(t, blue)
				parsed := ask(t, m, replicas[1], m.NodeName(), signed(t, m, test.challenge)).parse(t)
				if parsed.Status.Allowed != test.allowed {
					t.Errorf("allowed %t: %s", parsed.Status.Allowed, parsed.Status.Reason)
				}
			})
		}
	})
	t.Run("another machine's role is refused", func(t *testing.T) {
		m, thief := launch(t, blue), launch(t, blue)
		var mixed, document map[string]any
		orFatal(t, json.Unmarshal(signed(t, thief, challenge(t, replicas[0])), &mixed))
		orFatal(t, json.Unmarshal(evidence(t, m), &document))
		mixed["Document"] = document["Document"]
		body, err := json.Marshal(mixed)
		orFatal(t, err)
		refused(t, ask(t, m, replicas[0], m.NodeName(), body), http.StatusForbidden, aws.CallerIdentityInvalid)
		nothingWritten(t, blue, m)
	})
}

func challenge(t *testing.T, replica *Replica) string {
	t.Helper()
	response, err := replica.Get(t.Context(), "/challenge")
	orFatal(t, err)
	var answer struct{ Challenge string }
	orFatal(t, json.Unmarshal([]byte(response.Body), &answer))
	return answer.Challenge
}

// signed returns what the machine's client sends for a challenge.
func signed(t *testing.T, m *Machine, challenge string) []byte {
	t.Helper()
	for _, variable := range m.Metadata.Environment() {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
	collector, err := aws.NewCollector(t.Context(), aws.CollectorOptions{})
	orFatal(t, err)
	body, err := collector.Collect(t.Context(), attest.Binding{Challenge: challenge})
	orFatal(t, err)
	return body
}
