package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const readsMethod = `Requests go through ` + "`authorizer.Authorizer`" + ` with the same ` + "`*AttributesRecord`" + `s on both sides.
They are about pods chosen at random among all, and lie in memory in the order in which
they are asked, as a server has a request at hand that it has just read. "All kinds" asks
equally many of each, in random order: once from all of the graph, most of which then has
to come from memory, and once the same few hundred again and again, for which it is in the
processor's caches. Times are processor time of the asking thread. Every decision is
checked before it is timed.`

// reads measures requests, by kind and in all.
func (b *bench) reads() (section, error) {
	s := section{title: "Requests", method: readsMethod}
	for _, l := range []struct {
		name, caption string
		layout
	}{
		{"own objects", "every pod with a secret, configmap, claim and volume of its own", b.sizes.own()},
		{"shared objects", "the pods of a namespace sharing one of each", b.sizes.shared()},
	} {
		b.log("requests: filling, %s", l.name)
		c, err := b.filled(l.fill)
		if err != nil {
			return s, err
		}
		for _, group := range []struct {
			name  string
			kinds []kindOfQuestion
			want  authorizer.Decision
			bound float64
			why   string
		}{
			{"allowed", allowedKinds, authorizer.DecisionAllow, 5, whyAllowed},
			{"refused", refusedKinds, authorizer.DecisionNoOpinion, 4, whyRefused},
		} {
			b.log("requests: %s, %s", group.name, l.name)
			all := l.ask(group.kinds, group.want, b.sizes.questions)
			t := newReadTable(fmt.Sprintf("**%s requests, %s.** %s.", upperFirst(group.name), l.name, upperFirst(l.caption)))
			most := 0.0
			for _, q := range all {
				r, err := b.read(c, q)
				if err != nil {
					return s, err
				}
				most = max(most, r.allocations[ours])
				t.addRead(q.kind, r)
			}
			mix := mixed("all kinds", all)
			for _, m := range []struct {
				questions
				where string
			}{{mix, "from all of the graph"}, {mix.first(b.sizes.questions / 8), "the same few again"}} {
				r, err := b.read(c, m.questions)
				if err != nil {
					return s, err
				}
				t.addRead(fmt.Sprintf("**all kinds, %s**", m.where), r)
				s.targets = append(s.targets,
					atLeast(fmt.Sprintf("%s, %s, %s", group.name, l.name, m.where), group.bound, r.ratio(), group.why))
			}
			s.tables = append(s.tables, t)
			if group.want == authorizer.DecisionAllow {
				s.targets = append(s.targets, atMost("allocations of an allowed request, any kind, "+l.name, 0, most, count, ""))
			}
		}
		s.tables = append(s.tables, b.parallel(c, l.name, l.layout))
	}
	err := b.readFanOut(&s)
	s.remarks = append(s.remarks, sharedRemark)
	return s, err
}

// readFanOut asks about one configmap that is used on 5,000 nodes.
func (b *bench) readFanOut(s *section) error {
	l := fanOut{related: b.sizes.relatedNodes, unrelated: b.sizes.unrelatedNodes}
	b.log("requests: one configmap on %d nodes", l.related)
	c, err := b.filled(l.fill)
	if err != nil {
		return err
	}
	related, unrelated := l.ask(b.sizes.questions)
	name := fmt.Sprintf("one configmap on %s nodes", thousands(float64(l.related)))
	t := newReadTable("**" + upperFirst(name) + "**, one pod on each.")
	for _, q := range []questions{related, unrelated} {
		r, err := b.read(c, q)
		if err != nil {
			return err
		}
		t.addRead(q.kind, r)
		if q.want == authorizer.DecisionAllow {
			s.targets = append(s.targets, atLeast("allowed, "+name, 5, r.ratio(), whyFanOut))
		} else {
			s.targets = append(s.targets, atLeast("refused, "+name, 4, r.ratio(), whyRefused))
		}
	}
	s.tables = append(s.tables, t)
	return nil
}

// filled returns both implementations with the same objects.
func (b *bench) filled(fill func(implementation)) (pair[implementation], error) {
	var c pair[implementation]
	for _, s := range sides {
		c[s] = s.new()
		fill(c[s])
	}
	settle()
	return c, b.ctx.Err()
}

// reading has the times of one kind of questions.
type reading struct {
	rounds
	allocations pair[float64]
}

// read measures one kind of questions.
func (b *bench) read(c pair[implementation], q questions) (reading, error) {
	if err := b.ctx.Err(); err != nil {
		return reading{}, err
	}
	pass := func(s side) func() {
		return func() { ask(c[s].authorizer, q.attr) }
	}
	for _, s := range sides {
		if err := q.check(s, c[s]); err != nil {
			return reading{}, err
		}
	}
	r := reading{rounds: alternate(b.rounds, func(s side) float64 {
		return perOperation(len(q.attr), b.atLeast, pass(s))
	})}
	for _, s := range sides {
		r.allocations[s] = allocations(len(q.attr), pass(s))
	}
	return r, nil
}

func newReadTable(caption string) table {
	return table{caption: caption, header: []string{"request", "faster", "node-authorizer", "allocations", "in-tree", "allocations"}}
}

func (t *table) addRead(kind string, r reading) {
	t.add(kind, r.ratio().String(),
		nanoseconds(r.of(ours)), count(r.allocations[ours]), nanoseconds(r.of(inTree)), count(r.allocations[inTree]))
}

// parallel asks on all cores at once. Here time that has passed counts.
func (b *bench) parallel(c pair[implementation], name string, l layout) table {
	all := mixed("", append(
		l.ask(allowedKinds, authorizer.DecisionAllow, b.sizes.questions/4),
		l.ask(refusedKinds, authorizer.DecisionNoOpinion, b.sizes.questions/4)...))
	workers := runtime.GOMAXPROCS(0)
	r := alternate(b.rounds, func(s side) float64 {
		var asked atomic.Int64
		var group sync.WaitGroup
		begin := time.Now()
		for w := range workers {
			group.Go(func() {
				for i := w; time.Since(begin) < 5*b.atLeast; i++ {
					part := all.attr[i*256%len(all.attr):]
					part = part[:min(256, len(part))]
					ask(c[s].authorizer, part)
					asked.Add(int64(len(part)))
				}
			})
		}
		group.Wait()
		return float64(time.Since(begin).Nanoseconds()) / float64(asked.Load())
	})
	t := table{
		caption: fmt.Sprintf("**Requests on all cores at once, %s.** Allowed and refused, all kinds, %d goroutines.", name, workers),
		header:  []string{"", "faster", "node-authorizer", "in-tree"},
	}
	t.add("requests per second", r.ratio().String(), thousands(1e9/r.of(ours)), thousands(1e9/r.of(inTree)))
	return t
}
