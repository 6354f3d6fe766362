package attackpaths_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// What a technique names and the cluster does not have is listed once.
func TestGapsOfCustomTechniques(t *testing.T) {
	cluster := newCluster()
	parse(t, cluster, node("n1")+namespace("shop", "")+account("shop", "web"))
	cluster.Serves = func(_, resource string) bool { return resource != "stores" }
	missing := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "ops", Name: "operator-*"}
	cluster.Custom = []attackpaths.CustomTechnique{
		custom(func(t *attackpaths.CustomTechnique) {
			t.AllowedBy = append(t.AllowedBy, stores("create"), stores("update"))
			t.AllowedBy[0].Namespace = "ops"
		}, missing, missing, attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "web"}),
		custom(
			func(t *attackpaths.CustomTechnique) { t.Code = "Other" },
			attackpaths.Holding{Kind: attackpaths.Node, Name: "n2"}, attackpaths.Holding{Kind: attackpaths.Node, Name: "*"},
			attackpaths.Holding{Kind: attackpaths.Secret, Namespace: attackpaths.SameNamespace, Name: "key"},
			attackpaths.Holding{Kind: attackpaths.Secret, Namespace: "*", Name: "*"},
			attackpaths.Holding{Kind: attackpaths.User, Name: "nobody"}, attackpaths.Holding{Kind: attackpaths.ClusterAdmin},
		),
	}
	want := []attackpaths.Gap{
		{Technique: "Widget", Lacks: "the state has no namespace ops"},
		{Technique: "Widget", Lacks: "the API server does not serve stores.operator.example.com"},
		{Technique: "Widget", Lacks: "the state has no serviceaccount ops/operator-*"},
		{Technique: "Other", Lacks: "the state has no node n2"},
	}
	if got := graphOf(t, cluster).Gaps(); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestUnusableCustomTechniques(t *testing.T) {
	operator := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "ops", Name: "operator"}
	for rule, c := range map[string]struct {
		custom []attackpaths.CustomTechnique
		want   string
	}{
		"no code": {
			[]attackpaths.CustomTechnique{custom(func(t *attackpaths.CustomTechnique) { t.Code = "" }, operator)},
			`custom technique "": want a code that no other technique has`,
		},
		"the code of a built-in technique": {
			[]attackpaths.CustomTechnique{custom(func(t *attackpaths.CustomTechnique) { t.Code = attackpaths.PodExec }, operator)},
			`custom technique "PodExec": want a code that no other technique has`,
		},
		"a code twice": {
			[]attackpaths.CustomTechnique{custom(nil, operator), custom(nil, operator)},
			`custom technique "Widget": want a code that no other technique has`,
		},
		"no request": {
			[]attackpaths.CustomTechnique{custom(func(t *attackpaths.CustomTechnique) { t.AllowedBy = nil }, operator)},
			"want at least one request and one holding",
		},
		"no holding": {[]attackpaths.CustomTechnique{custom(nil)}, "want at least one request and one holding"},
		"no verb": {
			[]attackpaths.CustomTechnique{custom(func(t *attackpaths.CustomTechnique) {
				t.With = []attackpaths.CustomRequest{{}}
			}, operator)},
			"a request has no verb or no resource",
		},
		"a pod": {
			[]attackpaths.CustomTechnique{custom(nil, attackpaths.Holding{Kind: attackpaths.Pod, Name: "p"})},
			`holdings of kind "Pod" cannot be given`,
		},
		"no name": {
			[]attackpaths.CustomTechnique{custom(nil, attackpaths.Holding{Kind: attackpaths.Secret, Namespace: "ops"})},
			"a holding of kind Secret has no name",
		},
		"the user of a node": {
			[]attackpaths.CustomTechnique{custom(nil, attackpaths.Holding{Kind: attackpaths.User, Name: "system:node:n1"})},
			"user system:node:n1: want a holding of kind Node or ServiceAccount",
		},
		"the namespace of what has none": {
			[]attackpaths.CustomTechnique{custom(func(t *attackpaths.CustomTechnique) {
				t.AllowedBy = append(t.AllowedBy, stores("create"))
			}, attackpaths.Holding{Kind: attackpaths.Namespace, Name: attackpaths.SameNamespace})},
			"{namespace} is the namespace of a right that has none",
		},
		"too many": {make([]attackpaths.CustomTechnique, attackpaths.MaxCustomTechniques+1), "101 custom techniques, want at most 100"},
		"long lists": {
			[]attackpaths.CustomTechnique{custom(func(t *attackpaths.CustomTechnique) {
				t.AllowedBy = slices.Repeat(t.AllowedBy, attackpaths.MaxCustomTechniques+1)
			}, operator)},
			"a list has more than 100 entries",
		},
	} {
		cluster := newCluster()
		cluster.Custom = c.custom
		if _, err := attackpaths.New(cluster); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", rule, err, c.want)
		}
	}
}
