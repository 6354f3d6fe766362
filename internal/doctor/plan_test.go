package doctor

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/audit/validation"
	"k8s.io/apiserver/pkg/audit/policy"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// planOf returns the plan of a cluster in testdata/plan, with its audit report if there is one.
func planOf(t *testing.T, name string) *Plan {
	t.Helper()
	c := readFiles(t, filepath.Join("testdata/plan", name+".yaml"))
	var audit *Audit
	if text, err := os.ReadFile(filepath.Join("testdata/plan", name+".audit.json")); err == nil {
		if audit, err = ReadAudit(text); err != nil {
			t.Fatal(err)
		}
	}
	return MakePlan(c, Examine(c, Options{}), audit)
}

func TestPlans(t *testing.T) {
	for _, name := range []string{"fresh", "halfway", "finished"} {
		plan := planOf(t, name)
		for _, form := range []struct {
			format render.Format
			golden string
		}{{render.Table, name + ".plan.txt"}, {render.JSON, name + ".plan.json"}} {
			var b bytes.Buffer
			if err := render.Write(&b, plan, render.Options{Format: form.format}); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata/plan", form.golden)
			if os.Getenv("UPDATE_GOLDEN") != "" {
				if err := os.WriteFile(golden, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b.Bytes(), want) {
				t.Errorf("%s:\n%s\nwant\n%s", form.golden, b.Bytes(), want)
			}
		}
	}
}

// stepOf finds a step by its ID.
func (p *Plan) stepOf(t *testing.T, id string) Step {
	t.Helper()
	i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.ID == id })
	if i < 0 {
		t.Fatalf("no step %s", id)
	}
	return p.Steps[i]
}

func wantStatus(t *testing.T, p *Plan, id string, want Status, evidence string) {
	t.Helper()
	s := p.stepOf(t, id)
	if s.Check.Status != want || !strings.Contains(strings.Join(s.Check.Evidence, "\n"), evidence) {
		t.Errorf("step %s is %s: %q; want %s: %q", id, s.Check.Status, s.Check.Evidence, want, evidence)
	}
	if len(s.Check.Evidence) == 0 {
		t.Errorf("step %s is %s without evidence", id, s.Check.Status)
	}
	if (s.Check.Status == StatusDone) != (len(s.Do) == 0) {
		t.Errorf("step %s is %s, with %d things to do", id, s.Check.Status, len(s.Do))
	}
}

func planFor(c *Cluster, audit *Audit) *Plan { return MakePlan(c, Examine(c, Options{}), audit) }

func TestPlanOfNothingKnowsNothing(t *testing.T) {
	plan := planFor(&Cluster{RBAC: rbac.NewPolicy()}, nil)
	for _, s := range plan.Steps {
		wantStatus(t, plan, s.ID, StatusUnknown, "")
	}
	if plan.Next != 1 || plan.Complete() {
		t.Errorf("next is step %d", plan.Next)
	}
}

// managed returns a cluster whose API server a provider runs, with one node that authenticates as
// itself.
func managed() *Cluster {
	c := clusterOf(asks("system:node:worker-1", "system:node:worker-1", "system:nodes").approved())
	c.Nodes = []Node{{Name: "worker-1", Ready: corev1.ConditionTrue}}
	return c
}

func TestAClusterThatHasMovedNeedsNoLog(t *testing.T) {
	plan := planFor(managed(), nil)
	wantStatus(t, plan, stepRecord, StatusDone, "nothing that a log would show")
	wantStatus(t, plan, stepWatch, StatusDone, "its refusals are in effect already")
	for name, change := range map[string]func(*Cluster){
		"a kubelet was not seen":            func(c *Cluster) { c.Nodes = append(c.Nodes, Node{Name: "worker-2"}) },
		"a binding gives all nodes as much": func(c *Cluster) { bind(c, "system:node", nodesHad()...) },
	} {
		c := managed()
		change(c)
		if plan := planFor(c, nil); plan.stepOf(t, stepRecord).Check.Status == StatusDone ||
			plan.stepOf(t, stepWatch).Check.Status == StatusDone {
			t.Errorf("%s: %v, %v", name, plan.stepOf(t, stepRecord).Check, plan.stepOf(t, stepWatch).Check)
		}
	}
}

