package attackpaths_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// custom returns a technique that a request for widgets in any namespace allows.
func custom(change func(*attackpaths.CustomTechnique), gives ...attackpaths.Holding) attackpaths.CustomTechnique {
	t := attackpaths.CustomTechnique{Technique: attackpaths.Technique{Code: "Widget", Summary: "widgets run anything"}}
	t.AllowedBy = []attackpaths.CustomRequest{widgets("create", "update")}
	t.Gives = gives
	if change != nil {
		change(&t)
	}
	return t
}

func widgets(verbs ...string) attackpaths.CustomRequest {
	return attackpaths.CustomRequest{Verbs: verbs, APIGroup: operatorGroup, Resource: "widgets"}
}

func onPods(subresource string) attackpaths.CustomRequest {
	return attackpaths.CustomRequest{Verbs: []string{"create"}, Resource: "pods", Subresource: subresource}
}

func stores(verbs ...string) attackpaths.CustomRequest {
	return attackpaths.CustomRequest{Verbs: verbs, APIGroup: operatorGroup, Resource: "stores", ClusterScoped: true}
}

// TestCustomTechniques starts from the service account shop/web unless a case says otherwise, and
// compares with the exhaustive search.
func TestCustomTechniques(t *testing.T) {
	base := node("n1") + namespace("shop", restrictedLabel) + namespace("ops", restrictedLabel) +
		account("shop", "web") + account("shop", "db") + account("ops", "operator-1a2b") + secret("ops", "key", "Opaque", "")
	const group = "@" + operatorGroup
	operator := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "ops", Name: "operator-*"}
	with := func(all ...attackpaths.CustomRequest) func(*attackpaths.CustomTechnique) {
		return func(t *attackpaths.CustomTechnique) { t.With = all }
	}
	in := func(namespace string, r attackpaths.CustomRequest) attackpaths.CustomRequest {
		r.Namespace = namespace
		return r
	}
	allowedBy := func(all ...attackpaths.CustomRequest) func(*attackpaths.CustomTechnique) {
		return func(t *attackpaths.CustomTechnique) { t.AllowedBy = all }
	}
	certain := []string{"Certain ServiceAccount ops/operator-1a2b: Widget"}
	possible := []string{"Possible ServiceAccount ops/operator-1a2b: Widget"}
	cases := []struct {
		rule   string
		start  attackpaths.Holding
		add    string
		custom attackpaths.CustomTechnique
		want   []string
	}{
		{rule: "no right", custom: custom(nil, operator)},
		{
			rule: "a right in some namespace", add: role("r", "shop", "shop/web", "create widgets"+group),
			custom: custom(nil, operator), want: certain,
		},
		{rule: "another verb", add: role("r", "shop", "shop/web", "delete widgets"+group), custom: custom(nil, operator)},
		{rule: "another group", add: role("r", "shop", "shop/web", "create widgets@apps"), custom: custom(nil, operator)},
		{rule: "another subresource", add: role("r", "shop", "shop/web", "update widgets/status"+group), custom: custom(nil, operator)},
		{
			rule: "wildcards", add: role("r", "shop", "shop/web", "* *@*"), custom: custom(nil, operator),
			want: []string{
				"Certain Namespace shop: PodCreate",
				"Certain Node n1: PodCreate NamespaceRelabel PodCreate",
				"Certain ServiceAccount ops/operator-1a2b: Widget",
				"Certain ServiceAccount shop/db: TokenRequest",
			},
		},
		{
			rule: "what else decides", add: role("r", "shop", "shop/web", "create widgets"+group),
			custom: custom(func(t *attackpaths.CustomTechnique) { t.DependsOn = "whether it runs" }, operator), want: possible,
		},
		{
			rule: "a right for one object, which may not exist", add: role("r", "shop", "shop/web", "update widgets"+group+" mine"),
			custom: custom(nil, operator), want: possible,
		},
		{
			rule: "a right to create by name is none", add: role("r", "shop", "shop/web", "create widgets"+group+" mine"),
			custom: custom(nil, operator),
		},
		{
			rule: "a right for the object that is named", add: role("r", "shop", "shop/web", "update widgets"+group+" mine"),
			custom: custom(func(t *attackpaths.CustomTechnique) { t.AllowedBy[0].Name = "mine" }, operator), want: certain,
		},
		{
			rule: "a right for another object", add: role("r", "shop", "shop/web", "update widgets"+group+" other"),
			custom: custom(func(t *attackpaths.CustomTechnique) { t.AllowedBy[0].Name = "mine" }, operator),
		},
		{
			rule: "a right in another namespace", add: role("r", "shop", "shop/web", "create widgets"+group),
			custom: custom(allowedBy(in("ops", widgets("create"))), operator),
		},
		{
			rule: "a right in all namespaces is one in the namespace", add: role("r", "", "shop/web", "create widgets"+group),
			custom: custom(allowedBy(in("ops", widgets("create"))), operator), want: certain,
		},
		{
			rule: "a namespace that does not exist", add: role("r", "", "shop/web", "create widgets"+group),
			custom: custom(allowedBy(in("none", widgets("create"))), operator),
		},
		{
			rule: "a role in a namespace grants nothing on what has none", add: role("r", "shop", "shop/web", "create stores"+group),
			custom: custom(allowedBy(stores("create")), operator),
		},
		{
			rule: "what has no namespace", add: role("r", "", "shop/web", "create stores"+group),
			custom: custom(allowedBy(stores("create")), operator), want: certain,
		},
		{
			rule: "the accounts and secrets of the namespace", add: role("r", "ops", "shop/web", "create widgets"+group),
			custom: custom(
				nil, attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: attackpaths.SameNamespace, Name: "*"},
				attackpaths.Holding{Kind: attackpaths.Secret, Namespace: attackpaths.SameNamespace, Name: "*"},
			),
			want: []string{"Certain Secret ops/key: Widget", "Certain ServiceAccount ops/operator-1a2b: Widget"},
		},
		{
			rule: "the namespace itself", add: role("r", "shop", "shop/web", "create widgets"+group),
			custom: custom(nil, attackpaths.Holding{Kind: attackpaths.Namespace, Name: attackpaths.SameNamespace}),
			want:   []string{"Certain Namespace shop: Widget", "Certain ServiceAccount shop/db: Widget PodCreate"},
		},
		{
			rule: "every account of every namespace", add: role("r", "shop", "shop/web", "create widgets"+group),
			custom: custom(nil, attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "*", Name: "*"}),
			want:   []string{"Certain ServiceAccount ops/operator-1a2b: Widget", "Certain ServiceAccount shop/db: Widget"},
		},
		{
			rule: "every node", add: role("r", "shop", "shop/web", "create widgets"+group),
			custom: custom(nil, attackpaths.Holding{Kind: attackpaths.Node, Name: "*"}), want: []string{"Certain Node n1: Widget"},
		},
		{
			rule: "a group and cluster-admin", add: role("r", "shop", "shop/web", "create widgets"+group),
			custom: custom(nil, attackpaths.Holding{Kind: attackpaths.Group, Name: "system:masters"}),
			want:   []string{"Certain ClusterAdmin : Widget Masters", "Certain Group system:masters: Widget"},
		},
		{
			rule: "a right that is needed besides is missing", add: role("r", "shop", "shop/web", "create widgets"+group),
			custom: custom(with(stores("update")), operator),
		},
		{
			rule: "a right that is needed besides, of another identity", want: []string{
				"Certain ServiceAccount ops/operator-1a2b: TokenRequest Widget", "Certain ServiceAccount shop/db: TokenRequest",
			},
			add: role("r", "shop", "shop/web", "create widgets"+group, "create serviceaccounts/token@ db") +
				role("s", "", "shop/db", "update stores"+group),
			custom: custom(with(stores("update")), operator),
		},
		{
			rule: "a right that is needed in the same namespace is in another",
			add:  role("r", "shop", "shop/web", "create widgets"+group) + role("s", "ops", "shop/web", "get widgets"+group),
			custom: custom(with(attackpaths.CustomRequest{
				Verbs: []string{"get"}, APIGroup: operatorGroup, Resource: "widgets", Namespace: attackpaths.SameNamespace,
			}), operator),
		},
		{
			rule: "a right that is needed in any namespace",
			add:  role("r", "shop", "shop/web", "create widgets"+group) + role("s", "ops", "shop/web", "get widgets"+group),
			custom: custom(with(attackpaths.CustomRequest{
				Verbs: []string{"get"}, APIGroup: operatorGroup, Resource: "widgets",
			}), operator), want: certain,
		},
		{
			rule:   "a webhook is asked about the request",
			add:    role("r", "shop", "shop/web", "create widgets"+group) + webhook("widgets", "CREATE"),
			custom: custom(nil, operator), want: possible,
		},
		{
			rule:   "a webhook is asked about another verb",
			add:    role("r", "shop", "shop/web", "create,update widgets"+group) + webhook("widgets", "UPDATE"),
			custom: custom(nil, operator), want: certain,
		},
		{
			rule:   "a webhook is asked about a request that is needed besides",
			add:    role("r", "", "shop/web", "create widgets"+group, "update stores"+group) + webhook("stores", "UPDATE"),
			custom: custom(with(stores("update")), operator), want: possible,
		},
		{
			rule:   "a webhook is asked about connections",
			add:    role("r", "shop", "shop/web", "create pods/exec@") + webhook("pods/exec", "CONNECT"),
			custom: custom(allowedBy(onPods("exec")), operator), want: possible,
		},
		{
			rule: "NodeRestriction refuses the request to nodes", start: nodeN1,
			add:    role("r", "", "group system:nodes", "create pods@", "create widgets"+group),
			custom: custom(allowedBy(onPods("")), operator),
		},
		{
			rule: "one who is impersonated does not impersonate",
			add: role("i", "shop", "shop/web", "impersonate serviceaccounts@ db") +
				role("r", "", "shop/db", "impersonate,create stores"+group),
			custom: custom(allowedBy(stores("get", "impersonate")), operator),
			want:   []string{"Certain ServiceAccount shop/db: Impersonate"},
		},
		{
			rule: "one who is impersonated makes other requests",
			add: role("i", "shop", "shop/web", "impersonate serviceaccounts@ db") +
				role("r", "", "shop/db", "impersonate,get stores"+group),
			custom: custom(allowedBy(stores("get", "impersonate")), operator), want: []string{
				"Certain ServiceAccount ops/operator-1a2b: Impersonate Widget", "Certain ServiceAccount shop/db: Impersonate",
			},
		},
		{
			rule: "the credential of a node", start: nodeN1, add: role("r", "", "group system:nodes", "create widgets"+group),
			custom: custom(nil, operator), want: certain,
		},
		{
			rule: "a role that can be bound", want: []string{"Certain ServiceAccount ops/operator-1a2b: BindRole Widget"},
			add: clusterRole("w", "create widgets"+group) + role("r", "ops", "shop/web",
				"create rolebindings@rbac.authorization.k8s.io", "bind clusterroles@rbac.authorization.k8s.io w"),
			custom: custom(nil, operator),
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			if c.start == (attackpaths.Holding{}) {
				c.start = accountWeb
			}
			cluster := newCluster()
			parse(t, cluster, base+c.add)
			cluster.Custom = []attackpaths.CustomTechnique{c.custom}
			result := from(t, graphOf(t, cluster), c.start)
			if got := lines(result); !slices.Equal(got, c.want) {
				t.Errorf("reached\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
				for _, r := range result.Reached {
					t.Log(pathText(r.Path))
				}
			}
			compareSearch(t, cluster, result)
		})
	}
}

