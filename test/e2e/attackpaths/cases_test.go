package attackpaths

import (
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

const (
	inRBAC  = "@rbac.authorization.k8s.io"
	inCerts = "@certificates.k8s.io"
	inAdmis = "@admissionregistration.k8s.io"
)

var (
	nodeWeb1 = holding{Kind: attackpaths.Node, Name: web1}
	podDB1   = holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "db-1"}
	podDB    = podOf("shop", "db-1", web1, "db")
)

// cases are all cases. The first word is the technique that a case is about.
var cases = slices.Concat(nodeCases, secretCases, identityCases, podCases, workloadCases, hostCases, roleCases, certificateCases,
	possibleCases, chainCases, constrainedCases, limitedCases, impersonationChainCases, policyCases, endedCases)

func TestCases(t *testing.T) {
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) { c.run(t, newest) })
	}
}

// TestEveryTechniqueHasACase takes the first words of the rules.
func TestEveryTechniqueHasACase(t *testing.T) {
	for _, technique := range attackpaths.Techniques() {
		if !slices.ContainsFunc(cases, func(c testCase) bool {
			return c.about() == string(technique.Code) && len(c.want)+len(c.possible) > 0
		}) {
			t.Errorf("no case is about %s", technique.Code)
		}
	}
	if len(cases) < 60 {
		t.Errorf("there are %d cases", len(cases))
	}
}

var nodeCases = []testCase{
	{
		rule: "PodOnNode: a node controls its pods", start: nodeWeb1, add: bare(podDB),
		want: []string{"Pod shop/db-1"},
	},
	{
		rule: "PodTokenOnNode: a token that is mounted into a pod", start: nodeWeb1, add: podDB,
		want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
	},
	{rule: "PodTokenOnNode: not of a pod on another node", start: nodeWeb1, add: podOf("shop", "db-1", pay1, "db")},
	{
		rule: "PodTokenOnNode: a token for another audience is not certain", start: nodeWeb1,
		add:  replaced(podDB, "{path: token}", "{path: token, audience: vault}"),
		want: []string{"Pod shop/db-1"},
	},
	{
		rule: "TokenOfPodOnNode: the credential alone", start: holding{Kind: attackpaths.User, Name: "system:node:web-1"}, add: podDB,
		want: []string{"ServiceAccount shop/db"},
	},
	{
		rule:  "TokenOfPodOnNode: not for a pod without a token",
		start: holding{Kind: attackpaths.User, Name: "system:node:web-1"}, add: bare(podDB),
	},
	{
		rule:  "TokenOfPodOnNode: not for a user without the group of nodes",
		start: holding{Kind: attackpaths.User, Name: "system:node:web-1"}, groups: []string{"ops"}, add: podDB,
	},
	{
		rule: "SecretOnNode: a pod mounts the secret", start: nodeWeb1,
		add:  opaque("shop", "key") + podOf("shop", "db-1", web1, "db", "  - {name: key, secret: {secretName: key}}"),
		want: []string{"Pod shop/db-1", "Secret shop/key", "ServiceAccount shop/db"},
	},
	{
		rule: "SecretOnNode: an image pull secret", start: nodeWeb1,
		add:  opaque("shop", "key") + podOf("shop", "db-1", web1, "db", "  imagePullSecrets: [{name: key}]"),
		want: []string{"Pod shop/db-1", "Secret shop/key", "ServiceAccount shop/db"},
	},
	{
		rule: "SecretOnNode: the secret of a volume", start: holding{Kind: attackpaths.Node, Name: "n1"},
		add: nodeOf("n1") + opaque("store", "key") + namespace("store", "") + driverVolume +
			podOf("shop", "db-1", "n1", "db", "  - {name: data, persistentVolumeClaim: {claimName: data}}"),
		want: []string{"Pod shop/db-1", "Secret store/key", "ServiceAccount shop/db"},
	},
	{
		rule: "SecretOnNode: not of a pod on another node", start: nodeWeb1,
		add: opaque("shop", "key") + podOf("shop", "db-1", pay1, "db", "  - {name: key, secret: {secretName: key}}"),
	},
	{rule: "PodToken: a pod has its token", start: podDB1, add: podDB, want: []string{"ServiceAccount shop/db"}},
	{rule: "PodToken: not without a mount", start: podDB1, add: bare(podDB)},
	{
		rule: "PodSecret: what is mounted, not what pulls the image", start: podDB1,
		add: opaque("shop", "key") + opaque("shop", "pull") +
			podOf("shop", "db-1", web1, "db", "  - {name: key, secret: {secretName: key}}", "  imagePullSecrets: [{name: pull}]"),
		want: []string{"Secret shop/key", "ServiceAccount shop/db"},
	},
	{
		rule: "ControlPlaneNode: a node with kube-apiserver", start: holding{Kind: attackpaths.Node, Name: "n1"},
		add:  nodeOf("n1") + mirrorPod("kube-apiserver-n1", "n1"),
		want: []string{"ClusterAdmin", "Pod kube-system/kube-apiserver-n1"},
	},
	{
		rule: "ControlPlaneNode: a node with kube-scheduler", start: holding{Kind: attackpaths.Node, Name: "n1"}, some: true,
		add:  nodeOf("n1") + mirrorPod("kube-scheduler-n1", "n1"),
		want: []string{"Pod kube-system/kube-scheduler-n1", "User system:kube-scheduler"},
	},
	{
		rule: "ControlPlaneNode: not a static pod of another name", start: holding{Kind: attackpaths.Node, Name: "n1"},
		add:  nodeOf("n1") + mirrorPod("proxy-n1", "n1"),
		want: []string{"Pod kube-system/proxy-n1"},
	},
}

