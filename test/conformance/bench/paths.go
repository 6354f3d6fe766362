package main

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

const pathsMethod = "`attack-paths`" + ` on clusters of three sizes, from snapshots: on every node 30 pods, of DaemonSets,
Deployments and with volumes; for each workload a service account and a secret; six roles and as
many bindings for five nodes, of which one in sixteen leads further. A DaemonSet reads secrets in all
namespaces, so that every node reaches every secret. In one process the state is loaded, then the
graph is made, all nodes and one node are answered from it, and the floor decodes the same
objects from the same snapshot, in turns. Processor time counts, garbage collection included, and of
the rounds the best. The program itself is run for its time and memory, and asked after loading:
from the last few bytes of standard input, which are held back, until the last byte of its answer.`

const (
	whyPathsNode = `Making the graph takes long. Half of the time is for holdings of other nodes, which a start may
not need. The other half is needed by each start and exceeds the target too: reading the inventory in
order, indexing it, the pods that may move, and the rules of roles. A library that keeps the graph
answers each further start within the target.`

	whyPathsGrowth = `Each step of the making is a look-up by name, and the tables and names of a large cluster are not in
the processor's caches. The number of edges grows with the objects.`

	whyPathsMemory = `The graph takes less than the state from which it is made.`
)

// pathsTimes are the best times of a cluster, in nanoseconds, and the times of the graph with all
// nodes and of the floor, round by round.
type pathsTimes struct {
	load, graph, all, one float64
	reached, classes      int
	both, floor           []float64
	heap, withInventory   float64
}

// paths measures attack paths.
func (b *bench) paths() (section, error) {
	s := section{title: "Attack paths", method: pathsMethod}
	t := table{
		caption: "**In one process,** processor time.",
		header: []string{
			"nodes", "objects", "load the state", "make the graph", "all nodes", "both, an object", "one node", "holdings that it reaches",
		},
	}
	floor := table{
		caption: "**Making the graph and all nodes, against decoding,** processor time.",
		header:  []string{"nodes", "graph and all nodes", "floor", "ratio"},
	}
	sizes := b.sizes.pathNodes
	var each []float64
	for _, nodes := range sizes {
		l := pathsCluster{fileCluster{nodes: nodes, podsPerNode: b.sizes.podsPerNode}}
		file, err := l.snapshot(b)
		if err != nil {
			return s, err
		}
		got, err := b.pathsOf(l, file)
		if err != nil {
			return s, err
		}
		objects := float64(l.counted())
		each = append(each, (got.graph+got.all)/objects)
		t.add(thousands(float64(nodes)), thousands(objects), nanoseconds(got.load), nanoseconds(got.graph), nanoseconds(got.all),
			nanoseconds(each[len(each)-1]), nanoseconds(got.one), thousands(float64(got.reached)))
		floor.add(thousands(float64(nodes)), nanoseconds(median(got.both)), nanoseconds(median(got.floor)), got.ratio().String())
		if nodes == b.sizes.pathNodesTarget {
			if err := b.pathsTargets(&s, l, file, got); err != nil {
				return s, err
			}
			if err := b.pathsScopes(&s, l, file); err != nil {
				return s, err
			}
		}
	}
	last := len(sizes) - 1
	s.targets = append(s.targets, atMost(
		fmt.Sprintf("cost of an object with %s nodes, against %s", thousands(float64(sizes[last])), thousands(float64(sizes[0]))),
		2, each[last]/each[0], times, whyPathsGrowth))
	s.tables = append([]table{t, floor}, s.tables...)
	s.remarks = append(s.remarks, pathsRemark)
	return s, b.ctx.Err()
}

// ratio is how much of the floor's pace paths have.
func (p pathsTimes) ratio() spread {
	var ratios []float64
	for i := range p.both {
		ratios = append(ratios, p.floor[i]/p.both[i])
	}
	return spreadOf(ratios)
}

// pathsOf measures one cluster.
func (b *bench) pathsOf(l pathsCluster, file string) (pathsTimes, error) {
	var p pathsTimes
	empty := heap()
	plain, err := source.LoadFiles(b.ctx, []string{file}, source.FileOptions{})
	if err != nil {
		return p, err
	}
	p.heap = heap() - empty
	runtime.KeepAlive(plain)
	plain = nil
	empty = heap()
	var state *source.State
	if p.load, err = spent(func() (err error) {
		state, err = source.LoadFiles(b.ctx, []string{file}, source.FileOptions{Inventory: true})
		return err
	}); err != nil {
		return p, err
	}
	p.withInventory = heap() - empty
	if pods := len(state.Inventory.Pods()); pods != l.pods() {
		return p, fmt.Errorf("%d pods of %d were read", pods, l.pods())
	}
	for i := range b.fillRounds {
		b.log("paths: %d nodes, round %d", l.nodes, i+1)
		if err := b.pathsRound(&p, l, state, file); err != nil {
			return p, err
		}
	}
	return p, b.ctx.Err()
}

