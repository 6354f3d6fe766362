package attackpaths

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

const (
	inRBAC  = "@rbac.authorization.k8s.io"
	inCerts = "@certificates.k8s.io"
	inAdmin = "@admissionregistration.k8s.io"
)

var (
	nodeWeb1 = holding{Kind: attackpaths.Node, Name: web1}
	podDB    = podOf("shop", "db-1", web1, "db")
)

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) { c.run(t, newest) })
	}
}

var cases = []testCase{
	{rule: "an account without rights has nothing"},
	{
		rule: "PodOnNode and PodTokenOnNode: the token of a pod lies on its node", start: nodeWeb1, add: podDB,
		want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
	},
	{rule: "PodTokenOnNode: not on another node", start: nodeWeb1, add: podOf("shop", "db-1", pay1, "db")},
	{
		rule:  "TokenOfPodOnNode: the node's credential asks for the token of a pod",
		start: holding{Kind: attackpaths.User, Name: "system:node:web-1"}, add: podDB,
		want: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "SecretOnNode: a pod on the node mounts the secret", start: nodeWeb1,
		add:  opaque("shop", "key") + podOf("shop", "db-1", web1, "db", "  - {name: key, secret: {secretName: key}}"),
		want: []string{"Pod shop/db-1", "Secret shop/key", "ServiceAccount shop/db"},
	},
	{
		rule: "PodExec, PodToken: exec by name", add: podDB + roleOf("r", "shop", "shop/web", "create pods/exec@ db-1"),
		want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
	},
	{rule: "PodExec: the name of another pod", add: podDB + roleOf("r", "shop", "shop/web", "create pods/exec@ db-2")},
	{
		rule: "PodCreate: pods use the accounts and secrets of their namespace",
		add:  opaque("shop", "key") + roleOf("r", "shop", "shop/web", "create pods@"),
		want: []string{"Namespace shop", "Secret shop/key", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "NamespaceRelabel: Pod Security is turned off",
		add:  roleOf("r", "shop", "shop/web", "create pods@", "patch namespaces@ shop"),
		want: []string{"Namespace shop", "Node pay-1", "Node web-1", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "BindRole: bind on cluster-admin",
		add:  roleOf("r", "", "shop/web", "bind clusterroles"+inRBAC+" cluster-admin", "create clusterrolebindings"+inRBAC),
		want: []string{"ClusterAdmin"},
	},
	{
		rule: "EscalateRole: a role that is bound", add: roleOf("r", "", "shop/web", "escalate,update clusterroles"+inRBAC+" r"),
		want: []string{"ClusterAdmin"},
	},
	{
		rule: "ApproveCertificate: of any user", add: roleOf("r", "", "shop/web", "create,get certificatesigningrequests"+inCerts,
			"update certificatesigningrequests/approval"+inCerts, "approve signers"+inCerts+" kubernetes.io/kube-apiserver-client"),
		want: []string{"ClusterAdmin"},
	},
}
