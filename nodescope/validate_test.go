package nodescope_test

import (
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

func TestValidate(t *testing.T) {
	long := strings.Repeat("x", nodescope.MaxText+1)
	for _, tc := range []struct {
		rule   string
		change func(*v1alpha1.NodeScopeSpec)
		want   string // the beginning of the error
	}{
		{
			"no subjects",
			func(s *v1alpha1.NodeScopeSpec) { s.Subjects = nil }, "spec.subjects: Required value: name at least one service account",
		},
		{
			"a subject without namespace",
			func(s *v1alpha1.NodeScopeSpec) { s.Subjects[0].Namespace = "" }, "spec.subjects[0].namespace: Invalid value",
		},
		{"a subject's name", func(s *v1alpha1.NodeScopeSpec) { s.Subjects[0].Name = "a:b" }, "spec.subjects[0].name: Invalid value"},
		{
			"too many subjects", func(s *v1alpha1.NodeScopeSpec) { s.Subjects = make([]v1alpha1.Subject, nodescope.MaxListed+1) },
			"spec.subjects: Too many: 65",
		},
		{"no mode", func(s *v1alpha1.NodeScopeSpec) { s.Mode = "" }, `spec.mode: Unsupported value: ""`},
		{"a mode in another case", func(s *v1alpha1.NodeScopeSpec) { s.Mode = "enforce" }, `spec.mode: Unsupported value: "enforce"`},
		{"an effect", func(s *v1alpha1.NodeScopeSpec) { s.Otherwise = "NoOpinion" }, `spec.otherwise: Unsupported value`},
		{
			"another effect",
			func(s *v1alpha1.NodeScopeSpec) { s.TokensWithoutNode = "Observe" }, `spec.tokensWithoutNode: Unsupported value`,
		},
		{
			"no groups",
			func(s *v1alpha1.NodeScopeSpec) { s.NamedAsNode[0].APIGroups = nil }, "spec.namedAsNode[0].apiGroups: Required value",
		},
		{
			"no resources",
			func(s *v1alpha1.NodeScopeSpec) { s.NamedAsNode[0].Resources = nil }, "spec.namedAsNode[0].resources: Required value",
		},
		{
			"an empty resource",
			func(s *v1alpha1.NodeScopeSpec) { s.NamedAsNode[0].Resources[1] = "" }, "spec.namedAsNode[0].resources[1]: Required value",
		},
		{"no verbs", func(s *v1alpha1.NodeScopeSpec) { s.PodsOnNode[1].Verbs = nil }, "spec.podsOnNode[1].verbs: Required value"},
		{
			"a long text",
			func(s *v1alpha1.NodeScopeSpec) { s.NamedAsNode[0].Verbs = []string{long} }, "spec.namedAsNode[0].verbs[0]: Too long",
		},
		{
			"a verb that has no selector",
			func(s *v1alpha1.NodeScopeSpec) { s.SelectsNode[0].Verbs[0] = "get" }, `spec.selectsNode[0].verbs[0]: Unsupported value: "get"`,
		},
		{
			"every verb",
			func(s *v1alpha1.NodeScopeSpec) { s.SelectsNode[0].Verbs[0] = "*" }, `spec.selectsNode[0].verbs[0]: Unsupported value: "*"`,
		},
		{"no field", func(s *v1alpha1.NodeScopeSpec) { s.SelectsNode[0].Field = "" }, "spec.selectsNode[0].field: Required value"},
		{
			"not a pod",
			func(s *v1alpha1.NodeScopeSpec) { s.PodsOnNode[0].Resources[0] = "podtemplates" },
			"spec.podsOnNode[0].resources[0]: Invalid value: \"podtemplates\": must be pods, pods/*, or a subresource",
		},
		{
			"everything as a pod",
			func(s *v1alpha1.NodeScopeSpec) { s.PodsOnNode[0].Resources[0] = "*" }, "spec.podsOnNode[0].resources[0]: Invalid value",
		},
		{
			"everything called like a pod",
			func(s *v1alpha1.NodeScopeSpec) { s.PodsOnNode[2].Resources[1] = "*" }, "spec.podsOnNode[2].resources[1]: Invalid value",
		},
		{
			"a subresource of everything called like a pod",
			func(s *v1alpha1.NodeScopeSpec) { s.PodsOnNode[2].Resources[1] = "*/status" }, "spec.podsOnNode[2].resources[1]: Invalid value",
		},
		{
			"every subresource of what is called like a pod",
			func(s *v1alpha1.NodeScopeSpec) { s.PodsOnNode[2].Resources[1] = "podstates/*" },
			"spec.podsOnNode[2].resources[1]: Invalid value",
		},
		{
			"every group",
			func(s *v1alpha1.NodeScopeSpec) { s.PodsOnNode[2].APIGroups[1] = "*" }, "spec.podsOnNode[2].apiGroups[1]: Invalid value",
		},
		{
			"a long group",
			func(s *v1alpha1.NodeScopeSpec) { s.PodsOnNode[2].APIGroups[1] = long }, "spec.podsOnNode[2].apiGroups[1]: Too long",
		},
		{
			"too many groups",
			func(s *v1alpha1.NodeScopeSpec) { s.PodsOnNode[2].APIGroups = make([]string, nodescope.MaxListed+1) },
			"spec.podsOnNode[2].apiGroups: Too many",
		},
		{
			"a path and a resource", func(s *v1alpha1.NodeScopeSpec) { s.Anywhere[2].Resources = []string{"pods"} },
			"spec.anywhere[2].nonResourceURLs: Forbidden",
		},
		{
			"nothing anywhere",
			func(s *v1alpha1.NodeScopeSpec) { s.Anywhere[2].NonResourceURLs = nil }, "spec.anywhere[2].apiGroups: Required value",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			object := scope(rules)
			if errs := nodescope.Validate(object); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			tc.change(&object.Spec)
			errs := nodescope.Validate(object)
			if len(errs) == 0 || !strings.HasPrefix(errs[0].Error(), tc.want) {
				t.Errorf("got %v, want %s", errs.ToAggregate(), tc.want)
			}
			if s, compiled := nodescope.Compile(object); s != nil || len(compiled) != len(errs) {
				t.Errorf("compiled as %v, %v", s, compiled)
			}
		})
	}
}