// nodesHad returns rules that allow the requests of nodes.
func nodesHad() []rbacv1.PolicyRule {
	rules, _ := rbac.DefaultRules(rbac.Ref{Kind: "ClusterRole", Name: "system:node"})
	return rules
}

// TestTheAuditPolicyCanBePastedAsItIsPrinted runs the indented commands of the plan and parses the
// resulting file.
func TestTheAuditPolicyCanBePastedAsItIsPrinted(t *testing.T) {
	t.Chdir(t.TempDir())
	var pasted strings.Builder
	for _, line := range recordNodes()[0].Commands {
		pasted.WriteString("       " + line + "\n")
	}
	shell := exec.Command("sh")
	shell.Stdin = strings.NewReader(pasted.String())
	if output, err := shell.CombinedOutput(); err != nil || len(output) > 0 {
		t.Fatalf("%v: %s", err, output)
	}
	read, err := policy.LoadPolicyFromBytes([]byte(readFile(t, "audit-policy.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	want, err := policy.LoadPolicyFromBytes([]byte(auditPolicy))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(read, want) {
		t.Errorf("pasted is %+v, want %+v", read, want)
	}
}

func TestARoleThatMapsNobodyIsNoIdentity(t *testing.T) {
	c := clusterOf()
	c.AWSAuth = &ConfigMap{Data: map[string]string{"mapRoles": roleEntry("path/WorkerNodeRole", nodeUsername, "system:nodes")}}
	wantStatus(t, planFor(c, nil), stepIdentify, StatusToDo, "becomes nobody, the entry matches nobody: STS leaves the path")
}

func TestNodeThatDoesWhatNoBindingAllowsShowsTheNodeAuthorizer(t *testing.T) {
	wantStatus(t, planFor(managed(), nil), stepAuthorize, StatusDone, "worker-1 is Ready under its own name")
	for name, change := range map[string]func(*Cluster){
		"it is not Ready":              func(c *Cluster) { c.Nodes[0].Ready = corev1.ConditionUnknown },
		"its Node is not there":        func(c *Cluster) { c.Nodes = nil },
		"it is in group masters":       func(c *Cluster) { c.Requests[0].Groups = append(c.Requests[0].Groups, "system:masters") },
		"it goes by another name":      func(c *Cluster) { c.Requests[0].Requester = "WorkerNodeRole" },
		"bindings are not known":       func(c *Cluster) { c.RBACKnown = false },
		"a binding allows it":          func(c *Cluster) { bind(c, "system:node", allow("", "nodes/status", "patch")) },
		"the role of one is not known": func(c *Cluster) { bind(c, "system:node") },
	} {
		c := managed()
		change(c)
		if plan := planFor(c, nil); plan.stepOf(t, stepAuthorize).Check.Status != StatusUnknown {
			t.Errorf("%s: %v", name, plan.stepOf(t, stepAuthorize).Check)
		}
	}
}

// bind binds a role to all nodes. The role exists if rules are given.
func bind(c *Cluster, role string, rules ...rbacv1.PolicyRule) {
	b := Binding{
		Place: finding.Place{Object: "ClusterRoleBinding " + role},
		Name:  role, Role: rbacv1.RoleRef{Kind: "ClusterRole", Name: role},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "system:nodes"}},
	}
	c.Bindings = append(c.Bindings, b)
	if len(rules) > 0 {
		c.RBAC.SetClusterRole(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules})
	}
	c.RBAC.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role}, RoleRef: b.Role, Subjects: b.Subjects,
	})
}

// logged returns a report of two days in which nothing would be refused.
func logged() *Audit {
	a := &Audit{}
	first, last := day().AddDate(0, 0, -2), day()
	a.Totals.First, a.Totals.Last = &first, &last
	a.Totals.Requests, a.Totals.Conforming = 1000, 1000
	a.Nodes.Conforming = 1
	return a
}

