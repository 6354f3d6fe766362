package doctor

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakecluster"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// probesOf makes the probes of a fake.
func probesOf(t *testing.T, c *fakecluster.Cluster, minor kubeversion.Minor) *probe.Results {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	results, err := probe.Run(t.Context(), &rest.Config{Host: server.URL, BearerToken: fakecluster.Token}, probe.Options{Minor: minor})
	if err != nil {
		t.Fatal(err)
	}
	results.Host = "https://api.example.com"
	return results
}

// unseenServers is a live cluster whose API servers do not show.
func unseenServers() *Cluster {
	c := clusterOf()
	c.Live = true
	return c
}

func examined(t *testing.T, c *Cluster, fake *fakecluster.Cluster, minor kubeversion.Minor) *Report {
	t.Helper()
	return runWith(c, apiServers, Options{Probes: probesOf(t, fake, minor)})
}

func TestFindingsOfProbes(t *testing.T) {
	for _, test := range []struct {
		rule         string
		fake         *fakecluster.Cluster
		minor        kubeversion.Minor
		want         []string
		undetermined []CheckID
	}{
		{"everything holds: both checks are made", &fakecluster.Cluster{}, 37, nil, nil},
		{
			"without the Node authorizer, what admission does with nodes does not show",
			&fakecluster.Cluster{WithoutNodeAuthorizer: true}, 37,
			[]string{"error NodeAuthorizationOff "},
			[]CheckID{CheckAdmission},
		},
		{
			"without NodeRestriction its gates are not reported", &fakecluster.Cluster{WithoutNodeRestriction: true}, 37,
			[]string{"error NodeRestrictionOff "},
			nil,
		},
		{
			"nodes read secrets", &fakecluster.Cluster{Group: []string{"list secrets", "get secrets"}}, 37,
			[]string{"error NodesReadSecrets "},
			nil,
		},
		{
			"nodes read other nodes by a role", &fakecluster.Cluster{Group: []string{"get nodes"}}, 37,
			[]string{"warning NodesReadNodesAndPods "},
			nil,
		},
		{"by a gate", &fakecluster.Cluster{WithoutSelectors: true}, 33, []string{"warning NodeIsolationGate "}, nil},
		{"by the version, which is no finding", &fakecluster.Cluster{WithoutSelectors: true, WithoutAudiences: true}, 31, nil, nil},
		{
			"each gate is a finding", &fakecluster.Cluster{WithoutAudiences: true, InsecureRequests: true}, 37,
			[]string{"warning NodeIsolationGate ", "warning NodeIsolationGate "},
			nil,
		},
		{
			"audiences by a role", &fakecluster.Cluster{Group: []string{"request-serviceaccounts-token-audience *"}}, 37,
			[]string{"warning NodesRequestAnyAudience "},
			nil,
		},
		{
			"nodes approve", &fakecluster.Cluster{Group: []string{"update certificatesigningrequests/approval", "approve signers"}}, 37,
			[]string{"error NodesGrantCertificates "},
			nil,
		},
		{
			"everyone may do everything", &fakecluster.Cluster{AlwaysAllow: true}, 37,
			[]string{"error AlwaysAllow ", "error AnonymousAccess "},
			nil,
		},
		{
			"anonymous requests", &fakecluster.Cluster{AnonymousMay: []string{"list pods"}}, 37, []string{"error AnonymousAccess "}, nil,
		},
		{
			"anonymous discovery", &fakecluster.Cluster{AnonymousMay: []string{"get /api"}}, 37, []string{"warning AnonymousAccess "}, nil,
		},
		{
			"no right to create reviews", &fakecluster.Cluster{Lacks: []string{"create subjectaccessreviews"}}, 37, nil,
			[]CheckID{CheckAuthorization, CheckAdmission},
		},
		{
			"no right to impersonate", &fakecluster.Cluster{Lacks: []string{"impersonate"}}, 37, nil, []CheckID{CheckAdmission},
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			r := examined(t, unseenServers(), test.fake, test.minor)
			wantFindings(t, r.Findings, test.want...)
			wantUndetermined(t, r, test.undetermined...)
			if len(r.Probes) != len(probesOf(t, &fakecluster.Cluster{}, 37).Probes) {
				t.Errorf("%d probes are reported", len(r.Probes))
			}
			for _, f := range r.Findings {
				if strings.Contains(f.String(), "node-authorizer-probe-") {
					t.Errorf("%s differs from run to run", f)
				}
			}
		})
	}
}

// TestProbesLackRights: a missing right is named once for each check, with how to give it.
func TestProbesLackRights(t *testing.T) {
	r := examined(t, unseenServers(), &fakecluster.Cluster{Lacks: []string{"impersonate"}}, 37)
	if len(r.Missing) != 1 || r.Missing[0].Resource != "users, groups" || !strings.Contains(r.Missing[0].Remedy, "impersonate") ||
		!strings.Contains(r.Missing[0].Reason, "write-other-node, write-label, write-pod, certificate, audience") {
		t.Errorf("missing %+v", r.Missing)
	}
}

// TestProbesAndFlags: findings from flags are not reported twice, and probes answer questions that flags leave open.
func TestProbesAndFlags(t *testing.T) {
	c := readText(t, apiServer("kube-apiserver-a", "--authorization-mode=RBAC"))
	c.Live = true
	fake := &fakecluster.Cluster{WithoutNodeAuthorizer: true, WithoutNodeRestriction: true, Group: []string{"create nodes"}}
	r := examined(t, c, fake, 37)
	wantFindings(t, r.Findings, "error NodeAuthorizationOff kube-apiserver-a", "error NodeRestrictionOff kube-apiserver-a")

	webhook := readText(t, configuration("Webhook", "RBAC"))
	webhook.Live = true
	wantUndetermined(t, run(webhook, apiServers), CheckAuthorization, CheckAdmission)
	wantUndetermined(t, examined(t, webhook, &fakecluster.Cluster{}, 37))
}

