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

// labelsNodes gives what moves to nodes that are held to who may change them.
func (b *builder) labelsNodes(v vertex, k key) {
	name := untaintedNode
	if right(k.variant) == changeNodeStatus {
		name = labelledNode
	}
	for _, n := range b.nodes {
		if k.name == "" || k.name == n.Name {
			b.together("", b.fact(name, n.Name), "", v, b.vertex(key{kind: isNode, name: n.Name}))
		}
	}
}

func (b *builder) expandLabelledNode(v vertex, k key) {
	n := *b.node(k.namespace)
	if k.name == untaintedNode {
		n.Taints = nil
	}
	b.gets(v, n.Name, b.movesTo(&n, func(string) bool { return true }, byAccounts))
}

// isLabelled reports whether pods move because an account labels a node.
func (k key) isLabelled() bool {
	return k.kind == isFact && (k.name == labelledNode || k.name == untaintedNode || strings.HasSuffix(k.name, byAccounts))
}

// labelsFromOutside reports whether nodes that are not in a pool hold an account that may change labels or taints of
// nodes: the pool rests on these.
func (b *builder) labelsFromOutside(pool []string) bool {
	var outside []vertex
	for _, n := range b.nodes {
		if !slices.Contains(pool, n.Name) {
			outside = append(outside, b.vertex(key{kind: isNode, name: n.Name}))
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
