package generate

import "math/rand/v2"

// Resource is a resource that questions ask for.
type Resource struct {
	Group, Resource string
	Namespaced      bool
	// OwnName is true where a node's own object has the node's name.
	OwnName bool
	// Actions are the verbs and subresources that are worth asking for.
	Actions []Action
	// AllowedSince is the first minor of Kubernetes 1 in which a node may do
	// anything at all with the resource, some feature gates on; 0 is never.
	AllowedSince int
	weight       int
}

// Action is a subresource ("" for none) with verbs.
type Action struct {
	Subresource string
	Verbs       []string
}

var (
	read  = []string{"get", "list", "watch"}
	write = []string{"create", "update", "patch", "delete"}
)

// Resources are all that questions ask for, those that nodes use and those
// that they may not.
var Resources = []Resource{
	{Resource: "secrets", Namespaced: true, Actions: []Action{{"", read}}, AllowedSince: 30, weight: 20},
	{Resource: "configmaps", Namespaced: true, Actions: []Action{{"", read}}, AllowedSince: 30, weight: 10},
	{
		Resource: "persistentvolumeclaims", Namespaced: true, AllowedSince: 30, weight: 10,
		Actions: []Action{{"", []string{"get"}}, {"status", []string{"get", "update", "patch"}}},
	},
	{Resource: "persistentvolumes", Actions: []Action{{"", read}, {"", []string{"get"}}}, AllowedSince: 30, weight: 8},
	{
		Resource: "serviceaccounts", Namespaced: true, AllowedSince: 30, weight: 10,
		Actions: []Action{{"", read}, {"token", []string{"create"}}},
	},
	{Resource: "pods", Namespaced: true, AllowedSince: 30, weight: 12, Actions: []Action{
		{"", read}, {"", read}, {"", write}, {"status", write}, {"eviction", []string{"create", "get"}},
	}},
	{Resource: "nodes", OwnName: true, Actions: []Action{{"", read}, {"", write}, {"status", write}}, AllowedSince: 30, weight: 8},
	{Resource: "services", Namespaced: true, Actions: []Action{{"", read}}, AllowedSince: 30, weight: 1},
	{Resource: "endpoints", Namespaced: true, Actions: []Action{{"", read}}, AllowedSince: 30, weight: 1},
	{Resource: "events", Namespaced: true, Actions: []Action{{"", write}}, AllowedSince: 30, weight: 1},
	{Resource: "namespaces", Actions: []Action{{"", read}}, weight: 1},
	{Group: "events.k8s.io", Resource: "events", Namespaced: true, Actions: []Action{{"", write}}, AllowedSince: 35, weight: 1},
	{
		Group: "coordination.k8s.io", Resource: "leases", Namespaced: true, OwnName: true, AllowedSince: 30, weight: 5,
		Actions: []Action{{"", read}, {"", write}, {"status", write}},
	},
	{
		Group: "storage.k8s.io", Resource: "csinodes", OwnName: true, AllowedSince: 30, weight: 5,
		Actions: []Action{{"", read}, {"", write}, {"status", []string{"get", "update", "patch", "create"}}},
	},
	{
		Group: "storage.k8s.io", Resource: "volumeattachments", Actions: []Action{{"", read}, {"", []string{"get"}}},
		AllowedSince: 30, weight: 5,
	},
	{Group: "storage.k8s.io", Resource: "csidrivers", Actions: []Action{{"", read}}, AllowedSince: 30, weight: 1},
	{Group: "storage.k8s.io", Resource: "storageclasses", Actions: []Action{{"", read}}, weight: 1},
	{
		Group: "resource.k8s.io", Resource: "resourceclaims", Namespaced: true, AllowedSince: 30, weight: 8,
		Actions: []Action{{"", []string{"get"}}, {"", read}, {"status", []string{"get", "patch"}}},
	},
	{
		Group: "resource.k8s.io", Resource: "resourceslices", AllowedSince: 30, weight: 8,
		Actions: []Action{{"", read}, {"", write}, {"", []string{"list", "watch", "deletecollection"}}},
	},
	{Group: "resource.k8s.io", Resource: "deviceclasses", Actions: []Action{{"", read}}, weight: 1},
	{
		Group: "certificates.k8s.io", Resource: "podcertificaterequests", Namespaced: true, AllowedSince: 34, weight: 6,
		Actions: []Action{{"", read}, {"", []string{"create", "delete"}}, {"status", []string{"get", "update"}}},
	},
	{
		Group: "certificates.k8s.io", Resource: "certificatesigningrequests", AllowedSince: 30, weight: 2,
		Actions: []Action{{"", read}, {"", write}, {"approval", []string{"update"}}, {"nodeclient", []string{"create"}}},
	},
	{
		Group: "certificates.k8s.io", Resource: "clustertrustbundles", Actions: []Action{{"", read}, {"", write}},
		AllowedSince: 30, weight: 2,
	},
	{Group: "node.k8s.io", Resource: "runtimeclasses", Actions: []Action{{"", read}}, AllowedSince: 30, weight: 1},
	{Group: "authentication.k8s.io", Resource: "tokenreviews", Actions: []Action{{"", write}}, AllowedSince: 30, weight: 1},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews", Actions: []Action{{"", write}}, AllowedSince: 30, weight: 1},
	{
		Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews", Namespaced: true,
		Actions: []Action{{"", write}}, AllowedSince: 30, weight: 1,
	},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews", Actions: []Action{{"", write}}, weight: 1},
	{Group: "apps", Resource: "daemonsets", Namespaced: true, Actions: []Action{{"", read}}, weight: 1},
	{Group: "*", Resource: "*", Actions: []Action{{"", []string{"*"}}}, weight: 1},
}

var (
	verbs = []string{
		"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection",
		"*", "", "GET", "bind", "impersonate", "request-serviceaccounts-token-audience",
	}
	subresources = []string{
		"status", "token", "eviction", "binding", "log", "exec", "proxy", "scale", "finalize", "Status", "*", "status/x",
	}
	groups = []string{
		"", "core", "v1", "*", "storage.k8s.io", "coordination.k8s.io", "resource.k8s.io", "certificates.k8s.io",
		"events.k8s.io", "authentication.k8s.io", "node.k8s.io", "resource.k8s.io/v1",
	}
)

// drawResource draws a resource, those with many rules more often.
func drawResource(r *rand.Rand) Resource {
	total := 0
	for _, kind := range Resources {
		total += kind.weight
	}
	n := r.IntN(total)
	for _, kind := range Resources {
		if n -= kind.weight; n < 0 {
			return kind
		}
	}
	return Resources[0]
}
