package attackpaths_test

import (
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// TestImpersonatedIdentities has cases of identities of which no credential is held: the API server
// impersonates once per request.
func TestImpersonatedIdentities(t *testing.T) {
	const (
		identities = "@authentication.k8s.io"
		roles      = "@rbac.authorization.k8s.io"
		certs      = "@certificates.k8s.io"
		asAdmins   = "impersonate groups@ admins"
	)
	base := node("n1") + namespace("shop", restrictedLabel) + account("shop", "web") + account("shop", "db") +
		secret("shop", "s", "Opaque", "") + role("a", "", "group admins", "get secrets@") + role("c", "", "user carol", "get secrets@ s")
	asDB, asCarol := role("r", "shop", "shop/web", "impersonate serviceaccounts@ db"), role("i", "", "shop/db", "impersonate users@ carol")
	secretS, db, carol := "Certain Secret shop/s: ", "Certain ServiceAccount shop/db: ", "Certain User carol: "
	onNode := pod("shop", "p", "n1", "web")
	approves := []string{
		"create,get certificatesigningrequests" + certs, "update certificatesigningrequests/approval" + certs,
		"approve signers" + certs + " kubernetes.io/kube-apiserver-client",
	}
	testReach(t, base, []reachCase{
		{rule: "they have their rights", add: asDB + role("i", "", "shop/db", "get secrets@ s"), want: []string{
			secretS + "Impersonate SecretRead", db + "Impersonate",
		}},
		{rule: "they cannot impersonate", add: asDB + asCarol, want: []string{db + "Impersonate"}},
		{
			rule: "a token of them can", add: asDB + asCarol + role("t", "shop", "shop/db", "create serviceaccounts/token@ db"),
			want: []string{
				secretS + "Impersonate TokenRequest Impersonate SecretRead", db + "Impersonate",
				carol + "Impersonate TokenRequest Impersonate",
			},
		},
		{
			rule: "a pod of them can", add: asDB + asCarol + role("t", "shop", "shop/db", "create pods@"),
			want: []string{
				"Certain Namespace shop: Impersonate PodCreate", secretS + "Impersonate PodCreate PodCreate", db + "Impersonate",
				carol + "Impersonate PodCreate PodCreate Impersonate",
			},
		},
		{
			rule: "a certificate can", add: role("r", "", "shop/web", "impersonate users@ dan") + role("d", "", "user dan", approves...) +
				role("e", "", "user eve", "impersonate users@ dan", "impersonate groups@ system:masters"),
			want: []string{
				"Certain ClusterAdmin : Impersonate ApproveCertificate Impersonate Masters",
				"Certain Group admins: Impersonate ApproveCertificate",
				"Certain Group system:masters: Impersonate ApproveCertificate Impersonate",
				secretS + "Impersonate ApproveCertificate SecretRead",
				db + "Impersonate ApproveCertificate", carol + "Impersonate ApproveCertificate",
				"Certain User dan: Impersonate", "Certain User eve: Impersonate ApproveCertificate",
				"Certain User system:node:n1: Impersonate ApproveCertificate",
			},
		},
		{
			rule: "two rights of them to impersonate do not count together",
			add: asDB + role("g", "", "shop/db", asAdmins) +
				role("h", "shop", "shop/db", "impersonate serviceaccounts@ web"),
			want: []string{db + "Impersonate"},
		},
		{
			rule: "a right of them to impersonate does not count together with one that they can be given",
			add: asDB + role("g", "", "shop/db", asAdmins, "create clusterrolebindings"+roles, "bind clusterroles"+roles+" users") +
				clusterRole("users", "impersonate users@ nobody"),
			want: []string{db + "Impersonate"},
		},
		{
			rule: "what they can bind counts for those of which a credential is held",
			add: asDB + role("g", "", "shop/db", "create clusterrolebindings"+roles, "bind clusterroles"+roles+" groups") +
				clusterRole("groups", "impersonate users@ carol", asAdmins),
			want: []string{
				"Certain Group admins: Impersonate BindRole Impersonate", secretS + "Impersonate BindRole Impersonate SecretRead",
				db + "Impersonate", carol + "Impersonate BindRole Impersonate",
			},
		},
		{
			rule: "a group cannot impersonate", add: role("r", "", "shop/web", "impersonate users@ nobody", "impersonate groups@ ops") +
				role("o", "", "group ops", "impersonate users@ carol"),
			want: []string{"Certain Group ops: Impersonate"},
		},
		{
			rule: "a user with every group cannot impersonate",
			add: role("r", "", "shop/web", "impersonate serviceaccounts@", "impersonate groups@ ops,admins,more") +
				role("o", "", "group ops", "impersonate users@ dan") + role("d", "", "user dan", "get pods@") +
				role("m", "", "group more", asAdmins),
			want: []string{
				"Certain Group admins: Impersonate", "Certain Group more: Impersonate", "Certain Group ops: Impersonate",
				secretS + "Impersonate SecretRead", db + "Impersonate",
			},
		},
		{
			rule: "system:masters is everything",
			add:  role("r", "", "shop/web", "impersonate users@ nobody", "impersonate groups@ system:masters"),
			want: []string{"Certain ClusterAdmin : Impersonate Masters", "Certain Group system:masters: Impersonate"},
		},
		{
			rule: "a node has its rights and cannot impersonate",
			add: onNode + role("of-n1", "", "user system:node:n1", "impersonate users@ carol", "get secrets@ s") +
				role("r", "", "shop/db", "impersonate users@ system:node:n1", "impersonate groups@ system:nodes"),
			start: attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "db"},
			want: []string{
				"Certain Group system:nodes: Impersonate", secretS + "Impersonate SecretRead",
				"Certain ServiceAccount shop/web: Impersonate TokenOfPodOnNode", "Certain User system:node:n1: Impersonate",
			},
		},
		{
			rule: "they have no token that is associated with a node",
			add: asDB + role("i", "", "shop/db", "impersonate:associated-node nodes"+identities, everyVerb("associated-node")+" *@*") +
				pod("shop", "q", "n1", "db"),
			want: []string{db + "Impersonate"},
		},
		{
			rule: "they cannot impersonate in a mode",
			add:  asDB + role("i", "", "shop/db", "impersonate:user-info users"+identities, "impersonate-on:user-info:get secrets@"),
			want: []string{db + "Impersonate"},
		},
		{
			rule: "nor with a rule for every request",
			add: role("r", "", "shop/web", "impersonate:serviceaccount serviceaccounts"+identities+" db",
				everyVerb("serviceaccount")+" *@*") + asCarol +
				role("m", "", "shop/db", "impersonate:user-info users"+identities, everyVerb("user-info")+" *@*"),
			want: []string{db + "Impersonate"},
		},
		{
			rule: "a node that is impersonated for every request cannot impersonate",
			add: onNode + role("of-n1", "", "user system:node:n1", "impersonate users@ carol") +
				role("r", "", "shop/db", "impersonate:arbitrary-node nodes"+identities+" n1", everyVerb("arbitrary-node")+" *@*"),
			start: attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "db"},
			want: []string{
				"Certain ServiceAccount shop/web: Impersonate TokenOfPodOnNode", "Certain User system:node:n1: Impersonate",
			},
		},
		{
			rule: "a user whose name is that of a service account is not impersonated with a group",
			add:  role("r", "", "shop/web", "impersonate users@ 'system:serviceaccount:shop:db'", asAdmins),
		},
	})
}

