package learn_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/generate"
	"github.com/node-authorizer/node-authorizer/internal/scopetools/learn"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// knows is a state in which the node may read services, and pod shop/api is on node a.
type knows struct{}

func (knows) AsNode(r *access.Request, _ string) bool { return r.Resource == "services" }
func (knows) IsNode(name string) bool                 { return name == "c" }
func (knows) NodeOf(namespace, pod string) string {
	if namespace == "shop" && pod == "api" {
		return "a"
	}
	return ""
}

// allows lets the node do everything.
type allows struct{ knows }

func (allows) AsNode(*access.Request, string) bool { return true }

func request(node, verb, apiGroup, resource, namespace, name string) *learn.Request {
	resource, sub, _ := strings.Cut(resource, "/")
	return &learn.Request{
		Request: access.Request{
			Verb: verb, ResourceRequest: true, Group: apiGroup, Resource: resource, Subresource: sub, Namespace: namespace, Name: name,
		},
		AccountNamespace: "kube-system", AccountName: "agent", Node: node,
	}
}

func selecting(field string, r *learn.Request) *learn.Request {
	return selectingNode(field, r.Node, r)
}

func selectingNode(field, node string, r *learn.Request) *learn.Request {
	r.FieldSelector = fields.Requirements{{Field: field, Operator: selection.Equals, Value: node}}
	return r
}

func created(r *learn.Request, name string) *learn.Request {
	r.CreatedName = name
	return r
}

