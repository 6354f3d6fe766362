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

// rowsOf makes a row for each kind of holdings and each set of objects that the paths to them need.
func (c *comparer) rowsOf(d *delta) []*changedRow {
	f := c.pathFinder(d.levels)
	defer f.release()
	rows, ids := map[rowKey]*changedRow{}, d.ids
	for _, from := range d.starts {
		concerns := func(id int32) bool { return d.concerns(from, id) }
		mine := slices.DeleteFunc(slices.Clone(ids), func(id int32) bool { return !concerns(id) })
		f.find(mine, from)
		for _, id := range mine {
			k := rowKey{c.holdings[id].Kind, f.usesID(id)}
			x := rows[k]
			if x == nil {
				x = &changedRow{uses: k.uses, Difference: Difference{
					Kind: k.kind, Before: d.before, After: d.after, Starts: []Holding{from.holding}, Uses: f.uses(id),
					Expected: d.expected, Except: map[Holding][]Holding{},
				}}
				if v := f.found[id]; v != none {
					x.Path = f.solver.path(v)
				}
				rows[k] = x
			}
			x.ids = append(x.ids, id)
		}
		if ids = slices.DeleteFunc(slices.Clone(ids), concerns); len(ids) == 0 {
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