var secretCases = []testCase{
	{
		rule: "SecretRead: get by name",
		add:  opaque("shop", "key") + opaque("shop", "other") + roleOf("r", "shop", "shop/web", "get secrets@ key"),
		want: []string{"Secret shop/key"},
	},
	{rule: "SecretRead: not by the name of another", add: opaque("shop", "key") + roleOf("r", "shop", "shop/web", "get secrets@ keys")},
	{
		rule: "SecretRead: list", add: opaque("shop", "key") + roleOf("r", "shop", "shop/web", "list secrets@"),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "SecretRead: list by name",
		add:  opaque("shop", "key") + opaque("shop", "other") + roleOf("r", "shop", "shop/web", "list secrets@ key"),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "SecretRead: watch", add: opaque("shop", "key") + roleOf("r", "shop", "shop/web", "watch secrets@"),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "SecretRead: a cluster role counts in the namespace of its binding",
		add: opaque("shop", "key") + opaque("store", "key") + namespace("store", "") + clusterRole("reader", "get secrets@") +
			binding("ClusterRole", "reader", "store", "b", "shop/web"),
		want: []string{"Secret store/key"},
	},
	{
		rule: "SecretRead: a patch that changes nothing, by name",
		add:  opaque("shop", "key") + opaque("shop", "other") + roleOf("r", "shop", "shop/web", "patch secrets@ key"),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "SecretRead: a deletion as a dry run, by name",
		add:  opaque("shop", "key") + opaque("shop", "other") + roleOf("r", "shop", "shop/web", "delete secrets@ key"),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "SecretRead: a deletion of all as a dry run",
		add:  opaque("shop", "key") + roleOf("r", "shop", "shop/web", "deletecollection secrets@"),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "SecretRead: not a deletion of all by a rule with a name",
		add:  opaque("shop", "key") + roleOf("r", "shop", "shop/web", "deletecollection secrets@ key"),
	},
	{
		rule: "SecretRead: not a right to create or update secrets",
		add:  opaque("shop", "key") + roleOf("r", "shop", "shop/web", "create,update secrets@"),
	},
	{
		rule: "ServiceAccountTokenSecret: create one and patch it", add: roleOf("r", "shop", "shop/web", "create,patch secrets@"),
		want: []string{"ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "ServiceAccountTokenSecret: create one and delete it, as a dry run",
		add:  roleOf("r", "shop", "shop/web", "create secrets@", "delete secrets@ new"),
		want: []string{"ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "ServiceAccountTokenSecret: the content of one",
		add:  tokenSecret("shop", "token", "db") + roleOf("r", "shop", "shop/web", "get secrets@ token"),
		want: []string{"Secret shop/token", "ServiceAccount shop/db"},
	},
	{
		rule: "ServiceAccountTokenSecret: create one and read it", add: roleOf("r", "shop", "shop/web", "create,get secrets@"),
		want: []string{"ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "ServiceAccountTokenSecret: read it by its name", add: roleOf("r", "shop", "shop/web", "create secrets@", "get secrets@ new"),
		want: []string{"ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{rule: "ServiceAccountTokenSecret: not without reading", add: roleOf("r", "shop", "shop/web", "create secrets@")},
	{rule: "ServiceAccountTokenSecret: not without creating", add: roleOf("r", "shop", "shop/web", "get,list,watch secrets@")},
	{
		rule: "ServiceAccountTokenSecret: one creates, another reads",
		add: roleOf("r", "shop", "shop/web", "create secrets@", "create serviceaccounts/token@ db") +
			roleOf("s", "shop", "shop/db", "list secrets@"),
		want: []string{"ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule:     "BootstrapToken: the content of one",
		add:      bootstrapSecret + roleOf("r", "kube-system", "shop/web", "get secrets@ bootstrap-token-abcdef"),
		want:     []string{"Secret kube-system/bootstrap-token-abcdef"},
		possible: []string{"User system:bootstrap:abcdef", "Group system:bootstrappers", "User system:node:web-1"},
	},
	{
		rule: "BootstrapToken: create one", add: roleOf("r", "kube-system", "shop/web", "create secrets@"),
		possible: []string{"Group system:bootstrappers", "User system:node:web-1"},
	},
	{rule: "BootstrapToken: not in another namespace", add: roleOf("r", "shop", "shop/web", "create secrets@")},
}