func TestTheTightestRuleForTheOwnNode(t *testing.T) {
	pod := func(node, name string) *learn.Request {
		return request(node, "patch", "", "pods/status", "shop", name)
	}
	for _, tc := range []struct {
		rule     string
		requests []*learn.Request
		pods     []learn.PodOnNode
		want     v1alpha1.NodeScopeSpec
		outliers []string // the objects, and the other node that they show
	}{
		{
			"the name was always the node's",
			[]*learn.Request{request("a", "patch", "", "nodes/status", "", "a"), request("b", "patch", "", "nodes/status", "", "b")},
			nil,
			v1alpha1.NodeScopeSpec{NamedAsNode: []v1alpha1.NamedRule{
				{APIGroups: []string{""}, Resources: []string{"nodes/status"}, Verbs: []string{"patch"}},
			}},
			nil,
		},
		{
			"the name was once another node's",
			[]*learn.Request{request("a", "get", "x", "things", "", "a"), request("a", "get", "x", "things", "", "b")},
			nil,
			v1alpha1.NodeScopeSpec{NamedAsNode: []v1alpha1.NamedRule{
				{APIGroups: []string{"x"}, Resources: []string{"things"}, Verbs: []string{"get"}},
			}},
			[]string{"b from a"},
		},
		{
			"the name was always another node's, which the state has",
			[]*learn.Request{request("a", "get", "x", "things", "", "c")},
			nil,
			v1alpha1.NodeScopeSpec{},
			[]string{"c from a about c"},
		},
		{
			"the name was always another node's, which the log has",
			[]*learn.Request{request("a", "get", "x", "things", "", "b"), request("b", "list", "", "services", "", "")},
			nil,
			v1alpha1.NodeScopeSpec{AsNode: true},
			[]string{"b from a about b"},
		},
		{
			"a Node is about another node, whether this is known or not",
			[]*learn.Request{request("a", "patch", "", "nodes/status", "", "gone")},
			nil,
			v1alpha1.NodeScopeSpec{},
			[]string{"gone from a about gone"},
		},
		{
			"lists of other nodes",
			[]*learn.Request{selectingNode("spec.nodeName", "c", request("a", "list", "", "pods", "", ""))},
			nil,
			v1alpha1.NodeScopeSpec{},
			[]string{"spec.nodeName=c from a about c"},
		},
		{
			"pods on another node, by the state and by the log",
			[]*learn.Request{pod("b", "api"), pod("b", "gone")},
			[]learn.PodOnNode{{Namespace: "shop", Name: "gone", Node: "d"}},
			v1alpha1.NodeScopeSpec{},
			[]string{"shop/api from b about a", "shop/gone from b about d"},
		},
		{
			"pods of which nothing shows the node",
			[]*learn.Request{pod("b", "gone")},
			nil,
			v1alpha1.NodeScopeSpec{Anywhere: []v1alpha1.AnywhereRule{
				{APIGroups: []string{""}, Resources: []string{"pods/status"}, Verbs: []string{"patch"}, Namespaces: []string{"shop"}},
			}},
			nil,
		},
		{
			"two rules, if none fits all that is about the own node",
			[]*learn.Request{
				request("a", "list", "", "services", "", ""), selecting("spec.x", request("a", "list", "x", "things", "", "")),
				selecting("spec.y", request("a", "list", "x", "things", "", "")), request("a", "list", "x", "things", "", ""),
			},
			nil,
			v1alpha1.NodeScopeSpec{AsNode: true, SelectsNode: []v1alpha1.SelectedRule{
				{APIGroups: []string{"x"}, Resources: []string{"things"}, Verbs: []string{"list"}, Field: "spec.x"},
				{APIGroups: []string{"x"}, Resources: []string{"things"}, Verbs: []string{"list"}, Field: "spec.y"},
			}},
			[]string{" from a"},
		},
		{
			"a created object had the name of the node",
			[]*learn.Request{created(request("a", "create", "x", "things", "", ""), "a")},
			nil,
			v1alpha1.NodeScopeSpec{NamedAsNode: []v1alpha1.NamedRule{
				{APIGroups: []string{"x"}, Resources: []string{"things"}, Verbs: []string{"create"}},
			}},
			nil,
		},
		{
			"the log does not show the name of a created object",
			[]*learn.Request{request("a", "create", "x", "things", "n", "")},
			nil,
			v1alpha1.NodeScopeSpec{Anywhere: []v1alpha1.AnywhereRule{
				{APIGroups: []string{"x"}, Resources: []string{"things"}, Verbs: []string{"create"}, Namespaces: []string{"n"}},
			}},
			nil,
		},
		{
			"lists always selected the node",
			[]*learn.Request{
				selecting("spec.nodeName", request("a", "list", "", "pods", "", "")), selecting("spec.nodeName", request("b", "list",
					"", "pods", "", "")),
			},
			nil,
			v1alpha1.NodeScopeSpec{SelectsNode: []v1alpha1.SelectedRule{
				{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}, Field: "spec.nodeName"},
			}},
			nil,
		},
		{
			"a list once selected nothing",
			[]*learn.Request{selecting("spec.nodeName", request("a", "list", "", "pods", "", "")), request("b", "list", "", "pods",
				"", "")},
			nil,
			v1alpha1.NodeScopeSpec{SelectsNode: []v1alpha1.SelectedRule{
				{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}, Field: "spec.nodeName"},
			}},
			[]string{" from b"},
		},
		{
			"lists selected the node, and a watch nothing",
			[]*learn.Request{
				selecting("spec.nodeName", request("a", "list", "", "pods", "", "")), request("a", "watch", "", "pods", "", ""),
			},
			nil,
			v1alpha1.NodeScopeSpec{SelectsNode: []v1alpha1.SelectedRule{
				{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}, Field: "spec.nodeName"},
			}},
			[]string{" from a"},
		},
		{
			"one of the node was deleted, and then all",
			[]*learn.Request{request("a", "delete", "x", "things", "", "a"), request("a", "deletecollection", "x", "things", "", "")},
			nil,
			v1alpha1.NodeScopeSpec{NamedAsNode: []v1alpha1.NamedRule{
				{APIGroups: []string{"x"}, Resources: []string{"things"}, Verbs: []string{"delete"}},
			}},
			[]string{" from a"},
		},
		{
			"nothing shows a node, and attack paths know the right",
			[]*learn.Request{
				request("a", "list", "", "secrets", "", ""),
				request("a", "create", "rbac.authorization.k8s.io", "clusterrolebindings", "", ""),
				request("a", "create", "", "pods", "n", ""), request("a", "deletecollection", "", "pods", "n", ""),
				request("a", "list", "", "events", "", ""),
			},
			nil,
			v1alpha1.NodeScopeSpec{Anywhere: []v1alpha1.AnywhereRule{
				{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"list"}},
			}},
			[]string{" from a", "n/ from a", "n/ from a", " from a"},
		},
		{
			"the pod was on the node by the state, and by the log",
			[]*learn.Request{pod("a", "api"), pod("b", "gone")},
			[]learn.PodOnNode{{Namespace: "shop", Name: "gone", Node: "b"}},
			v1alpha1.NodeScopeSpec{PodsOnNode: []v1alpha1.PodRule{{Resources: []string{"pods/status"}, Verbs: []string{"patch"}}}},
			nil,
		},
		{
			"nothing shows the pod on the node",
			[]*learn.Request{pod("a", "api"), pod("b", "gone")},
			[]learn.PodOnNode{{Namespace: "shop", Name: "gone", Node: "a"}},
			v1alpha1.NodeScopeSpec{PodsOnNode: []v1alpha1.PodRule{{Resources: []string{"pods/status"}, Verbs: []string{"patch"}}}},
			[]string{"shop/gone from b about a"},
		},
		{
			"the objects of another group were named like pods on the node, by the state and by the log",
			[]*learn.Request{
				request("a", "patch", "x", "things", "shop", "api"), request("b", "patch", "x", "things", "shop", "gone"),
				created(request("a", "create", "x", "things", "shop", ""), "api"),
			},
			[]learn.PodOnNode{{Namespace: "shop", Name: "gone", Node: "b"}},
			v1alpha1.NodeScopeSpec{PodsOnNode: []v1alpha1.PodRule{
				{APIGroups: []string{"x"}, Resources: []string{"things"}, Verbs: []string{"create", "patch"}},
			}},
			nil,
		},
		{
			"one was named like a pod on another node",
			[]*learn.Request{
				request("a", "patch", "x", "things", "shop", "api"), request("b", "patch", "x", "things", "shop", "api"),
			},
			nil,
			v1alpha1.NodeScopeSpec{PodsOnNode: []v1alpha1.PodRule{
				{APIGroups: []string{"x"}, Resources: []string{"things"}, Verbs: []string{"patch"}},
			}},
			[]string{"shop/api from b about a"},
		},
		{
			"one had no namespace",
			[]*learn.Request{request("a", "get", "x", "things", "", "api")},
			nil,
			v1alpha1.NodeScopeSpec{Anywhere: []v1alpha1.AnywhereRule{
				{APIGroups: []string{"x"}, Resources: []string{"things"}, ResourceNames: []string{"api"}, Verbs: []string{"get"}},
			}},
			nil,
		},
		{
			"the log does not show the name of one that was created",
			[]*learn.Request{
				created(request("a", "create", "x", "things", "shop", ""), "api"), request("a", "create", "x", "things", "shop", ""),
			},
			nil,
			v1alpha1.NodeScopeSpec{PodsOnNode: []v1alpha1.PodRule{
				{APIGroups: []string{"x"}, Resources: []string{"things"}, Verbs: []string{"create"}},
			}},
			[]string{"shop/ from a"},
		},
		{
			"in the core group a name like a pod's is chance",
			[]*learn.Request{request("a", "get", "", "configmaps", "shop", "api")},
			nil,
			v1alpha1.NodeScopeSpec{Anywhere: []v1alpha1.AnywhereRule{{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"api"}, Verbs: []string{"get"},
				Namespaces: []string{"shop"},
			}}},
			nil,
		},
		{
			"the node may do it",
			[]*learn.Request{request("a", "list", "", "services", "", "")},
			nil,
			v1alpha1.NodeScopeSpec{AsNode: true},
			nil,
		},
		{
			"few names that stay",
			[]*learn.Request{request("a", "get", "", "configmaps", "n", "y"), request("b", "get", "", "configmaps", "n", "x")},
			nil,
			v1alpha1.NodeScopeSpec{Anywhere: []v1alpha1.AnywhereRule{{
				APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"x", "y"}, Verbs: []string{"get"},
				Namespaces: []string{"n"},
			}}},
			nil,
		},
		{
			"verbs of one resource join",
			[]*learn.Request{request("a", "patch", "", "nodes", "", "a"), request("a", "get", "", "nodes", "", "a")},
			nil,
			v1alpha1.NodeScopeSpec{NamedAsNode: []v1alpha1.NamedRule{
				{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}},
			}},
			nil,
		},
		{
			"a token without a node is no evidence",
			[]*learn.Request{request("", "get", "", "nodes", "", "a")},
			nil,
			v1alpha1.NodeScopeSpec{},
			nil,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			tc.want.Subjects = []v1alpha1.Subject{{Namespace: "kube-system", Name: "agent"}}
			tc.want.Mode, tc.want.TokensWithoutNode, tc.want.Otherwise = v1alpha1.Observe, v1alpha1.Deny, v1alpha1.Deny
			for range 5 { // the order does not matter
				c := learn.NewCollector(knows{}, nil)
				for _, i := range rand.Perm(len(tc.requests)) {
					c.Request(tc.requests[i])
				}
				for _, p := range tc.pods {
					c.Pod(p)
				}
				s := c.Suggest("kube-system", "agent", false)
				if !reflect.DeepEqual(s.Scope.Spec, tc.want) {
					t.Fatalf("got  %+v\nwant %+v", s.Scope.Spec, tc.want)
				}
				if got := outliers(s); !slices.Equal(got, tc.outliers) || s.OutlierRequests() != len(tc.outliers) {
					t.Errorf("outliers %q, want %q", got, tc.outliers)
				}
				sameManifest(t, s)
				if accepted := c.Suggest("kube-system", "agent", true); accepted.OutlierRequests() > 0 ||
					len(tc.outliers) > 0 != (len(accepted.Scope.Spec.Anywhere) > len(s.Scope.Spec.Anywhere)) {
					t.Errorf("accepted: outliers %q, rules %+v", outliers(accepted), accepted.Scope.Spec.Anywhere)
				}
			}
		})
	}
}