// TestPathThroughImpersonation has an identity that is impersonated first and held then: both are the
// same in the path.
func TestPathThroughImpersonation(t *testing.T) {
	cluster := newCluster()
	parse(t, cluster, namespace("shop", restrictedLabel)+account("shop", "web")+account("shop", "db")+
		role("r", "shop", "shop/web", "impersonate serviceaccounts@ db")+role("t", "shop", "shop/db", "create serviceaccounts/token@ db")+
		role("i", "", "shop/db", "impersonate users@ carol")+role("c", "", "user carol", "get pods@"))
	db := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "db"}
	carol := attackpaths.Holding{Kind: attackpaths.User, Name: "carol"}
	inShop := func(name string) *rbac.Ref { return &rbac.Ref{Kind: "RoleBinding", Namespace: "shop", Name: name} }
	want := []attackpaths.Step{
		{
			Technique: attackpaths.Impersonate, From: accountWeb, To: db, GrantedBy: inShop("r"), Certainty: attackpaths.Certain,
			Because: "may impersonate serviceaccounts db in namespace shop",
		},
		{
			Technique: attackpaths.TokenRequest, From: db, To: db, GrantedBy: inShop("t"), Certainty: attackpaths.Certain,
			Because: "may create serviceaccounts/token db in namespace shop",
		},
		{
			Technique: attackpaths.Impersonate, From: db, To: carol, Certainty: attackpaths.Certain,
			GrantedBy: &rbac.Ref{Kind: "ClusterRoleBinding", Name: "i"}, Because: "may impersonate users carol",
		},
	}
	for _, r := range from(t, graphOf(t, cluster), accountWeb).Reached {
		if r.Holding == carol && pathText(r.Path) != pathText(want) {
			t.Errorf("the path is\n%swant\n%s", pathText(r.Path), pathText(want))
		}
		if r.Holding == carol {
			return
		}
	}
	t.Errorf("%s is not reached", carol)
}

// A node whose credential may impersonate the user of another node is not taken for that node. The cluster gives the group of
// nodes such a right.
func TestANodeImpersonatesAnotherNode(t *testing.T) {
	rc := newRandomCluster(3451)
	reached := from(t, graphOf(t, rc.cluster(t, rc.Objects)), attackpaths.Holding{Kind: attackpaths.Node, Name: "n1"}).Reached
	for name, want := range map[string]bool{"system:node:n1": false, "system:node:n2": true} {
		got := slices.ContainsFunc(reached, func(r attackpaths.Reached) bool {
			return r.Kind == attackpaths.User && r.Name == name && r.Certainty == attackpaths.Certain
		})
		if got != want {
			t.Errorf("node n1 reaches user %s: %v, want %v", name, got, want)
		}
	}
}
