package nodescope_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func version(v string) func(*access.Request) { return func(req *access.Request) { req.Version = v } }

// aggregatedRules are about a resource of an aggregated version, whose objects are named like pods, or like nodes.
func aggregatedRules(s *v1alpha1.NodeScopeSpec) {
	group := []string{"x.io"}
	s.AsNode = true
	s.NamedAsNode = []v1alpha1.NamedRule{{APIGroups: group, Resources: []string{"named", "named/status"}, Verbs: []string{"*"}}}
	s.SelectsNode = []v1alpha1.SelectedRule{{
		APIGroups: group, Resources: []string{"selected"}, Verbs: []string{"list", "watch", "deletecollection"}, Field: "spec.node",
	}}
	s.PodsOnNode = []v1alpha1.PodRule{{APIGroups: group, Resources: []string{"podstates"}, Verbs: []string{"*"}}}
	s.Anywhere = []v1alpha1.AnywhereRule{
		{APIGroups: group, Resources: []string{"open"}, Verbs: []string{"*"}},
		{APIGroups: group, Resources: []string{"leaders"}, Verbs: []string{"*"}, ResourceNames: []string{"leader"}},
	}
}

// In aggregated versions, a rule lets a request pass only by its path, unless the rule is in anywhere.
func TestOnlyThePathLimitsRequestsForAggregatedVersions(t *testing.T) {
	selected := selecting("spec.node", "a", selection.Equals)
	passes, refused := nodescope.ScopePassed, nodescope.ScopeAggregatedAPI
	for _, tc := range []struct {
		req  *access.Request
		code verdict.Code
	}{
		{ask("get named.x.io a"), passes},
		{ask("update named.x.io a"), passes},
		{ask("patch named.x.io a"), passes},
		{ask("delete named.x.io a"), passes},
		{ask("create named.x.io/status a"), passes},
		{ask("create named.x.io a"), passes},
		{ask("create named.x.io"), refused},
		{ask("list named.x.io a"), refused}, // the name is in the field selector
		{ask("watch named.x.io a"), refused},
		{ask("list selected.x.io", selected), refused},
		{ask("watch selected.x.io", selected), refused},
		{ask("deletecollection selected.x.io", selected), refused},
		{ask("get podstates.x.io shop/on-a"), passes},
		{ask("patch podstates.x.io shop/on-a"), passes},
		{ask("create podstates.x.io shop/"), refused},
		{ask("list podstates.x.io shop/on-a"), refused},
		{ask("watch podstates.x.io shop/on-a"), refused},
		{ask("list open.x.io"), passes},
		{ask("create open.x.io"), passes},
		{ask("update leaders.x.io leader"), passes},
		{ask("list leaders.x.io leader"), refused},
		{ask("watch leaders.x.io leader"), refused},
		{ask("get secrets shop/of-a"), refused}, // as the node, of the core group
	} {
		text := tc.req.Verb + " " + tc.req.Resource
		group := tc.req.Group
		for v, code := range map[string]verdict.Code{"v1": tc.code, "v2": passes, "": tc.code, "*": tc.code} {
			c := newCluster(t, scope(aggregatedRules))
			c.aggregation.Versions = []schema.GroupVersion{{Group: group, Version: "v1"}, {Group: "other.io", Version: "v2"}}
			version(v)(tc.req)
			got := c.Explain(tc.req)
			if got.Code != code {
				t.Errorf("%s of version %q: %s, want %s", text, v, got.Code, code)
			}
			if depends := got.Uses&nodescope.UsesAPIServices != 0; depends != (tc.code == refused) {
				t.Errorf("%s of version %q depends on APIServices: %t", text, v, depends)
			}
			if code == refused && (!strings.Contains(got.Reason.Message, "another API server serves "+group) || got.Rule == "") {
				t.Errorf("%s of version %q, by rule %q: %s", text, v, got.Rule, got.Reason.Message)
			}
		}
	}
}

// With otherwise: Allow, a request that no rule names still passes. A request that a rule names does not.
func TestOtherwiseOfAggregatedVersions(t *testing.T) {
	c := newCluster(t, scope(aggregatedRules, func(s *v1alpha1.NodeScopeSpec) { s.Otherwise = v1alpha1.Allow }))
	c.aggregation.Versions = []schema.GroupVersion{{Group: "x.io", Version: "v1"}}
	for text, want := range map[string]verdict.Code{
		"create others.x.io": nodescope.ScopePassed, "create named.x.io": nodescope.ScopeAggregatedAPI,
	} {
		if got := c.Decide(ask(text, version("v1"))); got.Code != want {
			t.Errorf("%s: %s", text, got.Code)
		}
	}
}

// An extension API server that asks admission webhooks gets the answer that kube-apiserver gets.
func TestAdmissionOfAggregatedVersions(t *testing.T) {
	c := newCluster(t, scope(aggregatedRules))
	c.aggregation.Versions = []schema.GroupVersion{{Group: "x.io", Version: "v1"}}
	for text, want := range map[string]verdict.Code{
		"CREATE named.x.io a": nodescope.ScopePassed, "CREATE named.x.io b": nodescope.ScopeNameNotNode,
	} {
		w := write(text)
		w.Version = "v1"
		if got := c.Admit(t.Context(), w); got.Code != want {
			t.Errorf("%s: %s", text, got.Code)
		}
	}
}

func TestAggregationKnows(t *testing.T) {
	gv := func(text string) schema.GroupVersion {
		group, v, _ := strings.Cut(text, "/")
		return schema.GroupVersion{Group: group, Version: v}
	}
	some := nodescope.Aggregation{Versions: []schema.GroupVersion{gv("x.io/v1")}, Local: []schema.GroupVersion{gv("x.io/v2"), gv("/v1")}}
	whole := some
	whole.Complete = true
	for _, tc := range []struct {
		of                *nodescope.Aggregation
		asked             string
		aggregated, known bool
	}{
		{&some, "x.io/v1", true, true},
		{&some, "x.io/v2", false, true},
		{&some, "x.io/v3", false, false},
		{&some, "x.io/", true, true},
		{&some, "x.io/*", true, true},
		{&some, "/v1", false, true},
		{&some, "/", false, true},
		{&some, "y.io/", false, false},
		{&whole, "x.io/v3", false, true},
		{&whole, "y.io/*", false, true},
		{nil, "x.io/v1", false, false},
		{nil, "x.io/*", false, false},
	} {
		is := gv(tc.asked)
		if aggregated, known := tc.of.Of(is.Group, is.Version); aggregated != tc.aggregated || known != tc.known {
			t.Errorf("%s: %t, %t", tc.asked, aggregated, known)
		}
	}
}
