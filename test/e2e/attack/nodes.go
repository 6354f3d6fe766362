package attack

import "fmt"

const (
	ownNode     = "/api/v1/nodes/web-1"
	foreignNode = "/api/v1/nodes/pay-1"
)

func nodes() []Section {
	return []Section{ownNodeObject(), otherNodes()}
}

// change is a change of a Node object.
type change struct{ attack, patch string }

var nodeChanges = []change{
	{"give itself a label that steers workloads", `{metadata: {labels: {node-restriction.kubernetes.io/tier: vault}}}`},
	{"give itself a label of a team's restriction", `{metadata: {labels: {team.node-restriction.kubernetes.io/tier: vault}}}`},
	{"remove a label that keeps workloads away", `{metadata: {labels: {node-restriction.kubernetes.io/zone: null}}}`},
	{"become a control plane by label", `{metadata: {labels: {node-role.kubernetes.io/control-plane: ""}}}`},
	{"take a label of kubernetes.io that is not the kubelet's", `{metadata: {labels: {kubernetes.io/quarantine: "false"}}}`},
	{"take a label of k8s.io that is not the kubelet's", `{metadata: {labels: {example.k8s.io/pool: vault}}}`},
	{"change a label that kubelets set", `{metadata: {labels: {topology.kubernetes.io/zone: elsewhere}}}`},
	{"change a label outside of Kubernetes' domains", `{metadata: {labels: {pool: vault}}}`},
	{"lift its quarantine", `{spec: {taints: null}}`},
	{"weaken its quarantine", `{spec: {taints: [{key: quarantine, value: "false", effect: PreferNoSchedule}]}}`},
	{"add a taint", `{spec: {taints: [{key: quarantine, value: "true", effect: PreferNoSchedule}, {key: mine, effect: NoSchedule}]}}`},
	{
		"give itself an owner, to be deleted with it (CVE-2025-5187)",
		`{metadata: {ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: gone, uid: 00000000-0000-0000-0000-000000000000}]}}`,
	},
	{
		"have a config source, and so a view of a config map",
		`{spec: {configSource: {configMap: {namespace: stock, name: foreign-config, kubeletConfigKey: key}}}}`,
	},
	{"keep itself from being deleted, by a finalizer", `{metadata: {finalizers: [example.com/stay]}}`},
	{"annotate itself", `{metadata: {annotations: {example.com/note: here}}}`},
}

func ownNodeObject() Section {
	section := Section{
		Title: "The node's own Node object",
		About: "Each change is tried on the object and through its status subresource, whose stored part is fenced by the " +
			"API server and whose metadata is not.",
	}
	for _, c := range nodeChanges {
		section.Requests = append(section.Requests,
			patch(c.attack, ownNode, c.patch),
			patch("the same through status", ownNode+"/status", c.patch),
		)
	}
	restricted := `{op: add, path: /metadata/labels/node-restriction.kubernetes.io~1tier, value: vault}`
	applied := `{apiVersion: v1, kind: Node, metadata: {name: web-1, labels: {node-restriction.kubernetes.io/tier: vault}}}`
	owned := `{op: add, path: /metadata/ownerReferences, value: [{apiVersion: v1, kind: ConfigMap, name: gone, ` +
		`uid: 00000000-0000-0000-0000-000000000000}]}`
	section.Requests = append(section.Requests,
		patchAs(jsonPatch, "a label that steers workloads, by JSON patch", ownNode, "["+restricted+"]"),
		patchAs(jsonPatch, "the same through status", ownNode+"/status", "["+restricted+"]"),
		patchAs(strategicPatch, "by strategic merge patch", ownNode, `{metadata: {labels: {node-restriction.kubernetes.io/tier: vault}}}`),
		patchAs(strategicPatch, "the same through status", ownNode+"/status",
			`{metadata: {labels: {node-restriction.kubernetes.io/tier: vault}}}`),
		patchAs(applyPatch, "by server-side apply", ownNode+"?fieldManager=kubelet&force=true", applied),
		patchAs(applyPatch, "the same through status", ownNode+"/status?fieldManager=kubelet&force=true", applied),
		patchAs(strategicPatch, "lift its quarantine by strategic merge patch, through status", ownNode+"/status",
			`{spec: {taints: [{$patch: delete, key: quarantine, effect: PreferNoSchedule}]}}`),
		patchAs(jsonPatch, "lift its quarantine by JSON patch, through status", ownNode+"/status", `[{op: remove, path: /spec/taints}]`),
		patchAs(jsonPatch, "an owner by JSON patch, through status (CVE-2025-5187)", ownNode+"/status", "["+owned+"]"),
		replace("replace itself as it is", ownNode, ""),
		replace("replace its status as it is", ownNode+"/status", ""),
		patch("its phase", ownNode+"/status", `{status: {phase: Running}}`),
		patch("say that it has cards", ownNode+"/status", `{status: {capacity: {example.com/cards: "8"}}}`),
		patch("stop new pods from coming", ownNode, `{spec: {unschedulable: true}}`),
		patch("take a range of pod addresses", ownNode, `{spec: {podCIDR: 10.200.0.0/24, podCIDRs: [10.200.0.0/24]}}`),
		patch("change its provider ID", ownNode, `{spec: {providerID: "cloud://other"}}`),
		remove("delete itself, to come back with other labels (CVE-2025-5187)", ownNode),
		post("register once more", "/api/v1/nodes", `{apiVersion: v1, kind: Node, metadata: {name: web-1}}`),
		post("register once more with a label that steers workloads", "/api/v1/nodes",
			`{apiVersion: v1, kind: Node, metadata: {name: web-1, labels: {node-restriction.kubernetes.io/tier: vault}}}`),
		post("register once more as a control plane", "/api/v1/nodes",
			`{apiVersion: v1, kind: Node, metadata: {name: web-1, labels: {node-role.kubernetes.io/control-plane: ""}}}`),
		get("its own object", ownNode),
		get("its own object, watched", "/api/v1/nodes?fieldSelector=metadata.name%3Dweb-1&"+watchFor),
	)
	return section
}

