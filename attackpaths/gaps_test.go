package attackpaths_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// reachCase is what a start reaches. Cases start from the service account shop/web unless a case
// has another start. testReach compares with the exhaustive search too.
type reachCase struct {
	rule  string
	start attackpaths.Holding
	add   string
	want  []string
	// because is the reason of the last step to the first holding; empty if it is not compared.
	because string
	// dependsOn is what else decides about it; empty if it is not compared.
	dependsOn string
}

func testReach(t *testing.T, base string, cases []reachCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			if c.start == (attackpaths.Holding{}) {
				c.start = accountWeb
			}
			cluster := newCluster()
			parse(t, cluster, base+c.add)
			result := from(t, graphOf(t, cluster), c.start)
			if got := lines(result); !slices.Equal(got, c.want) {
				t.Errorf("reached\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
			if c.because != "" {
				if path := result.Reached[0].Path; path[len(path)-1].Because != c.because {
					t.Errorf("because %q, want %q", path[len(path)-1].Because, c.because)
				}
			}
			if c.dependsOn != "" {
				if path := result.Reached[0].Path; path[len(path)-1].DependsOn != c.dependsOn {
					t.Errorf("depends on %q, want %q", path[len(path)-1].DependsOn, c.dependsOn)
				}
			}
			compareSearch(t, cluster, result)
		})
	}
}

func TestAccountsThatOnlyBindingsName(t *testing.T) {
	base := namespace("shop", restrictedLabel) + account("shop", "web") + role("t", "", "shop/gone", "create serviceaccounts/token@ web")
	gone := "ServiceAccount shop/gone"
	testReach(t, base, []reachCase{
		{
			rule: "they can be impersonated", add: role("r", "shop", "shop/web", "impersonate serviceaccounts@ gone"),
			want: []string{"Certain " + gone + ": Impersonate"},
		},
		{
			rule: "also in a namespace that does not exist",
			add:  role("x", "", "far/gone", "get configmaps@") + role("r", "", "shop/web", "impersonate serviceaccounts@ gone"),
			want: []string{"Certain ServiceAccount far/gone: Impersonate", "Certain " + gone + ": Impersonate"},
		},
		{rule: "tokens for them cannot be requested", add: role("r", "shop", "shop/web", "create serviceaccounts/token@ gone")},
		{rule: "to create them gives nothing", add: role("r", "shop", "shop/web", "create serviceaccounts@")},
		{
			rule: "to create them and tokens",
			add:  role("r", "shop", "shop/web", "create serviceaccounts@", "create serviceaccounts/token@ gone"),
			want: []string{"Certain " + gone + ": TokenRequest"},
		},
		{
			rule: "to create them and tokens, everywhere",
			add:  role("r", "", "shop/web", "create serviceaccounts@", "create serviceaccounts/token@"),
			want: []string{"Certain " + gone + ": TokenRequest"},
		},
		{
			rule: "to create them and pods", add: role("r", "shop", "shop/web", "create serviceaccounts@", "create jobs@batch"),
			want: []string{"Certain Namespace shop: PodCreate", "Certain " + gone + ": PodCreate PodCreate"},
		},
		{
			rule: "a webhook for accounts", add: webhook("serviceaccounts", "CREATE") +
				role("r", "shop", "shop/web", "create serviceaccounts@", "create serviceaccounts/token@"),
			want: []string{"Possible " + gone + ": TokenRequest"},
		},
	})
}

// The API server takes the user of a certificate from its subject. It needs neither an object nor a binding of that name.
func TestCertificatesOfServiceAccounts(t *testing.T) {
	const certs, client = "@certificates.k8s.io", " kubernetes.io/kube-apiserver-client"
	base := namespace("shop", restrictedLabel) + account("shop", "web") + account("shop", "db")
	rights := func(verb, signer, write string) string {
		return role("r", "", "shop/web", "create certificatesigningrequests"+certs, write+certs, verb+" signers"+certs+signer)
	}
	const approvals, status = " certificatesigningrequests/approval", " certificatesigningrequests/status"
	approved, signed := "Certain ServiceAccount shop/db: ApproveCertificate", "Possible ServiceAccount shop/db: SignCertificate"
	testReach(t, base, []reachCase{
		{rule: "approved for one signer", add: rights("approve", client, "update"+approvals), want: []string{approved}},
		{
			rule: "approved for each signer of Kubernetes", add: rights("approve", " kubernetes.io/*", "update"+approvals),
			want: []string{approved},
		},
		{rule: "approved for every signer, by a patch", add: rights("approve", "", "patch"+approvals), want: []string{approved}},
		{rule: "approved for another signer", add: rights("approve", " example.com/*", "update"+approvals)},
		{rule: "approved for kubelets", add: rights("approve", client+"-kubelet", "update"+approvals)},
		{rule: "signed for one signer", add: rights("sign", client, "update"+status), want: []string{signed}},
		{
			rule: "signed for each signer of Kubernetes, by a patch", add: rights("sign", " kubernetes.io/*", "patch"+status),
			want: []string{signed},
		},
		{rule: "signed for every signer", add: rights("sign", "", "update"+status), want: []string{signed}},
		{
			rule: "also one that does not exist and that a binding names",
			add:  rights("approve", client, "update"+approvals) + role("g", "", "far/gone", "get configmaps@"),
			want: []string{"Certain ServiceAccount far/gone: ApproveCertificate", approved},
		},
		{
			rule: "a webhook for approvals", add: rights("approve", client, "update"+approvals) +
				webhook("certificatesigningrequests/approval", "UPDATE"),
			want: []string{"Possible ServiceAccount shop/db: ApproveCertificate"},
		},
	})
}

