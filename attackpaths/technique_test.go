package attackpaths_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

const restrictedLabel = "pod-security.kubernetes.io/enforce: restricted"

var (
	nodeN1     = attackpaths.Holding{Kind: attackpaths.Node, Name: "n1"}
	accountWeb = attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "web"}
)

// TestTechniques starts from the service account shop/web unless a case says otherwise.
func TestTechniques(t *testing.T) {
	base := node("n1") + node("n2") + namespace("shop", restrictedLabel) + namespace("kube-system", "") +
		account("shop", "web") + account("shop", "db") + account("kube-system", "admin") +
		role("everything", "", "kube-system/admin", "* *@*")
	cases := []struct {
		rule  string
		start attackpaths.Holding
		add   string
		want  []string
	}{
		{rule: "no rights"},
		{
			rule: "a token of a pod on the node", start: nodeN1,
			add: pod("shop", "web-1", "n1", "web"),
			want: []string{
				"Certain Pod shop/web-1: PodOnNode",
				"Certain ServiceAccount shop/web: PodTokenOnNode",
			},
		},
		{
			rule: "exec in a pod", add: pod("shop", "db-1", "n1", "db") + role("r", "shop", "shop/web", "create pods/exec@"),
			want: []string{"Certain Pod shop/db-1: PodExec", "Certain ServiceAccount shop/db: PodExec PodToken"},
		},
		{
			rule: "exec in a pod by name", add: pod("shop", "db-1", "n1", "db") + role("r", "shop", "shop/web", "create pods/exec@ db-1"),
			want: []string{"Certain Pod shop/db-1: PodExec", "Certain ServiceAccount shop/db: PodExec PodToken"},
		},
		{rule: "exec in another pod", add: pod("shop", "db-1", "n1", "db") + role("r", "shop", "shop/web", "create pods/exec@ db-2")},
		{
			rule: "create pods", add: role("r", "shop", "shop/web", "create deployments@apps"),
			want: []string{
				"Certain Namespace shop: PodCreate",
				"Certain ServiceAccount shop/db: PodCreate PodCreate",
			},
		},
		{
			rule: "create pods and relabel the namespace", add: role("r", "shop", "shop/web", "create pods@", "patch namespaces@ shop"),
			want: []string{
				"Certain Namespace shop: PodCreate",
				"Certain Node n1: PodCreate NamespaceRelabel PodCreate",
				"Certain Node n2: PodCreate NamespaceRelabel PodCreate",
				"Certain ServiceAccount shop/db: PodCreate PodCreate",
			},
		},
		{
			rule: "create tokens", add: role("r", "kube-system", "shop/web", "create serviceaccounts/token@ admin"),
			want: []string{
				"Certain ClusterAdmin : TokenRequest Masters",
				"Certain ServiceAccount kube-system/admin: TokenRequest",
			},
		},
		{
			rule: "bind a role in the cluster",
			add: role("r", "", "shop/web", "bind clusterroles@rbac.authorization.k8s.io everything",
				"create clusterrolebindings@rbac.authorization.k8s.io"),
			want: []string{"Certain ClusterAdmin : BindRole"},
		},
		{
			rule: "bind a role in a namespace",
			add: role("r", "kube-system", "shop/web", "bind clusterroles@rbac.authorization.k8s.io everything",
				"create rolebindings@rbac.authorization.k8s.io"),
			want: []string{
				"Certain ClusterAdmin : BindRole Impersonate Masters",
				"Certain Namespace kube-system: BindRole PodCreate",
				"Certain Node n1: BindRole PodCreate PodCreate",
				"Certain Node n2: BindRole PodCreate PodCreate",
				"Certain ServiceAccount kube-system/admin: BindRole Impersonate",
				"Possible Group system:bootstrappers: BindRole BootstrapToken",
			},
		},
		{
			rule: "bind without a right to create bindings",
			add:  role("r", "", "shop/web", "bind clusterroles@rbac.authorization.k8s.io everything"),
		},
		{
			rule: "escalate a role that is bound",
			add:  role("r", "", "shop/web", "escalate,update clusterroles@rbac.authorization.k8s.io r"),
			want: []string{"Certain ClusterAdmin : EscalateRole"},
		},
		{
			rule: "impersonate a group", add: role("r", "", "shop/web", "impersonate users@ alice", "impersonate groups@ system:masters"),
			want: []string{
				"Certain ClusterAdmin : Impersonate Masters",
				"Certain Group system:masters: Impersonate",
			},
		},
		{
			rule: "approve", add: role("r", "", "shop/web", "create,get certificatesigningrequests@certificates.k8s.io",
				"update certificatesigningrequests/approval@certificates.k8s.io",
				"approve signers@certificates.k8s.io kubernetes.io/kube-apiserver-client"),
			want: []string{
				"Certain ClusterAdmin : ApproveCertificate Masters",
				"Certain ServiceAccount kube-system/admin: ApproveCertificate",
				"Certain ServiceAccount shop/db: ApproveCertificate",
				"Certain User system:node:n1: ApproveCertificate",
				"Certain User system:node:n2: ApproveCertificate",
			},
		},
		{
			rule: "create a token secret", add: role("r", "kube-system", "shop/web", "create,get secrets@"),
			want: []string{
				"Certain ClusterAdmin : ServiceAccountTokenSecret Masters",
				"Certain ServiceAccount kube-system/admin: ServiceAccountTokenSecret",
				"Possible Group system:bootstrappers: BootstrapToken",
			},
		},
		{
			rule: "a volume of the host in a restricted namespace",
			add: role("r", "", "shop/web", "create persistentvolumes@") +
				role("s", "shop", "shop/web", "create persistentvolumeclaims@", "create pods@"),
			want: []string{
				"Certain Namespace shop: PodCreate",
				"Certain ServiceAccount shop/db: PodCreate PodCreate",
				"Possible Node n1: PodCreate VolumeControl",
				"Possible Node n2: PodCreate VolumeControl",
			},
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, base+c.add)
			g, err := attackpaths.New(cluster)
			if err != nil {
				t.Fatal(err)
			}
			start := c.start
			if start == (attackpaths.Holding{}) {
				start = accountWeb
			}
			result, err := g.From(start)
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(result); !slices.Equal(got, c.want) {
				t.Errorf("reached\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
				for _, r := range result.Reached {
					for _, s := range r.Path {
						t.Logf("%s: %+v by %v", r.Holding, s, s.GrantedBy)
					}
				}
			}
		})
	}
}

