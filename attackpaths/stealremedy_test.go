package attackpaths_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// A large cluster has thousands of these remedies, and workloads on thousands of nodes.
func TestRemedyOfStealPodsIsBounded(t *testing.T) {
	const selector = `add statefulset shop/web /spec/template/spec/nodeSelector {"node-restriction.kubernetes.io/shop.web":""}`
	label := func(node int) string {
		return fmt.Sprintf(`add node n%d /metadata/labels/node-restriction.kubernetes.io~1shop.web ""`, node)
	}
	for _, c := range []struct {
		rule    string
		nodes   int
		warning string
		want    []string
	}{
		{"few nodes are labeled all", 3, "", []string{label(2), label(3), label(4), selector}},
		{
			"of many nodes, some are", 6,
			"The pods run on 3 more nodes: label the ones that you trust, or the pods have to run on these 3.",
			[]string{label(2), label(3), label(4), selector},
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			objects := node("n1") + account("shop", "web")
			for i := range c.nodes {
				on := fmt.Sprint("n", i+2)
				objects += node(on) + ownedBy(pod("shop", fmt.Sprint("web-", i), on, "web"), "apps/v1", "StatefulSet", "web")
			}
			cluster := newCluster()
			parse(t, cluster, objects)
			r := stolenFrom(t, cluster)
			if got := remedyText(r); !slices.Equal(got, c.want) || r.Warning != c.warning {
				t.Errorf("the remedy is %q, warning %q; want %q, warning %q", got, r.Warning, c.want, c.warning)
			}
		})
	}
}

// stolenFrom is the remedy of the first pod that node n1 may get.
func stolenFrom(t *testing.T, c *attackpaths.Cluster) *verdict.Remedy {
	t.Helper()
	g := graphOf(t, c)
	for _, r := range from(t, g, attackpaths.Holding{Kind: attackpaths.Node, Name: "n1"}).Reached {
		for _, step := range r.Path {
			if step.Technique == attackpaths.StealPods {
				return withRemedy(g, step).Remedy
			}
		}
	}
	t.Fatal("the node gets no pods")
	return nil
}
