package attackpaths_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// withoutRight are the techniques that no right of an account leads to, so that no rule of a NodeScope can let one pass.
var withoutRight = map[attackpaths.Code]string{
	attackpaths.PodOnNode:        "root on the node",
	attackpaths.PodTokenOnNode:   "root on the node",
	attackpaths.TokenOfPodOnNode: "the node's credential",
	attackpaths.SecretOnNode:     "the node's credential",
	attackpaths.PodToken:         "the processes of a pod",
	attackpaths.PodSecret:        "the processes of a pod",
	attackpaths.PodEscape:        "the processes of a pod",
	attackpaths.ControlPlaneNode: "root on the node",
}

// TestEachTechniqueGivesAWarning: a technique whose rights a rule in anywhere lets pass is warned about.
func TestEachTechniqueGivesAWarning(t *testing.T) {
	warned := map[attackpaths.Code]bool{}
	for _, r := range attackpaths.NeededRights() {
		for _, verb := range r.Verbs {
			spec := anywhere(v1alpha1.AnywhereRule{APIGroups: []string{r.Group}, Resources: []string{r.Path()}, Verbs: []string{verb}})
			codes := codesOf(attackpaths.ScopeWarnings(spec, nil))
			for _, code := range r.Techniques {
				if warned[code] = true; !slices.Contains(codes, code) {
					t.Errorf("%s %s: warnings %q, want %s", verb, r.Path(), codes, code)
				}
			}
			steals := func(code attackpaths.Code) bool { return code == attackpaths.StealPods } // which no path follows
			if codes = slices.DeleteFunc(codes, steals); len(r.Techniques) == 0 && len(codes) > 0 {
				t.Errorf("%s %s only helps, and gives %q", verb, r.Path(), codes)
			}
		}
	}
	star := []string{"*"}
	everything := attackpaths.ScopeWarnings(anywhere(v1alpha1.AnywhereRule{APIGroups: star, Resources: star, Verbs: star}), nil)
	warned[attackpaths.Masters] = slices.Equal(codesOf(everything), []attackpaths.Code{attackpaths.Masters})
	for _, code := range []attackpaths.Code{attackpaths.StealPods, attackpaths.ContainmentControl} {
		in := anywhere(v1alpha1.AnywhereRule{
			APIGroups: star, Resources: star, Verbs: star, ResourceNames: []string{"any"},
		})
		warned[code] = slices.Contains(codesOf(attackpaths.ScopeWarnings(in, nil)), code)
	}
	for _, technique := range attackpaths.Techniques() {
		_, classified := withoutRight[technique.Code]
		if warned[technique.Code] == classified {
			t.Errorf("%s: warned about: %v, classified as without a right: %v", technique.Code, warned[technique.Code], classified)
		}
	}
}

// TestPathsUseNoRightWithoutAWarning: a NodeScope that lets pass what roles grant to an account has a warning for each
// technique by which the search leaves from the account.
func TestPathsUseNoRightWithoutAWarning(t *testing.T) {
	used := map[attackpaths.Code]bool{}
	eachCluster(t, 900, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		g := graphOf(t, c)
		for _, account := range c.Inventory.ServiceAccounts() {
			result := from(t, g, attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: account.Namespace, Name: account.Name})
			spec := anywhere()
			grants, _ := c.RBAC.Grants("system:serviceaccount:"+account.Namespace+":"+account.Name, []string{
				"system:serviceaccounts", "system:serviceaccounts:" + account.Namespace, "system:authenticated", "system:unauthenticated",
			})
			anonymous, _ := c.RBAC.Grants("system:anonymous", []string{"system:unauthenticated"})
			for _, grant := range append(grants, anonymous...) {
				rule := v1alpha1.AnywhereRule{
					APIGroups: grant.Rule.APIGroups, Resources: grant.Rule.Resources, ResourceNames: grant.Rule.ResourceNames,
					Verbs: grant.Rule.Verbs,
				}
				if slices.Contains(rule.ResourceNames, "") { // a request without a name has it in RBAC; a NodeScope cannot
					rule.ResourceNames = nil
				}
				if grant.Binding.Namespace != "" {
					rule.Namespaces = []string{grant.Binding.Namespace}
				}
				spec.Anywhere = append(spec.Anywhere, rule)
			}
			codes := codesOf(attackpaths.ScopeWarnings(spec, nil))
			for _, r := range result.Reached {
				first := r.Path[0].Technique
				if strings.HasPrefix(string(first), randomCustom) {
					continue
				}
				used[first] = true
				if !slices.Contains(codes, first) && !slices.Contains(codes, attackpaths.Masters) {
					t.Errorf("%s/%s reaches %s by %s, and the warnings are %q", account.Namespace, account.Name, r.Holding, first, codes)
				}
			}
		}
	})
	if len(used) < 12 && !testing.Short() {
		t.Errorf("paths begin with %d techniques only: %v", len(used), used)
	}
}

func anywhere(rules ...v1alpha1.AnywhereRule) *v1alpha1.NodeScopeSpec {
	return &v1alpha1.NodeScopeSpec{Mode: v1alpha1.Enforce, Anywhere: rules}
}

