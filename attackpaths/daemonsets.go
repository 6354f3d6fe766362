package attackpaths

import (
	"cmp"
	"maps"
	"math"
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
	r := g.newReach()
	defer r.release()
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
		all[i].reach(g, templates, r)
	}
	return all
}

// reach finds the shortest path from what pods bring to their nodes; a certain one comes first.
func (d *DaemonSet) reach(g *Graph, pods []int32, r reach) {
	admin := g.index[key{kind: isClusterAdmin}]
	for _, certainty := range [...]Certainty{Certain, Possible} {
		var brought []vertex
		for _, pod := range pods {
			brought = append(brought, g.broughtByPod(pod, certainty == Possible)...)
		}
		slices.Sort(brought)
		s, best := r.by(certainty), int32(math.MaxInt32)
		for _, from := range slices.Compact(brought) {
			if s.solveUntil(from, admin); s.has(admin) && s.cost[admin] < best {
				best, d.ClusterAdmin, d.Path = s.cost[admin], certainty, s.path(admin)
				d.Through, _ = g.keys[from].holding()
			}
		}
		if d.ClusterAdmin != No {
			return
		}
	}
}

// broughtByPod are the service accounts and secrets that a node holds because of a pod.
func (g *Graph) broughtByPod(pod int32, possible bool) []vertex {
	p := g.pods[pod]
	node := g.index[key{kind: isNode, name: p.Node}]
	from := []vertex{node}
	for _, e := range g.out[node] {
		if g.keys[e.to].kind == isNodeUser {
			from = append(from, e.to)
		}
	}
	from = append(from, g.firstPod+vertex(pod))
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