// outliers are the objects of outliers, their nodes, and those that they are about.
func outliers(s *learn.Suggestion) []string {
	var all []string
	for _, o := range s.Outliers {
		text := o.Name + o.FieldSelector + " from " + o.Node
		if o.Namespace != "" {
			text = o.Namespace + "/" + text
		}
		if o.OtherNode != "" {
			text += " about " + o.OtherNode
		}
		all = append(all, text)
	}
	return all
}

// sameManifest reads the manifest of a suggestion, and compares it with the suggestion.
func sameManifest(t *testing.T, s *learn.Suggestion) {
	t.Helper()
	scopes, err := generate.Read(t.Context(), []string{"-"}, strings.NewReader(s.Manifest()))
	if err != nil {
		t.Fatalf("%v\n%s", err, s.Manifest())
	}
	if len(s.Invalid) > 0 {
		t.Errorf("not valid: %v", s.Invalid)
	}
	if len(scopes) != 1 || scopes[0].Name != s.Scope.Metadata.Name || !reflect.DeepEqual(scopes[0].Spec, s.Scope.Spec) {
		t.Errorf("the manifest is\n%s", s.Manifest())
	}
}

func TestWhatIsCountedApart(t *testing.T) {
	c := learn.NewCollector(knows{}, nil)
	refused, impersonating, asNode := request("a", "list", "", "secrets", "", ""), request("a", "get", "", "nodes", "", "b"),
		request("a", "get", "", "nodes", "", "a")
	refused.Refused = true
	impersonating.Impersonates = "ada"
	asNode.Impersonates, asNode.Constraint = "system:node:a", "impersonate:associated-node"
	begun, ended := request("a", "watch", "", "services", "", ""), request("a", "watch", "", "services", "", "")
	begun.Begun = true
	for _, r := range []*learn.Request{refused, impersonating, asNode, begun, ended, request("", "get", "", "nodes", "", "a")} {
		c.Request(r)
	}
	s := c.Suggest("kube-system", "agent", false)
	got := []int{s.Refused.Count, s.Impersonating.Count, s.AsItsNode, s.WithoutNode.Count, s.Evidence[0].Count}
	if want := []int{1, 1, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("refused, impersonating, as its node, without a node, watches: %v, want %v", got, want)
	}
	for _, example := range []string{"list secrets", "as ada", "tokens that name no node"} {
		if !strings.Contains(s.Manifest(), example) {
			t.Errorf("no %q in\n%s", example, s.Manifest())
		}
	}
}