func codesOf(warnings []attackpaths.ScopeWarning) (codes []attackpaths.Code) {
	for _, w := range warnings {
		codes = append(codes, w.Code)
	}
	return codes
}

func TestScopeWarnings(t *testing.T) {
	core, rbacGroup, policy := []string{""}, []string{"rbac.authorization.k8s.io"}, []string{"policy.node-authorizer.io"}
	in := func(groups []string, verb string, resources ...string) v1alpha1.AnywhereRule {
		return v1alpha1.AnywhereRule{APIGroups: groups, Resources: resources, Verbs: []string{verb}}
	}
	only := func(r v1alpha1.AnywhereRule, namespace string, names ...string) *v1alpha1.NodeScopeSpec {
		r.ResourceNames = names
		if namespace != "" {
			r.Namespaces = []string{namespace}
		}
		return anywhere(r)
	}
	created := v1alpha1.NamedRule{APIGroups: []string{"", "rbac.authorization.k8s.io"}, Verbs: []string{"create", "patch"}}
	named := func(resources ...string) *v1alpha1.NodeScopeSpec {
		r := created
		r.Resources = resources
		return &v1alpha1.NodeScopeSpec{AsNode: true, NamedAsNode: []v1alpha1.NamedRule{r}}
	}
	for _, tc := range []struct {
		rule string
		spec *v1alpha1.NodeScopeSpec
		want string
	}{
		{"nothing", anywhere(), ""},
		{"what the node may do", &v1alpha1.NodeScopeSpec{AsNode: true}, ""},
		{"reads of nodes and pods", anywhere(in(core, "get", "nodes", "pods", "pods/log", "configmaps")), ""},
		{"impersonation", anywhere(in(core, "impersonate", "users")), "Impersonate anywhere[0]"},
		{"pods", anywhere(in(core, "create", "pods")), "PodCreate anywhere[0]"},
		{"exec", anywhere(in(core, "create", "pods/exec")), "PodExec anywhere[0]"},
		{"exec through a WebSocket", anywhere(in(core, "get", "pods/exec")), "PodExec anywhere[0]"},
		{"workloads", anywhere(in([]string{"apps"}, "patch", "daemonsets")), "PodUpdate anywhere[0]"},
		{"bindings of roles", anywhere(in(rbacGroup, "create", "rolebindings")), "BindRole anywhere[0]"},
		{"bindings of pods", anywhere(in(core, "create", "pods/binding")), "StealPods anywhere[0]"},
		{"evictions", anywhere(in(core, "create", "pods/eviction")), "StealPods anywhere[0]"},
		{"nodes", anywhere(in(core, "patch", "nodes/status")), "StealPods anywhere[0]"},
		{"NodeScopes", anywhere(in(policy, "delete", "nodescopes")), "ContainmentControl anywhere[0]"},
		{"Quarantines", anywhere(in(policy, "update", "quarantines/status")), "ContainmentControl anywhere[0]"},
		{"webhooks", anywhere(in([]string{"*"}, "delete", "mutatingwebhookconfigurations")), "ContainmentControl anywhere[0]"},
		{"the second rule", anywhere(in(core, "get", "nodes"), in(core, "list", "secrets")), "SecretRead anywhere[1]"},
		{"tokens", anywhere(in(core, "create", "serviceaccounts/token")), "TokenRequest anywhere[0]"},
		{"reads of accounts", anywhere(in(core, "get", "serviceaccounts/token")), ""},
		{"accounts, not their tokens", anywhere(in(core, "create", "serviceaccounts")), ""},
		{"all subresources", anywhere(in(core, "get", "*")), "SecretRead anywhere[0], PodExec anywhere[0], NodeProxy anywhere[0]"},
		{"paths", anywhere(v1alpha1.AnywhereRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}), ""},
		{"another group", anywhere(in([]string{"example.io"}, "*", "*")), ""},
		{"everything", anywhere(in([]string{"*"}, "*", "*")), "Masters anywhere[0]"},
		{"a namespace and what has none", only(in(core, "create", "nodes/proxy"), "shop"), ""},
		{"the mappings", only(in(core, "update", "configmaps"), "kube-system", "aws-auth"), "NodeIdentityConfig anywhere[0]"},
		{"another ConfigMap", only(in(core, "update", "configmaps"), "kube-system", "agent"), ""},
		{"another namespace", only(in(core, "update", "configmaps"), "shop"), ""},
		{
			"bootstrap tokens", only(in(core, "create", "secrets"), "kube-system"),
			"ServiceAccountTokenSecret anywhere[0], BootstrapToken anywhere[0]",
		},
		{
			"the custom resource",
			only(in([]string{"*"}, "patch", "customresourcedefinitions"), "", "nodescopes.policy.node-authorizer.io"),
			"ContainmentControl anywhere[0]",
		},
		{"another custom resource", only(in([]string{"*"}, "patch", "customresourcedefinitions"), "", "things.example.io"), ""},
		{"the own node", named("nodes", "nodes/proxy", "nodes/status"), ""},
		{"objects with the name of the node that have their effect anywhere", named("clusterrolebindings"), "BindRole namedAsNode[0]"},
		{"tokens of an account with the name of the node", named("serviceaccounts/token"), "TokenRequest namedAsNode[0]"},
		{
			"pods on the node", &v1alpha1.NodeScopeSpec{PodsOnNode: []v1alpha1.PodRule{
				{Resources: []string{"pods", "pods/exec"}, Verbs: []string{"*"}},
			}}, "",
		},
		{
			"objects that are named like pods", &v1alpha1.NodeScopeSpec{PodsOnNode: []v1alpha1.PodRule{
				{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}},
			}}, "PodCreate podsOnNode[0]",
		},
		{"what no rule names", &v1alpha1.NodeScopeSpec{Otherwise: v1alpha1.Allow}, "OtherwiseAllowed otherwise"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var got []string
			for _, w := range attackpaths.ScopeWarnings(tc.spec, nil) {
				got = append(got, fmt.Sprint(w.Code, " ", w.Rule))
			}
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestScopeWarningsAboutTokensNameTheirNode(t *testing.T) {
	spec := anywhere(v1alpha1.AnywhereRule{
		APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}, Verbs: []string{"create"},
	})
	for without, want := range map[v1alpha1.Effect]bool{v1alpha1.Deny: false, v1alpha1.Allow: true} {
		spec.TokensWithoutNode = without
		message := attackpaths.ScopeWarnings(spec, nil)[0].Message
		if !strings.Contains(message, "another node") || strings.Contains(message, "tokensWithoutNode") != want {
			t.Errorf("%s: %s", without, message)
		}
	}
}

