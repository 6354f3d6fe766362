package attackpaths

import (
	"cmp"
	"maps"
	"slices"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// DaemonSet is what a DaemonSet gives to each node on which it has a pod.
type DaemonSet struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Nodes are those on which the DaemonSet has a pod, sorted.
	Nodes []string `json:"nodes"`
	// Through is the service account or secret that the pods bring to the nodes, and Path
	// leads from it to cluster-admin. Both are empty if ClusterAdmin is No.
	Through      Holding   `json:"through"`
	ClusterAdmin Certainty `json:"clusterAdmin"`
	Path         []Step    `json:"path,omitempty"`
}

// DaemonSets lists the DaemonSets that have pods on nodes, by namespace and name, and whether
// the service account and the secrets of such a pod lead to cluster-admin from any node. The
// rights that a pod has over its own host do not count: a node has them anyway.
func (g *Graph) DaemonSets() []DaemonSet {
	pods := map[inventory.Name][]int32{}
	for i, p := range g.pods {
		if p.Workload.Resource == "daemonsets" && p.Node != "" {
			name := inventory.Name{Namespace: p.Namespace, Name: p.Workload.Name}
			pods[name] = append(pods[name], int32(i))
		}
	}
	names := slices.SortedFunc(maps.Keys(pods), func(a, b inventory.Name) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	certain, possible := g.solver(false), g.solver(true)
	defer g.release(certain)
	defer g.release(possible)
	all := make([]DaemonSet, len(names))
	for i, name := range names {
		all[i] = DaemonSet{Namespace: name.Namespace, Name: name.Name}
		var templates []int32 // one pod of each template: while a DaemonSet is rolled out, its pods differ
		seen := map[*inventory.Template]bool{}
		for _, pod := range pods[name] {
			all[i].Nodes = append(all[i].Nodes, g.pods[pod].Node)
			if t := g.pods[pod].Template; !seen[t] {
				seen[t], templates = true, append(templates, pod)
			}
		}
		slices.Sort(all[i].Nodes)
		all[i].Nodes = slices.Compact(all[i].Nodes)
		all[i].reach(g, templates, certain, possible)
	}
	return all
}

// reach finds the shortest path from what pods bring to their nodes; a certain one comes first.
func (d *DaemonSet) reach(g *Graph, pods []int32, certain, possible *solver) {
	admin := g.index[key{kind: isClusterAdmin}]
	for _, s := range [...]*solver{certain, possible} {
		var brought []vertex
		for _, pod := range pods {
			brought = append(brought, g.broughtByPod(pod, s.possible)...)
		}
		slices.Sort(brought)
		best := int32(-1)
		for _, from := range slices.Compact(brought) {
			s.solveUntil(from, admin)
			if !s.has(admin) || best >= 0 && s.cost[admin] >= best {
				continue
			}
			best = s.cost[admin]
			d.Through, _ = g.keys[from].holding()
			d.ClusterAdmin, d.Path = certainty(certain, possible, admin), s.path(admin)
		}
		if best >= 0 {
			return
		}
	}
}

// broughtByPod are the service accounts and secrets that a node holds because of a pod.
func (g *Graph) broughtByPod(pod int32, possible bool) []vertex {
	p := g.pods[pod]
	node := g.index[key{kind: isNode, name: p.Node}]
	from := []vertex{node, g.index[key{kind: isPod, namespace: p.Namespace, name: p.Name.Name}]}
	for _, e := range g.out[node] {
		if g.keys[e.to].kind == isNodeUser {
			from = slices.Insert(from, 1, e.to)
		}
	}
	var all []vertex
	for _, v := range from {
		for _, e := range g.out[v] {
			brought := e.arg == pod && e.row != 0 && e.row.ofPod() && (possible || e.dependsOn == 0)
			k := g.keys[e.to]
			isToken := k.kind == isAssociated && g.isScopedAccount(k)
			if brought && (k.kind == isServiceAccount || k.kind == isSecret || isToken) {
				all = append(all, e.to)
			}
		}
	}
	return all
}
