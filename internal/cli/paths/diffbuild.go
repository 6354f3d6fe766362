package paths

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

func newDiffResult(s *sides, compared attackpaths.Comparison) *DiffResult {
	r := &DiffResult{
		Before: s.before, After: s.after, Changes: s.changes.list(),
		Widened: []diffRow{}, Narrowed: []diffRow{}, Notes: s.notes, Missing: s.missing, custom: s.custom,
	}
	for i := range compared.Widened {
		r.Widened = append(r.Widened, s.row(&compared.Widened[i], "widened"))
	}
	for i := range compared.Expected {
		r.Expected = append(r.Expected, s.row(&compared.Expected[i], "widened"))
	}
	for i := range compared.Narrowed {
		r.Narrowed = append(r.Narrowed, s.row(&compared.Narrowed[i], "narrowed"))
	}
	return r
}

func (r *DiffResult) settle(starts []attackpaths.Start, failOn string) {
	r.FailOn = failOn
	for i := range r.Widened {
		if r.Widened[i].fails(failOn) {
			r.Failing++
		}
	}
	r.Totals = newDiffTotals(starts, r.Widened, r.Narrowed)
	switch {
	case len(r.Widened) > 0:
		r.Verdict = DiffWidened
	case len(r.Missing) > 0:
		r.Verdict = DiffUndecided
	default:
		r.Verdict = DiffNotWidened
	}
}

func (r *DiffResult) status() int {
	switch {
	case r.Failing > 0:
		return command.StatusDenied
	case len(r.Missing) > 0:
		return command.StatusUndecided
	}
	return command.StatusAllowed
}

// The values of --fail-on.
const (
	failOnPossible     = "possible"
	failOnCertain      = "certain"
	failOnClusterAdmin = "cluster-admin"
	failOnNode         = "node"
)

// DiffFailOns are the values of --fail-on.
func DiffFailOns() []string {
	return []string{failOnPossible, failOnCertain, failOnClusterAdmin, failOnNode}
}

func (r *diffRow) fails(on string) bool {
	switch on {
	case failOnCertain:
		return r.After == attackpaths.Certain
	case failOnClusterAdmin:
		return r.Kind == attackpaths.ClusterAdmin
	case failOnNode:
		return r.Kind == attackpaths.ClusterAdmin || r.Kind == attackpaths.Node
	}
	return true
}

func (s *sides) row(d *attackpaths.Difference, direction string) diffRow {
	row := diffRow{
		Kind: d.Kind, Before: d.Before, After: d.After, StartKind: d.Starts[0].Kind, StartCount: len(d.Starts), Starts: d.Starts,
		ReachedCount: len(d.Reached), Reached: d.Reached, Path: d.Path, Reason: d.Expected, Places: s.changes.places(d),
	}
	for _, held := range d.Except {
		row.Unchanged += len(held)
	}
	hash := sha256.New()
	fmt.Fprintln(hash, direction, row.Kind, row.Before, row.After)
	for _, list := range [...][]attackpaths.Holding{row.Starts, row.Reached} {
		fmt.Fprintln(hash, len(list))
		for _, h := range list {
			fmt.Fprintf(hash, "%q %q %q\n", h.Kind, h.Namespace, h.Name)
		}
	}
	row.ID = direction + "-" + hex.EncodeToString(hash.Sum(nil))[:12]
	return row
}

func newDiffTotals(starts []attackpaths.Start, widened, narrowed []diffRow) diffTotals {
	var t diffTotals
	for _, s := range starts {
		of := &t.ServiceAccounts
		if s.Kind == attackpaths.Node {
			of = &t.Nodes
		}
		if s.InBefore {
			of.Before++
		}
		if s.InAfter {
			of.After++
		}
	}
	t.Nodes.Widened, t.Nodes.GainClusterAdmin = countStarts(widened, isKind(attackpaths.Node))
	t.Nodes.Narrowed, t.Nodes.LoseClusterAdmin = countStarts(narrowed, isKind(attackpaths.Node))
	t.ServiceAccounts.Widened, t.ServiceAccounts.GainClusterAdmin = countStarts(widened, isKind(attackpaths.ServiceAccount))
	t.ServiceAccounts.Narrowed, t.ServiceAccounts.LoseClusterAdmin = countStarts(narrowed, isKind(attackpaths.ServiceAccount))
	t.Workloads.Widened, t.Workloads.GainClusterAdmin = countStarts(widened, (*diffRow).ofWorkload)
	return t
}

func isKind(kind string) func(*diffRow) bool {
	return func(r *diffRow) bool { return r.StartKind == kind }
}

// ofWorkload reports whether a row is about what the pods of a workload reach.
func (r *diffRow) ofWorkload() bool {
	return r.StartKind != attackpaths.Node && r.StartKind != attackpaths.ServiceAccount
}

// countStarts counts the starts of some rows, and of these the ones with rows about cluster-admin.
func countStarts(rows []diffRow, counts func(*diffRow) bool) (all, admins int) {
	starts := map[attackpaths.Holding]bool{}
	for i := range rows {
		if !counts(&rows[i]) {
			continue
		}
		for _, s := range rows[i].Starts {
			starts[s] = starts[s] || rows[i].Kind == attackpaths.ClusterAdmin
		}
	}
	for _, admin := range starts {
		if admin {
			admins++
		}
	}
	return len(starts), admins
}