func grant(rule rbacv1.PolicyRule, namespace string) rbac.Grant {
	return rbac.Grant{
		Binding: rbac.Ref{Kind: "RoleBinding", Namespace: namespace, Name: "b"}, Role: rbac.Ref{Kind: "ClusterRole", Name: "r"},
		Subject: rbacv1.Subject{Kind: "ServiceAccount", Name: "agent"}, Rule: &rule,
	}
}

func TestRightsThatWereNeverUsed(t *testing.T) {
	rule := func(group, resource string, verbs ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	}
	for _, tc := range []struct {
		rule   string
		grant  rbac.Grant
		used   *learn.Request
		unused []string
		wild   []string
	}{
		{"a verb", grant(rule("", "pods", "get", "list"), ""), request("a", "get", "", "pods", "n", "p"), []string{"list"}, nil},
		{"another group", grant(rule("x", "pods", "get"), ""), request("a", "get", "", "pods", "n", "p"), []string{"get"}, nil},
		{"a subresource", grant(rule("", "pods", "get"), ""), request("a", "get", "", "pods/log", "n", "p"), []string{"get"}, nil},
		{"another namespace", grant(rule("", "pods", "get"), "m"), request("a", "get", "", "pods", "n", "p"), []string{"get"}, nil},
		{"the namespace", grant(rule("", "pods", "get"), "n"), request("a", "get", "", "pods", "n", "p"), nil, nil},
		{"a star that was used", grant(rule("*", "*", "*"), ""), request("a", "get", "x", "pods", "n", "p"), nil, []string{"get pods.x"}},
		{"a star that was not", grant(rule("y", "*", "*"), ""), request("a", "get", "x", "pods", "n", "p"), []string{"*"}, nil},
	} {
		c := learn.NewCollector(knows{}, []rbac.Grant{tc.grant})
		c.Request(tc.used)
		s := c.Suggest("kube-system", "agent", false)
		var unused, wild []string
		for _, r := range s.NeverUsed {
			unused = append(unused, r.Verbs...)
		}
		for _, w := range s.Wildcards {
			wild = append(wild, w.Used...)
		}
		if !slices.Equal(unused, tc.unused) || !slices.Equal(wild, tc.wild) {
			t.Errorf("%s: unused %v, want %v; of stars %v, want %v", tc.rule, unused, tc.unused, wild, tc.wild)
		}
	}
}

