package attackpaths

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

var userAlice = holding{Kind: attackpaths.User, Name: "alice"}

var identityCases = []testCase{
	{rule: "Masters: an account without rights is not"},
	{rule: "Masters: the group system:masters", start: userAlice, groups: []string{"system:masters"}, want: []string{"ClusterAdmin"}},
	{rule: "Masters: every verb on everything", add: roleOf("r", "", "shop/web", "* *@*"), want: []string{"ClusterAdmin"}},
	{
		rule: "Masters: not every verb on everything in one namespace",
		add: namespace("store", enforceLabel+": restricted") + clusterRole("every", "* *@*") +
			binding("ClusterRole", "every", "store", "b", "shop/web"),
		want: []string{"Namespace store", "Node pay-1", "Node web-1", "ServiceAccount store/default"},
	},
	{
		rule: "TokenRequest: every account of a namespace", add: roleOf("r", "shop", "shop/web", "create serviceaccounts/token@"),
		want: []string{"ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "TokenRequest: by name", add: roleOf("r", "shop", "shop/web", "create serviceaccounts/token@ db"),
		want: []string{"ServiceAccount shop/db"},
	},
	{rule: "TokenRequest: not by the name of another", add: roleOf("r", "shop", "shop/web", "create serviceaccounts/token@ dbs")},
	{rule: "TokenRequest: not by a right to create accounts", add: roleOf("r", "shop", "shop/web", "create serviceaccounts@")},
	{
		rule: "Impersonate: a service account", add: roleOf("r", "shop", "shop/web", "impersonate serviceaccounts@ db"),
		want: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "Impersonate: not one of another namespace",
		add:  account("store", "db") + namespace("store", "") + roleOf("r", "shop", "shop/web", "impersonate serviceaccounts@ other"),
	},
	{
		rule: "Impersonate: a user",
		add:  roleOf("r", "", "shop/web", "impersonate users@ alice") + roleOf("a", "shop", "user alice", "get configmaps@"),
		want: []string{"User alice"},
	},
	{
		rule: "Impersonate: not a user of another name",
		add:  roleOf("r", "", "shop/web", "impersonate users@ bob") + roleOf("a", "shop", "user alice", "get configmaps@"),
	},
	{
		rule: "Impersonate: a group with a user", add: roleOf("r", "", "shop/web", "impersonate users@ nobody", "impersonate groups@ ops") +
			roleOf("a", "shop", "group ops", "create serviceaccounts/token@ db"),
		want: []string{"Group ops", "ServiceAccount shop/db"},
	},
	{
		rule: "Impersonate: a group with a service account",
		add: roleOf("r", "", "shop/web", "impersonate groups@ ops") +
			roleOf("s", "shop", "shop/web", "impersonate serviceaccounts@ default") +
			roleOf("a", "shop", "group ops", "create serviceaccounts/token@ db"),
		want: []string{"Group ops", "ServiceAccount shop/db", "ServiceAccount shop/default"},
	},
	{
		rule: "Impersonate: not a group alone", add: roleOf("r", "", "shop/web", "impersonate groups@ ops") +
			roleOf("a", "shop", "group ops", "create serviceaccounts/token@ db"),
	},
	{
		rule: "Impersonate: what a user and a group may do together",
		add: roleOf("r", "", "shop/web", "impersonate users@ alice", "impersonate groups@") + withKey + someReader +
			roleOf("a", "shop", "user alice", "bind clusterroles"+inRBAC+" reader") +
			roleOf("g", "shop", "group ops", "create rolebindings"+inRBAC),
		want: []string{"Group ops", "Secret shop/key", "User alice"}, some: true,
	},
	{
		rule: "Impersonate: system:masters",
		add:  roleOf("r", "", "shop/web", "impersonate users@ nobody", "impersonate groups@ system:masters"),
		want: []string{"ClusterAdmin", "Group system:masters"},
	},
	{
		rule: "Impersonate: a node", add: opaque("shop", "key") +
			podOf("shop", "db-1", web1, "db", "  - {name: key, secret: {secretName: key}}") +
			roleOf("r", "", "shop/web", "impersonate users@ system:node:web-1", "impersonate groups@ system:nodes"),
		want: []string{"Group system:nodes", "Secret shop/key", "ServiceAccount shop/db", "User system:node:web-1"},
	},
	{
		rule: "TokenRequest: a right of the group of a namespace's accounts",
		add:  roleOf("r", "shop", "group system:serviceaccounts:shop", "create serviceaccounts/token@ db"),
		want: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "TokenRequest: a right of all accounts",
		add:  roleOf("r", "shop", "group system:serviceaccounts", "create serviceaccounts/token@ db"),
		want: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "TokenRequest: a right of everybody who is authenticated", start: userAlice,
		add:    roleOf("r", "shop", "group system:authenticated", "create serviceaccounts/token@ db"),
		want:   []string{"ServiceAccount shop/db"},
		groups: []string{"ops"},
	},
	{
		rule: "TokenRequest: not a right of the accounts of another namespace",
		add:  roleOf("r", "shop", "group system:serviceaccounts:store", "create serviceaccounts/token@ db"),
	},
	{
		rule: "TokenRequest: a right of a user's group", start: userAlice, groups: []string{"ops"},
		add: roleOf("r", "shop", "group ops", "create serviceaccounts/token@ db"), want: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "TokenRequest: not a right of another group", start: userAlice, groups: []string{"dev"},
		add: roleOf("r", "shop", "group ops", "create serviceaccounts/token@ db"),
	},
}

// identities are the resources of constrained impersonation.
const identities = "@authentication.k8s.io"

// everyVerb has the verbs of all requests on objects while a mode is used.
func everyVerb(mode string) string {
	var all []string
	for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		all = append(all, "impersonate-on:"+mode+":"+verb)
	}
	return strings.Join(all, ",") + " *@*"
}

