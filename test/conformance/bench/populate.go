package main

import (
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"
)

const populateMethod = `Objects exist before the clock starts, and go through the handlers that an informer
calls: on the in-tree side the handlers that kube-apiserver registers. Times are processor
time of the thread that does it; the work of the garbage collector on other
threads is counted for neither side. The retained heap is the growth of the collected
heap, when all objects have been dropped: strings that a graph keeps count
for either side, and each object comes with strings of its own, as decoding makes them.`

// population has the cost of filling an empty graph.
type population struct {
	pods, volumes       rounds // nanoseconds for each object
	podHeap, volumeHeap rounds // bytes that each adds to the heap
}

// populate measures how long filling takes, how much stays on the heap, and how long
// changes to a filled graph take.
func (b *bench) populate() (section, error) {
	s := section{title: "Populating, and the memory it takes", method: populateMethod}
	sizes := table{
		caption: "**Filling an empty graph.** Time and retained heap for each object, and the retained heap in all.",
		header:  []string{"objects", "faster", "node-authorizer", "in-tree", "heap, share of in-tree's", "node-authorizer", "in-tree"},
	}
	changes := table{
		caption: "**Changes to a filled graph**, for each pod.",
		header:  []string{"change", "faster", "node-authorizer", "in-tree"},
	}
	for _, l := range []struct {
		name string
		layout
	}{{"own objects", b.sizes.own()}, {"shared objects", b.sizes.shared()}} {
		p, err := b.fill(l.layout)
		if err != nil {
			return s, err
		}
		pods := fmt.Sprintf("%s pods, %s", thousands(float64(l.pods)), l.name)
		sizes.addPopulation(pods, p.pods, p.podHeap, float64(l.pods))
		sizes.addPopulation(fmt.Sprintf("%s volumes, %s", thousands(float64(l.claims())), l.name), p.volumes, p.volumeHeap,
			float64(l.claims()))
		s.targets = append(s.targets,
			atLeast("populating, "+pods, 10, p.pods.ratio(), whyPopulate),
			atMost("retained heap, "+pods, 1.0/3, 1/p.podHeap.ratio().median, percent, whyHeap))
		if err := b.change(l.layout, l.name, &changes); err != nil {
			return s, err
		}
	}
	s.tables = append(s.tables, sizes, changes)
	s.remarks = append(s.remarks, unchangedRemark)
	err := b.fillFanOut(&s)
	return s, err
}

// fill fills empty graphs with a layout.
func (b *bench) fill(l layout) (population, error) {
	var p population
	for i := range b.fillRounds {
		for j := range sides {
			side := sides[(i+j)%len(sides)]
			if err := b.ctx.Err(); err != nil {
				return p, err
			}
			b.log("populating: %d pods, shared %v, %v, round %d", l.pods, l.shared, side, i+1)
			c := side.new()
			empty := heap()
			p.pods[side] = append(p.pods[side], b.add(l.pods, func(i int) any { return l.pod(i) }, c.pods.OnAdd))
			withPods := heap()
			p.podHeap[side] = append(p.podHeap[side], withPods-empty)
			p.volumes[side] = append(p.volumes[side], b.add(l.claims(), func(i int) any { return l.volume(i) }, c.volumes.OnAdd))
			p.volumeHeap[side] = append(p.volumeHeap[side], heap()-withPods)
			runtime.KeepAlive(c)
		}
	}
	return p, nil
}

// add makes n objects and returns how long each takes to add.
func (b *bench) add(n int, object func(int) any, onAdd func(object any, initial bool)) float64 {
	objects := make([]any, n)
	for i := range objects {
		objects[i] = object(i)
	}
	settle()
	return perOperation(n, 0, func() {
		for _, o := range objects {
			onAdd(o, true)
		}
	})
}

func (t *table) addPopulation(what string, each, heap rounds, n float64) {
	t.add(what, each.ratio().String(), nanoseconds(each.of(ours)), nanoseconds(each.of(inTree)),
		percent(1/heap.ratio().median),
		fmt.Sprintf("%s (%.0f B each)", megabytes(heap.of(ours)), heap.of(ours)/n),
		fmt.Sprintf("%s (%.0f B each)", megabytes(heap.of(inTree)), heap.of(inTree)/n))
}

// change measures events about pods that a graph has.
func (b *bench) change(l layout, name string, t *table) error {
	c, err := b.filled(l.fill)
	if err != nil {
		return err
	}
	n := min(l.pods, b.sizes.changes)
	type event struct{ before, after *corev1.Pod }
	same, started, moved := make([]event, n), make([]event, n), make([]event, n)
	for i := range n {
		pod := i * (l.pods / n)
		same[i] = event{l.pod(pod), l.pod(pod)}
		started[i] = event{l.pod(pod), l.pod(pod)}
		started[i].after.Status.Phase = corev1.PodRunning
		moved[i] = event{l.pod(pod), l.pod(pod)}
		moved[i].after.UID += "-2"
		moved[i].after.Spec.NodeName = nodeName((l.nodeOf(pod) + 1) % l.nodes)
	}
	update := func(s side, events []event) float64 {
		return perOperation(n, b.atLeast, func() {
			for _, e := range events {
				c[s].pods.OnUpdate(e.before, e.after)
			}
		})
	}
	recreate := func(s side, events []event) float64 {
		return perOperation(2*n, b.atLeast, func() {
			for _, e := range events {
				c[s].pods.OnDelete(e.before)
				c[s].pods.OnAdd(e.after, false)
			}
			for _, e := range events {
				c[s].pods.OnDelete(e.after)
				c[s].pods.OnAdd(e.before, false)
			}
		})
	}
	b.log("populating: changes, %s", name)
	for _, m := range []struct {
		what    string
		measure func(side, []event) float64
		events  []event
	}{
		{"updated without any difference", update, same},
		{"updated in its status", update, started},
		{"deleted, and created again on another node", recreate, moved},
	} {
		r := alternate(b.rounds, func(s side) float64 { return m.measure(s, m.events) })
		t.add(m.what+", "+name, r.ratio().String(), nanoseconds(r.of(ours)), nanoseconds(r.of(inTree)))
	}
	return b.ctx.Err()
}

// fillFanOut fills empty graphs with one configmap that is used on many nodes.
func (b *bench) fillFanOut(s *section) error {
	l := fanOut{related: b.sizes.relatedNodes, unrelated: b.sizes.unrelatedNodes}
	var each, retained rounds
	for i := range b.rounds {
		for j := range sides {
			side := sides[(i+j)%len(sides)]
			c := side.new()
			empty := heap()
			each[side] = append(each[side], b.add(l.related, func(i int) any { return l.pod(i) }, c.pods.OnAdd))
			retained[side] = append(retained[side], heap()-empty)
			runtime.KeepAlive(c)
		}
	}
	pods := fmt.Sprintf("%s pods on as many nodes with one configmap", thousands(float64(l.related)))
	s.tables[0].addPopulation(pods, each, retained, float64(l.related))
	s.targets = append(s.targets,
		atLeast("populating, "+pods, 10, each.ratio(), whyPopulate),
		atMost("retained heap, "+pods, 1.0/3, 1/retained.ratio().median, percent, whyHeap))
	return b.ctx.Err()
}