// TestRightsToLeaveTheNodeAreOutliers: a request that shows no node makes no rule if a right to make it lets the account
// leave its node. Accepted, it is a warning. Requests for tokens that the node itself could make are about the own node.
func TestRightsToLeaveTheNodeAreOutliers(t *testing.T) {
	for node, asNode := range map[learn.Node]bool{allows{}: true, knows{}: false} {
		c := learn.NewCollector(node, nil)
		c.Request(request("a", "create", "", "serviceaccounts/token", "kube-system", "agent"))
		s, accepted := c.Suggest("kube-system", "agent", false), c.Suggest("kube-system", "agent", true)
		sameManifest(t, s)
		sameManifest(t, accepted)
		const warning = "# Warning: anywhere[0] lets the account create serviceaccounts/token: "
		if warned := strings.Contains(accepted.Manifest(), warning); warned == asNode || (len(accepted.Warnings) > 0) == asNode {
			t.Errorf("as the node: %v: %v\n%s", asNode, accepted.Warnings, accepted.Manifest())
		}
		if refuses := s.OutlierRequests() > 0 && s.Outliers[0].Technique == attackpaths.TokenRequest; refuses == asNode {
			t.Errorf("as the node: %v: outliers %+v", asNode, s.Outliers)
		}
	}
	star := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	if s := learn.FromRoles("kube-system", "agent", []rbac.Grant{grant(star, "")}); len(s.Warnings) != 1 {
		t.Errorf("a star: %v", s.Warnings)
	}
}