func refusal(by string, lasts time.Duration) AuditedRefusal {
	return AuditedRefusal{
		Node: "worker-1", Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db", By: by, Code: "NoPathToObject",
		Count: 2, First: day().Add(-lasts), Last: day(),
	}
}

func TestWatchingIsDoneWhenNothingWouldBeRefused(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(*Cluster, *Audit)
		want     Status
		evidence string
	}{
		{
			name: "two days without", change: func(*Cluster, *Audit) {}, want: StatusDone,
			evidence: "of 1,000 requests of kubelets in 48h0m0s none",
		},
		{
			name:   "something would be refused",
			change: func(_ *Cluster, a *Audit) { a.WouldBeRefused = []AuditedRefusal{refusal("authorization", 0)} },
			want:   StatusToDo, evidence: "worker-1: get secrets shop/db (NoPathToObject), 2 times",
		},
		{
			name: "by NodeRestriction, which comes later", want: StatusDone,
			change: func(_ *Cluster, a *Audit) { a.WouldBeRefused = []AuditedRefusal{refusal("NodeRestriction", time.Hour)} },
		},
		{
			name: "because its object has gone since", want: StatusDone, evidence: "1 refusal is about what the state does not have",
			change: func(_ *Cluster, a *Audit) {
				r := refusal("authorization", time.Hour)
				r.Caveat = "ObjectNotInState"
				a.WouldBeRefused = []AuditedRefusal{r}
			},
		},
		{
			name: "more than the report has room for", want: StatusToDo, evidence: "more would be refused",
			change: func(_ *Cluster, a *Audit) {
				a.More = &struct {
					WouldBeRefused []struct{} `json:"wouldBeRefused"`
				}{[]struct{}{{}}}
			},
		},
		{
			name: "a refusal passed by", want: StatusDone, evidence: "passed by",
			change: func(_ *Cluster, a *Audit) { a.Refused = []AuditedRefusal{refusal("authorization", time.Minute)} },
		},
		{
			name: "a refusal stays", want: StatusToDo, evidence: "is refused: worker-1",
			change: func(_ *Cluster, a *Audit) { a.Refused = []AuditedRefusal{refusal("authorization", time.Hour)} },
		},
		{
			name: "a short log", want: StatusUnknown, evidence: "the log is 2h0m0s long",
			change: func(_ *Cluster, a *Audit) { first := day().Add(-2 * time.Hour); a.Totals.First = &first },
		},
		{
			name: "a log of others", want: StatusUnknown, evidence: "no request of a kubelet",
			change: func(_ *Cluster, a *Audit) { a.Totals.Requests = 0 },
		},
		{
			name: "requests that were not decided", want: StatusUnknown, evidence: "7 requests could not be decided",
			change: func(_ *Cluster, a *Audit) { a.Totals.Undecided = 7 },
		},
		{
			name: "the binding counted", want: StatusUnknown, evidence: "counts what ClusterRoleBinding system:node allows",
			change: func(c *Cluster, _ *Audit) { bind(c, "system:node", allow("*", "*", "*")) },
		},
		{
			name: "the binding did not count", want: StatusDone,
			change: func(c *Cluster, a *Audit) {
				bind(c, "system:node", allow("*", "*", "*"))
				a.LeftOut = []string{"ClusterRoleBinding system:node"}
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, a := managed(), logged()
			test.change(c, a)
			wantStatus(t, planFor(c, a), stepWatch, test.want, test.evidence)
		})
	}
}

