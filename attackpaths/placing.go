package attackpaths

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
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
	// Nodes are the nodes of the pool, as few as the requests of the pods need; empty if no pod can be
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
	// wanted are the nodes that reach cluster-admin.
	wanted map[string]bool
	// of are the workloads with pods that give cluster-admin.
	of map[verdict.Object]*PlacedWorkload
	// toPlace are the pods of workloads that can be placed.
	toPlace []*inventory.Pod
}

// place finds where to put the pods that give cluster-admin.
func (a *advisor) place(b *builder) *Placing {
	p := &placer{
		builder: b, of: map[verdict.Object]*PlacedWorkload{}, wanted: map[string]bool{},
		placing: &Placing{
			Label: map[string]string{poolLabel: poolValue}, Nodes: []string{},
			Taint: corev1.Taint{Key: poolLabel, Value: poolValue, Effect: corev1.TaintEffectNoSchedule},
		},
	}
	for _, name := range a.nodes {
		p.wanted[name] = true
	}
	p.find(a.options.Possible)
	if len(p.of) == 0 {
		return nil
	}
	p.fill()
	p.list()
	if len(p.placing.Nodes) == 0 {
		return p.placing
	}
	after := a.graph.again(a.whole.without(a.cluster, p.placing.changes()))
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
func (p *placer) find(possible bool) {
	s, alone := p.solver(possible), map[vertex]bool{}
	defer s.Release()
	leads := func(v vertex) bool { // alone to the goal
		if _, known := alone[v]; !known {
			s.SolveUntil(v, p.goal)
			alone[v] = s.Has(p.goal)
		}
		return alone[v]
	}
	through := map[*inventory.Template]vertex{}
	for i, pod := range p.pods {
		if !p.wanted[pod.Node] {
			continue
		}
		v, known := through[pod.Template]
		if !known {
			v = none
			brought := p.broughtByPod(int32(i), possible)
			if first := slices.IndexFunc(brought, leads); first >= 0 {
				v = brought[first]
			}
			through[pod.Template] = v
		}
		if t := templateOf(pod); v != none && p.of[t.object] == nil {
			h, _ := p.keys[v].holding()
			p.of[t.object] = &PlacedWorkload{Object: t.object, Through: h, Why: unplaceable(pod, t)}
		}
	}
	nodes := map[*PlacedWorkload]map[string]bool{}
	for _, pod := range p.pods {
		w := p.of[templateOf(pod).object]
		if pod.Node == "" || w == nil {
			continue
		}
		if nodes[w] == nil {
			nodes[w] = map[string]bool{}
		}
		nodes[w][pod.Node] = true
		w.Nodes = len(nodes[w])
		if w.Why == "" {
			p.toPlace = append(p.toPlace, pod)
		}
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
	for _, pod := range p.toPlace {
		if p.wanted[pod.Node] {
			counts[pod.Node]++
		}
	}
	p.placing.Before = len(counts)
	noneOn := func(n inventory.Node) bool { return counts[n.Name] == 0 }
	candidates := slices.DeleteFunc(slices.Clone(p.objects.nodes), noneOn)
	if len(candidates) == 0 {
		p.noNodes(unplacedNodes)
		return
	}
	slices.SortStableFunc(candidates, func(a, b inventory.Node) int { return cmp.Compare(counts[b.Name], counts[a.Name]) })
	slices.SortStableFunc(p.toPlace, func(a, b *inventory.Pod) int {
		return cmp.Or(cmp.Compare(b.Requests.CPU, a.Requests.CPU), cmp.Compare(b.Requests.Memory, a.Requests.Memory))
	})
	for open := min(2, len(candidates)); open <= len(candidates); open++ {
		if p.fit(candidates[:open], open == len(candidates)) {
			break
		}
	}
}

// noNodes says why there is no pool.
func (p *placer) noNodes(why string) {
	for _, w := range p.of {
		w.Why = cmp.Or(w.Why, why)
	}
	p.placing.Nodes = []string{}
}

// fit puts each pod on the first node that has room for it, or reports false. If these are all nodes,
// a pod for which none has room stays where it is.
func (p *placer) fit(nodes []inventory.Node, all bool) bool {
	free, bound := map[string]inventory.Resources{}, map[inventory.Name]string{}
	for i := range nodes {
		free[nodes[i].Name] = p.roomOn(&nodes[i])
	}
	for _, pod := range p.toPlace {
		isOn := func(n inventory.Node) bool { return n.Name == pod.Node }
		at := slices.IndexFunc(nodes, func(n inventory.Node) bool {
			if n.Allocatable == nil {
				return isOn(n)
			}
			return pod.Requests.Fits(free[n.Name]) && (isOn(n) || pod.Placement.Allows(&n, nil)) // labels count as they are
		})
		if at < 0 && all {
			at = max(0, slices.IndexFunc(nodes, isOn))
		}
		if at < 0 {
			return false
		}
		name := nodes[at].Name
		free[name], bound[pod.Name] = free[name].Without(pod.Requests), name
	}
	p.placing.Nodes, p.placing.bound = slices.Sorted(maps.Keys(free)), bound
	return true
}

// roomOn is what a node has for the pods of the pool: what DaemonSets and static pods leave.
func (p *placer) roomOn(n *inventory.Node) inventory.Resources {
	room := inventory.ResourcesOf(n.Allocatable)
	for _, i := range p.podsOn[n.Name] {
		if pod := p.pods[i]; pod.Mirror || pod.Workload.Resource == "daemonsets" {
			room = room.Without(pod.Requests)
		}
	}
	return room
}

// list sorts the workloads.
func (p *placer) list() {
	p.placing.Workloads, p.placing.Unplaced = []PlacedWorkload{}, nil
	for _, w := range slices.SortedFunc(maps.Values(p.of), func(a, b *PlacedWorkload) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), a.Object.Compare(b.Object))
	}) {
		if w.Why == "" {
			p.placing.Workloads = append(p.placing.Workloads, *w)
		} else {
			p.placing.Unplaced = append(p.placing.Unplaced, *w)
		}
	}
}

