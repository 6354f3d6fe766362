package learn_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/learn"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

const state = `{apiVersion: v1, kind: List, items: [
{apiVersion: v1, kind: Node, metadata: {name: a}},
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.x}, spec: {group: x, version: v1}},
{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.extended}, spec: {group: extended, version: v1, service: {}}},
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop},
  spec: {nodeName: a, containers: [{name: c, image: i, envFrom: [{secretRef: {name: db}}]}]}},
{apiVersion: v1, kind: Pod, metadata: {name: other, namespace: shop},
  spec: {nodeName: b, containers: [{name: c, image: i, envFrom: [{secretRef: {name: key}}]}]}}]}`

func evaluator(t *testing.T) *evaluate.Evaluator {
	t.Helper()
	loaded, err := source.LoadFiles(t.Context(), []string{"-"}, source.FileOptions{Stdin: strings.NewReader(state)})
	if err != nil {
		t.Fatal(err)
	}
	e, err := evaluate.New(t.Context(), loaded, evaluate.Options{Features: kubeversion.For(kubeversion.Latest)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func checker(t *testing.T, spec string) *learn.Checker {
	t.Helper()
	scope := &v1alpha1.NodeScope{}
	text := "{metadata: {name: s}, spec: {subjects: [{namespace: team, name: agent}], mode: Observe, " + spec + "}}"
	if err := yaml.UnmarshalStrict([]byte(text), scope); err != nil {
		t.Fatal(err)
	}
	c, err := learn.NewChecker(evaluator(t), []*v1alpha1.NodeScope{scope})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// asked is a request: "get pods/status shop/web" with the token of a node.
func asked(node, text string) *learn.Request {
	parts := strings.Fields(text)
	r := &learn.Request{AccountNamespace: "team", AccountName: "agent", Node: node}
	r.Request = access.Request{User: nodeidentity.ServiceAccountUser("team", "agent"), Verb: parts[0], ResourceRequest: true}
	if node != "" {
		r.Extra = map[string][]string{nodeidentity.ExtraNode: {node}}
	}
	resource, sub, _ := strings.Cut(parts[1], "/")
	r.Resource, r.Group, _ = strings.Cut(resource, ".")
	r.Subresource = sub
	if len(parts) > 2 {
		namespace, name, both := strings.Cut(parts[2], "/")
		if !both {
			namespace, name = "", parts[2]
		}
		r.Request.Namespace, r.Request.Name = namespace, name
	}
	return r
}

func creating(r *learn.Request, name string) *learn.Request {
	r.CreatedName = name
	return r
}

func TestOutcomes(t *testing.T) {
	const pods = "podsOnNode: [{resources: [pods], verbs: [delete]}]"
	const like = "podsOnNode: [{apiGroups: [x], resources: [things], verbs: [create, patch]}]"
	const named = "namedAsNode: [{apiGroups: [x], resources: [things], verbs: [create, get]}]"
	impersonating := asked("a", "get nodes a")
	impersonating.Impersonates = "ada"
	associated := asked("a", "get nodes a")
	associated.Impersonates, associated.Constraint = "system:node:a", "impersonate:associated-node"
	for _, tc := range []struct {
		rule, spec string
		request    *learn.Request
		inLog      *learn.PodOnNode
		want       string
	}{
		{"the node's name", named, asked("a", "get things.x a"), nil, "passed"},
		{"another name", named, asked("a", "get things.x b"), nil, "Refused ScopeNameNotNode"},
		{"a created object with the node's name", named, creating(asked("a", "create things.x"), "a"), nil, "passed"},
		{"with another name", named, creating(asked("a", "create things.x"), "b"), nil, "Refused ScopeNameNotNode"},
		{"with a name that the log lacks", named, asked("a", "create things.x"), nil, "Undecided ScopeNameNotNode"},
		{
			"a created object of another API server", strings.ReplaceAll(named, "[x]", "[extended]"),
			creating(asked("a", "create things.extended"), "a"), nil, "Refused ScopeAggregatedAPI",
		},
		{
			"a single object of another API server", strings.ReplaceAll(named, "[x]", "[extended]"),
			asked("a", "get things.extended a"), nil, "passed",
		},
		{
			"a created object of a server that is not known", strings.ReplaceAll(named, "[x]", "[other]"),
			creating(asked("a", "create things.other"), "a"), nil, "Undecided ScopeAggregatedAPI",
		},
		{
			"with another name, which no server lets pass", strings.ReplaceAll(named, "[x]", "[other]"),
			creating(asked("a", "create things.other"), "b"), nil, "Refused ScopeNameNotNode",
		},
		{
			"a created object of a server that is not known, named like a pod that the log shows",
			strings.ReplaceAll(like, "[x]", "[other]"),
			creating(asked("a", "create things.other shop/"), "gone"),
			&learn.PodOnNode{Namespace: "shop", Name: "gone", Node: "a"}, "Undecided ScopeAggregatedAPI",
		},
		{
			"a server that is not known, and does not matter",
			strings.ReplaceAll(named, "[x]", "[other]") + ", anywhere: [{apiGroups: [other], resources: [things], verbs: [create]}]",
			creating(asked("a", "create things.other"), "a"), nil, "passed",
		},
		{"no rule", named, asked("a", "get services shop/x"), nil, "Refused ScopeNoRule"},
		{"otherwise", "otherwise: Allow", asked("a", "get services shop/x"), nil, "passed"},
		{"no node", named, asked("", "get things.x a"), nil, "Refused ScopeTokenWithoutNode"},
		{"no node, which passes", "tokensWithoutNode: Allow", asked("", "get things.x a"), nil, "passed"},
		{
			"a selector", "selectsNode: [{apiGroups: [\"\"], resources: [pods], verbs: [list], field: spec.nodeName}]",
			selectingNode("spec.nodeName", "a", asked("a", "list pods")), nil, "passed",
		},
		{
			"the selector of another node", "selectsNode: [{apiGroups: [\"\"], resources: [pods], verbs: [list], field: spec.nodeName}]",
			selectingNode("spec.nodeName", "b", asked("a", "list pods")), nil, "Refused ScopeSelectorRequired",
		},
		{"a pod on the node", pods, asked("a", "delete pods shop/web"), nil, "passed"},
		{"a pod on another node", pods, asked("a", "delete pods shop/other"), nil, "Refused ScopePodNotOnNode"},
		{
			"a pod on another node, in the log on this", pods, asked("a", "delete pods shop/other"),
			&learn.PodOnNode{Namespace: "shop", Name: "other", Node: "a"}, "passed",
		},
		{"a pod that nothing shows", pods, asked("a", "delete pods shop/gone"), nil, "Undecided ScopePodNotOnNode"},
		{"a pod that the log shows", pods, asked("a", "delete pods shop/gone"), &learn.PodOnNode{
			Namespace: "shop", Name: "gone",
			Node: "a",
		}, "passed"},
		{
			"a pod that the log shows elsewhere", pods, asked("a", "delete pods shop/gone"), &learn.PodOnNode{
				Namespace: "shop",
				Name:      "gone", Node: "b",
			},
			"Undecided ScopePodNotOnNode",
		},
		{"a verb that the rule lacks, of a pod that nothing shows", pods, asked("a", "patch pods shop/gone"), nil, "Refused ScopeNoRule"},
		{"an object named like a pod on the node", like, asked("a", "patch things.x shop/web"), nil, "passed"},
		{"an object named like a pod on another node", like, asked("a", "patch things.x shop/other"), nil, "Refused ScopePodNotOnNode"},
		{"an object named like a pod that nothing shows", like, asked("a", "patch things.x shop/gone"), nil, "Undecided ScopePodNotOnNode"},
		{
			"an object named like a pod that the log shows", like, asked("a", "patch things.x shop/gone"),
			&learn.PodOnNode{Namespace: "shop", Name: "gone", Node: "a"}, "passed",
		},
		{"an object without a namespace", like, asked("a", "patch things.x web"), nil, "Refused ScopePodNotOnNode"},
		{"a created object named like a pod on the node", like, creating(asked("a", "create things.x shop/"), "web"), nil, "passed"},
		{
			"a created object named like a pod on another node", like, creating(asked("a", "create things.x shop/"), "other"), nil,
			"Refused ScopePodNotOnNode",
		},
		{
			"a created object named like a pod that nothing shows", like, creating(asked("a", "create things.x shop/"), "gone"), nil,
			"Undecided ScopePodNotOnNode",
		},
		{
			"a created object named like a pod that the log shows", like, creating(asked("a", "create things.x shop/"), "gone"),
			&learn.PodOnNode{Namespace: "shop", Name: "gone", Node: "a"}, "passed",
		},
		{
			"a created object named like a pod that the log shows elsewhere", like, creating(asked("a", "create things.x shop/"), "gone"),
			&learn.PodOnNode{Namespace: "shop", Name: "gone", Node: "b"}, "Undecided ScopePodNotOnNode",
		},
		{
			"and that a rule for the node's name does not let pass", like + ", " + named,
			creating(asked("a", "create things.x shop/"), "gone"),
			&learn.PodOnNode{Namespace: "shop", Name: "gone", Node: "a"}, "passed",
		},
		{
			"a created object whose name the log lacks", like, asked("a", "create things.x shop/"), nil, "Undecided ScopePodNotOnNode",
		},
		{"a created object named like a pod that another rule lets pass", like + `, anywhere: [{apiGroups: [x], resources: [things], ` +
			`verbs: [create]}]`, creating(asked("a", "create things.x shop/"), "other"), nil, "passed"},
		{"a secret of the node", "asNode: true", asked("a", "get secrets shop/db"), nil, "passed"},
		{"a secret of another node", "asNode: true", asked("a", "get secrets shop/key"), nil, "Refused ScopeNotAsNode"},
		{"a secret that no pod names", "asNode: true", asked("a", "get secrets shop/gone"), nil, "Undecided ScopeNotAsNode"},
		{"a write whose object decides", "asNode: true", asked("a", "patch nodes/status a"), nil, "Undecided ScopeNotAsNode"},
		{
			"unless another rule lets it pass",
			"asNode: true, namedAsNode: [{apiGroups: [\"\"], resources: [nodes/status], verbs: [patch]}]",
			asked("a", "patch nodes/status a"), nil, "passed",
		},
		{
			"and not because of otherwise", "asNode: true, otherwise: Allow", asked("a", "patch nodes/status a"), nil,
			"Undecided ScopeNotAsNode",
		},
		{"a write that asNode does not name", "asNode: true, otherwise: Allow", asked("a", "patch things.x a"), nil, "passed"},
		{"impersonation", named, impersonating, nil, "Refused ScopeNoRule"},
		{
			"impersonation that a rule names", "anywhere: [{apiGroups: [\"\"], resources: [users], verbs: [impersonate]}]", impersonating,
			nil, "passed",
		},
		{"as its own node", "asNode: true", associated, nil, "passed"},
		{"as its own node, without asNode", named, associated, nil, "Refused ScopeNoRule"},
	} {
		c := checker(t, tc.spec)
		c.Request(tc.request)
		if tc.inLog != nil {
			c.Pod(*tc.inLog)
		}
		r := c.Report()
		got := "passed"
		for _, a := range r.Accounts {
			for _, f := range a.Findings {
				got = fmt.Sprint(f.Outcome, " ", f.Code)
				if (f.Outcome == learn.Undecided) != (f.Why != "") {
					t.Errorf("%s: undecided because of %q", tc.rule, f.Why)
				}
			}
		}
		if sum := r.Passed + r.WouldBeRefused + r.Undecided; got != tc.want || sum != 1 || (got == "passed") != (r.Passed == 1) {
			t.Errorf("%s: %s, want %s (%+v)", tc.rule, got, tc.want, r)
		}
	}
}

func TestTheOrderOfTheLogDoesNotMatter(t *testing.T) {
	var requests []*learn.Request
	for _, text := range []string{
		"delete pods shop/gone", "delete pods shop/other", "delete pods shop/web", "get secrets shop/key",
		"delete pods x/y",
	} {
		requests = append(requests, asked("a", text))
	}
	report := func(order []int) *learn.Report {
		c := checker(t, "asNode: true, podsOnNode: [{resources: [pods], verbs: [delete]}]")
		for _, i := range order {
			c.Request(requests[i])
			c.Pod(learn.PodOnNode{Namespace: "x", Name: "y", Node: "a"})
		}
		return c.Report()
	}
	want := report([]int{0, 1, 2, 3, 4})
	for range 20 {
		if got := report(rand.Perm(len(requests))); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
}

func TestWhatWasRefusedIsNotDecided(t *testing.T) {
	c := checker(t, "otherwise: Deny")
	r := asked("a", "get things.x a")
	r.Refused = true
	c.Request(r)
	if report := c.Report(); report.AlreadyRefused != 1 || report.Requests != 0 || report.Complete() {
		t.Errorf("got %+v", report)
	}
}

func TestSilentSubjects(t *testing.T) {
	if silent := checker(t, "otherwise: Deny").Report().Silent; !reflect.DeepEqual(silent, []string{"team/agent"}) {
		t.Errorf("got %v", silent)
	}
}