func TestIdentitiesAreKnownWhenEveryNodeWasSeen(t *testing.T) {
	for _, test := range []struct {
		name     string
		change   func(*Cluster, *Audit)
		noLog    bool
		want     Status
		evidence string
	}{
		{name: "in the log", change: func(*Cluster, *Audit) {}, want: StatusDone, evidence: "1 node asks under their own name"},
		{name: "by certificate requests", noLog: true, change: func(*Cluster, *Audit) {}, want: StatusDone, evidence: "1 of 1 node;"},
		{
			name: "one asked for no certificate", noLog: true, want: StatusUnknown, evidence: "not seen: worker-2",
			change: func(c *Cluster, _ *Audit) { c.Nodes = append(c.Nodes, Node{Name: "worker-2"}) },
		},
		{
			name: "no nodes", noLog: true, change: func(c *Cluster, _ *Audit) { c.Nodes = nil }, want: StatusUnknown,
			evidence: "no nodes were given",
		},
		{
			name: "one is silent in the log", want: StatusUnknown, evidence: "of 1 node the log has nothing: worker-2",
			change: func(_ *Cluster, a *Audit) { a.Nodes.Silent = []string{"worker-2"} },
		},
		{
			name: "a silent one asked for a certificate", want: StatusDone,
			change: func(_ *Cluster, a *Audit) { a.Nodes.Silent = []string{"worker-1"} },
		},
		{
			name: "a kubelet that goes by another name", want: StatusToDo, evidence: "CSRRequesterMismatch",
			change: func(c *Cluster, _ *Audit) {
				c.Requests = append(c.Requests, asks("WorkerNodeRole", "system:node:worker-2", "system:nodes"))
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, a := managed(), logged()
			test.change(c, a)
			if test.noLog {
				a = nil
			}
			wantStatus(t, planFor(c, a), stepIdentify, test.want, test.evidence)
		})
	}
}

// TestRightsAreNotRemovedTooEarly has clusters in which a later step could be done immediately.
func TestRightsAreNotRemovedTooEarly(t *testing.T) {
	c := managed()
	bind(c, "system:node", allow("*", "*", "*"))
	for _, test := range []struct {
		name   string
		change func(*Cluster, *Audit)
		next   string
	}{
		{name: "whether the Node authorizer is asked is not known", next: stepAuthorize, change: func(*Cluster, *Audit) {}},
		{name: "it is asked, the log is too short", next: stepWatch, change: func(c *Cluster, a *Audit) {
			c.APIServers = []APIServer{{Name: "a", Flags: map[string][]string{flagMode: {"Node,RBAC"}}}}
			a.LeftOut, a.Totals.First = []string{"ClusterRoleBinding system:node"}, a.Totals.Last
		}},
		{name: "and long enough", next: stepWithdraw, change: func(_ *Cluster, a *Audit) { a.Totals.First = logged().Totals.First }},
		{name: "a kubelet has no identity", next: stepIdentify, change: func(_ *Cluster, a *Audit) {
			a.Nodes.NeverConforming = append(a.Nodes.NeverConforming, auditedNode{Name: "worker-2"})
		}},
	} {
		audit := logged()
		if len(c.APIServers) > 0 {
			audit.LeftOut = []string{"ClusterRoleBinding system:node"}
		}
		test.change(c, audit)
		plan := planFor(c, audit)
		if id := plan.Steps[plan.Next-1].ID; id != test.next {
			t.Errorf("%s: next is %s, want %s", test.name, id, test.next)
		}
	}
}

func TestPlanKeepsWhatIsSetOnAPIServers(t *testing.T) {
	c := &Cluster{RBAC: rbac.NewPolicy(), APIServers: []APIServer{{
		Name: "a", Flags: map[string][]string{flagMode: {"AlwaysAllow"}, flagEnable: {"PodSecurity"}},
	}}}
	plan := planFor(c, nil)
	for id, want := range map[string]string{
		stepAuthorize: "--authorization-mode=Node,RBAC,AlwaysAllow",
		stepWithdraw:  "--authorization-mode=Node,RBAC,",
		stepRestrict:  "--enable-admission-plugins=PodSecurity,NodeRestriction",
	} {
		s := plan.stepOf(t, id)
		if s.Check.Status != StatusToDo || !slices.ContainsFunc(s.Do, func(a Action) bool { return strings.Contains(a.Text+",", want) }) {
			t.Errorf("step %s is %s: %v; want %s", id, s.Check.Status, s.Do, want)
		}
	}
}

