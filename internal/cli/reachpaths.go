package cli

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// reachPaths is what the node leads to in the end, by all attack paths.
type reachPaths struct {
	// ClusterAdmin says whether the node leads to the whole cluster.
	ClusterAdmin attackpaths.Certainty `json:"clusterAdmin"`
	// Counts are how many holdings of each kind are reached without cluster-admin.
	Counts []attackpaths.Count `json:"counts,omitempty"`
	// Missing is the state that could not be read and that only attack paths need.
	Missing []missing `json:"missing,omitempty"`

	unread bool
}

// attackPathsTotal counts what a node leads to.
func (s *session) attackPathsTotal(node string) (*reachPaths, error) {
	g, err := s.attackGraph(&attackPathsFlags{})
	if err != nil {
		return nil, err
	}
	reached, err := g.From(attackpaths.Holding{Kind: attackpaths.Node, Name: node})
	if err != nil {
		// Only a volume attachment or the like names the node.
		none := missing{Resource: "nodes", Reason: err.Error() + ": it has neither the Node object nor a pod on the node"}
		return &reachPaths{Missing: []missing{none}, unread: true}, nil
	}
	total := &reachPaths{
		ClusterAdmin: reached.ClusterAdmin, Counts: countHoldings(reached.Reached), Missing: s.missingForInventory(),
		unread: len(s.missingForPaths(nodesOf(reached)...)) > 0,
	}
	return total, nil
}

// missingForInventory is the state that could not be read and that only attack paths need.
func (s *session) missingForInventory() []missing {
	var all []missing
	for _, m := range s.State.Missing() {
		if m.ForInventory() {
			all = append(all, newMissing(m))
		}
	}
	return all
}

// missingForReach is the state that could not be read and that answers about a node need: NodeScopes, and the APIServices that they
// depend on, are about accounts only.
func (s *session) missingForReach() []missing {
	var all []missing
	for _, m := range s.State.Missing() {
		if !m.ForInventory() && m.Kind&(source.NodeScopes|source.APIServices) == 0 {
			all = append(all, newMissing(m))
		}
	}
	return all
}

// text is the total in one line.
func (t *reachPaths) text(node string) string {
	var parts []string
	switch {
	case t.ClusterAdmin != attackpaths.No:
		parts = append(parts, styleOf(t.ClusterAdmin).In("cluster-admin is "+strings.ToLower(t.ClusterAdmin.String())))
	case t.unread:
		parts = append(parts, render.Unsure.In("cluster-admin is unknown"))
	default:
		parts = append(parts, styleOf(t.ClusterAdmin).In("not cluster-admin"))
	}
	if totals := countTexts(t.Counts); totals != "" && t.ClusterAdmin != attackpaths.Certain {
		parts = append(parts, totals)
	}
	return strings.Join(parts, "; ") + render.Faint.In(" (node-authorizer attack-paths node/"+node+")")
}
