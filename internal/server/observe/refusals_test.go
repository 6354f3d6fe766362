package observe_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/decision"
	"github.com/node-authorizer/node-authorizer/internal/server/observe"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// journal records log lines.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) logger(verbosity int) logr.Logger {
	return funcr.New(func(_, args string) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.lines = append(j.lines, args)
	}, funcr.Options{Verbosity: verbosity})
}

func (j *journal) drain() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	lines := j.lines
	j.lines = nil
	return lines
}

// plenty is a limit that no test reaches.
func plenty() observe.RefusalOptions { return observe.RefusalOptions{PerSecond: 1000, Burst: 1000} }

// tenLines is a limit of ten lines. It counts the refusals that are not logged.
func tenLines(notLogged *int) observe.RefusalOptions {
	return observe.RefusalOptions{PerSecond: 0.001, Burst: 10, NotLogged: func(n int) { *notLogged += n }}
}

func noPath() decision.Opinion {
	return decision.Opinion{
		Decision: verdict.NoOpinion, Code: nodeauthz.NoPathToObject, Node: "worker-1", Reason: "NoPathToObject: short",
		Detail: func() string { return "secret shop/db is referenced by pod shop/api on node worker-2" },
	}
}

func TestLinesOfRefusedAccess(t *testing.T) {
	for _, tc := range []struct {
		rule    string
		opinion decision.Opinion
		err     error
		req     *access.Request
		want    string // empty: none
	}{
		{
			"a refusal names the user, the request and the whole reason", noPath(), nil, secret(),
			`"level"=0 "msg"="request not allowed" "type"="authorize" "node"="worker-1" "verb"="get" "resource"="secrets" ` +
				`"namespace"="shop" "name"="db" "code"="NoPathToObject" ` +
				`"reason"="secret shop/db is referenced by pod shop/api on node worker-2"`,
		},
		{
			"a denial names the authorizer",
			decision.Opinion{Decision: verdict.Deny, Code: "AlwaysDeny", Authorizer: "deny", Reason: "everything is denied"},
			nil,
			&access.Request{
				User: "jane", Verb: "update", Group: "storage.k8s.io", Resource: "csinodes", Subresource: "status",
				Name: "worker-2", ResourceRequest: true,
			},
			`"level"=0 "msg"="request refused" "type"="authorize" "user"="jane" "verb"="update" ` +
				`"resource"="csinodes.storage.k8s.io/status" "name"="worker-2" "code"="AlwaysDeny" "authorizer"="deny" ` +
				`"reason"="everything is denied"`,
		},
		{
			"an error is not a refusal",
			decision.Opinion{Decision: verdict.NoOpinion, Code: "NotSynced", Node: "worker-1"},
			nodeauthz.ErrNotSynced,
			&access.Request{User: "system:node:worker-1", Verb: "get", Path: "/metrics"},
			`"level"=0 "msg"="request could not be decided" "type"="authorize" "node"="worker-1" "verb"="get" ` +
				`"path"="/metrics" "code"="NotSynced" "error"="` + nodeauthz.ErrNotSynced.Error() + `"`,
		},
		{
			"an allow is not logged",
			decision.Opinion{Decision: verdict.Allow, Code: nodeauthz.OwnName},
			nil, secret(), "",
		},
		{
			"no opinion about a user who is not a node is not logged",
			decision.Opinion{Decision: verdict.NoOpinion, Code: nodeauthz.NotANode},
			nil, secret(), "",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			j := &journal{}
			r := observe.NewRefusals(j.logger(0), plenty())
			opinion, err := r.Authorize(says(tc.opinion, tc.err))(t.Context(), tc.req)
			if opinion.Code != tc.opinion.Code || !errors.Is(err, tc.err) {
				t.Errorf("the answer is changed to %+v, %v", opinion, err)
			}
			if got := strings.Join(j.drain(), "\n"); got != tc.want {
				t.Errorf("logged\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

func TestLinesOfRefusedWrites(t *testing.T) {
	write := &noderestriction.Request{
		User: "system:node:worker-1", Operation: noderestriction.Update,
		Resource: "nodes", Subresource: "status", Name: "worker-1",
		Extra:  map[string][]string{"token": {"sentinel"}},
		Object: &corev1.Node{Spec: corev1.NodeSpec{ProviderID: "sentinel"}}, OldObject: &corev1.Node{},
	}
	const ofTheWrite = `"type"="admit" "node"="worker-1" "verb"="update" "resource"="nodes/status" "name"="worker-1" `
	for _, tc := range []struct {
		rule   string
		answer noderestriction.Answer
		want   string
	}{
		{
			"a refusal names the rule",
			noderestriction.Answer{
				Decision: verdict.Deny, Code: noderestriction.TaintsChanged, Node: "worker-1",
				Rule: "update nodes/status: taints", Status: 403,
				Reason: verdict.Reason{Message: "node worker-1 may not change its taints"},
			},
			`"level"=0 "msg"="request refused" ` + ofTheWrite + `"code"="TaintsChanged" ` +
				`"rule"="update nodes/status: taints" "reason"="node worker-1 may not change its taints"`,
		},
		{
			"an error is not a refusal",
			noderestriction.Answer{
				Decision: verdict.Deny, Code: noderestriction.AuthorizationFailed, Node: "worker-1",
				Status: 500, Err: errors.New("connection refused"),
			},
			`"level"=0 "msg"="request could not be decided" ` + ofTheWrite +
				`"code"="AuthorizationFailed" "error"="connection refused"`,
		},
		{
			"an allow is not logged",
			noderestriction.Answer{Decision: verdict.Allow, Code: noderestriction.RestrictionsMet, Status: 200},
			"",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			j := &journal{}
			r := observe.NewRefusals(j.logger(0), plenty())
			if answer := r.Admit(answers(tc.answer))(t.Context(), write); answer.Code != tc.answer.Code {
				t.Errorf("the answer is changed to %+v", answer)
			}
			if got := strings.Join(j.drain(), "\n"); got != tc.want {
				t.Errorf("logged\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// Values from callers neither fill the log nor break its lines.
func TestLinesAreBounded(t *testing.T) {
	j := &journal{}
	req := secret()
	req.Name, req.Namespace = strings.Repeat("n", 1<<20), "a\nb\xff"
	if _, err := observe.NewRefusals(j.logger(0), plenty()).Authorize(says(noPath(), nil))(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	lines := j.drain()
	if len(lines) != 1 || len(lines[0]) > 2000 || strings.Contains(lines[0], "\n") ||
		!utf8.ValidString(lines[0]) || !strings.Contains(lines[0], "n…") {
		t.Errorf("logged %.3000q", lines)
	}
}

func TestVerbositySwitchesTheLog(t *testing.T) {
	for verbosity, lines := range map[int]int{0: 0, 1: 0, 2: 1, 3: 1} {
		j := &journal{}
		opts := plenty()
		opts.Verbosity = 2
		opts.NotLogged = func(int) { t.Error("counted as not logged") }
		opinion := noPath()
		opinion.Detail = func() string {
			if lines == 0 {
				t.Error("built a text that is not logged")
			}
			return "long"
		}
		if _, err := observe.NewRefusals(j.logger(verbosity), opts).Authorize(says(opinion, nil))(t.Context(), secret()); err != nil {
			t.Fatal(err)
		}
		if got := j.drain(); len(got) != lines {
			t.Errorf("verbosity %d: logged %q", verbosity, got)
		}
	}
}

// refusals makes n refusals of a node.
func refusals(t *testing.T, r *observe.Refusals, node string, n int) {
	t.Helper()
	opinion := noPath()
	opinion.Node = node
	evaluate := r.Authorize(says(opinion, nil))
	for range n {
		if _, err := evaluate(t.Context(), secret()); err != nil {
			t.Fatal(err)
		}
	}
}

func about(lines []string, node string) int {
	count := 0
	for _, line := range lines {
		if strings.Contains(line, `"node"="`+node+`"`) {
			count++
		}
	}
	return count
}

func TestLinesHaveARateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, leftOut := &journal{}, 0
		r := observe.NewRefusals(j.logger(0), observe.RefusalOptions{
			PerSecond: 10, Burst: 100, NotLogged: func(n int) { leftOut += n },
		})
		refusals(t, r, "worker-1", 1000)
		if lines := j.drain(); about(lines, "worker-1") != 50 || leftOut != 950 {
			t.Errorf("%d lines, %d left out", len(lines), leftOut)
		}
		refusals(t, r, "worker-2", 20) // one node does not keep others out of the log
		if lines := j.drain(); about(lines, "worker-2") != 20 {
			t.Errorf("%d lines about another node", len(lines))
		}
		for i := range 100 {
			refusals(t, r, fmt.Sprintf("node-%d", i), 1)
		}
		if lines := j.drain(); len(lines) != 30 || leftOut != 950+70 {
			t.Errorf("%d lines about many nodes, %d left out", len(lines), leftOut)
		}
		time.Sleep(5 * time.Second)
		refusals(t, r, "worker-1", 1000)
		if lines := j.drain(); len(lines) != 25 {
			t.Errorf("%d lines of one node after five seconds", len(lines))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if lines := j.drain(); !slices.Equal(lines, []string{`"level"=0 "msg"="refusals left out of the log" "count"=1995`}) {
			t.Errorf("summary is %q", lines)
		}
		time.Sleep(time.Minute)
		if lines := j.drain(); len(lines) != 0 {
			t.Errorf("logged %q when nothing was left out", lines)
		}
	})
}

func TestFlushWritesTheNumberOfDroppedLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		r := observe.NewRefusals(j.logger(0), observe.RefusalOptions{PerSecond: 1, Burst: 1})
		refusals(t, r, "worker-1", 3)
		j.drain()
		r.Flush()
		r.Flush()
		time.Sleep(time.Minute)
		if lines := j.drain(); len(lines) != 1 || !strings.Contains(lines[0], `"count"=2`) {
			t.Errorf("logged %q", lines)
		}
	})
}

// The total limit holds for any number of nodes.
func TestManyNodesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		var mu sync.Mutex
		leftOut := 0
		r := observe.NewRefusals(j.logger(0), observe.RefusalOptions{PerSecond: 10, Burst: 100, NotLogged: func(n int) {
			mu.Lock()
			defer mu.Unlock()
			leftOut += n
		}})
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() {
				for j := range 1000 {
					refusals(t, r, fmt.Sprintf("node-%d-%d", i, j), 1)
				}
			})
		}
		all.Wait()
		if lines := j.drain(); len(lines) != 100 || leftOut != 3900 {
			t.Errorf("%d lines, %d left out", len(lines), leftOut)
		}
		r.Flush()
	})
}