// auditHeader is the beginning of a report of an audit log.
const auditHeader = `{"apiVersion": "output.node-authorizer.io/v1alpha1", "kind": "AuditReport", `

func TestReadAuditRefusesWhatIsNoReport(t *testing.T) {
	for name, text := range map[string]string{
		"not JSON":                  "NODE  VERB",
		"an event":                  `{"kind": "Event", "apiVersion": "audit.k8s.io/v1"}`,
		"a report without requests": auditHeader + `"totals": {}, "nodes": {}}`,
		"fields of another type":    auditHeader + `"totals": {"requests": "many"}, "wouldBeRefused": [], "nodes": {}}`,
		"nothing":                   "",
	} {
		if audit, err := ReadAudit([]byte(text)); err == nil || audit != nil ||
			!strings.Contains(err.Error(), "node-authorizer audit -o json") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, %v; want an error that says how the report is made", name, audit, err)
		}
	}
}

func TestReadAuditReadsWhatItsVersionSays(t *testing.T) {
	const rest = `"totals": {"requests": 3}, "wouldBeRefused": [], "nodes": {}}`
	for _, tc := range []struct{ rule, header, err string }{
		{"no version and kind", `{`, `apiVersion "", kind "": want output.node-authorizer.io/v1alpha1, AuditReport`},
		{"this version", auditHeader, ""},
		{
			"another version", `{"apiVersion": "output.node-authorizer.io/v2", "kind": "AuditReport", `,
			`apiVersion "output.node-authorizer.io/v2", kind "AuditReport": want`,
		},
		{"another group", `{"apiVersion": "example.org/v1alpha1", "kind": "AuditReport", `, `apiVersion "example.org/v1alpha1", kind`},
		{"another kind", `{"apiVersion": "output.node-authorizer.io/v1alpha1", "kind": "DoctorReport", `, `kind "DoctorReport": want`},
		{"a kind without version", `{"kind": "AuditReport", `, `apiVersion "", kind "AuditReport": want`},
		{"a version without kind", `{"apiVersion": "output.node-authorizer.io/v1alpha1", `, `kind "": want`},
	} {
		audit, err := ReadAudit([]byte(tc.header + rest))
		switch {
		case tc.err == "" && (err != nil || audit.Totals.Requests != 3):
			t.Errorf("%s: %v, %v", tc.rule, audit, err)
		case tc.err != "" && (err == nil || audit != nil || !strings.Contains(err.Error(), tc.err) ||
			!strings.Contains(err.Error(), "node-authorizer audit -o json")):
			t.Errorf("%s: %v, %v; want an error with %q", tc.rule, audit, err, tc.err)
		}
	}
}

func TestAuditPolicyIsOne(t *testing.T) {
	read, err := policy.LoadPolicyFromBytes([]byte(auditPolicy))
	if err != nil {
		t.Fatal(err)
	}
	if errs := validation.ValidatePolicy(read); len(errs) > 0 {
		t.Error(errs)
	}
}

func TestGuideHasTheStepsAndThePolicy(t *testing.T) {
	page := readFile(t, "../../docs/guides/migration.md")
	steps1to4, steps5to7 := readFile(t, "../../docs/guides/migration-identify.md"), readFile(t, "../../docs/guides/migration-restrict.md")
	if !strings.Contains(steps1to4, "```yaml\n"+auditPolicy+"```") {
		t.Error("docs/guides/migration-identify.md has another audit policy than the plan")
	}
	for i, row := range steps() {
		if heading := fmt.Sprintf("\n## %d. %s\n", i+1, row.title); !strings.Contains(steps1to4+steps5to7, heading) {
			t.Errorf("the guides to migrate lack the heading %q", heading)
		}
		if !strings.Contains(page, "`"+row.id+"`") {
			t.Errorf("docs/guides/migration.md lacks the ID %s", row.id)
		}
	}
}
