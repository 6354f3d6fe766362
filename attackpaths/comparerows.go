package attackpaths

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// changedRow is a difference while it is put together with others.
type changedRow struct {
	Difference
	ids []int32
	// uses are the objects that tell rows with the same holdings apart.
	uses string
}

type rowKey struct{ kind, uses string }

// rowsOf makes rows of what changes for some starts, outcome by outcome. What is reached through cluster-admin is no
// change of its own.
func (c *comparer) rowsOf(d *delta) []*changedRow {
	byOutcome := map[outcome][]int32{}
	for _, m := range d.moved {
		if o, counts := c.outcomeOf(d, m); counts {
			byOutcome[o] = append(byOutcome[o], m.id)
		}
	}
	var all []*changedRow
	for o, ids := range byOutcome {
		all = append(all, c.split(d, o, ids)...)
	}
	return all
}

// split makes a row for each kind of holdings and each set of objects that the paths need.
func (c *comparer) split(d *delta, o outcome, ids []int32) []*changedRow {
	f := c.pathFinder(o.levels)
	defer f.release()
	rows := map[rowKey]*changedRow{}
	c.sort(ids)
	for _, from := range d.starts {
		var rest, mine []int32
		for _, id := range ids {
			if d.concerns(from, id) {
				mine = append(mine, id)
			} else {
				rest = append(rest, id)
			}
		}
		f.find(mine, from)
		for _, id := range mine {
			k := rowKey{c.holdings[id].Kind, f.usesID(id)}
			x := rows[k]
			if x == nil {
				x = &changedRow{uses: k.uses, Difference: Difference{
					Kind: k.kind, Before: o.before, After: o.after, Starts: []Holding{from.holding}, Uses: f.uses(id),
					Expected: string(o.expected), Except: map[Holding][]Holding{},
				}}
				if v := f.found[id]; v != none {
					x.Path = f.solver.path(v)
				}
				rows[k] = x
			}
			x.ids = append(x.ids, id)
		}
		if ids = rest; len(ids) == 0 {
			break
		}
	}
	for _, x := range rows {
		c.concern(x, d)
	}
	return slices.Collect(maps.Values(rows))
}

// usesID is the same for holdings that are reached because of the same objects, but for themselves. Rows of workloads
// are not told apart by objects, and not put together.
func (f *pathFinder) usesID(id int32) string {
	switch {
	case isWorkload(f.from.holding):
		return f.from.holding.String()
	case f.options.Changed == nil:
		return ""
	}
	var names []string
	for _, u := range f.uses(id) {
		if u.Object != f.holdings[id] {
			names = append(names, u.Object.String())
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\n")
}

func (c *comparer) sort(ids []int32) {
	slices.SortFunc(ids, func(a, b int32) int { return c.holdings[a].Compare(c.holdings[b]) })
}

// concern adds to a row what is reached, and the starts for which something in it changes. The start of the path comes first.
func (c *comparer) concern(x *changedRow, d *delta) {
	c.sort(x.ids)
	in := make(map[int32]bool, len(x.ids))
	for _, id := range x.ids {
		in[id] = true
		x.Reached = append(x.Reached, c.holdings[id])
	}
	for _, s := range d.starts {
		if !slices.ContainsFunc(x.ids, func(id int32) bool { return d.concerns(s, id) }) {
			continue
		}
		if s.holding != x.Starts[0] {
			x.Starts = append(x.Starts, s.holding)
		}
		for id := range d.except[s.holding] {
			if in[id] {
				x.Except[s.holding] = append(x.Except[s.holding], c.holdings[id])
			}
		}
		slices.SortFunc(x.Except[s.holding], Holding.Compare)
	}
}

// merge puts starts together for which the same changes.
func merge(rows []*changedRow) []*changedRow {
	index := map[string]*changedRow{}
	var all []*changedRow
	for _, x := range rows {
		id := fmt.Appendf(nil, "%q %d %d %q %s ", x.uses, x.Before, x.After, x.Expected, x.Starts[0].Kind)
		for _, h := range x.ids {
			id = binary.AppendUvarint(id, uint64(h))
		}
		known := index[string(id)]
		if known == nil {
			index[string(id)] = x
			all = append(all, x)
			continue
		}
		if x.Starts[0].Compare(known.Starts[0]) < 0 {
			known.Starts, x.Starts, known.Path, known.Uses = x.Starts, known.Starts, x.Path, x.Uses
		}
		known.Starts = append(known.Starts, x.Starts...)
		slices.SortFunc(known.Starts[1:], Holding.Compare)
		maps.Copy(known.Except, x.Except)
	}
	return all
}
