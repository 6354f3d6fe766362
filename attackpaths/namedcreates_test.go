package attackpaths_test

import "testing"

// A request that applies or puts an object has its name, and takes the right to create one of that name and to change it.
func TestObjectsThatAreCreatedByTheirName(t *testing.T) {
	const in = "@rbac.authorization.k8s.io"
	base := node("n1") + namespace("shop", restrictedLabel) + account("shop", "web") + account("shop", "db") +
		namespace("kube-system", restrictedLabel) + role("everything", "", "user nobody", "* *@*")
	pods := []string{"Certain Namespace shop: PodCreate", "Certain ServiceAccount shop/db: PodCreate PodCreate"}
	admin := []string{"Certain ClusterAdmin : BindRole"}
	escalated := []string{"Certain ClusterAdmin : EscalateRole"}
	bind := role("b", "", "shop/web", "bind clusterroles"+in+" everything")
	ghost := binding("ghost", "ghost", "shop/web")
	testReach(t, base, []reachCase{
		{rule: "a pod", add: role("r", "shop", "shop/web", "create,patch pods@ p"), want: pods},
		{rule: "a pod by two rules", add: role("r", "shop", "shop/web", "create pods@ p", "patch pods@"), want: pods},
		{
			rule: "a pod by two roles", want: pods,
			add: role("r", "shop", "shop/web", "create pods@ p") + role("s", "", "shop/web", "patch pods@ p,q"),
		},
		{rule: "not of two names", add: role("r", "shop", "shop/web", "create pods@ p", "patch pods@ q")},
		{rule: "not without patch", add: role("r", "shop", "shop/web", "create,update pods@ p")},
		{rule: "not without create", add: role("r", "shop", "shop/web", "patch,update pods@ p")},
		{
			rule: "not by two identities",
			add:  role("r", "shop", "shop/web", "create pods@ p") + role("s", "shop", "shop/db", "patch pods@ p"),
		},
		{
			rule: "a pod that exists is changed", add: pod("shop", "p", "n1", "db") + role("r", "shop", "shop/web", "create,patch pods@ p"),
			want: []string{"Certain Pod shop/p: PodUpdate", "Certain ServiceAccount shop/db: PodUpdate PodToken"},
		},
		{rule: "a workload", add: role("r", "shop", "shop/web", "create,patch statefulsets@apps s"), want: pods},
		{
			rule: "a secret, which its author patches again", add: role("r", "shop", "shop/web", "create,patch secrets@ s"),
			want: []string{"Certain ServiceAccount shop/db: ServiceAccountTokenSecret"},
		},
		{
			rule: "not a secret that exists",
			add:  secret("shop", "s", "Opaque", "") + role("r", "shop", "shop/web", "create,patch secrets@ s"),
			want: []string{"Certain Secret shop/s: SecretRead"},
		},
		{
			rule: "a bootstrap token", add: role("r", "kube-system", "shop/web", "create,patch secrets@ bootstrap-token-abcdef"),
			want: []string{"Possible Group system:bootstrappers: BootstrapToken"},
		},
		{
			rule: "not a bootstrap token of such a name",
			add:  role("r", "kube-system", "shop/web", "create,patch secrets@ bootstrap-token-x"),
		},
		{
			rule: "an account that a binding names, with its token",
			add: binding("ghost", "everything", "shop/ghost") +
				role("r", "shop", "shop/web", "create,patch serviceaccounts@ ghost", "create serviceaccounts/token@ ghost"),
			want: []string{"Certain ClusterAdmin : TokenRequest Masters", "Certain ServiceAccount shop/ghost: TokenRequest"},
		},
		{
			rule: "not another account",
			add: binding("ghost", "everything", "shop/ghost") +
				role("r", "shop", "shop/web", "create,patch serviceaccounts@ other", "create serviceaccounts/token@ ghost"),
		},
		{
			rule: "a volume that is a folder of the host",
			add:  role("v", "", "shop/web", "create,patch persistentvolumes@ v") + role("r", "shop", "shop/web", "create pods@"),
			want: append(pods, "Possible Node n1: PodCreate VolumeControl"),
		},
		{
			rule: "a namespace",
			add:  role("r", "", "shop/web", "create,patch namespaces@ new", "create,patch pods@ p"),
			want: []string{
				"Certain Namespace default: PodCreate", "Certain Namespace kube-node-lease: PodCreate",
				"Certain Namespace kube-public: PodCreate", "Certain Namespace kube-system: PodCreate",
				"Certain Namespace shop: PodCreate", "Certain Node n1: PodCreate",
				"Certain ServiceAccount shop/db: PodCreate PodCreate",
			},
		},
		{
			rule: "not a namespace that exists", want: pods,
			add: role("x", "", "shop/web", "create,patch namespaces@ other") + namespace("other", restrictedLabel) +
				role("r", "shop", "shop/web", "create pods@"),
		},
		{rule: "a binding by patch", add: bind + role("r", "", "shop/web", "create,patch clusterrolebindings"+in+" new"), want: admin},
		{rule: "a binding by update", add: bind + role("r", "", "shop/web", "create,update clusterrolebindings"+in+" new"), want: admin},
		{rule: "not a binding by create alone", add: bind + role("r", "", "shop/web", "create clusterrolebindings"+in+" new")},
		{
			rule: "not a binding of another role that exists",
			add:  bind + role("r", "", "shop/web", "create,patch clusterrolebindings"+in+" b"),
		},
		{
			rule: "a role that a binding names", add: ghost + role("r", "", "shop/web", "escalate,create,patch clusterroles"+in+" ghost"),
			want: escalated,
		},
		{
			rule: "a role that a binding names, with escalate alone limited to its name", want: escalated,
			add: ghost + role("r", "", "shop/web", "escalate clusterroles"+in+" ghost", "create,update clusterroles"+in),
		},
		{rule: "not another role", add: ghost + role("r", "", "shop/web", "escalate,create,patch clusterroles"+in+" other")},
		{
			rule: "a mutating webhook", want: []string{"Possible ClusterAdmin : AdmissionControl"},
			add: role("r", "", "shop/web", "create,patch mutatingwebhookconfigurations@admissionregistration.k8s.io new"),
		},
		{
			rule: "a pod that exists is deleted first",
			add:  pod("shop", "p", "n1", "web") + role("r", "shop", "shop/web", "create,patch,delete pods@ p"),
			want: []string{pods[0], "Certain Pod shop/p: PodUpdate", pods[1]},
		},
		{
			rule: "a binding that exists is deleted first, by a right in all namespaces",
			add: role("r", "", "shop/web", "bind clusterroles"+in+" makes", "create,patch,delete rolebindings"+in+" some") +
				namespace("other", restrictedLabel) + role("some", "other", "user bob", "get pods@") +
				role("makes", "", "user bob", "create pods@"),
			want: []string{
				"Certain Namespace default: BindRole PodCreate", "Certain Namespace kube-node-lease: BindRole PodCreate",
				"Certain Namespace kube-public: BindRole PodCreate", "Certain Namespace kube-system: BindRole PodCreate",
				"Certain Namespace other: BindRole PodCreate", "Certain Namespace shop: BindRole PodCreate",
				"Certain ServiceAccount shop/db: BindRole PodCreate PodCreate", "Possible Node n1: BindRole PodCreate PodCreate",
			},
		},
		{
			rule: "a secret that exists is deleted first, and made again with a token of another account",
			add:  secret("shop", "s", "Opaque", "") + role("r", "shop", "shop/web", "create secrets@", "get,delete secrets@ s"),
			want: []string{"Certain Secret shop/s: SecretRead", "Certain ServiceAccount shop/db: ServiceAccountTokenSecret"},
		},
		{
			rule:    "a secret that exists is deleted first, and applied",
			because: "may create a secret of type service-account-token and read it; may delete secrets/shop/s first",
			add:     secret("shop", "s", "Opaque", "") + role("r", "shop", "shop/web", "create,patch,delete secrets@ s"),
			want:    []string{"Certain Secret shop/s: SecretRead", "Certain ServiceAccount shop/db: ServiceAccountTokenSecret"},
		},
		{
			rule: "another identity may delete it", want: []string{
				"Certain Secret shop/s: SecretRead", "Certain ServiceAccount shop/db: Impersonate",
				"Certain ServiceAccount shop/other: Impersonate ServiceAccountTokenSecret",
			},
			add: secret("shop", "s", "Opaque", "") + account("shop", "other") +
				role("r", "shop", "shop/web", "create secrets@", "get secrets@ s", "impersonate serviceaccounts@ db") +
				role("d", "shop", "shop/db", "deletecollection secrets@"),
		},
		{
			rule: "a binding that exists is deleted first", want: admin,
			because: `may bind ClusterRole "everything" in the whole cluster; may delete clusterrolebindings/ex first`,
			add: bind + binding("ex", "none", "shop/none") +
				role("r", "", "shop/web", "create,update,delete clusterrolebindings"+in+" ex"),
		},
		{
			rule: "not the binding that gives the right",
			add:  bind + role("r", "", "shop/web", "create,update,delete clusterrolebindings"+in+" r"),
		},
		{
			rule: "not another binding", add: bind + binding("ex", "none", "shop/none") +
				role("r", "", "shop/web", "create,update clusterrolebindings"+in+" ex", "delete clusterrolebindings"+in+" b"),
		},
	})
}
