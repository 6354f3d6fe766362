package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// newDiffResult makes the document of a comparison.
func newDiffResult(s *sides, compared attackpaths.Comparison) *diffResult {
	r := &diffResult{
		Before: s.before, After: s.after, Changes: s.changes.list(),
		Widened: []diffRow{}, Narrowed: []diffRow{}, Notes: s.notes, Missing: s.missing, custom: s.custom,
	}
	for i := range compared.Widened {
		r.Widened = append(r.Widened, s.row(&compared.Widened[i], "widened"))
	}
	for i := range compared.Narrowed {
		r.Narrowed = append(r.Narrowed, s.row(&compared.Narrowed[i], "narrowed"))
	}
	r.Totals = newDiffTotals(compared)
	switch {
	case len(r.Widened) > 0:
		r.Verdict = diffWidened
	case len(r.Missing) > 0:
		r.Verdict = diffUndecided
	default:
		r.Verdict = diffNotWidened
	}
	return r
}

func (r *diffResult) status() int {
	return map[string]int{diffWidened: statusDenied, diffUndecided: statusUndecided, diffNotWidened: statusAllowed}[r.Verdict]
}

func (s *sides) row(d *attackpaths.Difference, direction string) diffRow {
	row := diffRow{
		Kind: d.Kind, Before: d.Before, After: d.After, StartKind: d.Starts[0].Kind, StartCount: len(d.Starts), Starts: d.Starts,
		ReachedCount: len(d.Reached), Reached: d.Reached, Path: d.Path, Places: s.changes.places(d),
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

// newDiffTotals counts starts.
func newDiffTotals(c attackpaths.Comparison) diffTotals {
	var t diffTotals
	of := func(kind string) *diffTotal {
		if kind == attackpaths.Node {
			return &t.Nodes
		}
		return &t.ServiceAccounts
	}
	for _, s := range c.Starts {
		if s.InBefore {
			of(s.Kind).Before++
		}
		if s.InAfter {
			of(s.Kind).After++
		}
	}
	count := func(rows []attackpaths.Difference, total, admins func(*diffTotal) *int) {
		starts, gain := map[attackpaths.Holding]bool{}, map[attackpaths.Holding]bool{}
		for i := range rows {
			for _, s := range rows[i].Starts {
				starts[s] = true
				if rows[i].Kind == attackpaths.ClusterAdmin {
					gain[s] = true
				}
			}
		}
		for s := range starts {
			*total(of(s.Kind))++
		}
		for s := range gain {
			*admins(of(s.Kind))++
		}
	}
	count(c.Widened, func(d *diffTotal) *int { return &d.Widened }, func(d *diffTotal) *int { return &d.GainClusterAdmin })
	count(c.Narrowed, func(d *diffTotal) *int { return &d.Narrowed }, func(d *diffTotal) *int { return &d.LoseClusterAdmin })
	return t
}
