package probe

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakecluster"
)

// TestRightsThatAreMissing takes the rights of the caller away, one at a time.
func TestRightsThatAreMissing(t *testing.T) {
	for _, test := range []struct {
		right  string
		lacks  string
		probes []ID
	}{
		{
			"create subjectaccessreviews", resourceReviews,
			[]ID{Everyone, NodeIdentity, Secret, Secrets, Approval, OtherNode, AllPods, Anonymous},
		},
		{"impersonate", "users, groups", []ID{WriteOtherNode, WriteLabel, WritePod, Certificate, Audience}},
		{"list pods", "pods", []ID{Audience}},
		{
			"get nodes", "nodes", []ID{
				MadeUpNodes, Everyone, NodeIdentity, Secret, Secrets, Approval, OtherNode, AllPods, WriteOtherNode, WriteLabel, WritePod,
				Certificate, Audience,
			},
		},
	} {
		t.Run(test.right, func(t *testing.T) {
			var undetermined []ID
			for _, p := range mustRun(t, &fakecluster.Cluster{Lacks: []string{test.right}}, 37).Probes {
				if p.Outcome == Holds {
					continue
				}
				undetermined = append(undetermined, p.ID)
				if p.Outcome != Undetermined || p.Lacks != test.lacks || p.Remedy == "" {
					t.Errorf("%+v", p)
				}
			}
			if !slices.Equal(undetermined, test.probes) {
				t.Errorf("undetermined are %q", undetermined)
			}
		})
	}
}

// TestErrorsAreNoDecisions lets the API server fail.
func TestErrorsAreNoDecisions(t *testing.T) {
	for _, failing := range []string{"/subjectaccessreviews", "/nodes", "/pods", "/certificatesigningrequests", "/token", "/"} {
		t.Run(failing, func(t *testing.T) {
			c := &fakecluster.Cluster{Failing: []string{failing}, WithoutNodeRestriction: true, AnonymousMay: []string{"get /api"}}
			results := mustRun(t, c, 37)
			undetermined := 0
			for _, p := range results.Probes {
				if p.Outcome == Undetermined {
					undetermined++
				}
				for _, s := range p.Sent {
					if s.Status == 500 && p.Outcome != Undetermined {
						t.Errorf("%s %s after %s %s failed", p.ID, p.Outcome, s.Method, s.Path)
					}
				}
			}
			if undetermined == 0 {
				t.Error("all probes are determined")
			}
		})
	}
	server := httptest.NewServer(nil)
	server.Close()
	results, err := Run(t.Context(), &rest.Config{Host: server.URL}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range results.Probes {
		if p.Outcome != Undetermined {
			t.Errorf("%s %s without an API server", p.ID, p.Outcome)
		}
	}
}

// TestWritesAreDryRuns: no write is sent unless the API server has refused a value of dryRun that does
// not exist, and each has dryRun.
func TestWritesAreDryRuns(t *testing.T) {
	c := &fakecluster.Cluster{WithoutNodeRestriction: true}
	mustRun(t, c, 37)
	checked := map[string]bool{}
	for _, r := range c.Requests() {
		method, rest, _ := strings.Cut(r, " ")
		target, user, _ := strings.Cut(rest, " ")
		path, query, _ := strings.Cut(target, "?")
		switch {
		case method != "POST" || strings.HasSuffix(path, "subjectaccessreviews"):
			if user != "" {
				t.Errorf("%s impersonates %s", r, user)
			}
		case query == "dryRun="+noSuchDryRun:
			checked[path] = true
		case query != "dryRun=All" || !checked[path] || !strings.HasPrefix(user, "system:node:"):
			t.Errorf("%s was sent", r)
		}
		if method != "POST" && method != "GET" {
			t.Errorf("%s was sent", r)
		}
	}
	if len(checked) != 4 {
		t.Errorf("writes went to %v", checked)
	}
	if n := len(c.Requests()); n > maxRequests/2 {
		t.Errorf("%d requests were sent", n)
	}
}

// TestAWriteThatIsStoredIsAnError: something on the way drops the query, or the API server ignores it.
func TestAWriteThatIsStoredIsAnError(t *testing.T) {
	for rule, c := range map[string]*fakecluster.Cluster{
		"dropped": {DropsQuery: true, WithoutNodeRestriction: true},
		"ignored": {IgnoresDryRun: true, WithoutNodeRestriction: true},
	} {
		t.Run(rule, func(t *testing.T) {
			if _, err := run(t, c, 37); err == nil {
				t.Error("no error")
			}
			if n := len(c.Stored()); n > 1 {
				t.Errorf("stored %q", c.Stored())
			}
		})
	}
}

func TestProgressIsReported(t *testing.T) {
	server := httptest.NewServer(&fakecluster.Cluster{})
	t.Cleanup(server.Close)
	var done []int
	results, err := Run(t.Context(), &rest.Config{Host: server.URL, BearerToken: fakecluster.Token}, Options{
		Progress: func(n, total int) {
			if done = append(done, n); total != len(rows()) {
				t.Errorf("%d of %d", n, total)
			}
		},
	})
	if err != nil || len(done) != len(results.Probes) || !slices.IsSorted(done) {
		t.Errorf("progress %v, error %v", done, err)
	}
}

func TestNamesOfNodesThatExistAreNotUsed(t *testing.T) {
	c := &fakecluster.Cluster{NodesExist: true}
	for _, p := range mustRun(t, c, 37).Probes {
		if p.ID != Anonymous && p.Outcome != Undetermined {
			t.Errorf("%s %s", p.ID, p.Outcome)
		}
	}
	for _, r := range c.Requests() {
		if strings.Contains(r, "system:node:") {
			t.Errorf("%s was sent", r)
		}
	}
}

// TestTheContextEndsARun: a run that is cancelled has no results.
func TestTheContextEndsARun(t *testing.T) {
	server := httptest.NewServer(&fakecluster.Cluster{})
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Run(ctx, &rest.Config{Host: server.URL}, Options{}); err == nil {
		t.Errorf("results %+v", r)
	}
}

// TestTokensAreNotRead: if a webhook changes the expiration so that a token is issued, it is in no result.
func TestTokensAreNotRead(t *testing.T) {
	results := mustRun(t, &fakecluster.Cluster{IssuesTokens: true, WithoutAudiences: true}, 37)
	if got := outcomes(results); !slices.Equal(got, []string{"audience doesNotHold"}) {
		t.Errorf("outcomes %q", got)
	}
	text, err := json.Marshal(results)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), fakecluster.Issued) {
		t.Error("the results have the token")
	}
}

// TestProbesAreDocumented: the page names each probe in its table.
func TestProbesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/findings/README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Probes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var table strings.Builder
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			table.WriteString(line)
		}
	}
	for _, r := range rows() {
		if !strings.Contains(table.String(), "`"+string(r.id)+"`") {
			t.Errorf("docs/reference/findings/README.md does not describe the probe %s", r.id)
		}
	}
}
