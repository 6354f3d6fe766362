package attackpaths

import (
	"slices"
	"strings"
)

// NodeRestriction holds nodes, not accounts: one that may change nodes gives a node that the attacker
// holds every label, those that no node may set on itself too, and takes its taints. The status of a
// node has labels, and no taints.

// byAccounts ends the names of facts about pods that move because an account labels a node.
const byAccounts = " when accounts label nodes"

func anyLabel(string) bool { return true }

// labelsNodes gives what moves to nodes that are held to who may change them.
func (b *builder) labelsNodes(v vertex, k key) {
	name := untaintedNode
	if right(k.variant) == changeNodeStatus {
		name = labelledNode
	}
	for i := range b.nodes {
		if n := b.nodes[i].Name; k.name == "" || k.name == n {
			b.together("", b.fact(name, n), "", v, b.vertex(key{kind: isNode, name: n}))
		}
	}
}

func (b *builder) expandLabelledNode(v vertex, k key) {
	for i := range b.nodes {
		n := b.nodes[i]
		if n.Name != k.namespace {
			continue
		}
		if k.name == untaintedNode {
			n.Taints = nil
		}
		b.implies(v, b.movableTo(&n, anyLabel, byAccounts, b.labelledSets))
		for _, p := range b.movablePods() {
			if p.scoped && p.placement.Allows(&n, anyLabel) {
				b.movedTo(v, &n, p)
			}
		}
	}
}

// isLabelled reports whether pods move because an account labels a node.
func (k key) isLabelled() bool {
	return k.kind == isFact && (k.name == labelledNode || k.name == untaintedNode || strings.HasSuffix(k.name, byAccounts))
}

// labelsFromOutside reports whether nodes that are not in a pool hold an account that may change labels or taints of
// nodes: the pool rests on these.
func (b *builder) labelsFromOutside(pool []string) bool {
	var outside []vertex
	for i := range b.nodes {
		if name := b.nodes[i].Name; !slices.Contains(pool, name) {
			outside = append(outside, b.vertex(key{kind: isNode, name: name}))
		}
	}
	s := b.solver(true)
	defer b.release(s)
	s.solve(outside...)
	for v, k := range b.keys {
		if k.kind == isRight && (right(k.variant) == changeNodes || right(k.variant) == changeNodeStatus) && s.has(vertex(v)) {
			return true
		}
	}
	return false
}
