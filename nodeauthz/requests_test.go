package nodeauthz_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	. "github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func TestWhoIsANode(t *testing.T) {
	as := func(user string, groups ...string) *access.Request {
		req := by1("get", "secrets", "shop/db")
		req.User, req.Groups = user, groups
		return req
	}
	check(t, latest(), []rule{
		{"prefix and group", as("system:node:worker-1", "system:nodes"), PathToObject},
		{"the group among others", as("system:node:worker-1", "system:authenticated", "system:nodes", "extra"), PathToObject},
		{"the name exactly", as("system:node:worker-1 ", "system:nodes"), NoPathToObject},
		{"no group", as("system:node:worker-1", "system:authenticated"), NotANode},
		{"no groups", as("system:node:worker-1"), NotANode},
		{"a group with the name as a prefix", as("system:node:worker-1", "system:nodes:eu"), NotANode},
		{"the group in another case", as("system:node:worker-1", "System:Nodes"), NotANode},
		{"no prefix", as("worker-1", "system:nodes"), NotANode},
		{"the prefix in another case", as("System:Node:worker-1", "system:nodes"), NotANode},
		{"the prefix without its last colon", as("system:node", "system:nodes"), NotANode},
		{"a service account in the group", as("system:serviceaccount:shop:api", "system:nodes"), NotANode},
		{"nobody", as(""), NotANode},
		{"the prefix alone", as("system:node:", "system:nodes"), UnnamedNode},
		{"the prefix alone, without the group", as("system:node:"), NotANode},
	})
	t.Run("an answer names the node", func(t *testing.T) {
		a := latest()
		for user, want := range map[string]string{
			"system:node:worker-9": "worker-9", "system:node:a:b": "a:b", "system:node:": "", "admin": "",
		} {
			if got := a.Decide(as(user, "system:nodes")).Node; got != want {
				t.Errorf("user %q is node %q, want %q", user, got, want)
			}
		}
	})
	t.Run("an empty request is no decision", func(t *testing.T) {
		if answer := latest().Decide(&access.Request{}); answer.Decision != verdict.NoOpinion || answer.Code != NotANode {
			t.Errorf("got %+v", answer)
		}
	})
}

func TestPathsThatAreNoResources(t *testing.T) {
	url := func(verb, path string) *access.Request {
		req := by1(verb, "secrets", "shop/db") // must not count
		req.ResourceRequest, req.Path = false, path
		return req
	}
	check(t, latest(), []rule{
		{"health", url("get", "/healthz"), NoRuleForResource},
		{"metrics", url("get", "/metrics"), NoRuleForResource},
		{"version", url("get", "/version"), NoRuleForResource},
		{"discovery", url("get", "/api/v1"), NoRuleForResource},
		{"a path that looks like a resource", url("get", "/api/v1/namespaces/shop/secrets/db"), NoRuleForResource},
		{"no path", url("get", ""), NoRuleForResource},
	})
}

// TestSlashInTheResource has access reviews that write the subresource into the
// resource. Kubernetes looks these up in the rules of the cluster role
// system:node, which ask for no relation.
func TestSlashInTheResource(t *testing.T) {
	check(t, latest(), []rule{
		{"nodes/status: update", whole("update", "", "nodes/status", "worker-2"), GrantedToNodes},
		{"nodes/status: patch", whole("patch", "", "nodes/status", "worker-2"), GrantedToNodes},
		{"nodes/status: get", whole("get", "", "nodes/status", "worker-1"), VerbNotAllowed},
		{"pods/status: update", whole("update", "", "pods/status", "shop/web"), GrantedToNodes},
		{"pods/status: patch", whole("patch", "", "pods/status", "shop/web"), GrantedToNodes},
		{"pods/eviction: create", whole("create", "", "pods/eviction", "shop/web"), GrantedToNodes},
		{"pods/eviction: get", whole("get", "", "pods/eviction", "shop/api"), VerbNotAllowed},
		{"serviceaccounts/token: create", whole("create", "", "serviceaccounts/token", "shop/web"), GrantedToNodes},
		{
			"persistentvolumeclaims/status: get, unlike the subresource",
			whole("get", "", "persistentvolumeclaims/status", "shop/orders"), GrantedToNodes,
		},
		{"persistentvolumeclaims/status: update", whole("update", "", "persistentvolumeclaims/status", "shop/images"), GrantedToNodes},
		{"persistentvolumeclaims/status: patch", whole("patch", "", "persistentvolumeclaims/status", "shop/images"), GrantedToNodes},
		{"pods/log", whole("get", "", "pods/log", "shop/api"), NoRuleForResource},
		{"secrets/status", whole("get", "", "secrets/status", "shop/db"), NoRuleForResource},
		{"a trailing slash", whole("get", "", "secrets/", "shop/db"), NoRuleForResource},
		{"a subresource of one", func() *access.Request {
			req := whole("update", "", "nodes/status", "worker-1")
			req.Subresource = "status"
			return req
		}(), SubresourceNotAllowed},
	})
}

func TestFieldSelectors(t *testing.T) {
	list := func(requirements ...fields.Requirement) *access.Request {
		req := by1("list", "pods", "")
		req.FieldSelector = requirements
		return req
	}
	own := fields.Requirement{Field: "spec.nodeName", Operator: selection.Equals, Value: "worker-1"}
	other := fields.Requirement{Field: "spec.nodeName", Operator: selection.Equals, Value: "worker-2"}
	phase := fields.Requirement{Field: "status.phase", Operator: selection.NotEquals, Value: "Failed"}
	with := func(op selection.Operator, value string) fields.Requirement {
		return fields.Requirement{Field: "spec.nodeName", Operator: op, Value: value}
	}
	check(t, latest(), []rule{
		{"the node's name", list(own), OwnFieldSelector},
		{"with another requirement before it", list(phase, own), OwnFieldSelector},
		{"with another requirement after it", list(own, phase), OwnFieldSelector},
		{"beside one that contradicts it: nothing matches both", list(other, own), OwnFieldSelector},
		{"written with two equals signs", by1("list", "pods", "", "spec.nodeName==worker-1"), OwnFieldSelector},
		{"none", list(), FieldSelectorRequired},
		{"another node's name", list(other), FieldSelectorRequired},
		{"an empty name", list(with(selection.Equals, "")), FieldSelectorRequired},
		{"a longer name", list(with(selection.Equals, "worker-11")), FieldSelectorRequired},
		{
			"another field", list(fields.Requirement{Field: "metadata.name", Operator: selection.Equals, Value: "worker-1"}),
			FieldSelectorRequired,
		},
		{
			"a field in another case",
			list(fields.Requirement{Field: "spec.nodename", Operator: selection.Equals, Value: "worker-1"}), FieldSelectorRequired,
		},
		{"all but the node", list(with(selection.NotEquals, "worker-1")), FieldSelectorRequired},
		{"operator in: access reviews with one value arrive as =", list(with(selection.In, "worker-1")), FieldSelectorRequired},
		{"operator ==, which parsed selectors never have", list(with(selection.DoubleEquals, "worker-1")), FieldSelectorRequired},
		{"operator exists", list(with(selection.Exists, "")), FieldSelectorRequired},
		{"no operator", list(with("", "worker-1")), FieldSelectorRequired},
	})
}
