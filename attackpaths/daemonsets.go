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
		for _, pod := range pods[name] {
			all[i].Nodes = append(all[i].Nodes, g.pods[pod].Node)
		}
		slices.Sort(all[i].Nodes)
		all[i].Nodes = slices.Compact(all[i].Nodes)
		all[i].reach(g, g.onePerTemplate(pods[name]), certain, possible)
	}
	return all
}

// onePerTemplate keeps one of the pods that are made from the same template. While a DaemonSet is
// rolled out, its pods differ.
func (g *Graph) onePerTemplate(pods []int32) []int32 {
	seen := map[*inventory.Template]bool{}
	return slices.DeleteFunc(slices.Clone(pods), func(i int32) bool {
		known := seen[g.pods[i].Template]
		seen[g.pods[i].Template] = true
		return known
	})
}

// reach finds the shortest path from what pods bring to their nodes; a certain one comes first.
func (d *DaemonSet) reach(g *Graph, pods []int32, certain, possible *solver) {
	admin := g.index[key{kind: isClusterAdmin}]
	for _, s := range [...]*solver{certain, possible} {
		best := int32(-1)
		for _, from := range g.broughtBy(pods, s.possible) {
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

// broughtBy are the service accounts and secrets that nodes hold because of pods, in the order of
// vertices.
func (g *Graph) broughtBy(pods []int32, possible bool) []vertex {
	var all []vertex
	for _, pod := range pods {
		all = append(all, g.broughtByPod(pod, possible)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (g *Graph) broughtByPod(pod int32, possible bool) []vertex {
	var all []vertex
	brought := func(e edge) bool {
		return e.arg == pod && e.row != 0 && e.row.ofPod() && (possible || e.dependsOn == 0)
	}
	take := func(from vertex) {
		for _, e := range g.out[from] {
			k := g.keys[e.to]
			isToken := k.kind == isAssociated && g.isScopedAccount(k)
			if brought(e) && (k.kind == isServiceAccount || k.kind == isSecret || isToken) {
				all = append(all, e.to)
			}
		}
	}
	p := g.pods[pod]
	node := g.index[key{kind: isNode, name: p.Node}]
	take(node)
	for _, e := range g.out[node] {
		if g.keys[e.to].kind == isNodeUser {
			take(e.to)
		}
	}
	take(g.index[key{kind: isPod, namespace: p.Namespace, name: p.Name.Name}])
	return all
}