var constrainedCases = []testCase{
	{
		rule: "Impersonate: a user for every request, in the mode user-info",
		add: roleOf("a", "shop", "user alice", "create serviceaccounts/token@ db") +
			roleOf("r", "", "shop/web", "impersonate:user-info users"+identities+" alice", everyVerb("user-info")),
		want: []string{"ServiceAccount shop/db", "User alice"},
	},
	{
		rule: "Impersonate: not a user without a right to the request",
		add: roleOf("a", "shop", "user alice", "create serviceaccounts/token@ db") +
			roleOf("r", "", "shop/web", "impersonate:user-info users"+identities+" alice"),
	},
	{
		rule: "Impersonate: an account for every request, in the mode serviceaccount",
		add: roleOf("s", "shop", "shop/web", "impersonate:serviceaccount serviceaccounts"+identities+" db") +
			roleOf("r", "", "shop/web", everyVerb("serviceaccount")),
		want: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "Impersonate: a node for every request, in the mode arbitrary-node", add: podDB +
			roleOf("r", "", "shop/web", "impersonate:arbitrary-node nodes"+identities+" web-1", everyVerb("arbitrary-node")),
		want: []string{"ServiceAccount shop/db", "User system:node:web-1"},
	},
	{
		rule:  "Impersonate: the node of the pod, in the mode associated-node",
		start: holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "agent"},
		add: podDB + podOf("shop", "agent", web1, "web") + podOf("shop", "far", pay1, "default") +
			roleOf("r", "", "shop/web", "impersonate:associated-node nodes"+identities, everyVerb("associated-node")),
		want: []string{"ServiceAccount shop/db", "ServiceAccount shop/web", "User system:node:web-1"},
	},
}

var chainCases = []testCase{
	{
		rule: "PodExec: then the pod's account, a secret with a token, and everything",
		add: podDB + namespace("admin", "") + account("admin", "root") + tokenSecret("admin", "root", "root") +
			roleOf("e", "shop", "shop/web", "create pods/exec@ db-1") + roleOf("g", "admin", "shop/db", "get secrets@ root") +
			roleOf("all", "", "admin/root", "* *@*"),
		want: []string{"ClusterAdmin", "Pod shop/db-1", "Secret admin/root", "ServiceAccount admin/root", "ServiceAccount shop/db"},
	},
	{
		rule: "PodCreate: then a node, its pods and their secrets", some: true,
		add: namespace("tools", "") + opaque("shop", "key") +
			podOf("shop", "db-1", pay1, "db", "  - {name: key, secret: {secretName: key}}") +
			roleOf("c", "tools", "shop/web", "create deployments@apps"),
		want: []string{
			"Namespace tools", "Node pay-1", "Node web-1", "Pod shop/db-1", "Secret shop/key", "ServiceAccount shop/db",
			"ServiceAccount tools/default",
		},
	},
	{
		rule: "Impersonate: then a role, pods and their accounts",
		add: namespace("store", enforceLabel+": baseline") + account("store", "till") + clusterRole("maker", "create pods@") +
			roleOf("i", "shop", "shop/web", "impersonate serviceaccounts@ db") +
			roleOf("b", "store", "shop/db", "bind clusterroles"+inRBAC+" maker", "create rolebindings"+inRBAC) +
			roleOf("t", "shop", "store/till", "get secrets@ key") + opaque("shop", "key"),
		want: []string{
			"Namespace store", "Secret shop/key", "ServiceAccount shop/db", "ServiceAccount store/default", "ServiceAccount store/till",
		},
	},
	{
		rule: "ApproveCertificate: then the node's pods", some: true,
		add: podDB + roleOf("r", "", "shop/web", "create,get certificatesigningrequests"+inCerts,
			"update certificatesigningrequests/approval"+inCerts, "approve signers"+inCerts+" "+kubeletSigner) +
			roleOf("k", "shop", "shop/db", "get secrets@ key") + opaque("shop", "key"),
		want: []string{"Secret shop/key", "ServiceAccount shop/db", "User system:node:web-1"},
	},
	{
		rule: "SecretRead: a chain ends where a link is missing",
		add: podDB + opaque("store", "key") + namespace("store", "") + roleOf("e", "shop", "shop/web", "create pods/exec@ db-1") +
			roleOf("g", "store", "shop/default", "get secrets@ key"),
		want: []string{"Pod shop/db-1", "ServiceAccount shop/db"},
	},
}
