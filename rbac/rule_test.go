package rbac_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/rbac"
)

func TestRuleAllows(t *testing.T) {
	getPods := access.Request{ResourceRequest: true, Verb: "get", Resource: "pods", Namespace: "shop", Name: "web"}
	with := func(change func(*access.Request)) access.Request {
		req := getPods
		change(&req)
		return req
	}
	url := func(verb, path string) access.Request { return access.Request{Verb: verb, Path: path} }
	rule := func(verbs, groups, resources []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources, ResourceNames: names}
	}
	urlRule := func(verb string, urls ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, NonResourceURLs: urls}
	}
	get, core := []string{"get"}, []string{""}

	tests := []struct {
		name string
		rule rbacv1.PolicyRule
		req  access.Request
		want bool
	}{
		{"verb, group and resource have to match", rule(get, core, []string{"pods"}), getPods, true},
		{"another verb does not match", rule([]string{"list"}, core, []string{"pods"}), getPods, false},
		{"another group does not match", rule(get, []string{"apps"}, []string{"pods"}), getPods, false},
		{"another resource does not match", rule(get, core, []string{"secrets"}), getPods, false},
		{"one of several is enough", rule([]string{"list", "get"}, []string{"apps", ""}, []string{"secrets", "pods"}), getPods, true},
		{"* is any verb", rule([]string{"*"}, core, []string{"pods"}), getPods, true},
		{"* is any group", rule(get, []string{"*"}, []string{"pods"}), getPods, true},
		{"* is any resource", rule(get, core, []string{"*"}), getPods, true},
		{"verbs are case-sensitive", rule([]string{"GET"}, core, []string{"pods"}), getPods, false},
		{"a rule without verbs allows nothing", rule(nil, core, []string{"pods"}), getPods, false},
		{"a rule without groups allows nothing", rule(get, nil, []string{"pods"}), getPods, false},
		{"a star within a word is not a wildcard", rule(get, core, []string{"po*"}), getPods, false},

		{
			"a subresource is named after its resource", rule(get, core, []string{"pods/log"}),
			with(func(r *access.Request) { r.Subresource = "log" }), true,
		},
		{
			"a resource does not include its subresources", rule(get, core, []string{"pods"}),
			with(func(r *access.Request) { r.Subresource = "log" }), false,
		},
		{"a subresource does not include its resource", rule(get, core, []string{"pods/log"}), getPods, false},
		{
			"*/log is the subresource of any resource", rule(get, core, []string{"*/log"}),
			with(func(r *access.Request) { r.Subresource = "log" }), true,
		},
		{
			"*/log is not another subresource that ends alike", rule(get, core, []string{"*/log"}),
			with(func(r *access.Request) { r.Subresource = "catalog" }), false,
		},
		{"*/log is not a resource", rule(get, core, []string{"*/log"}), getPods, false},
		{"*/ is nothing", rule(get, core, []string{"*/"}), getPods, false},
		{
			"* includes subresources", rule(get, core, []string{"*"}),
			with(func(r *access.Request) { r.Subresource = "log" }), true,
		},
		{
			"pods/* is not a wildcard", rule(get, core, []string{"pods/*"}),
			with(func(r *access.Request) { r.Subresource = "log" }), false,
		},
		{
			"a resource may contain slashes", rule(get, core, []string{"https://sts.example.com"}),
			with(func(r *access.Request) { r.Resource = "https://sts.example.com" }), true,
		},

		{"no resource names is any name", rule(get, core, []string{"pods"}), getPods, true},
		{"a listed name matches", rule(get, core, []string{"pods"}, "db", "web"), getPods, true},
		{"another name does not match", rule(get, core, []string{"pods"}, "db"), getPods, false},
		{
			"names exclude requests without a name", rule(get, core, []string{"pods"}, "web"),
			with(func(r *access.Request) { r.Name = "" }), false,
		},
		{"* is not a wildcard for names", rule(get, core, []string{"pods"}, "*"), getPods, false},
		{
			"an empty listed name is the request without a name", rule(get, core, []string{"pods"}, ""),
			with(func(r *access.Request) { r.Name = "" }), true,
		},

		{"a URL matches exactly", urlRule("get", "/healthz"), url("get", "/healthz"), true},
		{"a URL is not a prefix", urlRule("get", "/healthz"), url("get", "/healthz/etcd"), false},
		{"a trailing * is a prefix", urlRule("get", "/healthz/*"), url("get", "/healthz/etcd"), true},
		{"a prefix keeps its slash", urlRule("get", "/healthz/*"), url("get", "/healthz"), false},
		{"a prefix may end within a word", urlRule("get", "/health*"), url("get", "/healthz"), true},
		{"several trailing stars are one", urlRule("get", "/logs/**"), url("get", "/logs/kubelet"), true},
		{"a * inside is itself", urlRule("get", "/*/logs"), url("get", "/a/logs"), false},
		{"* is any URL", urlRule("get", "*"), url("get", "/anything"), true},
		{"* is any verb for URLs", urlRule("*", "/healthz"), url("post", "/healthz"), true},
		{"another verb on a URL does not match", urlRule("get", "/healthz"), url("post", "/healthz"), false},
		{"a resource rule is not for URLs", rule([]string{"*"}, []string{"*"}, []string{"*"}), url("get", "/healthz"), false},
		{"a URL rule is not for resources", urlRule("*", "*"), getPods, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := rbac.RuleAllows(&tt.rule, &tt.req); got != tt.want {
				t.Errorf("RuleAllows(%v, %+v) = %v", tt.rule, tt.req, got)
			}
		})
	}
}