// Each step says which requests it needs, who may make them by which binding, and what else decides
// about any of them.
func TestStepsOfCustomTechniques(t *testing.T) {
	cluster := newCluster()
	parse(t, cluster, namespace("shop", restrictedLabel)+account("shop", "web")+account("shop", "db")+
		role("r", "shop", "shop/web", "create widgets@"+operatorGroup, "create serviceaccounts/token@ db")+
		role("s", "", "shop/db", "update,patch stores@"+operatorGroup+" main")+webhook("widgets", "CREATE"))
	cluster.Custom = []attackpaths.CustomTechnique{custom(func(t *attackpaths.CustomTechnique) {
		t.With, t.DependsOn = []attackpaths.CustomRequest{stores("update", "patch")}, "whether it runs"
	}, attackpaths.Holding{Kind: attackpaths.Group, Name: "operators"})}
	result := from(t, graphOf(t, cluster), accountWeb)
	path := result.Reached[slices.IndexFunc(result.Reached, func(r attackpaths.Reached) bool { return r.Kind == attackpaths.Group })].Path
	got := fmt.Sprintf("%+v by %s", path[1], path[1].GrantedBy)
	if want := "{Technique:Widget From:serviceaccount shop/db To:group operators Impersonates:<nil> " +
		"Because:may create widgets.operator.example.com in namespace shop and " +
		"update or patch stores.operator.example.com; with serviceaccount shop/web"; !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	want := "whether there is stores.operator.example.com main; whether it runs; ValidatingWebhookConfiguration checks (check.example.com)"
	if path[1].Certainty != attackpaths.Possible || path[1].DependsOn != want {
		t.Errorf("%s, depends on\n%s\nwant\n%s", path[1].Certainty, path[1].DependsOn, want)
	}
}

