package paths

import (
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// shownDiffRows is the maximum number of rows of each direction in a table; wide shows all.
const shownDiffRows = 20

// Text writes the verdict, then what widens and what narrows.
func (r *DiffResult) Text(p *render.Page) {
	style := map[string]render.Style{DiffWidened: render.Bad, DiffNotWidened: render.Good, DiffUndecided: render.Unsure}[r.Verdict]
	p.Line("%s", style.In(r.verdictText()))
	for _, line := range r.totalLines(true) {
		p.Line("  %s", line)
	}
	workloads, rest := splitWorkloads(r.Widened)
	named, expected := splitWorkloads(r.Expected)
	r.rowsText(p, "New and changed workloads: who breaks into one of their pods", append(workloads, named...))
	r.changesText(p)
	r.rowsText(p, "Widens", rest)
	r.rowsText(p, "Narrows", r.Narrowed)
	if r.showKnown {
		r.rowsText(p, "Known findings", r.Suppressed)
	}
	if p.Wide() {
		r.rowsText(p, "No findings", expected)
	}
	if len(r.Notes) > 0 {
		p.Section("Notes")
		for _, note := range r.Notes {
			p.Line("  %s", note)
		}
	}
}

func splitWorkloads(rows []diffRow) (workloads, otherRows []diffRow) {
	for _, row := range rows {
		if row.ofWorkload() {
			workloads = append(workloads, row)
		} else {
			otherRows = append(otherRows, row)
		}
	}
	return workloads, otherRows
}

func (r *DiffResult) verdictText() string {
	switch r.Verdict {
	case DiffWidened:
		t := &r.Totals
		text := reaching(t.Workloads.Widened, t.Nodes.Widened, t.ServiceAccounts.Widened)
		admins := startsText(t.Workloads.GainClusterAdmin, t.Nodes.GainClusterAdmin, t.ServiceAccounts.GainClusterAdmin)
		if admins != "" {
			return text + " more than before; the whole cluster: " + admins
		}
		return text + " more than before"
	case DiffUndecided:
		return "not decided: nothing is seen to widen, but not everything could be read"
	}
	return "nothing widens"
}

// startsText counts starts: "1 workload, 3 nodes and 1 service account"; empty for none.
func startsText(workloads, nodes, accounts int) string {
	var parts []string
	if workloads > 0 {
		parts = append(parts, render.Count(workloads, "workload"))
	}
	if nodes > 0 {
		parts = append(parts, render.Count(nodes, "node"))
	}
	if accounts > 0 {
		parts = append(parts, render.Count(accounts, "service account"))
	}
	return render.Join(parts, "and")
}

// reaching is startsText with the verb.
func reaching(workloads, nodes, accounts int) string {
	if workloads+nodes+accounts == 1 {
		return startsText(workloads, nodes, accounts) + " reaches"
	}
	return startsText(workloads, nodes, accounts) + " reach"
}

// totalLines say how many starts there are, and how many narrow. With flags, they name the flags that list more; a page lists all.
func (r *DiffResult) totalLines(flags bool) []string {
	var lines []string
	seeKnown, seeExpected := "", ""
	if flags {
		seeKnown, seeExpected = ", see --show-known", " (use -o wide or -o json)"
	}
	if n, a := r.Totals.Nodes.Narrowed, r.Totals.ServiceAccounts.Narrowed; n+a > 0 {
		line := reaching(0, n, a) + " less than before"
		if admins := startsText(0, r.Totals.Nodes.LoseClusterAdmin, r.Totals.ServiceAccounts.LoseClusterAdmin); admins != "" {
			line += "; no longer the whole cluster, or not certainly: " + admins
		}
		lines = append(lines, line)
	}
	if fewer := len(r.Widened) - r.Failing; fewer > 0 {
		lines = append(lines, render.Count(fewer, "finding")+" of "+render.Thousands(len(r.Widened))+" not counted by --fail-on "+r.FailOn)
	}
	if known := len(r.Suppressed); known > 0 {
		lines = append(lines, render.Count(known, "known finding")+seeKnown)
	}
	if _, expected := splitWorkloads(r.Expected); len(expected) > 0 {
		lines = append(lines,
			"no findings: "+render.Count(len(expected), "row")+" about what is new, or what the control plane reaches"+seeExpected)
	}
	t := r.Totals
	return append(lines, fmt.Sprintf("compared: %s before and %s after, %s before and %s after",
		render.Count(t.Nodes.Before, "node"), render.Thousands(t.Nodes.After),
		render.Count(t.ServiceAccounts.Before, "service account"), render.Thousands(t.ServiceAccounts.After)))
}

func (r *DiffResult) changesText(p *render.Page) {
	if len(r.Changes) == 0 {
		return
	}
	p.Section("Changes")
	more := render.TableOf(p, 2, shownDiffRows, nil, r.Changes, func(c diffChange) []string {
		about := c.Because
		if c.Objects > 1 {
			about = strings.TrimPrefix(about+"; with "+render.Count(c.Objects, "object"), "; ")
		}
		return []string{c.Action, c.Object.String(), fileLine(c.File, c.Line), render.Faint.In(about)}
	})
	if more > 0 {
		p.Line("  … and %s more (use -o wide or -o json)", render.Thousands(more))
	}
}

// String names an object as kubectl does.
func (o changedObject) String() string {
	return attackpaths.Holding{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}.String()
}

// fileLine is a place as compilers write it; empty if there is none.
func fileLine(file string, line int) string {
	switch {
	case file == "":
		return ""
	case line == 0:
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

func (r *DiffResult) rowsText(p *render.Page, title string, rows []diffRow) {
	if len(rows) == 0 {
		return
	}
	p.Section("%s", title)
	shown := render.Shown(p, shownDiffRows, rows)
	for i := range shown {
		if i > 0 {
			p.Line("")
		}
		shown[i].text(p)
	}
	if more := len(rows) - len(shown); more > 0 {
		p.Line("")
		p.Line("… and %s more (use -o wide or -o json)", render.Thousands(more))
	}
}

func (r *diffRow) text(p *render.Page) {
	p.Line("  %s → %s: %s → %s", holdingList(r.Starts, r.StartKind, p.Wide()), render.Strong.In(r.reachedText(p.Wide())),
		StyleOf(r.Before).In(r.Before.String()), StyleOf(r.After).In(r.After.String()))
	if r.Reason != "" {
		p.Line("    %s", render.Faint.In("no finding: "+r.Reason))
	}
	rows := stepRows(p, r.Path)
	for i := range rows {
		if place := r.placeText(i + 1); place != "" {
			rows[i][3] += " " + render.Strong.In("["+place+"]")
		}
	}
	p.Steps(4, rows)
}

// placeText names the changed objects that decide about a step: roles and bindings, or else a
// workload, or else all.
func (r *diffRow) placeText(step int) string {
	best := len(PlaceKinds)
	for _, place := range r.Places {
		if place.Step == step {
			best = min(best, place.rank())
		}
	}
	var parts []string
	for _, place := range r.Places {
		if place.Step == step && place.rank() == best {
			parts = append(parts, place.text())
		}
	}
	return strings.Join(parts, ", ")
}

// PlaceKinds are kinds of objects by how much they say about a step.
var PlaceKinds = [...][]string{
	{"RoleBinding", "ClusterRoleBinding", "Role", "ClusterRole"},
	{"Pod", "Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "ReplicationController", "Job", "CronJob"},
}

func (p diffPlace) rank() int {
	for rank, kinds := range PlaceKinds {
		if slices.Contains(kinds, p.Object.Kind) {
			return rank
		}
	}
	return len(PlaceKinds)
}

// text is "x.yaml:3 clusterrolebinding admins", or "without clusterrolebinding admins".
func (p diffPlace) text() string {
	switch at := fileLine(p.File, p.Line); {
	case at != "":
		return at + " " + p.Object.String()
	case p.Action == "Removed":
		return "without " + p.Object.String()
	}
	return p.Object.String()
}

func (r *diffRow) reachedText(all bool) string { return holdingList(r.Reached, r.Kind, all) }

func nounOf(kind string) string {
	for _, n := range holdingNouns {
		if n.kind == kind {
			return n.noun
		}
	}
	return kind
}

// holdingList names one holding, or counts several with examples.
func holdingList(all []attackpaths.Holding, kind string, every bool) string {
	if len(all) == 1 {
		return holdingText(all[0])
	}
	names := make([]string, len(all))
	for i, h := range all {
		names[i] = render.ObjectName(h)
	}
	return fmt.Sprintf("%s (%s)", render.Count(len(all), nounOf(kind)), command.Some(names, every))
}
