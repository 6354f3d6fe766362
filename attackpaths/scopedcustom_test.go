package attackpaths_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// TestCustomTechniquesInScopes is about a custom technique that leads to alice from requests for stores of an
// operator, by the pod of the agent on n1 unless a case has another start.
func TestCustomTechniquesInScopes(t *testing.T) {
	const (
		operator = "{apiGroups: [operator.example.com], resources: [stores], verbs: "
		token    = "Certain ServiceAccount agents/cni: PodToken"
		certain  = "Certain User alice: PodToken Widget"
		possible = "Possible User alice: PodToken Widget"
	)
	named := func(r attackpaths.CustomRequest, name string) attackpaths.CustomRequest {
		r.Name = name
		return r
	}
	nodes := func(verb string) attackpaths.CustomRequest {
		return attackpaths.CustomRequest{Verbs: []string{verb}, Resource: "nodes", ClusterScoped: true}
	}
	cases := []struct {
		rule    string
		start   attackpaths.Holding
		request attackpaths.CustomRequest
		scope   string
		want    []string
	}{
		{
			rule: "selectsNode: a deletecollection with a field selector possibly deletes any object", request: stores("deletecollection"),
			scope: "selectsNode: [" + operator + "[deletecollection], field: spec.nodeName}]", want: []string{token, possible},
		},
		{
			rule:  "selectsNode: so does a token of a node that is not known",
			start: agentAccount, request: stores("deletecollection"),
			scope: "selectsNode: [" + operator + "[deletecollection], field: spec.nodeName}]",
			want:  []string{"Possible User alice: Widget"},
		},
		{
			rule: "selectsNode: a deletecollection by name possibly deletes the object of the node", request: stores("deletecollection"),
			scope: "selectsNode: [" + operator + "[deletecollection], field: metadata.name}]", want: []string{token, possible},
		},
		{
			rule:    "selectsNode: a deletecollection by name deletes the object of the node",
			request: named(stores("deletecollection"), "n1"),
			scope:   "selectsNode: [" + operator + "[deletecollection], field: metadata.name}]", want: []string{token, certain},
		},
		{
			rule: "selectsNode: a deletecollection by name deletes no other object", request: named(stores("deletecollection"), "n2"),
			scope: "selectsNode: [" + operator + "[deletecollection], field: metadata.name}]", want: []string{token},
		},
		{
			rule: "namedAsNode: a deletecollection has no name", request: stores("deletecollection"),
			scope: "namedAsNode: [" + operator + "[deletecollection]}]", want: []string{token},
		},
		{
			rule: "podsOnNode: a deletecollection has no name",
			request: attackpaths.CustomRequest{
				Verbs: []string{"deletecollection"}, APIGroup: operatorGroup, Resource: "widgets",
			},
			scope: "podsOnNode: [{apiGroups: [operator.example.com], resources: [widgets], verbs: [deletecollection]}]",
			want:  []string{token},
		},
		{
			rule: "anywhere: a deletecollection has none of the names", request: named(stores("deletecollection"), "w1"),
			scope: "anywhere: [" + operator + "[deletecollection], resourceNames: [w1]}]", want: []string{token},
		},
		{
			rule: "anywhere: a deletecollection without a name", request: stores("deletecollection"),
			scope: "anywhere: [" + operator + "[deletecollection]}]", want: []string{token, certain},
		},
		{
			rule: "asNode: what the Node authorizer may allow to the node", request: nodes("patch"), scope: "asNode: true",
			want: []string{token, possible},
		},
		{
			rule: "asNode: what the Node authorizer allows to no node", request: nodes("deletecollection"), scope: "asNode: true",
			want: []string{token},
		},
		{
			rule: "asNode: a resource for which the Node authorizer has no rule", request: stores("update"), scope: "asNode: true",
			want: []string{token},
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			right := strings.Join(c.request.Verbs, ",") + " " + c.request.Resource + "@" + c.request.APIGroup
			parse(t, cluster, scopedBase()+role("agent", "", "agents/cni", right))
			cluster.Custom = []attackpaths.CustomTechnique{custom(func(t *attackpaths.CustomTechnique) {
				t.AllowedBy = []attackpaths.CustomRequest{c.request}
			}, attackpaths.Holding{Kind: attackpaths.User, Name: "alice"})}
			scopes := readScopes(t, scope("s", c.scope))
			cluster.NodeScopes = policyOf(t, scopes...)
			if c.start == (attackpaths.Holding{}) {
				c.start = agentPod
			}
			result := from(t, graphOf(t, cluster), c.start)
			if got := lines(result); !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
			compareWithSearch(t, newNaive(cluster, scopes...), result)
		})
	}
}
