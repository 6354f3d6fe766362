package main

import (
	"fmt"
	"time"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

const worstMethod = `One secret stands behind many persistent volumes, each bound to a claim that a pod on a
node of its own uses. Nodes with a pod, but without a path to the secret, ask for it, so
that every volume has to be ruled out; so do nodes with a path. In-tree gets fewer
questions, in fewer rounds, where one takes a second and more.`

// worst measures the request that costs most in-tree.
func (b *bench) worst() (section, error) {
	s := section{title: "The worst case", method: worstMethod}
	t := table{
		caption: "**A secret behind many volumes**, by the number of volumes, each on its own node.",
		header:  []string{"volumes", "refused: faster", "node-authorizer", "in-tree", "allowed: faster", "node-authorizer", "in-tree"},
	}
	var refused []float64
	for _, n := range b.sizes.worst {
		l := fanOut{related: n, unrelated: b.sizes.unrelatedNodes, behindVolumes: true}
		b.log("worst case: %d volumes", n)
		c, err := b.filled(l.fill)
		if err != nil {
			return s, err
		}
		row := []string{thousands(float64(n))}
		related, unrelated := l.ask(b.sizes.unrelatedNodes)
		for _, q := range []questions{unrelated, related} {
			r, err := b.readWorst(c, q)
			if err != nil {
				return s, err
			}
			row = append(row, r.ratio().String(), nanoseconds(r.of(ours)), nanoseconds(r.of(inTree)))
			if q.want == authorizer.DecisionNoOpinion {
				refused = append(refused, r.of(ours))
				if n == b.sizes.worstTarget {
					what := fmt.Sprintf("a node without access asks for a secret behind %s volumes", thousands(float64(n)))
					s.targets = append(s.targets, atLeast(what, 1000, r.ratio(), ""))
				}
			}
		}
		t.add(row...)
	}
	sizes := b.sizes.worst
	growth := refused[len(refused)-1] / refused[0]
	s.targets = append(s.targets, atMost(
		fmt.Sprintf("cost with %s volumes against %s", thousands(float64(sizes[len(sizes)-1])), thousands(float64(sizes[0]))),
		flat, growth, times, whyGrowth))
	s.tables = append(s.tables, t)
	return s, nil
}

// flat is how much a cost that does not depend on the number of volumes may
// still differ, for what has to come from slower caches.
const flat = 2

// readWorst asks ours all questions as often as needed, and in-tree, which may
// take a second for one, as few as give a figure.
func (b *bench) readWorst(c pair[implementation], q questions) (rounds, error) {
	if err := q.check(ours, c[ours]); err != nil {
		return rounds{}, err
	}
	few := q
	few.attr = q.attr[:1]
	begin := time.Now()
	if err := few.check(inTree, c[inTree]); err != nil {
		return rounds{}, err
	}
	n := 3
	if time.Since(begin) < time.Second {
		few.attr, n = q.attr[:min(8, len(q.attr))], b.rounds
	}
	if err := few.check(inTree, c[inTree]); err != nil {
		return rounds{}, err
	}
	r := alternate(n, func(s side) float64 {
		asked := q
		if s == inTree {
			asked = few
		}
		return perOperation(len(asked.attr), b.atLeast, func() { ask(c[s].authorizer, asked.attr) })
	})
	return r, b.ctx.Err()
}
