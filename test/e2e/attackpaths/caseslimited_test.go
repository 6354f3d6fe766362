package attackpaths

import "github.com/node-authorizer/node-authorizer/attackpaths"

// onlyOn are the verbs that are allowed on what a request is about, while a mode is used.
func onlyOn(mode, verb, resource string) string {
	return "impersonate-on:" + mode + ":" + verb + " " + resource
}

const (
	asUser    = "impersonate:user-info users" + identities
	asGroup   = "impersonate:user-info groups" + identities
	asAccount = "impersonate:serviceaccount serviceaccounts" + identities
	asNode    = "impersonate:arbitrary-node nodes" + identities
	asOwnNode = "impersonate:associated-node nodes" + identities
)

// twoSecrets are secrets that alice, the group ops and the account db may read.
var twoSecrets = opaque("shop", "key") + opaque("shop", "other") + roleOf("a", "shop", "user alice", "get,list secrets@") +
	roleOf("g", "shop", "group ops", "get secrets@") + roleOf("d", "shop", "shop/db", "get secrets@")

// mountedKey is a pod on web-1 that mounts a secret.
var mountedKey = opaque("shop", "key") + podOf("shop", "db-1", web1, "db", "  - {name: key, secret: {secretName: key}}")

var limitedCases = []testCase{
	{
		rule: "Impersonate: a user for one request on one secret",
		add:  twoSecrets + roleOf("r", "", "shop/web", asUser+" alice", onlyOn("user-info", "get", "secrets@ key")),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "Impersonate: every user for requests in one namespace",
		add: twoSecrets + namespace("store", "") + opaque("store", "key") + roleOf("b", "store", "user alice", "get secrets@") +
			roleOf("r", "", "shop/web", asUser) + roleOf("s", "store", "shop/web", onlyOn("user-info", "get", "secrets@")),
		want: []string{"Secret store/key"},
	},
	{
		rule: "Impersonate: a list of secrets as a user",
		add:  twoSecrets + roleOf("r", "", "shop/web", asUser+" alice", onlyOn("user-info", "list", "secrets@")),
		want: []string{"Secret shop/key", "Secret shop/other"},
	},
	{
		rule: "Impersonate: not a user for requests that the user may not make",
		add:  twoSecrets + roleOf("r", "", "shop/web", asUser+" alice", onlyOn("user-info", "watch", "secrets@")),
	},
	{
		rule: "Impersonate: not a user without a right to the request", add: twoSecrets + roleOf("r", "", "shop/web", asUser+" alice"),
	},
	{
		rule: "Impersonate: not a right to requests without a user",
		add:  twoSecrets + roleOf("r", "", "shop/web", onlyOn("user-info", "get", "secrets@")),
	},
	{
		rule: "Impersonate: not another user",
		add:  twoSecrets + roleOf("r", "", "shop/web", asUser+" bob", onlyOn("user-info", "get", "secrets@")),
	},
	{
		rule: "Impersonate: not requests on another secret",
		add:  twoSecrets + roleOf("r", "", "shop/web", asUser+" alice", onlyOn("user-info", "get", "secrets@ keys")),
	},
	{
		rule: "Impersonate: not by the verbs of another mode",
		add:  twoSecrets + roleOf("r", "", "shop/web", asUser+" alice", onlyOn("serviceaccount", "get", "secrets@")),
	},
	{
		rule: "Impersonate: a group for one request, with a user that has no rights",
		add:  twoSecrets + roleOf("r", "", "shop/web", asUser+" nobody", asGroup+" ops", onlyOn("user-info", "get", "secrets@ key")),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "Impersonate: four groups at once by the name *",
		add:  twoSecrets + roleOf("r", "", "shop/web", asUser+" nobody", asGroup+" '*'", onlyOn("user-info", "get", "secrets@ key")),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "Impersonate: not a group for one request without a user",
		add:  twoSecrets + roleOf("r", "", "shop/web", asGroup+" ops", onlyOn("user-info", "get", "secrets@")),
	},
	{
		rule: "Impersonate: not system:masters for any request",
		add: twoSecrets + roleOf("r", "", "shop/web", asUser+" nobody", asGroup+" system:masters",
			onlyOn("user-info", "get", "secrets@")),
	},
	{
		rule: "Impersonate: an account for one request, in the mode serviceaccount",
		add:  twoSecrets + roleOf("r", "shop", "shop/web", asAccount+" db", onlyOn("serviceaccount", "get", "secrets@ key")),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "Impersonate: not an account without a right to the request",
		add:  twoSecrets + roleOf("r", "shop", "shop/web", asAccount+" db"),
	},
	{
		rule: "Impersonate: not an account by a right to requests",
		add:  twoSecrets + roleOf("r", "shop", "shop/web", onlyOn("serviceaccount", "get", "secrets@")),
	},
	{
		rule: "Impersonate: not an account of another name",
		add:  twoSecrets + roleOf("r", "shop", "shop/web", asAccount+" default", onlyOn("serviceaccount", "get", "secrets@")),
	},
	{
		rule: "Impersonate: a node for one secret, in the mode arbitrary-node",
		add:  mountedKey + roleOf("r", "", "shop/web", asNode+" web-1", onlyOn("arbitrary-node", "get", "secrets@")),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "Impersonate: every node for tokens",
		add:  mountedKey + roleOf("r", "", "shop/web", asNode, onlyOn("arbitrary-node", "create", "serviceaccounts/token@")),
		want: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "Impersonate: not a node on which the pod does not run",
		add:  mountedKey + roleOf("r", "", "shop/web", asNode+" pay-1", onlyOn("arbitrary-node", "get", "secrets@")),
	},
	{rule: "Impersonate: not a node without a right to the request", add: mountedKey + roleOf("r", "", "shop/web", asNode+" web-1")},
	{
		rule: "Impersonate: not a node for requests on another secret",
		add:  mountedKey + roleOf("r", "", "shop/web", asNode+" web-1", onlyOn("arbitrary-node", "get", "secrets@ keys")),
	},
	{
		rule: "Impersonate: the node of the pod for its secrets, in the mode associated-node", start: podAgent,
		add:  mountedKey + agents + roleOf("r", "", "shop/web", asOwnNode, onlyOn("associated-node", "get", "secrets@")),
		want: []string{"Secret shop/key", "ServiceAccount shop/web"},
	},
	{
		rule: "Impersonate: not the node of another pod", start: podAgent,
		add: replaced(mountedKey, `nodeName: "web-1"`, `nodeName: "pay-1"`) + agents +
			roleOf("r", "", "shop/web", asOwnNode, onlyOn("associated-node", "get", "secrets@")),
		want: []string{"ServiceAccount shop/web"},
	},
	{
		rule: "Impersonate: not the node of the pod by its name", start: podAgent,
		add:  mountedKey + agents + roleOf("r", "", "shop/web", asOwnNode+" web-1", onlyOn("associated-node", "get", "secrets@")),
		want: []string{"ServiceAccount shop/web"},
	},
	{
		rule: "Impersonate: not the node of the pod without a right to the request", start: podAgent,
		add:  mountedKey + agents + roleOf("r", "", "shop/web", asOwnNode),
		want: []string{"ServiceAccount shop/web"},
	},
	{
		rule: "Impersonate: a node with which a requested token is associated",
		add: mountedKey + roleOf("t", "shop", "shop/web", "create serviceaccounts/token@ default") +
			roleOf("r", "", "shop/default", asOwnNode+" '*'", onlyOn("associated-node", "get", "secrets@")),
		want: []string{"Secret shop/key", "ServiceAccount shop/default"},
	},
	{
		rule: "Impersonate: what is checked of the impersonated user alone",
		add: opaque("shop", "key") + clusterRole("reader", "get secrets@") +
			roleOf("b", "", "user bob", "create clusterrolebindings"+inRBAC, "bind clusterroles"+inRBAC+" reader") +
			roleOf("r", "", "shop/web", asUser+" bob", onlyOn("user-info", "create", "clusterrolebindings"+inRBAC)),
		want: []string{"Secret shop/key"},
	},
	{
		rule: "Impersonate: a request for a certificate by a user whose requests are approved by themselves", some: true,
		add: roleOf("b", "", "user bob", "create,get certificatesigningrequests"+inCerts,
			"create certificatesigningrequests/nodeclient"+inCerts) +
			roleOf("r", "", "shop/web", asUser+" bob", onlyOn("user-info", "create", "certificatesigningrequests"+inCerts),
				onlyOn("user-info", "get", "certificatesigningrequests"+inCerts)),
		want: []string{"User system:node:web-1"},
	},
}

var (
	podAgent = holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "agent"}
	agents   = podOf("shop", "agent", web1, "web") + podOf("shop", "far", pay1, "default")
)
