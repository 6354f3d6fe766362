package attackpaths_test

import (
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// TestWhatScopesLeave asks for one holding. The start is other/free unless a case has another one.
func TestWhatScopesLeave(t *testing.T) {
	secretRead := attackpaths.Holding{Kind: attackpaths.Secret, Namespace: "other", Name: "s"}
	group := attackpaths.Holding{Kind: attackpaths.Group, Name: "g"}
	const (
		ofNamespace = "metadata: {name: s}\nspec:\n  subjects: [{namespace: agents}]\n  mode: Enforce\n"
		roles       = "@rbac.authorization.k8s.io"
		// certificates is the group of requests for certificates.
		certificates = "@certificates.k8s.io"
	)
	for _, c := range []struct {
		rule, add string
		scopes    []string
		start, to attackpaths.Holding
		minor     kubeversion.Minor
		want      attackpaths.Certainty
	}{
		{
			rule:   "tokensWithoutNode: Allow lets no token of a pod pass, also not of a pod that is made",
			add:    role("agent", "", "agents/cni", "get secrets@") + role("maker", "agents", "other/free", "create pods@"),
			scopes: []string{scope("s", "tokensWithoutNode: Allow")}, to: secretRead,
		},
		{
			rule: "tokensWithoutNode: Allow lets a token pass that is requested for no pod",
			add: role("agent", "", "agents/cni", "get secrets@") +
				role("maker", "agents", "other/free", "create serviceaccounts/token@"),
			scopes: []string{scope("s", "tokensWithoutNode: Allow")}, to: secretRead, want: attackpaths.Certain,
		},
		{
			rule: "rules that are added to the account's own role count as far as the scopes let them pass",
			add:  role("agent", "", "agents/cni", "escalate,update clusterroles"+roles), start: agentPod,
			scopes: []string{scope("s", `anywhere: [{apiGroups: ["rbac.authorization.k8s.io"], resources: [clusterroles], verbs: ["*"]}]`,
				"otherwise: Allow")},
			to: attackpaths.Holding{Kind: attackpaths.ClusterAdmin}, want: attackpaths.Possible,
		},
		{
			rule: "a list with a selector depends on no node", add: role("agent", "", "agents/cni", "list secrets@"),
			scopes: []string{scope("s", `selectsNode: [{apiGroups: [""], resources: [secrets], verbs: [list], field: spec.nodeName}]`)},
			start:  agentAccount, to: secretRead, want: attackpaths.Possible,
		},
		{
			rule: "a group is not impersonated with accounts that scopes refuse everything",
			add: role("groups", "", "other/free", "impersonate groups@") +
				role("accounts", "agents", "other/free", "impersonate serviceaccounts@") + role("g", "", "group g", "get secrets@"),
			scopes: []string{ofNamespace}, to: group,
		},
		{
			rule: "a group is impersonated with an account of the namespace that no scope is about",
			add: role("groups", "", "other/free", "impersonate groups@") +
				role("accounts", "agents", "other/free", "impersonate serviceaccounts@") + role("g", "", "group g", "get secrets@"),
			scopes: []string{scope("s")}, to: group, want: attackpaths.Certain,
		},
		{
			rule: "a group is impersonated with an account that has the name of a pod on the node", start: agentPod,
			add: role("agent", "", "agents/cni", "impersonate groups@", "impersonate serviceaccounts@") +
				role("g", "", "group g", "get secrets@"),
			scopes: []string{scope("s", `podsOnNode: [{apiGroups: [""], resources: [serviceaccounts], verbs: [impersonate]}]`,
				`anywhere: [{apiGroups: [""], resources: [groups], verbs: [impersonate]}]`)},
			to: group, want: attackpaths.Certain,
		},
		{
			rule: "asNode: a node that need not exist may request certificates",
			add: role("agent", "", "agents/cni", "create certificatesigningrequests"+certificates) +
				role("as", "agents", "other/free", "impersonate serviceaccounts@") +
				role("approver", "", "other/free",
					"impersonate userextras/authentication.kubernetes.io/node-name@authentication.k8s.io x",
					"approve signers"+certificates, "update certificatesigningrequests/approval"+certificates,
					"get certificatesigningrequests"+certificates),
			scopes: []string{scope("s", "asNode: true")},
			to:     attackpaths.Holding{Kind: attackpaths.ClusterAdmin}, want: attackpaths.Certain,
		},
		{
			rule: "tokens of new accounts are bound to nodes since 1.31", minor: 31,
			add: role("agent", "", "agents/new", "get secrets@") +
				role("maker", "agents", "other/free", "create serviceaccounts@", "create serviceaccounts/token@"),
			scopes: []string{ofNamespace + "  otherwise: Allow\n"}, to: secretRead, want: attackpaths.Certain,
		},
		{
			rule: "tokens of new accounts are bound to no node in 1.30", minor: 30,
			add: role("agent", "", "agents/new", "get secrets@") +
				role("maker", "agents", "other/free", "create serviceaccounts@", "create serviceaccounts/token@"),
			scopes: []string{ofNamespace + "  otherwise: Allow\n"}, to: secretRead,
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, scopedBase()+c.add)
			if c.minor > 0 {
				cluster.Features = kubeversion.For(c.minor)
			}
			scopes := readScopes(t, c.scopes...)
			cluster.NodeScopes = policyOf(t, scopes...)
			if c.start == (attackpaths.Holding{}) {
				c.start = attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "other", Name: "free"}
			}
			result, got := from(t, graphOf(t, cluster), c.start), attackpaths.No
			i := slices.IndexFunc(result.Reached, func(r attackpaths.Reached) bool { return r.Holding == c.to })
			if i >= 0 {
				got = result.Reached[i].Certainty
			}
			if got != c.want {
				t.Errorf("%s is %s, want %s: %v", c.to, got, c.want, lines(result))
			}
			compareWithSearch(t, newNaive(cluster, scopes...), result)
		})
	}
}