// TestGrantedRightsOfScopeWarnings: of what a NodeScope lets pass, roles grant a part.
func TestGrantedRightsOfScopeWarnings(t *testing.T) {
	pods := &rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"pods", "pods/exec", "serviceaccounts/token"}, Verbs: []string{"create"},
	}
	reads := &rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "patch"}}
	everything := v1alpha1.AnywhereRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}}
	for _, tc := range []struct {
		rule  string
		spec  *v1alpha1.NodeScopeSpec
		roles []*rbacv1.PolicyRule
		want  string
	}{
		{"nothing", anywhere(everything), nil, ""},
		{"a part", anywhere(everything), []*rbacv1.PolicyRule{pods}, "create serviceaccounts/token, pods, pods/exec"},
		{
			"a part of the verbs", &v1alpha1.NodeScopeSpec{Otherwise: v1alpha1.Allow}, []*rbacv1.PolicyRule{reads}, "patch nodes",
		},
		{
			"what a rule limits is not left open", &v1alpha1.NodeScopeSpec{
				Otherwise: v1alpha1.Allow, AsNode: true,
				NamedAsNode: []v1alpha1.NamedRule{{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"*"}}},
				PodsOnNode:  []v1alpha1.PodRule{{Resources: []string{"pods/exec"}, Verbs: []string{"*"}}},
			}, []*rbacv1.PolicyRule{pods, reads}, "",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			w := attackpaths.ScopeWarnings(tc.spec, nil)[0]
			if got := strings.Join(w.Granted(tc.roles), ", "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestScopeWarningsAboutAggregatedAPIs: of rules that rely on the name of a new object or on a selector.
func TestScopeWarningsAboutAggregatedAPIs(t *testing.T) {
	served := &nodescope.Aggregation{Versions: []schema.GroupVersion{{Group: "things.example.io", Version: "v1"}}, Complete: true}
	things, others := []string{"things.example.io"}, []string{"others.example.io"}
	named := func(groups []string, verb string) *v1alpha1.NodeScopeSpec {
		rule := v1alpha1.NamedRule{APIGroups: groups, Resources: []string{"things"}, Verbs: []string{verb}}
		return &v1alpha1.NodeScopeSpec{NamedAsNode: []v1alpha1.NamedRule{rule}}
	}
	for _, tc := range []struct {
		rule string
		spec *v1alpha1.NodeScopeSpec
		want string
	}{
		{"creates", named(things, "create"), "namedAsNode[0]"},
		{"every verb of every group", named([]string{"*"}, "*"), "namedAsNode[0]"},
		{"requests for a single object", named(things, "patch"), ""},
		{"another group", named(others, "create"), ""},
		{"selectors", &v1alpha1.NodeScopeSpec{SelectsNode: []v1alpha1.SelectedRule{
			{APIGroups: things, Resources: []string{"things"}, Verbs: []string{"list"}, Field: "spec.nodeName"},
		}}, "selectsNode[0]"},
		{"objects that are named like pods", &v1alpha1.NodeScopeSpec{PodsOnNode: []v1alpha1.PodRule{
			{APIGroups: things, Resources: []string{"things"}, Verbs: []string{"create"}},
		}}, "podsOnNode[0]"},
		{"anywhere", anywhere(v1alpha1.AnywhereRule{APIGroups: things, Resources: []string{"things"}, Verbs: []string{"create"}}), ""},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var got []string
			for _, w := range attackpaths.ScopeWarnings(tc.spec, served) {
				if w.Code == attackpaths.AggregatedAPI {
					got = append(got, w.Rule)
				}
			}
			if strings.Join(got, ", ") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
