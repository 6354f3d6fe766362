package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
	"github.com/node-authorizer/node-authorizer/test/conformance/intree"
	"github.com/node-authorizer/node-authorizer/test/conformance/minors/protocol"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// maxDivergences ends a run that has found enough divergences.
const maxDivergences = 5

// trial is one comparison of one cluster.
type trial struct {
	name     string
	seed     uint64
	gates    map[string]bool
	features kubeversion.Features
	cluster  *generate.Cluster
	// ours and theirs answer for the cluster.
	ours   *nodeauthz.Authorizer
	theirs func(*testing.T, []generate.Request) []protocol.Decision
	// rebuild asks both again about another cluster.
	rebuild func(*testing.T, *generate.Cluster, generate.Request) (ours, theirs protocol.Decision)
}

// run puts n questions to both and returns the number of divergences.
func (tr *trial) run(t *testing.T, n int, counts shares) int {
	t.Helper()
	requests := tr.questions(n)
	theirs := tr.theirs(t, requests)
	divergences := 0
	for i := range requests {
		counts.count(&requests[i], theirs[i])
		ours := tr.decide(t, &requests[i], i%10 == 0)
		if ours == theirs[i] {
			continue
		}
		if divergences++; divergences <= maxDivergences {
			tr.report(t, &requests[i], ours, theirs[i])
		}
	}
	return divergences
}

// questions returns the n questions of the trial.
func (tr *trial) questions(n int) []generate.Request {
	asker := generate.NewAsker(tr.seed, tr.cluster)
	requests := make([]generate.Request, n)
	for i := range requests {
		requests[i] = asker.Next()
	}
	return requests
}

// decide asks ours. With check, it uses every function and compares the answers.
func (tr *trial) decide(t *testing.T, r *generate.Request, check bool) protocol.Decision {
	t.Helper()
	req := requestOf(r)
	answer := tr.ours.Decide(req)
	if check {
		tr.checkExplanation(t, r, req, answer)
	}
	return ourDecision(answer.Decision)
}

func (tr *trial) checkExplanation(t *testing.T, r *generate.Request, req *access.Request, answer nodeauthz.Answer) {
	t.Helper()
	explained := tr.ours.Explain(req)
	if explained.Decision != answer.Decision || explained.Code != answer.Code || explained.Reason.Code != answer.Code {
		t.Errorf("%s: Explain says %s %s, Decide says %s %s: %s",
			tr.name, explained.Decision, explained.Reason.Code, answer.Decision, answer.Code, r)
	}
	decision, _, err := tr.ours.Authorize(context.Background(), intree.Attributes(r))
	if err != nil || theirDecision(decision, nil) != ourDecision(answer.Decision) {
		t.Errorf("%s: Authorize says %v (%v), Decide says %s: %s", tr.name, decision, err, answer.Decision, r)
	}
	if answer.Code != nodeauthz.PathToObject {
		return
	}
	path := explained.Reason.Path
	if len(path) == 0 || path[0].From.Name != r.Name || path[len(path)-1].To.Name != answer.Node {
		t.Errorf("%s: allowed by path %q, which does not lead from the object to the node: %s", tr.name, path, r)
	}
}

func ourDecision(d verdict.Decision) protocol.Decision {
	switch d {
	case verdict.Allow:
		return protocol.Allow
	case verdict.NoOpinion:
		return protocol.NoOpinion
	}
	return protocol.Deny
}

func theirDecision(d authorizer.Decision, err error) protocol.Decision {
	switch {
	case err != nil:
		return protocol.Failed
	case d == authorizer.DecisionAllow:
		return protocol.Allow
	case d == authorizer.DecisionNoOpinion:
		return protocol.NoOpinion
	}
	return protocol.Deny
}

// report prints a divergence with everything needed to repeat it, and the smallest
// cluster that shows it.
func (tr *trial) report(t *testing.T, r *generate.Request, ours, theirs protocol.Decision) {
	t.Helper()
	reason := tr.ours.Explain(requestOf(r)).Reason
	t.Errorf("%s: seed %d, Kubernetes %s, gates %v\n  asked: %s\n  in-tree: %c\n  ours: %c %s: %s\n  path: %s\n  shown by: %s",
		tr.name, tr.seed, tr.features.Minor(), tr.gates, r, theirs, ours, reason.Code, reason.Message, reason.Path,
		tr.smallest(t, r))
}

// smallest returns the smallest cluster with the divergence.
func (tr *trial) smallest(t *testing.T, r *generate.Request) string {
	t.Helper()
	diverges := func(objects []any) bool {
		ours, theirs := tr.rebuild(t, tr.cluster.With(objects), *r)
		return ours != theirs
	}
	objects := tr.cluster.Objects()
	if !diverges(objects) {
		return "the history only: a graph of ours built from the state agrees"
	}
	var lines []string
	for _, object := range reduce(objects, diverges) {
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%T %s", object, text))
	}
	return strings.Join(lines, "\n    ")
}

// reduce drops blocks of objects of decreasing size, as long as the rest still diverges.
func reduce(objects []any, diverges func([]any) bool) []any {
	for size := (len(objects) + 1) / 2; size > 0; size /= 2 {
		for i := 0; i+size <= len(objects); {
			rest := append(append([]any{}, objects[:i]...), objects[i+size:]...)
			if diverges(rest) {
				objects = rest
			} else {
				i += size
			}
		}
	}
	return objects
}