// TestTechniquesAgreeWithExhaustiveSearch checks Graph.From and the exhaustive search. It starts
// from the service account shop/web unless a case has another start.
func TestTechniquesAgreeWithExhaustiveSearch(t *testing.T) {
	base := node("n1") + namespace("shop", restrictedLabel) + account("shop", "web")
	const (
		roles      = "@rbac.authorization.k8s.io"
		certs      = "@certificates.k8s.io"
		admissions = "@admissionregistration.k8s.io"
	)
	nodeUser := attackpaths.Holding{Kind: attackpaths.User, Name: "system:node:n1"}
	approvedByItself := []string{"create certificatesigningrequests" + certs, "create certificatesigningrequests/nodeclient" + certs}
	cases := []struct {
		rule  string
		start attackpaths.Holding
		add   string
		want  []string
	}{
		{
			rule: "groups can be impersonated together with a service account",
			add: role("g", "", "shop/web", "impersonate groups@ system:masters") +
				role("s", "shop", "shop/web", "impersonate serviceaccounts@ web"),
			want: []string{"Certain ClusterAdmin : Impersonate Masters", "Certain Group system:masters: Impersonate"},
		},
		{
			rule: "a role with every right in a namespace gives service accounts for the impersonation of groups",
			add: role("g", "", "shop/web", "impersonate groups@ system:masters") +
				namespace("other", restrictedLabel) + clusterRole("every", "* *@*") +
				role("b", "other", "shop/web", "create rolebindings"+roles, "bind clusterroles"+roles+" every"),
			want: []string{
				"Certain ClusterAdmin : BindRole Impersonate Masters",
				"Certain Group system:masters: BindRole Impersonate",
				"Certain Namespace other: BindRole PodCreate",
				"Certain Node n1: BindRole PodCreate NamespaceRelabel PodCreate",
			},
		},
		{
			rule: "of pods that may move, one without a token for the API server does not hide another", start: nodeN1,
			add: strings.ReplaceAll(pod("shop", "a", "''", "web"), "{path: token}", "{path: token, audience: vault}") +
				pod("shop", "b", "''", "web"),
			want: []string{"Possible ServiceAccount shop/web: StealPods"},
		},
		{
			rule: "the author of a request for an automatically approved certificate chooses its name",
			add:  role("r", "", "shop/web", append(approvedByItself, "get certificatesigningrequests"+certs+" mine")...),
			want: []string{"Certain User system:node:n1: ApproveCertificate"},
		},
		{
			rule: "a right to create an object by name alone is none",
			add: role("r", "", "shop/web", "create apiservices@apiregistration.k8s.io v1.x",
				"create mutatingwebhookconfigurations"+admissions+" x", "create iamidentitymappings@iamauthenticator.k8s.aws x"),
		},
		{
			rule: "Pod Security refuses a new image for a pod that it would not let be created",
			add:  rootPod("shop", "p", "n1") + role("r", "shop", "shop/web", "patch pods@"),
		},
		{
			rule: "Pod Security refuses another container in a pod that it would not let be created",
			add:  rootPod("shop", "p", "n1") + role("r", "shop", "shop/web", "patch pods/ephemeralcontainers@"),
		},
		{
			rule:  "a pod that is not bound to a node has nothing yet",
			start: attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "p"},
			add:   secret("shop", "s", "Opaque", "") + pod("shop", "p", "''", "db", "  - {name: s, secret: {secretName: s}}\n"),
			want:  []string{"Possible Secret shop/s: PodSecret", "Possible ServiceAccount shop/db: PodToken"},
		},
		{
			rule:  "a pod without a token makes anonymous requests",
			start: attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "p"},
			add: rootPod("shop", "p", "''") +
				role("r", "shop", "group system:unauthenticated", "create serviceaccounts/token@ web"),
			want: []string{"Possible ServiceAccount shop/web: TokenRequest"},
		},
		{
			rule: "without Pod Security a privileged pod gets a new image",
			add:  rootPod("shop", "p", "n1") + role("r", "shop", "shop/web", "patch pods@", "patch namespaces@"),
			want: []string{
				"Certain Node n1: NamespaceRelabel PodUpdate PodEscape",
				"Certain Pod shop/p: NamespaceRelabel PodUpdate",
			},
		},
		{
			rule: "a rule with the empty name lists everything",
			add:  secret("shop", "s", "Opaque", "") + role("r", "shop", "shop/web", "list secrets@ ''"),
			want: []string{"Certain Secret shop/s: SecretRead"},
		},
		{
			rule: "a rule with the empty name gives no proxy of a node",
			add:  pod("shop", "p", "n1", "web") + role("r", "", "shop/web", "create nodes/proxy@ ''"),
		},
		{
			rule: "a certificate of the client signer may be a node's",
			add: role("r", "", "shop/web", "create,get certificatesigningrequests"+certs,
				"update certificatesigningrequests/approval"+certs, "approve signers"+certs+" kubernetes.io/kube-apiserver-client"),
			want: []string{"Certain User system:node:n1: ApproveCertificate"},
		},
		{
			rule: "a user that a binding names is a start", start: attackpaths.Holding{Kind: attackpaths.User, Name: "alice"},
			add:  role("r", "shop", "user alice", "create serviceaccounts/token@"),
			want: []string{"Certain ServiceAccount shop/web: TokenRequest"},
		},
		{
			rule: "a node's user is its credential, even if an account can impersonate the user", start: nodeUser,
			add: pod("shop", "p", "n1", "web") + role("r", "", "user system:node:n1", "get configmaps@") +
				role("i", "", "shop/web", "impersonate users@"),
			want: []string{"Certain ServiceAccount shop/web: TokenOfPodOnNode"},
		},
		{
			rule: "a node's credential that is certain is not hidden by its user that is possible",
			add: role("u", "", "user system:node:n1", "get configmaps@") +
				role("i", "", "user system:anonymous", "impersonate users@") +
				role("r", "", "shop/web", append(approvedByItself, "get certificatesigningrequests"+certs)...),
			want: []string{"Certain User system:node:n1: ApproveCertificate", "Possible User system:anonymous: Impersonate"},
		},
		{
			rule: "a webhook for new bindings does not guard those that exist",
			add: account("shop", "db") + webhook("rolebindings", "CREATE") +
				role("t", "shop", "user bob", "create serviceaccounts/token@ db") +
				role("r", "shop", "shop/web", "create,update rolebindings"+roles, "bind roles"+roles),
			want: []string{"Certain ServiceAccount shop/db: BindRole TokenRequest"},
		},
		{
			rule: "a webhook for requests for certificates guards them",
			add: webhook("certificatesigningrequests", "CREATE") +
				role("r", "", "shop/web", append(approvedByItself, "get certificatesigningrequests"+certs)...),
			want: []string{"Possible User system:node:n1: ApproveCertificate"},
		},
		{
			rule: "a webhook for claims guards volumes of the host",
			add: namespace("low", "pod-security.kubernetes.io/enforce: baseline") + webhook("persistentvolumeclaims", "CREATE") +
				role("v", "", "shop/web", "create persistentvolumes@") +
				role("c", "low", "shop/web", "create pods@", "create persistentvolumeclaims@"),
			want: []string{"Certain Namespace low: PodCreate", "Possible Node n1: PodCreate VolumeControl"},
		},
		{
			rule: "a webhook for tokens guards those that a node's credential creates", start: nodeUser,
			add:  webhook("serviceaccounts/token", "CREATE") + pod("shop", "p", "n1", "web"),
			want: []string{"Possible ServiceAccount shop/web: TokenOfPodOnNode"},
		},
		{
			rule: "a webhook selects a namespace that is updated by its own labels",
			add: strings.TrimSuffix(webhook("namespaces", "UPDATE"), "---") +
				"  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}\n---" +
				role("r", "shop", "shop/web", "create pods@", "patch namespaces@"),
			want: []string{"Certain Namespace shop: PodCreate", "Certain Node n1: PodCreate NamespaceRelabel PodCreate"},
		},
	}
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
			compareSearch(t, cluster, result)
		})
	}
}

// compareSearch compares a result with that of the exhaustive search.
func compareSearch(t *testing.T, c *attackpaths.Cluster, result attackpaths.Result) {
	t.Helper()
	costs, err := graphOf(t, c).Costs(result.Start)
	if err != nil {
		t.Fatal(err)
	}
	want, ties := newNaive(c).from(result.Start)
	compareResult(t, result, costs, want, ties)
}

// clusterRole is a role that no attacker has.
func clusterRole(name string, rules ...string) string {
	text, _, _ := strings.Cut(role(name, "", "user nobody", rules...), "---")
	return text + "---"
}

// rootPod is a pod that is privileged and has no token.
func rootPod(namespace, name, node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {namespace: %s, name: %s}
spec: {nodeName: %s, containers: [{name: c, image: i, securityContext: {privileged: true}}]}
---`, namespace, name, node)
}

// webhook returns a webhook that may refuse writes of a resource.
func webhook(resource, operation string) string {
	return fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: checks}
webhooks:
- name: check.example.com
  rules: [{operations: [%s], apiGroups: ['*'], apiVersions: ['*'], resources: [%s]}]
---`, operation, resource)
}