// TestBindingsExplainWhatProbesFind: rights that a binding gives are reported at the binding.
func TestBindingsExplainWhatProbesFind(t *testing.T) {
	c := readText(t, bindingText("", "{kind: Group, name: 'system:nodes', apiGroup: rbac.authorization.k8s.io}",
		`{apiGroups: [""], resources: [secrets], verbs: [get, list]}`))
	c.Live, c.RBACKnown = true, true
	fake := &fakecluster.Cluster{Group: []string{"get secrets", "list secrets"}}
	r := Examine(c, Options{Probes: probesOf(t, fake, 37), Checks: []CheckID{CheckBindings, CheckAuthorization}})
	if len(r.Findings) != 1 || r.Findings[0].Code != NodesReadSecrets || strings.Contains(r.Findings[0].Place.Object, "kube-apiserver") {
		t.Errorf("found %v", r.Findings)
	}
	if r.Checks[0].Findings != 1 || r.Checks[1].Findings != 0 {
		t.Errorf("checks %+v", r.Checks)
	}
}

func TestEveryFormatHasTheProbes(t *testing.T) {
	r := examined(t, unseenServers(), &fakecluster.Cluster{WithoutNodeRestriction: true}, 37)
	for _, format := range []render.Format{render.Table, render.Wide, render.JSON, render.YAML, render.SARIF} {
		var page strings.Builder
		if err := render.Write(&page, r, render.Options{Format: format}); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"write-other-node", "is a node kept from creating another Node?", "/api/v1/nodes?dryRun=All",
			"system:node:node-authorizer-probe-", "get secrets kube-system/node-authorizer-probe-",
			"a node may create a Node of another name",
		} {
			if !strings.Contains(page.String(), want) {
				t.Errorf("%s: %q is missing", format, want)
			}
		}
	}
}

// TestProbesInSARIF: each probe is a notification, which alone does not make the run unsuccessful.
func TestProbesInSARIF(t *testing.T) {
	log := sarifOf(t, examined(t, unseenServers(), &fakecluster.Cluster{}, 37))
	if ok := at(t, log, "runs", 0, "invocations", 0, "executionSuccessful"); ok != true {
		t.Error("the run is not successful")
	}
	list := at(t, log, "runs", 0, "invocations", 0, "toolExecutionNotifications").([]any)
	var ids []string
	for _, n := range list {
		if level := at(t, n, "level"); level != "note" {
			t.Errorf("level %v", level)
		}
		ids = append(ids, at(t, n, "descriptor", "id").(string))
	}
	for _, d := range at(t, log, "runs", 0, "tool", "driver", "notifications").([]any) {
		ids = slices.DeleteFunc(ids, func(id string) bool { return id == at(t, d, "id") })
	}
	if len(list) == 0 || len(ids) > 0 {
		t.Errorf("%d notifications, without description: %q", len(list), ids)
	}
}

// TestPlanWithProbes: the steps about API servers have a status although no flag is seen.
func TestPlanWithProbes(t *testing.T) {
	for _, test := range []struct {
		rule string
		fake *fakecluster.Cluster
		want string
	}{
		{"both hold", &fakecluster.Cluster{}, "authorize done, restrict done"},
		{"no NodeRestriction", &fakecluster.Cluster{WithoutNodeRestriction: true}, "authorize done, restrict todo"},
		{"no Node authorizer", &fakecluster.Cluster{WithoutNodeAuthorizer: true}, "authorize todo, restrict unknown"},
		{"no right", &fakecluster.Cluster{Lacks: []string{"get nodes"}}, "authorize unknown, restrict unknown"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			c := unseenServers()
			plan := MakePlan(c, Examine(c, Options{Probes: probesOf(t, test.fake, 37)}), nil)
			var got []string
			for _, s := range plan.Steps {
				if s.ID == stepAuthorize || s.ID == stepRestrict {
					got = append(got, fmt.Sprintf("%s %s", s.ID, s.Check.Status))
				}
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("got %s, want %s", strings.Join(got, ", "), test.want)
			}
		})
	}
}

// TestRemedyNamesProbes: where no flags are seen, a live cluster can be asked.
func TestRemedyNamesProbes(t *testing.T) {
	files := unseenServers()
	files.Live = false
	for _, test := range []struct {
		cluster *Cluster
		want    bool
	}{{unseenServers(), true}, {files, false}} {
		text, err := json.Marshal(run(test.cluster, apiServers).Missing)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(string(text), "--probe"); got != test.want {
			t.Errorf("live %t: %s", test.cluster.Live, text)
		}
	}
}

// TestRequestsAsLines shows each kind of request in one line.
func TestRequestsAsLines(t *testing.T) {
	for want, s := range map[string]probe.Sent{
		"GET /api/v1/nodes/a: 404 not found": {Method: "GET", Path: "/api/v1/nodes/a", Status: 404, Answer: "not found"},
		"GET /api without a credential: 401 Unauthorized": {
			Method: "GET", Path: "/api", Anonymous: true, Status: 401, Answer: "Unauthorized",
		},
		"POST /x as system:node:a (an object): 201 succeeded": {
			Method: "POST", Path: "/x", As: "system:node:a", Body: "an object", Status: 201, Answer: "succeeded",
		},
		"POST /x as system:node:a in system:nodes: no response: EOF": {
			Method: "POST", Path: "/x", As: "system:node:a", Groups: []string{"system:nodes"}, Answer: "no response: EOF",
		},
	} {
		if got := sentLine(&s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