// changes lists the changes that place pods in a pool.
func (p *Placing) changes() []changeKey {
	var all []changeKey
	for _, w := range p.Workloads {
		all = append(all, changeKey{kind: placePods, object: w.Object, placing: p})
	}
	return all
}

// remedy labels and taints the nodes of the pool, and places the pods.
func (p *placer) remedy() *verdict.Remedy {
	r := &verdict.Remedy{
		Warning: "Pods of others stay on the nodes of the pool until they are moved, and pods that are pending need room there.",
	}
	for _, n := range p.nodes {
		if slices.Contains(p.placing.Nodes, n.Name) {
			e := editor{apiVersion: "v1", object: verdict.Object{Kind: Node, Name: n.Name}}
			e.do(verdict.Add, "/metadata/labels/"+escaped(poolLabel), poolValue)
			e.addTo("/spec/taints", len(n.Taints) > 0, p.placing.Taint)
			r.Changes = append(r.Changes, e.changes...)
		}
	}
	// Also those that no node has yet: the scheduler would bind them as they are.
	changes, _ := p.objects.renderTemplates(p.placing.changes())
	r.Changes = append(r.Changes, changes...)
	r.Disrupts = disruption(r.Changes)
	return r
}

// placeIn selects the nodes of the pool, and tolerates their taint.
func (t *template) placeIn(pod *inventory.Pod, placing *Placing) {
	t.selectNodes(pod, poolLabel, poolValue)
	t.addTo(t.spec+"/tolerations", pod.Placement.Tolerates(), inventory.TolerationOf(placing.Taint))
}

// addTo appends an entry to a list, which may not exist.
func (e *editor) addTo(list string, exists bool, entry any) {
	if exists {
		e.do(verdict.Add, list+"/-", entry)
	} else {
		e.do(verdict.Add, list, []any{entry})
	}
}
