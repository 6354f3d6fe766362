package query

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/cli/paths"
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
	Missing []command.Missing `json:"missing,omitempty"`

	unread bool
}

// attackPathsTotal counts what a node leads to.
func attackPathsTotal(s *command.Session, node string) (*reachPaths, error) {
	g, err := paths.AttackGraph(s, &paths.AttackPathsFlags{})
	if err != nil {
		return nil, err
	}
	reached, err := g.From(attackpaths.Holding{Kind: attackpaths.Node, Name: node})
	if err != nil {
		// Only a volume attachment or the like names the node.
		none := command.Missing{Resource: "nodes", Reason: err.Error() + ": it has neither the Node object nor a pod on the node"}
		return &reachPaths{Missing: []command.Missing{none}, unread: true}, nil
	}
	total := &reachPaths{
		ClusterAdmin: reached.ClusterAdmin, Counts: paths.CountHoldings(reached.Reached), Missing: s.MissingOf(source.Missing.ForInventory),
		unread: len(paths.MissingForPaths(s, paths.NodesOf(reached)...)) > 0,
	}
	return total, nil
}

// missingForReach is the state that could not be read and that answers about a node need: NodeScopes, and the APIServices that they
// depend on, are about accounts only.
func missingForReach(s *command.Session) []command.Missing {
	return s.MissingOf(func(m source.Missing) bool {
		return !m.ForInventory() && m.Kind&(source.NodeScopes|source.APIServices) == 0
	})
}

func (t *reachPaths) text(node string) string {
	var parts []string
	switch {
	case t.ClusterAdmin != attackpaths.No:
		parts = append(parts, paths.StyleOf(t.ClusterAdmin).In("cluster-admin is "+strings.ToLower(t.ClusterAdmin.String())))
	case t.unread:
		parts = append(parts, render.Unsure.In("cluster-admin is unknown"))
	default:
		parts = append(parts, paths.StyleOf(t.ClusterAdmin).In("not cluster-admin"))
	}
	if totals := paths.CountTexts(t.Counts); totals != "" && t.ClusterAdmin != attackpaths.Certain {
		parts = append(parts, totals)
	}
	return strings.Join(parts, "; ") + render.Faint.In(" (node-authorizer attack-paths node/"+node+")")
}