// TestTextOfTheLogStaysInItsComment: names and user agents are an attacker's.
func TestTextOfTheLogStaysInItsComment(t *testing.T) {
	c := learn.NewCollector(knows{}, nil)
	evil := "x\n  otherwise: Allow\r\u2028\u0085# "
	r := request("a", "get", "", "things", evil, evil)
	without := request("", "get", "", "things", evil, evil)
	without.UserAgent = evil
	c.Request(r)
	c.Request(without)
	s := c.Suggest("kube-system", "agent", false)
	sameManifest(t, s)
	for line := range strings.Lines(s.Manifest()) {
		if strings.HasPrefix(line, "  otherwise") && line != "  otherwise: Deny\n" {
			t.Errorf("line %q", line)
		}
	}
}

func TestGuessesFromRoles(t *testing.T) {
	rules := rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"nodes", "pods", "serviceaccounts/token", "services"}, Verbs: []string{
			"get",
			"patch", "create",
		},
	}
	s := learn.FromRoles("kube-system", "agent", []rbac.Grant{grant(rules, "")})
	spec := s.Scope.Spec
	if s.Basis != learn.Roles || len(s.Notes) == 0 || !spec.AsNode || len(spec.NamedAsNode) != 1 || len(spec.PodsOnNode) != 1 ||
		!slices.Equal(spec.NamedAsNode[0].Verbs, []string{"create", "patch"}) || !slices.Equal(spec.PodsOnNode[0].Verbs,
		[]string{"patch"}) {
		t.Errorf("got %+v", s)
	}
	sameManifest(t, s)

	named := rbacv1.PolicyRule{
		APIGroups: []string{"cilium.io"}, Resources: []string{"ciliumendpoints"},
		Verbs: []string{"get", "create", "delete", "deletecollection"},
	}
	s = learn.FromRoles("kube-system", "agent", []rbac.Grant{grant(named, "")})
	want := []v1alpha1.PodRule{{APIGroups: named.APIGroups, Resources: named.Resources, Verbs: []string{"create", "delete"}}}
	if !reflect.DeepEqual(s.Scope.Spec.PodsOnNode, want) {
		t.Errorf("got %+v", s.Scope.Spec)
	}
	sameManifest(t, s)
}

// TestCommentsFitALine: only a word that is longer does not.
func TestCommentsFitALine(t *testing.T) {
	c := learn.NewCollector(knows{}, nil)
	long := strings.Repeat("word ", 60)
	c.Request(request("a", "get", "", "things", "ns", long))
	without := request("", "get", "", "things", "ns", "b")
	without.UserAgent = long
	c.Request(without)
	many := make([]rbac.Grant, 20)
	for i := range many {
		many[i] = grant(rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}}, "")
		many[i].Role.Name = fmt.Sprintf("role-%d", i)
	}
	invalid := c.Suggest("kube-system", "agent", false)
	invalid.Invalid, invalid.Notes = []string{long}, []string{long}
	for _, s := range []*learn.Suggestion{invalid, learn.FromRoles("kube-system", "agent", many)} {
		for line := range strings.Lines(s.Manifest()) {
			text, comment := strings.CutPrefix(strings.TrimSpace(line), "#")
			if comment && len(strings.TrimRight(line, "\n")) > 100 && len(strings.Fields(text)) > 1 {
				t.Errorf("%d characters: %s", len(line), line)
			}
		}
	}
}