func otherNodes() Section {
	section := Section{
		Title: "Other nodes",
		About: "A node neither sees nor writes other nodes, nor makes one of another name.",
		Requests: []Request{
			get("another node", foreignNode),
			get("all nodes", "/api/v1/nodes"),
			get("all nodes, watched", with("/api/v1/nodes", watchFor)),
			get("another node, by listing its name", "/api/v1/nodes?fieldSelector=metadata.name%3Dpay-1"),
			get("the nodes with a label", "/api/v1/nodes?labelSelector=pool%3Dpayments"),
			post("register under a free name", "/api/v1/nodes", `{apiVersion: v1, kind: Node, metadata: {name: web-99}}`),
			post("register under a generated name", "/api/v1/nodes", `{apiVersion: v1, kind: Node, metadata: {generateName: web-}}`),
			replace("replace another node", foreignNode, ""),
			replace("replace another node's status", foreignNode+"/status", ""),
			patch("say that another node is not ready", foreignNode+"/status",
				`{status: {conditions: [{type: Ready, status: "False", reason: Broken}]}}`),
			patch("keep new pods off another node", foreignNode, `{spec: {unschedulable: true}}`),
			remove("delete another node", foreignNode),
			remove("delete all nodes", "/api/v1/nodes"),
		},
	}
	for _, subresource := range []string{"proxy", "proxy/pods", "proxy/run/stock/foreign/app", "metrics", "log", "stats"} {
		for _, node := range []string{ownNode, foreignNode} {
			section.Requests = append(section.Requests,
				get(fmt.Sprintf("a kubelet's own interface through the API server (%s)", subresource), node+"/"+subresource))
		}
	}
	return section
}

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/"

func leases() Section {
	const own, foreign = leasePath + "kube-node-lease/leases/web-1", leasePath + "kube-node-lease/leases/pay-1"
	lease := func(namespace, metadata string) Request {
		return post("", leasePath+namespace+"/leases",
			fmt.Sprintf(`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: %s, spec: {holderIdentity: web-1}}`, metadata))
	}
	named := func(attack string, r Request) Request { r.Attack = attack; return r }
	return Section{
		Title: "Leases",
		About: "A node's lease says that it lives. Leases of kube-system elect leaders.",
		Requests: []Request{
			get("its own lease", own),
			patch("renew its own lease", own, `{spec: {renewTime: "2026-01-01T00:00:00.000000Z"}}`),
			patch("renew another node's lease, to hide that it is down", foreign, `{spec: {renewTime: "2026-01-01T00:00:00.000000Z"}}`),
			get("read another node's lease", foreign),
			remove("delete another node's lease, so that it counts as down", foreign),
			remove("delete its own lease", own),
			get("list all leases of nodes", leasePath+"kube-node-lease/leases"),
			get("watch all leases of nodes", with(leasePath+"kube-node-lease/leases", watchFor)),
			named("make the lease of a node that is not there", lease("kube-node-lease", "{name: web-99}")),
			named("make a lease of a generated name", lease("kube-node-lease", "{generateName: web-1}")),
			named("make its own lease once more", lease("kube-node-lease", "{name: web-1}")),
			named("make a lease of its own name elsewhere", lease("kube-system", "{name: web-1}")),
			named("become the controller manager's leader", lease("kube-system", "{name: kube-controller-manager}")),
			patch("take over as the scheduler's leader", leasePath+"kube-system/leases/kube-scheduler", `{spec: {holderIdentity: web-1}}`),
			{
				Attack: "make another node's lease by replacing it", Method: "PUT",
				Path: leasePath + "kube-node-lease/leases/web-99",
				Body: `{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: web-99}, spec: {holderIdentity: web-1}}`,
			},
			patchAs(applyPatch, "make another node's lease by applying it", leasePath+"kube-node-lease/leases/web-99?fieldManager=kubelet",
				`{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: web-99}, spec: {holderIdentity: web-1}}`),
		},
	}
}

func csiNodes() Section {
	const all = "/apis/storage.k8s.io/v1/csinodes"
	csiNode := func(name string) string {
		return fmt.Sprintf(`{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: %s}, spec: {drivers: []}}`, name)
	}
	return Section{
		Title: "CSINodes",
		About: "A CSINode says which storage drivers a node has.",
		Requests: []Request{
			get("its own", all+"/web-1"),
			get("another node's", all+"/pay-1"),
			get("all", all),
			post("make the CSINode of a node that is not there", all, csiNode("web-99")),
			post("make its own once more", all, csiNode("web-1")),
			post("make one of a generated name", all,
				`{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {generateName: web-1}, spec: {drivers: []}}`),
			patch("annotate its own", all+"/web-1", `{metadata: {annotations: {example.com/note: here}}}`),
			patch("take another node's drivers away", all+"/pay-1", `{spec: {drivers: []}}`),
			remove("delete another node's", all+"/pay-1"),
			remove("delete its own", all+"/web-1"),
			patch("write through its own status", all+"/web-1/status", `{spec: {drivers: []}}`),
			patch("write through another's status", all+"/pay-1/status", `{spec: {drivers: []}}`),
		},
	}
}
