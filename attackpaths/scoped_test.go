package attackpaths_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// scope is an enforced NodeScope for the account agents/cni, with fields of its spec.
func scope(name string, spec ...string) string {
	return "metadata: {name: " + name + "}\nspec:\n  subjects: [{namespace: agents, name: cni}]\n  mode: Enforce\n  " +
		strings.Join(spec, "\n  ") + "\n"
}

// readScopes decodes NodeScopes.
func readScopes(t *testing.T, texts ...string) []*v1alpha1.NodeScope {
	t.Helper()
	var all []*v1alpha1.NodeScope
	for _, text := range texts {
		s := &v1alpha1.NodeScope{}
		if err := yaml.UnmarshalStrict([]byte(text), s); err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		all = append(all, s)
	}
	return all
}

var (
	agentPod     = attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "agents", Name: "cni-1"}
	agentNode    = attackpaths.Holding{Kind: attackpaths.Node, Name: "n1"}
	agentAccount = attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "agents", Name: "cni"}
)

// scopedBase is an agent on two nodes, and a pod of another account on each.
func scopedBase() string {
	mounts := func(text, secret string) string {
		return strings.ReplaceAll(text, "  volumes:", "  volumes:\n  - {name: c, secret: {secretName: "+secret+"}}")
	}
	return node("n1") + node("n2") + namespace("agents", restrictedLabel) + namespace("shop", restrictedLabel) +
		namespace("other", restrictedLabel) + account("agents", "cni") + account("shop", "web") + account("shop", "db") +
		account("other", "free") + account("other", "admin") +
		pod("agents", "cni-1", "n1", "cni") + pod("agents", "cni-2", "n2", "cni") +
		mounts(pod("shop", "web", "n1", "web"), "of-web") + mounts(pod("shop", "db", "n2", "db"), "of-db") +
		secret("other", "s", "Opaque", "") + role("admin", "", "other/admin", "* *@*")
}

