package attackpaths_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// everyVerb has the verbs of all requests on objects while a mode is used.
func everyVerb(mode string) string {
	var all []string
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		all = append(all, "impersonate-on:"+mode+":"+verb)
	}
	return strings.Join(all, ",")
}

// TestConstrainedImpersonation starts from the service account shop/web unless a case has another
// start, and checks the exhaustive search too.
func TestConstrainedImpersonation(t *testing.T) {
	base := node("n1") + node("n2") + namespace("shop", restrictedLabel) + namespace("other", restrictedLabel) +
		account("shop", "web") + account("shop", "db") + secret("other", "s", "Opaque", "") + secret("other", "t", "Opaque", "") +
		role("reader", "", "user alice", "get,list secrets@")
	const (
		identities = "@authentication.k8s.io"
		asUser     = "impersonate:user-info users" + identities
		asGroup    = "impersonate:user-info groups" + identities
		roles      = "@rbac.authorization.k8s.io"
		certs      = "@certificates.k8s.io"
	)
	alice := "impersonate:user-info users" + identities + " alice"
	secretS, secretT := "Certain Secret other/s: Impersonate SecretRead", "Certain Secret other/t: Impersonate SecretRead"
	certOnNode := strings.ReplaceAll(pod("shop", "p", "n1", "db"),
		"  volumes:", "  volumes:\n  - {name: c, secret: {secretName: cert}}")
	pods := []string{"Certain Namespace shop: Impersonate PodCreate", "Certain ServiceAccount shop/db: Impersonate PodCreate PodCreate"}
	podAgent := attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "agent"}
	cases := []struct {
		rule  string
		minor kubeversion.Minor
		start attackpaths.Holding
		add   string
		want  []string
	}{
		{
			rule: "a user for one request on one object",
			add:  role("r", "", "shop/web", alice, "impersonate-on:user-info:get secrets@ s"), want: []string{secretS},
		},
		{
			rule: "a user for requests in one namespace",
			add:  role("r", "", "shop/web", alice) + role("s", "other", "shop/web", "impersonate-on:user-info:get secrets@"),
			want: []string{secretS, secretT},
		},
		{rule: "a user for nothing", add: role("r", "", "shop/web", alice)},
		{rule: "requests as nobody", add: role("r", "", "shop/web", "impersonate-on:user-info:get secrets@")},
		{
			rule: "a user for requests that the user may not make",
			add:  role("r", "", "shop/web", alice, "impersonate-on:user-info:watch,impersonate-on:user-info:create secrets@"),
		},
		{
			rule: "the verbs of another mode",
			add:  role("r", "", "shop/web", alice, "impersonate-on:serviceaccount:get secrets@"),
		},
		{
			rule: "the group of legacy impersonation",
			add:  role("r", "", "shop/web", "impersonate:user-info users@ alice", "impersonate-on:user-info:get secrets@"),
		},
		{
			rule: "the feature is off", minor: 35,
			add: role("r", "", "shop/web", alice, "impersonate-on:user-info:get secrets@"),
		},
		{
			rule: "two rights of two accounts do not count together", start: attackpaths.Holding{Kind: attackpaths.Node, Name: "n1"},
			add: pod("shop", "a", "n1", "web") + pod("shop", "b", "n1", "db") + role("r", "", "shop/web", alice) +
				role("s", "", "shop/db", "impersonate-on:user-info:get secrets@"),
			want: []string{
				"Certain Pod shop/a: PodOnNode",
				"Certain Pod shop/b: PodOnNode",
				"Certain ServiceAccount shop/db: PodTokenOnNode",
				"Certain ServiceAccount shop/web: PodTokenOnNode",
			},
		},
		{
			rule: "a service account",
			add: role("t", "", "other/admin", "get secrets@") +
				role("r", "other", "shop/web", "impersonate:serviceaccount serviceaccounts"+identities,
					"impersonate-on:serviceaccount:get secrets@ s"),
			want: []string{secretS},
		},
		{
			rule: "a group, with a user that has no rights",
			add: role("t", "", "group admins", "get secrets@") + role("r", "", "shop/web", asUser+" nobody",
				asGroup+" admins", "impersonate-on:user-info:get secrets@ s"),
			want: []string{secretS},
		},
		{
			rule: "four groups at once count as the group *",
			add: role("t", "", "group admins", "get secrets@") + role("r", "", "shop/web", asUser+" nobody",
				asGroup+" '*'", "impersonate-on:user-info:get secrets@ s"),
			want: []string{secretS},
		},
		{
			rule: "a group without a user",
			add: role("t", "", "group admins", "get secrets@") +
				role("r", "", "shop/web", asGroup, "impersonate-on:user-info:get secrets@"),
		},
		{
			rule: "system:masters cannot be impersonated", add: role("r", "", "shop/web", asUser+" nobody",
				asGroup+" system:masters", everyVerb("user-info")+" *@*"),
		},
		{
			rule: "a user for every request", add: role("r", "", "shop/web", alice, everyVerb("user-info")+" *@*"),
			want: []string{secretS, secretT, "Certain User alice: Impersonate"},
		},
		{
			rule: "a node", add: certOnNode + role("r", "", "shop/web", "impersonate:arbitrary-node nodes"+identities+" n1",
				"impersonate-on:arbitrary-node:get secrets@"),
			want: []string{"Certain Secret shop/cert: Impersonate SecretOnNode"},
		},
		{
			rule: "every node, for tokens", add: certOnNode + role("r", "", "shop/web", "impersonate:arbitrary-node nodes"+identities,
				"impersonate-on:arbitrary-node:create serviceaccounts/token@"),
			want: []string{"Certain ServiceAccount shop/db: Impersonate TokenOfPodOnNode"},
		},
		{
			rule: "the user of a node in another mode", add: certOnNode + role("r", "", "shop/web", asUser,
				"impersonate-on:user-info:list secrets@ cert"),
			want: []string{"Certain Secret shop/cert: Impersonate SecretRead"},
		},
		{
			rule: "the node of the pod whose token is used", start: podAgent,
			add: certOnNode + pod("shop", "agent", "n1", "web") + pod("other", "far", "n2", "default") +
				role("r", "", "shop/web", "impersonate:associated-node nodes"+identities,
					"impersonate-on:associated-node:get secrets@", "impersonate-on:associated-node:create serviceaccounts/token@"),
			want: []string{
				"Certain Secret shop/cert: PodToken Impersonate SecretOnNode",
				"Certain ServiceAccount shop/db: PodToken Impersonate TokenOfPodOnNode",
				"Certain ServiceAccount shop/web: PodToken",
			},
		},
		{
			rule: "a token may be of a pod on the node",
			add: certOnNode + pod("shop", "agent", "n1", "web") + role("r", "", "shop/web", "impersonate:associated-node nodes"+identities,
				"impersonate-on:associated-node:get secrets@"),
			want: []string{"Possible Secret shop/cert: Impersonate SecretOnNode"},
		},
		{
			rule: "a right to request tokens gives one that is bound to any node",
			add: certOnNode + role("t", "shop", "shop/web", "create serviceaccounts/token@ db") +
				role("r", "", "shop/db", "impersonate:associated-node nodes"+identities, "impersonate-on:associated-node:get secrets@"),
			want: []string{
				"Certain Secret shop/cert: TokenRequest Impersonate SecretOnNode",
				"Certain ServiceAccount shop/db: TokenRequest",
			},
		},
		{
			rule: "associated nodes are not impersonated by name",
			add: certOnNode + role("t", "shop", "shop/web", "create serviceaccounts/token@ db") +
				role("r", "", "shop/db", "impersonate:associated-node nodes"+identities+" n1",
					"impersonate-on:associated-node:get secrets@"),
			want: []string{"Certain ServiceAccount shop/db: TokenRequest"},
		},
		{
			rule: "associated nodes are impersonated by the name *",
			add: certOnNode + role("t", "shop", "shop/web", "create serviceaccounts/token@ db") +
				role("r", "", "shop/db", "impersonate:associated-node nodes"+identities+" '*'",
					"impersonate-on:associated-node:get secrets@"),
			want: []string{
				"Certain Secret shop/cert: TokenRequest Impersonate SecretOnNode",
				"Certain ServiceAccount shop/db: TokenRequest",
			},
		},
		{
			rule: "a list without a name, as a user that may list by name and without",
			add:  role("r", "", "shop/web", alice, "impersonate-on:user-info:list secrets@ ''"), want: []string{secretS, secretT},
		},
		{
			rule: "a list without a name, as a user that may list by name only",
			add: role("b", "", "user bob", "list secrets@ s") +
				role("r", "", "shop/web", asUser+" bob", "impersonate-on:user-info:list secrets@ ''"),
		},
		{
			rule: "what the API server checks of the impersonated user needs no right of the requester",
			add: role("b", "", "user bob", "create clusterrolebindings"+roles, "bind clusterroles"+roles+" reader") +
				role("r", "", "shop/web", asUser+" bob", "impersonate-on:user-info:create clusterrolebindings"+roles),
			want: []string{
				"Certain Secret other/s: Impersonate BindRole SecretRead",
				"Certain Secret other/t: Impersonate BindRole SecretRead",
			},
		},
		{
			rule: "a request for a certificate by a user whose requests are approved by themselves",
			add: role("b", "", "user bob", "create,get certificatesigningrequests"+certs,
				"create certificatesigningrequests/nodeclient"+certs) +
				role("r", "", "shop/web", asUser+" bob",
					"impersonate-on:user-info:create,impersonate-on:user-info:get certificatesigningrequests"+certs),
			want: []string{
				"Certain User system:node:n1: Impersonate Impersonate ApproveCertificate",
				"Certain User system:node:n2: Impersonate Impersonate ApproveCertificate",
			},
		},
		{
			rule: "an object that a user applies, which takes the right to create it of the user alone",
			add: role("b", "shop", "user bob", "create,patch pods@") +
				role("r", "", "shop/web", asUser+" bob", "impersonate-on:user-info:patch pods@"),
			want: pods,
		},
		{
			rule: "an object of one name",
			add: role("b", "shop", "user bob", "create,patch pods@ p") +
				role("r", "", "shop/web", asUser+" bob", "impersonate-on:user-info:patch pods@ p,q"),
			want: pods,
		},
		{
			rule: "an object of another name",
			add: role("b", "shop", "user bob", "create,patch pods@ p") +
				role("r", "", "shop/web", asUser+" bob", "impersonate-on:user-info:patch pods@ q"),
		},
		{
			rule: "an object that the user may not create", add: role("b", "shop", "user bob", "patch pods@") +
				role("r", "", "shop/web", asUser+" bob", "impersonate-on:user-info:patch pods@"),
		},
		{
			rule: "no object is posted by its name",
			add: role("b", "shop", "user bob", "create,patch pods@ p") +
				role("r", "", "shop/web", asUser+" bob", "impersonate-on:user-info:create pods@ p"),
		},
		{
			rule: "a binding that a user puts",
			add: role("b", "", "user bob", "create,update clusterrolebindings"+roles+" x", "bind clusterroles"+roles+" reader") +
				role("r", "", "shop/web", asUser+" bob", "impersonate-on:user-info:update clusterrolebindings"+roles),
			want: []string{
				"Certain Secret other/s: Impersonate BindRole SecretRead",
				"Certain Secret other/t: Impersonate BindRole SecretRead",
			},
		},
		{
			rule: "a secret that a user applies and applies again", add: role("b", "shop", "user bob", "create,patch secrets@") +
				role("r", "", "shop/web", asUser+" bob", "impersonate-on:user-info:patch secrets@"),
			want: []string{
				"Certain ServiceAccount shop/db: Impersonate ServiceAccountTokenSecret",
			},
		},
		{
			rule: "rights to impersonate are not used by an impersonated user",
			add: role("b", "", "user bob", "impersonate users@ alice") + role("r", "", "shop/web", asUser+" bob",
				"impersonate-on:user-info:impersonate users@"),
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			if c.start == (attackpaths.Holding{}) {
				c.start = accountWeb
			}
			cluster := newCluster()
			if c.minor != 0 {
				cluster.Features = kubeversion.For(c.minor)
			}
			parse(t, cluster, base+c.add)
			result := from(t, graphOf(t, cluster), c.start)
			if got := lines(result); !slices.Equal(got, c.want) {
				t.Errorf("reached\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
			compareSearch(t, cluster, result)
		})
	}
}

