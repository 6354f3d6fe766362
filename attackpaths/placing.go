package attackpaths

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/inventory"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// The label and the taint of the nodes for pods that give cluster-admin. A node may not give itself a
// label with this prefix, so that who takes over a node cannot move it into the pool.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
const (
	poolLabel = "node-restriction.kubernetes.io/trusted-pool"
	poolValue = "true"
)

// Placing is advice to run the pods that give cluster-admin on few nodes, which run nothing else.
type Placing struct {
	// Label is what the nodes of the pool and the node selectors of the pods have, and Taint what
	// keeps other pods off the nodes.
	Label map[string]string `json:"label"`
	Taint corev1.Taint      `json:"taint"`
	// Nodes are those of the pool, as few as the requests of the pods need; empty if no pod can be
	// placed. Before are the nodes that run such pods now. Pods of others stay until they are moved.
	Nodes  []string `json:"nodes"`
	Before int      `json:"before"`
	// Workloads have pods that give cluster-admin and can be placed, and Unplaced are those that
	// cannot.
	Workloads []PlacedWorkload `json:"workloads"`
	Unplaced  []PlacedWorkload `json:"unplaced,omitempty"`
	// Certain is how many nodes no longer certainly reach cluster-admin if the pods run in the pool
	// only, and Entirely how many no longer reach it at all: as for a [Change].
	Certain  int `json:"certain"`
	Entirely int `json:"entirely"`
	// Remedy labels and taints the nodes, and changes the templates of the workloads.
	Remedy *verdict.Remedy `json:"remedy,omitempty"`

	// bound are the nodes of the pods that were placed.
	bound map[inventory.Name]string
}

// PlacedWorkload is a workload with pods that give cluster-admin to each node that runs one.
type PlacedWorkload struct {
	// Object is the workload, or a pod without one.
	Object verdict.Object `json:"object"`
	// Through is the service account or secret of the pods that leads to cluster-admin.
	Through Holding `json:"through"`
	// Nodes is how many nodes run such a pod.
	Nodes int `json:"nodes"`
	// Why says why the pods cannot be placed.
	Why string `json:"why,omitempty"`
}

// Why pods cannot be placed.
const (
	unplacedDaemon = "a DaemonSet has to run on each node: take rights from it instead"
	unplacedStatic = "the pod is static: its node runs it from a file"
	unplacedPod    = "it has no template that could be changed"
	unplacedNodes  = "the Node objects of the nodes that run it are not known"
	unplacedLabels = "an account that nodes outside the pool hold may change labels or taints of nodes: take that right from it first"
)

// placer places pods.
type placer struct {
	*builder
	placing *Placing
	// dangerous are the pods to place, by workload, and unplaced those that cannot be.
	dangerous []int32
	of        map[verdict.Object]*PlacedWorkload
	nodesOf   map[verdict.Object]map[string]bool
	// wanted are the nodes that reach cluster-admin.
	wanted map[string]bool
	// free is what is left of the nodes of the pool.
	free map[string]inventory.Resources
}

// place finds where to put the pods that give cluster-admin.
func (a *advisor) place(b *builder) *Placing {
	p := &placer{
		builder: b, of: map[verdict.Object]*PlacedWorkload{}, nodesOf: map[verdict.Object]map[string]bool{},
		free: map[string]inventory.Resources{},
		placing: &Placing{
			Label: map[string]string{poolLabel: poolValue}, Nodes: []string{}, Workloads: []PlacedWorkload{},
			Taint: corev1.Taint{Key: poolLabel, Value: poolValue, Effect: corev1.TaintEffectNoSchedule}, bound: map[inventory.Name]string{},
		},
	}
	p.find(a.nodes, a.options.Possible)
	if len(p.of) == 0 {
		return nil
	}
	p.fill()
	p.list()
	if len(p.placing.Nodes) == 0 {
		return p.placing
	}
	after := a.build(a.whole.without(a.cluster, p.placing.changes()))
	if after.labelsFromOutside(p.placing.Nodes) {
		p.noNodes(unplacedLabels)
		p.list()
	} else {
		p.placing.Certain, p.placing.Entirely = helped(a.before, after.reachGoal(a.nodes))
		p.placing.Remedy = p.remedy()
	}
	return p.placing
}

// find collects the pods on nodes that bring something which leads to cluster-admin.
func (p *placer) find(nodes []string, possible bool) {
	wanted := map[string]bool{}
	for _, name := range nodes {
		wanted[name] = true
	}
	leads := p.leading(possible)
	through := map[*inventory.Template]vertex{}
	p.wanted = wanted
	for i, pod := range p.pods {
		if !wanted[pod.Node] {
			continue
		}
		v, known := through[pod.Template]
		if !known {
			v = none
			for _, brought := range p.broughtByPod(int32(i), possible) {
				if v == none && leads(brought) {
					v = brought
				}
			}
			through[pod.Template] = v
		}
		if v != none {
			p.note(pod, v)
		}
	}
	for i, pod := range p.pods {
		if object := templateOf(pod).object; pod.Node != "" && p.of[object] != nil {
			p.dangerous = append(p.dangerous, int32(i))
			p.nodesOf[object][pod.Node] = true
		}
	}
}

