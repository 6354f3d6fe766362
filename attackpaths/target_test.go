package attackpaths_test

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// TestAllNodesToAgreesWithFrom: a node reaches a target if it, or cluster-admin, is among what the node reaches.
func TestAllNodesToAgreesWithFrom(t *testing.T) {
	eachCluster(t, 300, func(t *testing.T, rc *randomCluster) {
		g := graphOf(t, rc.cluster(t, rc.Objects))
		reached := map[string]map[attackpaths.Holding]attackpaths.Certainty{}
		for _, node := range g.Holdings(attackpaths.Node) {
			result, err := g.From(node)
			if err != nil {
				t.Fatal(err)
			}
			of := map[attackpaths.Holding]attackpaths.Certainty{}
			for _, x := range result.Reached {
				of[x.Holding] = x.Certainty
			}
			reached[node.Name] = of
		}
		for _, kind := range []string{attackpaths.Node, attackpaths.Secret, attackpaths.ServiceAccount, attackpaths.Pod} {
			for _, target := range g.Holdings(kind) {
				classes, err := g.AllNodesTo(target)
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range classes {
					for _, name := range c.Nodes {
						want := max(reached[name][target], reached[name][attackpaths.Holding{Kind: attackpaths.ClusterAdmin}])
						one, err := g.FromTo(attackpaths.Holding{Kind: attackpaths.Node, Name: name}, target)
						if err != nil || one.Target.Certainty != want || *c.Target != want {
							t.Errorf("%s to %s: AllNodesTo %s, FromTo %s, %v; want %s",
								name, target, *c.Target, one.Target.Certainty, err, want)
						}
					}
				}
			}
		}
	})
}