// TestStepNamesWhoIsImpersonated has a name for each way in which a path acts as another identity.
func TestStepNamesWhoIsImpersonated(t *testing.T) {
	const identities = "@authentication.k8s.io"
	base := node("n1") + account("shop", "web") + account("shop", "db") + secret("other", "s", "Opaque", "") +
		role("a", "", "user alice", "get secrets@") + role("b", "", "shop/db", "get secrets@") +
		role("c", "", "group admins", "get secrets@")
	onNode := strings.ReplaceAll(pod("other", "p", "n1", "db"), "  volumes:", "  volumes:\n  - {name: c, secret: {secretName: s}}")
	cases := []struct{ rule, add, want string }{
		{
			"a user", role("r", "", "shop/web", "impersonate:user-info users"+identities+" alice", "impersonate-on:user-info:get secrets@"),
			"user alice",
		},
		{
			"every user", role("r", "", "shop/web", "impersonate:user-info users"+identities, "impersonate-on:user-info:get secrets@"),
			"user alice",
		},
		{
			"a group", role("r", "", "shop/web", "impersonate:user-info users"+identities+" nobody",
				"impersonate:user-info groups"+identities+" admins", "impersonate-on:user-info:get secrets@"),
			"group admins",
		},
		{
			"a service account", role("r", "", "shop/web", "impersonate:serviceaccount serviceaccounts"+identities,
				"impersonate-on:serviceaccount:get secrets@"),
			"serviceaccount shop/db",
		},
		{
			"a node", onNode + role("r", "", "shop/web", "impersonate:arbitrary-node nodes"+identities,
				"impersonate-on:arbitrary-node:get secrets@"),
			"user system:node:n1",
		},
		{
			"a user without constraint", role("r", "", "shop/web", "impersonate users@ alice"), "",
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, base+c.add)
			result := from(t, graphOf(t, cluster), accountWeb)
			i := slices.IndexFunc(result.Reached, func(r attackpaths.Reached) bool { return r.Kind == attackpaths.Secret })
			if i < 0 {
				t.Fatal("the secret is not reached")
			}
			got := ""
			if of := result.Reached[i].Path[0].Impersonates; of != nil {
				got = of.String()
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if last := result.Reached[i].Path[1]; last.Impersonates != nil {
				t.Errorf("step %s impersonates too", last.Technique)
			}
		})
	}
}