// leading tells which vertices lead to the goal alone.
func (p *placer) leading(possible bool) func(vertex) bool {
	// A solver that is not released: it is used for as long as the function is.
	m, known := p.leadsToGoal(possible), map[vertex]bool{}
	s := p.solver(possible)
	return func(v vertex) bool {
		leads, ok := known[v]
		if !ok {
			if leads = m.marked[v]; !leads {
				s.solveUntil(v, p.goal)
				leads = s.has(p.goal)
			}
			known[v] = leads
		}
		return leads
	}
}

func (p *placer) note(pod *inventory.Pod, through vertex) {
	t := templateOf(pod)
	if p.of[t.object] == nil {
		h, _ := p.keys[through].holding()
		p.of[t.object] = &PlacedWorkload{Object: t.object, Through: h, Why: unplaceable(pod, t)}
		p.nodesOf[t.object] = map[string]bool{}
	}
}

func unplaceable(pod *inventory.Pod, t *template) string {
	switch {
	case pod.Mirror:
		return unplacedStatic
	case pod.Controller != "":
		return noneOfController(pod)
	case t.object.Kind == "DaemonSet":
		return unplacedDaemon
	case t.spec == "":
		return unplacedPod
	}
	return ""
}

// fill puts the pods on few of the nodes that run them now: the nodes with most of them first, and
// at least two if there are two. Where the resources of a node are not known, pods stay on it. Nodes
// without a Node object cannot be in the pool.
func (p *placer) fill() {
	counts := map[string]int{}
	for _, i := range p.dangerous {
		if p.workload(i).Why == "" && p.wanted[p.pods[i].Node] {
			counts[p.pods[i].Node]++
		}
	}
	p.placing.Before = len(counts)
	var candidates []*inventory.Node
	for i := range p.objects.nodes {
		if n := &p.objects.nodes[i]; counts[n.Name] > 0 {
			candidates = append(candidates, n)
		}
	}
	if len(candidates) == 0 {
		p.noNodes(unplacedNodes)
		return
	}
	slices.SortStableFunc(candidates, func(a, b *inventory.Node) int { return cmp.Compare(counts[b.Name], counts[a.Name]) })
	pods := slices.Clone(p.dangerous)
	slices.SortStableFunc(pods, func(a, b int32) int {
		x, y := p.pods[a].Requests, p.pods[b].Requests
		return cmp.Or(cmp.Compare(y.CPU, x.CPU), cmp.Compare(y.Memory, x.Memory))
	})
	for open := min(2, len(candidates)); open <= len(candidates); open++ {
		if p.fit(pods, candidates[:open], open == len(candidates)) {
			break
		}
	}
	for node := range p.free {
		p.placing.Nodes = append(p.placing.Nodes, node)
	}
	slices.Sort(p.placing.Nodes)
}

// noNodes says why there is no pool.
func (p *placer) noNodes(why string) {
	for _, w := range p.of {
		if w.Why == "" {
			w.Why = why
		}
	}
	p.placing.Nodes = []string{}
}

func (p *placer) workload(i int32) *PlacedWorkload {
	return p.of[templateOf(p.pods[i]).object]
}

// fit puts each pod on the first node that has room for it, or reports false. If these are all nodes,
// a pod for which none has room stays where it is.
func (p *placer) fit(pods []int32, nodes []*inventory.Node, all bool) bool {
	p.free, p.placing.bound = map[string]inventory.Resources{}, map[inventory.Name]string{}
	for _, n := range nodes {
		p.free[n.Name] = p.roomOn(n)
	}
	for _, i := range pods {
		pod, w := p.pods[i], p.workload(i)
		if w.Why != "" {
			continue
		}
		at := slices.IndexFunc(nodes, func(n *inventory.Node) bool {
			known := n.Allocatable != nil
			return (known && pod.Requests.Fits(p.free[n.Name]) || n.Name == pod.Node && !known) && p.allows(pod, n)
		})
		if at < 0 && all {
			at = max(0, slices.IndexFunc(nodes, func(n *inventory.Node) bool { return n.Name == pod.Node }))
		}
		if at < 0 {
			return false
		}
		name := nodes[at].Name
		left := p.free[name]
		left.Subtract(pod.Requests)
		p.free[name], p.placing.bound[pod.Name] = left, name
	}
	return true
}

// roomOn is what a node has for the pods of the pool: what DaemonSets and static pods leave.
func (p *placer) roomOn(n *inventory.Node) inventory.Resources {
	room := inventory.ResourcesOf(n.Allocatable)
	for _, i := range p.podsOn[n.Name] {
		if pod := p.pods[i]; pod.Mirror || pod.Workload.Resource == "daemonsets" {
			room.Subtract(pod.Requests)
		}
	}
	return room
}

// allows reports whether a pod may run on a node; labels of the node count as they are.
func (p *placer) allows(pod *inventory.Pod, n *inventory.Node) bool {
	return n.Name == pod.Node || pod.Placement.Allows(n, func(string) bool { return false })
}

// list sorts the workloads.
func (p *placer) list() {
	p.placing.Workloads, p.placing.Unplaced = []PlacedWorkload{}, nil
	for object, w := range p.of {
		w.Nodes = len(p.nodesOf[object])
		if w.Why == "" {
			p.placing.Workloads = append(p.placing.Workloads, *w)
		} else {
			p.placing.Unplaced = append(p.placing.Unplaced, *w)
		}
	}
	for _, list := range [...][]PlacedWorkload{p.placing.Workloads, p.placing.Unplaced} {
		slices.SortFunc(list, func(a, b PlacedWorkload) int {
			return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), a.Object.Compare(b.Object))
		})
	}
}