// pathsRound measures everything once.
func (b *bench) pathsRound(p *pathsTimes, l pathsCluster, state *source.State, file string) error {
	c := &attackpaths.Cluster{
		Inventory: state.Inventory, Relations: state.Graph, RBAC: state.RBAC, Features: kubeversion.For(kubeversion.Latest),
	}
	var g *attackpaths.Graph
	settle()
	graph, err := spent(func() (err error) { g, err = attackpaths.New(c); return err })
	if err != nil {
		return err
	}
	all, _ := spent(func() error { p.classes = len(g.AllNodes()); return nil })
	p.both = append(p.both, graph+all)
	one, err := spent(func() error {
		result, err := g.From(attackpaths.Holding{Kind: attackpaths.Node, Name: nodeName(l.nodes / 2)})
		p.reached = len(result.Reached)
		return err
	})
	if err != nil {
		return err
	}
	p.graph, p.all, p.one = best(p.graph, graph), best(p.all, all), best(p.one, one)
	if p.reached < l.accounts() || p.classes == 0 {
		return fmt.Errorf("a node reaches %d holdings, and there are %d classes", p.reached, p.classes)
	}
	objects := 0
	settle()
	floor, err := spent(func() error {
		known := func(_, kind string, _ []byte) bool { return pathsObject(kind) != nil }
		_, err := manifest.Read(b.ctx, []string{file}, manifest.Options{Wanted: known}, func(d *manifest.Document) error {
			objects++
			return d.Decode(pathsObject(d.Kind))
		})
		return err
	})
	p.floor = append(p.floor, floor)
	if err == nil && objects != l.counted() {
		err = fmt.Errorf("the floor decoded %d objects of %d", objects, l.counted())
	}
	return err
}

// spent is the processor time of a call, in nanoseconds.
func spent(do func() error) (float64, error) {
	begin := processTime()
	err := do()
	return float64((processTime() - begin).Nanoseconds()), err
}

// best is the lower of two times, of which the first is zero before the first round.
func best(known, next float64) float64 {
	if known == 0 {
		return next
	}
	return min(known, next)
}

// pathsObject is an empty object of a kind that is in the snapshots.
func pathsObject(kind string) any {
	switch kind {
	case "Node":
		return &corev1.Node{}
	case "Namespace":
		return &corev1.Namespace{}
	case "Pod":
		return &corev1.Pod{}
	case "PersistentVolume":
		return &corev1.PersistentVolume{}
	case "VolumeAttachment":
		return &storagev1.VolumeAttachment{}
	case "ServiceAccount":
		return &corev1.ServiceAccount{}
	case "Secret":
		return &corev1.Secret{}
	case "Role":
		return &rbacv1.Role{}
	case "RoleBinding":
		return &rbacv1.RoleBinding{}
	case "ClusterRole":
		return &rbacv1.ClusterRole{}
	case "ClusterRoleBinding":
		return &rbacv1.ClusterRoleBinding{}
	}
	return nil
}

// pathsTargets measures the program on the cluster that the targets are about.
func (b *bench) pathsTargets(s *section, l pathsCluster, file string, got pathsTimes) error {
	runs := table{
		caption: fmt.Sprintf("**The program, %s nodes, %s pods, %s service accounts, %s roles and as many bindings.**",
			thousands(float64(l.nodes)), thousands(float64(l.pods())), thousands(float64(l.accounts())), thousands(float64(l.roles()+1))),
		header: []string{"", "file", "time", "objects a second", "processor time", "peak memory"},
	}
	one := "node/" + nodeName(l.nodes/2)
	peak, err := b.addRun(&runs, l.counted(), "`--all-nodes`", file, []string{"attack-paths", "--all-nodes", "--from", file})
	if err != nil {
		return err
	}
	if _, err := b.addRun(&runs, l.counted(), "one node", file, []string{"attack-paths", one, "--from", file}); err != nil {
		return err
	}
	answers := table{
		caption: "**After loading.**",
		header:  []string{"question", "time", "processor time", "share of loading in all processor time", "answer"},
	}
	after := func(what string, args ...string) (float64, error) {
		var least answered
		for i := range b.fileRounds {
			b.log("paths: %s", strings.Join(args, " "))
			got, err := b.answer(file, append([]string{"attack-paths"}, args...))
			if err != nil {
				return 0, err
			}
			if i == 0 || got.took < least.took {
				least = got
			}
		}
		answers.add(what, nanoseconds(float64(least.took.Nanoseconds())), nanoseconds(float64(least.processor.Nanoseconds())),
			percent(float64(least.loading)/float64(least.loading+least.processor)), megabytes(float64(least.size)))
		return float64(least.took.Nanoseconds()), nil
	}
	all, errAll := after("`attack-paths --all-nodes`", "--all-nodes")
	single, errOne := after("`attack-paths` of a node", one)
	_, errJSON := after("`attack-paths` of a node, as JSON", one, "-o", "json")
	if err := errors.Join(errAll, errOne, errJSON); err != nil {
		return err
	}
	memory := table{
		caption: fmt.Sprintf("**Heap of the state of %s nodes.** Objects that only attack paths need are kept on request.",
			thousands(float64(l.nodes))),
		header: []string{"", "heap", "a pod"},
	}
	pods := float64(l.pods())
	memory.add("without the inventory", megabytes(got.heap), fmt.Sprintf("%.0f B", got.heap/pods))
	memory.add("with it", megabytes(got.withInventory), fmt.Sprintf("%.0f B", got.withInventory/pods))
	s.tables = append(s.tables, runs, answers, memory)
	s.targets = append(s.targets,
		atMost("`attack-paths --all-nodes`, after loading", 5e9, all, nanoseconds, whyPathsNode),
		atMost("Peak memory of `attack-paths --all-nodes`", 1e9, peak, megabytes, whyPathsMemory),
		atMost("`attack-paths` of a node, after loading", 100e6, single, nanoseconds, whyPathsNode),
		atMost("one node, when the graph is made", 100e6, got.one, nanoseconds, pathsRemark))
	return nil
}