// TestNodeScopes starts from the pod of the agent on n1 unless a case has another start.
func TestNodeScopes(t *testing.T) {
	const (
		token   = "Certain ServiceAccount agents/cni: PodToken"
		asks    = "@authentication.k8s.io"
		roles   = "@rbac.authorization.k8s.io"
		nothing = "anywhere: [{apiGroups: [x], resources: [x], verbs: [get]}]"
	)
	free := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "other", Name: "free"}
	exec := role("agent", "", "agents/cni", "create pods/exec@")
	execOnNode := scope("s", "podsOnNode: [{resources: [pods/exec], verbs: [create]}]")
	execOfN1 := []string{
		"Certain Pod shop/web: PodToken PodExec",
		"Certain Secret shop/of-web: PodToken PodExec PodSecret",
		"Certain ServiceAccount shop/web: PodToken PodExec PodToken",
	}
	legacy := secret("agents", "legacy", "kubernetes.io/service-account-token", "cni") +
		role("reader", "agents", "other/free", "get secrets@")
	all := func(lists ...[]string) []string { return slices.Concat(lists...) }
	cases := []struct {
		rule   string
		start  attackpaths.Holding
		add    string
		scopes []string
		want   []string
	}{
		{
			rule: "podsOnNode: the pods on the node of the token", add: exec,
			scopes: []string{execOnNode}, want: all([]string{token}, execOfN1),
		},
		{
			rule: "podsOnNode: objects that are named like pods on the node, and possibly others",
			add: role("agent", "", "agents/cni", "get secrets@") + secret("shop", "web", "Opaque", "") +
				secret("shop", "db", "Opaque", ""),
			scopes: []string{scope("s", `podsOnNode: [{apiGroups: [""], resources: [secrets], verbs: [get], namespaces: [shop]}]`)},
			want: []string{
				token, "Certain Secret shop/web: PodToken SecretRead", "Possible Secret shop/db: PodToken SecretRead",
				"Possible Secret shop/of-db: PodToken SecretRead", "Possible Secret shop/of-web: PodToken SecretRead",
			},
		},
		{
			rule:   "podsOnNode: an object that is created may have the name of a pod on the node",
			add:    role("agent", "", "agents/cni", "create daemonsets@apps"),
			scopes: []string{scope("s", `podsOnNode: [{apiGroups: [apps], resources: [daemonsets], verbs: [create], namespaces: [shop]}]`)},
			want: []string{
				token, "Certain Namespace shop: PodToken PodCreate", "Certain Secret shop/of-db: PodToken PodCreate PodCreate",
				"Certain Secret shop/of-web: PodToken PodCreate PodCreate", "Certain ServiceAccount shop/db: PodToken PodCreate PodCreate",
				"Certain ServiceAccount shop/web: PodToken PodCreate PodCreate",
			},
		},
		{
			rule: "namedAsNode: the object of the node", add: role("agent", "", "agents/cni", "create nodes/proxy@"),
			scopes: []string{scope("s", `namedAsNode: [{apiGroups: [""], resources: [nodes/proxy], verbs: [create]}]`)},
			want: []string{
				token, "Certain Pod shop/web: PodToken NodeProxy",
				"Certain Secret shop/of-web: PodToken NodeProxy PodSecret",
				"Certain ServiceAccount shop/web: PodToken NodeProxy PodToken",
			},
		},
		{
			rule:   "namedAsNode: an object that is created may have the name of the node",
			add:    role("agent", "", "agents/cni", "create pods@"),
			scopes: []string{scope("s", `namedAsNode: [{apiGroups: [""], resources: [pods], verbs: [create], namespaces: [other]}]`)},
			want: []string{
				token, "Certain ClusterAdmin : PodToken PodCreate PodCreate Masters", "Certain Namespace other: PodToken PodCreate",
				"Certain Secret other/s: PodToken PodCreate PodCreate", "Certain ServiceAccount other/admin: PodToken PodCreate PodCreate",
				"Certain ServiceAccount other/free: PodToken PodCreate PodCreate",
			},
		},
		{
			rule:   "selectsNode: a list by the name of the node reads no other secret",
			add:    role("agent", "", "agents/cni", "list secrets@"),
			scopes: []string{scope("s", `selectsNode: [{apiGroups: [""], resources: [secrets], verbs: [list], field: metadata.name}]`)},
			want:   []string{token},
		},
		{
			rule: "anywhere: objects of any node", add: role("agent", "", "agents/cni", "get secrets@"),
			scopes: []string{scope("s", `anywhere: [{apiGroups: [""], resources: [secrets], verbs: [get], namespaces: [other]}]`)},
			want:   []string{token, "Certain Secret other/s: PodToken SecretRead"},
		},
		{
			rule: "a scope grants nothing", add: role("agent", "", "agents/cni", "get pods@"),
			scopes: []string{scope("s", `anywhere: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`)}, want: []string{token},
		},
		{
			rule: "otherwise: Deny refuses what no rule names", add: exec + role("more", "", "agents/cni", "get secrets@"),
			scopes: []string{execOnNode}, want: all([]string{token}, execOfN1),
		},
		{
			rule: "otherwise: Allow lets pass what no rule names", add: exec + role("more", "other", "agents/cni", "get secrets@"),
			scopes: []string{scope("s", "podsOnNode: [{resources: [pods/exec], verbs: [create]}]", "otherwise: Allow")},
			want:   all([]string{token, "Certain Secret other/s: PodToken SecretRead"}, execOfN1),
		},
		{
			rule: "asNode: the secrets of pods on the node", add: role("agent", "", "agents/cni", "get secrets@"),
			scopes: []string{scope("s", "asNode: true")}, want: []string{token, "Certain Secret shop/of-web: PodToken SecretOnNode"},
		},
		{
			rule: "asNode: tokens of pods on the node", add: role("agent", "", "agents/cni", "create serviceaccounts/token@"),
			scopes: []string{scope("s", "asNode: true")},
			want:   []string{token, "Certain ServiceAccount shop/web: PodToken TokenOfPodOnNode"},
		},
		{
			rule: "the mode Observe changes nothing", add: exec,
			scopes: []string{strings.Replace(execOnNode, "Enforce", "Observe", 1)},
			want: all([]string{
				"Certain Pod agents/cni-2: PodToken PodExec", "Certain Pod shop/db: PodToken PodExec",
				"Certain Secret shop/of-db: PodToken PodExec PodSecret", "Certain ServiceAccount shop/db: PodToken PodExec PodToken",
			}, []string{token}, execOfN1),
		},
		{
			rule: "all scopes must let a request pass", add: exec,
			scopes: []string{execOnNode, scope("t",
				`anywhere: [{apiGroups: [""], resources: [pods/exec], verbs: [create], namespaces: [other]}]`)},
			want: []string{token},
		},
		{
			rule: "a scope without rules leaves anonymous requests", scopes: []string{scope("s")},
			add:  exec + role("anonymous", "other", "group system:unauthenticated", "get secrets@"),
			want: []string{"Possible Secret other/s: SecretRead"},
		},
		{
			rule: "a scope without rules leaves no use of the token", add: exec, scopes: []string{scope("s")},
		},
		{
			rule: "tokensWithoutNode: Deny leaves no use of a token in a secret", start: free, add: legacy + exec,
			scopes: []string{execOnNode},
			want:   []string{"Certain Secret agents/legacy: SecretRead"},
		},
		{
			rule: "tokensWithoutNode: Allow leaves everything to a token in a secret", start: free,
			add:    legacy + role("agent", "other", "agents/cni", "get secrets@"),
			scopes: []string{scope("s", "tokensWithoutNode: Allow", nothing)},
			want: []string{
				"Certain Secret agents/legacy: SecretRead", "Certain ServiceAccount agents/cni: SecretRead ServiceAccountTokenSecret",
				"Certain Secret other/s: SecretRead ServiceAccountTokenSecret SecretRead",
			},
		},
		{
			rule:   "tokensWithoutNode: Allow leaves nothing more to a token of a node",
			add:    role("agent", "other", "agents/cni", "get secrets@"),
			scopes: []string{scope("s", "tokensWithoutNode: Allow", nothing)}, want: []string{token},
		},
		{
			rule: "who requests a token binds it to any node", start: free,
			add: exec + role("tokens", "agents", "other/free", "create serviceaccounts/token@"), scopes: []string{execOnNode},
			want: []string{
				"Certain Pod agents/cni-1: TokenRequest PodExec", "Certain Pod agents/cni-2: TokenRequest PodExec",
				"Certain Pod shop/db: TokenRequest PodExec", "Certain Pod shop/web: TokenRequest PodExec",
				"Certain Secret shop/of-db: TokenRequest PodExec PodSecret", "Certain Secret shop/of-web: TokenRequest PodExec PodSecret",
				"Certain ServiceAccount agents/cni: TokenRequest", "Certain ServiceAccount shop/db: TokenRequest PodExec PodToken",
				"Certain ServiceAccount shop/web: TokenRequest PodExec PodToken",
			},
		},
		{
			rule: "who creates pods chooses the node of the token", start: free,
			add:    role("proxy", "", "agents/cni", "create nodes/proxy@") + role("pods", "agents", "other/free", "create pods@"),
			scopes: []string{scope("s", `namedAsNode: [{apiGroups: [""], resources: [nodes/proxy], verbs: [create]}]`)},
			want: []string{
				"Certain Namespace agents: PodCreate",
				"Certain Pod agents/cni-1: PodCreate PodCreate NodeProxy", "Certain Pod agents/cni-2: PodCreate PodCreate NodeProxy",
				"Certain Pod shop/db: PodCreate PodCreate NodeProxy", "Certain Pod shop/web: PodCreate PodCreate NodeProxy",
				"Certain Secret shop/of-db: PodCreate PodCreate NodeProxy PodSecret",
				"Certain Secret shop/of-web: PodCreate PodCreate NodeProxy PodSecret",
				"Certain ServiceAccount agents/cni: PodCreate PodCreate",
				"Certain ServiceAccount shop/db: PodCreate PodCreate NodeProxy PodToken",
				"Certain ServiceAccount shop/web: PodCreate PodCreate NodeProxy PodToken",
			},
		},
		{
			rule: "who requests tokens and creates pods chooses a name that no node has", start: free,
			add: role("agent", "", "agents/cni", "get secrets@") +
				role("pods", "agents", "other/free", "create pods@", "create serviceaccounts/token@"),
			scopes: []string{scope("s", `namedAsNode: [{apiGroups: [""], resources: [secrets], verbs: [get], namespaces: [other]}]`)},
			want: []string{
				"Certain Namespace agents: PodCreate", "Certain Secret other/s: PodCreate TokenRequest SecretRead",
				"Certain ServiceAccount agents/cni: TokenRequest",
			},
		},
		{
			rule: "impersonation without a node", start: free,
			add: exec + role("as", "agents", "other/free", "impersonate serviceaccounts@"), scopes: []string{execOnNode},
		},
		{
			rule: "impersonation with a node", start: free,
			add: exec + role("as", "agents", "other/free", "impersonate serviceaccounts@") +
				role("extra", "", "other/free", "impersonate userextras/authentication.kubernetes.io/node-name"+asks+" n2"),
			scopes: []string{execOnNode},
			want: []string{
				"Certain Pod agents/cni-2: Impersonate PodExec", "Certain Pod shop/db: Impersonate PodExec",
				"Certain Secret shop/of-db: Impersonate PodExec PodSecret", "Certain ServiceAccount agents/cni: Impersonate",
				"Certain ServiceAccount shop/db: Impersonate PodExec PodToken",
			},
		},
		{
			rule:   "a role that the account binds counts possibly, if each identity that is held is in scopes",
			add:    role("agent", "", "agents/cni", "bind clusterroles"+roles+" admin", "create clusterrolebindings"+roles),
			scopes: []string{scope("s", `anywhere: [{apiGroups: ["`+roles[1:]+`"], resources: ["*"], verbs: [bind, create]}]`)},
			want:   []string{token, "Possible ClusterAdmin : PodToken BindRole Masters"},
		},
		{
			rule: "a role that the account binds counts for the node", start: agentNode,
			add:    role("agent", "", "agents/cni", "bind clusterroles"+roles+" admin", "create clusterrolebindings"+roles),
			scopes: []string{scope("s", `anywhere: [{apiGroups: ["`+roles[1:]+`"], resources: ["*"], verbs: [bind, create]}]`)},
			want: []string{
				"Certain ClusterAdmin : PodTokenOnNode BindRole Masters", "Certain Pod agents/cni-1: PodOnNode",
				"Certain Pod shop/web: PodOnNode",
				"Certain Secret shop/of-web: SecretOnNode", "Certain ServiceAccount agents/cni: PodTokenOnNode",
				"Certain ServiceAccount shop/web: PodTokenOnNode",
			},
		},
		{
			rule: "what RBAC grants to the account can be bound to others", start: agentNode,
			add:    role("agent", "", "agents/cni", "get secrets@", "create clusterrolebindings"+roles),
			scopes: []string{scope("s", `anywhere: [{apiGroups: ["`+roles[1:]+`"], resources: [clusterrolebindings], verbs: [create]}]`)},
			want: []string{
				"Certain Pod agents/cni-1: PodOnNode", "Certain Pod shop/web: PodOnNode",
				"Certain Secret other/s: PodTokenOnNode BindRole SecretRead", "Certain Secret shop/of-web: SecretOnNode",
				"Certain ServiceAccount agents/cni: PodTokenOnNode", "Certain ServiceAccount shop/web: PodTokenOnNode",
				"Certain Secret shop/of-db: PodTokenOnNode BindRole SecretRead",
			},
		},
		{
			rule: "impersonation of the own node passes with asNode",
			add: role("agent", "", "agents/cni", "impersonate:associated-node nodes"+asks,
				"impersonate-on:associated-node:get secrets@"),
			scopes: []string{scope("s", "asNode: true")},
			want:   []string{token, "Certain Secret shop/of-web: PodToken Impersonate SecretOnNode"},
		},
		{
			rule: "impersonation of the own node is refused without asNode",
			add: role("agent", "", "agents/cni", "impersonate:associated-node nodes"+asks,
				"impersonate-on:associated-node:get secrets@"),
			scopes: []string{scope("s", `anywhere: [{apiGroups: ["*"], resources: ["nodes", "secrets"], verbs: ["*"]}]`)},
			want:   []string{token},
		},
		{
			rule: "everything that scopes let pass is cluster-admin", add: role("agent", "", "agents/cni", "* *@*"),
			scopes: []string{scope("s", `anywhere: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]`)},
			want:   []string{token, "Certain ClusterAdmin : PodToken Masters"},
		},
		{
			rule: "the account as a start is a token of some node", start: agentAccount, add: exec, scopes: []string{execOnNode},
			want: []string{
				"Possible Pod agents/cni-1: PodExec", "Possible Pod agents/cni-2: PodExec", "Possible Pod shop/db: PodExec",
				"Possible Pod shop/web: PodExec", "Possible Secret shop/of-db: PodExec PodSecret",
				"Possible Secret shop/of-web: PodExec PodSecret", "Possible ServiceAccount shop/db: PodExec PodToken",
				"Possible ServiceAccount shop/web: PodExec PodToken",
			},
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, scopedBase()+c.add)
			cluster.NodeScopes = policyOf(t, readScopes(t, c.scopes...)...)
			if c.start == (attackpaths.Holding{}) {
				c.start = agentPod
			}
			result := from(t, graphOf(t, cluster), c.start)
			got := slices.DeleteFunc(lines(result), func(line string) bool {
				return c.start != free && strings.Contains(line, "Pod agents/cni-1: PodToken PodExec")
			})
			if slices.Sort(c.want); !slices.Equal(got, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// TestNodeScopesThatAreBroken leave nothing.
func TestNodeScopesThatAreBroken(t *testing.T) {
	cluster := newCluster()
	parse(t, cluster, scopedBase()+role("agent", "", "agents/cni", "create pods/exec@"))
	broken := nodescope.Broken(readScopes(t, scope("s", "podsOnNode: [{resources: [services], verbs: [create]}]"))[0])
	cluster.NodeScopes, _ = nodescope.NewPolicy([]*nodescope.Scope{broken})
	if got := lines(from(t, graphOf(t, cluster), agentPod)); len(got) > 0 {
		t.Errorf("reached %v", got)
	}
}

// TestTokensShareWhatTheirNodeReads counts how often the secrets of a node are listed: also for tokens that may read
// them as the node.
func TestTokensShareWhatTheirNodeReads(t *testing.T) {
	cluster := newCluster()
	parse(t, cluster, scopedBase()+role("agent", "", "agents/cni", "get secrets@"))
	cluster.NodeScopes = policyOf(t, readScopes(t, scope("s", "asNode: true"))...)
	if got, want := attackpaths.SecretsListed(cluster), map[string]int{"n1": 1, "n2": 1}; !maps.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}
