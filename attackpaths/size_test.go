package attackpaths_test

import (
	"fmt"
	"strings"
	"testing"
)

// unlike is nodes with labels of their own, each with a pod that may move.
func unlike(nodes int) string {
	var all strings.Builder
	all.WriteString(namespace("shop", ""))
	for i := range nodes {
		labels := fmt.Sprintf("labels: {node-restriction.kubernetes.io/machine: 'm%d'}", i)
		fmt.Fprintf(&all, "\napiVersion: v1\nkind: Node\nmetadata: {name: n%d, %s}\n---", i, labels)
		all.WriteString(account("shop", fmt.Sprint("a", i)))
		all.WriteString(pod("shop", fmt.Sprint("p", i), "''", fmt.Sprint("a", i)))
	}
	return all.String()
}

func TestEdgesGrowWithTheObjects(t *testing.T) {
	edges := func(objects string) int {
		c := newCluster()
		parse(t, c, objects)
		return graphOf(t, c).Edges()
	}
	few, many := edges(unlike(10)), edges(unlike(100))
	if many > 12*few {
		t.Errorf("a cluster with 10 nodes has %d edges, one with 100 nodes %d", few, many)
	}
}