// A role that a node's credential can bind to itself does not give it what NodeRestriction refuses.
func TestRolesThatNodesCanBind(t *testing.T) {
	nodeUser := attackpaths.Holding{Kind: attackpaths.User, Name: "system:node:n1"}
	base := node("n1") + namespace("shop", restrictedLabel) + account("shop", "web") + clusterRole("pods", "create pods@", "get secrets@") +
		secret("shop", "s", "Opaque", "") + role("b", "shop", "group system:nodes", "create rolebindings@rbac.authorization.k8s.io",
		"bind clusterroles@rbac.authorization.k8s.io pods")
	testReach(t, base, []reachCase{
		{
			rule: "of a node alone, unless anonymous requests are answered", start: nodeUser,
			want: []string{
				"Certain Secret shop/s: BindRole SecretRead",
				"Possible Namespace shop: BindRole PodCreate",
				"Possible ServiceAccount shop/web: BindRole PodCreate PodCreate",
			},
		},
		{
			rule: "of a node with another identity", start: nodeUser, add: pod("shop", "p", "n1", "web"),
			want: []string{
				"Certain Namespace shop: TokenOfPodOnNode BindRole PodCreate",
				"Certain Secret shop/s: BindRole SecretRead",
				"Certain ServiceAccount shop/web: TokenOfPodOnNode",
			},
		},
	})
}

// One certificate, or one impersonation of any group, has a user and all groups: their rights count
// together.
func TestUsersTogetherWithGroups(t *testing.T) {
	const roles, certs = "@rbac.authorization.k8s.io", "@certificates.k8s.io"
	base := namespace("shop", restrictedLabel) + account("shop", "web") + clusterRole("reader", "get secrets@") +
		secret("shop", "s", "Opaque", "") + role("a", "", "user alice", "create clusterrolebindings"+roles) +
		role("b", "", "group admins", "bind clusterroles"+roles+" reader")
	secretS := "Certain Secret shop/s: "
	testReach(t, base, []reachCase{
		{
			rule: "in a certificate", add: role("r", "", "shop/web", "create,get certificatesigningrequests"+certs,
				"update certificatesigningrequests/approval"+certs, "approve signers"+certs+" kubernetes.io/kube-apiserver-client"),
			want: []string{
				"Certain Group admins: ApproveCertificate",
				secretS + "ApproveCertificate BindRole SecretRead",
				"Certain User alice: ApproveCertificate",
			},
		},
		{
			rule: "impersonated", add: role("r", "", "shop/web", "impersonate users@ alice", "impersonate groups@"),
			want: []string{
				"Certain ClusterAdmin : Impersonate Masters",
				"Certain Group admins: Impersonate",
				"Certain Group system:masters: Impersonate",
				secretS + "Impersonate BindRole SecretRead",
				"Certain User alice: Impersonate",
			},
		},
		{
			rule: "two users are never one identity", add: role("c", "", "user bob", "bind clusterroles"+roles) +
				role("r", "", "shop/web", "impersonate users@"),
			want: []string{"Certain User alice: Impersonate", "Certain User bob: Impersonate"},
		},
	})
}

// The ConfigMap with the identity mappings of EKS is in kube-system, which the objects need not show.
func TestIdentityMappingsInANamespaceThatIsNotShown(t *testing.T) {
	for _, rule := range []string{"update configmaps@ aws-auth", "create configmaps@", "patch configmaps@"} {
		cluster := newCluster()
		cluster.EKS = true
		parse(t, cluster, namespace("shop", restrictedLabel)+account("shop", "web")+role("r", "", "shop/web", rule))
		if got := from(t, graphOf(t, cluster), accountWeb).ClusterAdmin; got != attackpaths.Possible {
			t.Errorf("%s: cluster-admin is %s, want Possible", rule, got)
		}
	}
}

// Each cluster has the namespaces that Kubernetes makes, also where the objects do not show them: what Pod Security enforces there is
// unknown then.
func TestNamespacesThatEachClusterHas(t *testing.T) {
	base := node("n1") + namespace("shop", restrictedLabel) + account("shop", "web")
	cases := []reachCase{{
		rule: "rights in all namespaces hold in them", add: role("r", "", "shop/web", "create pods@"),
		want: []string{"Certain Namespace shop: PodCreate", "Possible Node n1: PodCreate PodCreate"},
	}}
	for i, ns := range systemNamespaces {
		cases[0].want = slices.Insert(cases[0].want, i, "Certain Namespace "+ns+": PodCreate")
		cases = append(cases, reachCase{
			rule: ns, add: role("r", ns, "shop/web", "create,patch pods@") + pod(ns, "p", "n1", "x"),
			want: []string{
				"Certain Namespace " + ns + ": PodCreate", "Certain Pod " + ns + "/p: PodUpdate",
				"Certain ServiceAccount " + ns + "/x: PodCreate PodCreate", "Possible Node n1: PodCreate PodCreate",
			},
		}, reachCase{
			rule: ns + " with its labels", want: []string{"Certain Namespace " + ns + ": PodCreate"},
			add: namespace(ns, restrictedLabel) + role("r", ns, "shop/web", "create pods@"),
		})
	}
	testReach(t, base, cases)
}