// In a namespace that terminates nothing is created, so that a right to create there gives nothing. Subresources are of aggregated
// API servers, which may let them be created.
func TestCustomTechniquesCreateNothingInANamespaceThatTerminates(t *testing.T) {
	for with, requests := range map[string][]attackpaths.CustomRequest{"alone": nil, "with another": {stores("update", "patch")}} {
		for _, c := range []struct {
			phase, subresource string
			want               int
		}{{"Active", "", 1}, {"Terminating", "", 0}, {"Active", "finish", 1}, {"Terminating", "finish", 1}} {
			cluster := newCluster()
			parse(t, cluster, "\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\nstatus: {phase: "+c.phase+"}\n---"+
				account("b", "web")+role("r", "", "b/web", "create widgets@"+operatorGroup,
				"create widgets/finish@"+operatorGroup, "update,patch stores@"+operatorGroup))
			cluster.Custom = []attackpaths.CustomTechnique{custom(func(t *attackpaths.CustomTechnique) {
				t.AllowedBy[0].Namespace, t.AllowedBy[0].Subresource, t.With = "shop", c.subresource, requests
			}, attackpaths.Holding{Kind: attackpaths.Group, Name: "operators"})}
			web := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "b", Name: "web"}
			reached := from(t, graphOf(t, cluster), web).Reached
			if len(reached) != c.want {
				t.Errorf("%+v, %s: reached %v", c, with, reached)
			}
		}
	}
}

// A right to write a resource that the API server does not serve gives nothing.
func TestCustomTechniquesOfWhatIsNotServed(t *testing.T) {
	cluster := newCluster()
	parse(t, cluster, account("shop", "web")+role("r", "shop", "shop/web", "create widgets@"+operatorGroup))
	cluster.Custom = []attackpaths.CustomTechnique{custom(nil, attackpaths.Holding{Kind: attackpaths.Group, Name: "operators"})}
	for _, served := range []bool{true, false} {
		cluster.Serves = func(group, resource string) bool { return served || group != operatorGroup || resource != "widgets" }
		if got := lines(from(t, graphOf(t, cluster), accountWeb)); (len(got) == 1) != served {
			t.Errorf("served %v: reached %q", served, got)
		}
	}
}