// TestMoreResourcesThanRules: a NodeScope has 64 rules of a kind at most.
func TestMoreResourcesThanRules(t *testing.T) {
	c := learn.NewCollector(knows{}, nil)
	for i := range 500 {
		c.Request(request("a", "list", "x", fmt.Sprintf("things%d", i), "", ""))
	}
	s := c.Suggest("kube-system", "agent", false)
	sameManifest(t, s)
	n := 0
	for _, r := range s.Scope.Spec.Anywhere {
		n += len(r.Resources)
	}
	if n != 500 || len(s.Evidence) != 500 {
		t.Errorf("%d resources, %d rules, %d reasons", n, len(s.Scope.Spec.Anywhere), len(s.Evidence))
	}
	for i := range 5000 {
		c.Request(request("a", "get", fmt.Sprintf("g%d.x", i), "things", "", "a"))
	}
	if s := c.Suggest("kube-system", "agent", false); len(s.Invalid) == 0 || !strings.Contains(s.Manifest(), "would not accept") {
		t.Error("more rules than a NodeScope may have, and nothing says so")
	}
}

// TestMoreOutliersThanAreKept: outliers beyond the bound are counted together.
func TestMoreOutliersThanAreKept(t *testing.T) {
	const many = 10_050
	c := learn.NewCollector(knows{}, nil)
	for i := range many {
		c.Request(request("a", "get", "x", "things", "", fmt.Sprint("thing-", i)))
	}
	if s := c.Suggest("kube-system", "agent", false); s.OutlierRequests() > 0 || len(s.Evidence) != 1 || s.Evidence[0].Count != many {
		t.Errorf("nothing shows a node: %d outliers, evidence %+v", s.OutlierRequests(), s.Evidence)
	}
	c.Request(request("a", "get", "x", "things", "", "a"))
	s := c.Suggest("kube-system", "agent", false)
	if len(s.Outliers) >= many || s.OutlierRequests() != many || len(s.Scope.Spec.Anywhere) > 0 {
		t.Errorf("%d outliers of %d requests, rules %+v", len(s.Outliers), s.OutlierRequests(), s.Scope.Spec)
	}
	for _, line := range []string{
		"#     9,990 requests of other objects or nodes: see -o json\n",
		"# - 50 requests that are counted only\n",
	} {
		if !strings.Contains(s.Manifest(), line) {
			t.Errorf("no %q in\n%s", line, s.Manifest())
		}
	}
}

func TestAnAccountThatActsAsItsNode(t *testing.T) {
	c := learn.NewCollector(knows{}, nil)
	r := request("a", "get", "", "nodes", "", "a")
	r.Impersonates, r.Constraint = "system:node:a", "impersonate:associated-node"
	c.Request(r)
	s := c.Suggest("kube-system", "agent", false)
	sameManifest(t, s)
	if !s.Scope.Spec.AsNode || len(s.Evidence) != 1 || s.Evidence[0].Count != 1 {
		t.Errorf("got %+v", s)
	}
}

func TestNamesOfScopes(t *testing.T) {
	long := learn.FromRoles(strings.Repeat("n", 63), strings.Repeat("a", 253), nil).Scope.Metadata.Name
	if len(long) > 253 || learn.FromRoles(strings.Repeat("n", 63), strings.Repeat("a", 252)+"b", nil).Scope.Metadata.Name == long {
		t.Errorf("the name is %s", long)
	}
}
