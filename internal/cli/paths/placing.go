package paths

import (
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/rbac"
)

func placingText(p *render.Page, a *attackpaths.Advice, target string) {
	placing := a.Placing
	if placing == nil {
		return
	}
	p.Section("Where to run the pods that give %s", target)
	if len(placing.Nodes) == 0 {
		p.Line("  None of these pods can be placed:")
	} else {
		p.Line("  %s of the %s with these pods can be a pool: %s.",
			render.Thousands(len(placing.Nodes)), render.Count(placing.Before, "node"), command.Some(placing.Nodes, p.Wide()))
		p.Line("  Then %s no longer certainly %s %s, and %s not at all. The other changes are not needed for that.",
			render.Count(placing.Certain, "node"), reach(placing.Certain), target,
			render.Thousands(placing.Entirely))
		p.Line("  The nodes get the label and the taint %s=%s (--what-to-change --fix prints the commands).",
			placing.Taint.Key, placing.Taint.Value)
	}
	var rows [][]string
	for _, w := range append(placing.Workloads, placing.Unplaced...) {
		place := "in the pool"
		if w.Why != "" {
			place = render.Unsure.In("not placed: " + w.Why)
		}
		object := rbac.Ref{Kind: w.Object.Kind, Namespace: w.Object.Namespace, Name: w.Object.Name}
		rows = append(rows, []string{render.Thousands(w.Nodes), object.String(), holdingText(w.Through), place})
	}
	p.Table(2, []string{"NODES", "WORKLOAD", "THROUGH", "PLACE"}, rows)
}
