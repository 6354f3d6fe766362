package attackpaths

import (
	"encoding/binary"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// changedRow is a change while it is put together with others.
type changedRow struct {
	levels
	kind   string
	starts []start
	ids    []int32
	// uses are the objects that tell rows with the same holdings apart.
	uses string
	path []Step
	used []Use
}

// result makes changes of what the groups found.
func (c *comparer) result(deltas []*delta) Comparison {
	found := make([][]*changedRow, len(deltas))
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				found[i] = c.rowsOf(deltas[i])
			}
		})
	}
	for i := range deltas {
		next <- i
	}
	close(next)
	wg.Wait()
	r := Comparison{Starts: c.listStarts()}
	for _, x := range c.merge(slices.Concat(found...)) {
		if change := c.change(x); change.Widened() {
			r.Widened = append(r.Widened, change)
		} else {
			r.Narrowed = append(r.Narrowed, change)
		}
	}
	for _, list := range [...][]Difference{r.Widened, r.Narrowed} {
		slices.SortFunc(list, func(a, b Difference) int { return compareDifferences(&a, &b) })
	}
	return r
}

func (c *comparer) change(x *changedRow) Difference {
	change := Difference{Kind: x.kind, Before: x.before, After: x.after, Path: x.path, Uses: x.used}
	for _, s := range x.starts {
		change.Starts = append(change.Starts, s.holding)
	}
	for _, id := range x.ids {
		change.Reached = append(change.Reached, c.holdings[id])
	}
	return change
}

// listStarts lists the starts of both states.
func (c *comparer) listStarts() []Start {
	var all []Start
	for _, s := range c.starts() {
		all = append(all, Start{s.holding, s.before != none, s.after != none})
	}
	return all
}

// counts reports whether a change of a holding is one of its own, and how the holding is reached then.
// What is reached through cluster-admin is not.
func (d *delta) counts(c *comparer, m moved) (levels, bool) {
	if m.id == c.admin {
		return m.levels, true
	}
	l := levels{max(m.before, d.admin.before), max(m.after, d.admin.after)}
	if l.after > l.before {
		return l, m.after > d.admin.after
	}
	return l, l.before > l.after && m.before > d.admin.before
}

// rowsOf makes rows of what changes for some starts.
func (c *comparer) rowsOf(d *delta) []*changedRow {
	slices.SortFunc(d.starts, compareStarts)
	byLevels := map[levels][]int32{}
	var order []levels
	for _, m := range d.moved {
		l, ok := d.counts(c, m)
		if !ok {
			continue
		}
		if byLevels[l] == nil {
			order = append(order, l)
		}
		byLevels[l] = append(byLevels[l], m.id)
	}
	var all []*changedRow
	for _, l := range order {
		all = append(all, c.split(d.starts, l, byLevels[l])...)
	}
	return all
}

// split makes a row for each kind of holdings and each set of objects that the paths need.
func (c *comparer) split(starts []start, l levels, ids []int32) []*changedRow {
	s, other, level := &c.after, &c.before, l.after
	if l.before > l.after {
		s, other, level = &c.before, &c.after, l.before
	}
	f := c.pathFinder(s, other, level)
	defer f.release()
	slices.SortFunc(ids, func(a, b int32) int { return c.holdings[a].Compare(c.holdings[b]) })
	f.find(s.vertexOf(starts[0]), ids)
	type key struct{ kind, uses string }
	rows := map[key]*changedRow{}
	var all []*changedRow
	var own []int32
	for _, id := range ids {
		if c.isOf(id, starts[0]) {
			own = append(own, id)
			continue
		}
		used := f.uses(id)
		k := key{c.holdings[id].Kind, c.usesID(used, id)}
		if rows[k] == nil {
			rows[k] = &changedRow{levels: l, kind: k.kind, uses: k.uses, starts: starts, path: f.pathTo(id), used: used}
			all = append(all, rows[k])
		}
		rows[k].ids = append(rows[k].ids, id)
	}
	if len(starts) == 1 {
		return all
	}
	for _, id := range own {
		all = c.addOwn(f, all, starts, l, id)
	}
	return all
}

// addOwn adds the first start to what the others reach.
func (c *comparer) addOwn(f *pathFinder, all []*changedRow, starts []start, l levels, id int32) []*changedRow {
	for _, x := range all {
		if x.kind == c.holdings[id].Kind {
			x.ids = append(x.ids, id)
			slices.SortFunc(x.ids, func(a, b int32) int { return c.holdings[a].Compare(c.holdings[b]) })
			return all
		}
	}
	f.find(f.side.vertexOf(starts[1]), []int32{id})
	used := f.uses(id)
	return append(all, &changedRow{
		levels: l, kind: c.holdings[id].Kind, uses: c.usesID(used, id), starts: starts[1:], ids: []int32{id},
		path: f.pathTo(id), used: used,
	})
}

// isOf reports whether a holding is a start or its credential.
func (c *comparer) isOf(id int32, s start) bool {
	self := c.idOf(s)
	return id == self || c.nodeOf[id] == self
}

func (f *pathFinder) pathTo(id int32) []Step {
	if v := f.found[id]; v != none {
		return f.solver.path(v)
	}
	return nil
}

// usesID is the same for holdings that are reached because of the same objects, but for themselves.
func (c *comparer) usesID(used []Use, id int32) string {
	if c.options.Changed == nil {
		return ""
	}
	var names []string
	for _, u := range used {
		if u.Object != c.holdings[id] {
			names = append(names, u.Object.String())
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\n")
}

// vertexOf is the vertex of a start.
func (s *side) vertexOf(of start) vertex {
	if s.isAfter {
		return of.after
	}
	return of.before
}

// merge puts starts together for which the same changes.
func (c *comparer) merge(rows []*changedRow) []*changedRow {
	index := map[string]*changedRow{}
	var all []*changedRow
	for _, x := range rows {
		id := binary.AppendUvarint(nil, uint64(len(x.uses)))
		id = append(append(id, x.uses...), byte(x.before), byte(x.after), x.starts[0].holding.Kind[0])
		for _, h := range x.ids {
			id = binary.AppendUvarint(id, uint64(h))
		}
		known := index[string(id)]
		if known == nil {
			index[string(id)] = x
			all = append(all, x)
			continue
		}
		if compareStarts(x.starts[0], known.starts[0]) < 0 {
			known.path, known.used = x.path, x.used
		}
		known.starts = append(slices.Clip(known.starts), x.starts...)
		slices.SortFunc(known.starts, compareStarts)
	}
	return slices.DeleteFunc(all, func(x *changedRow) bool {
		if len(x.ids) == 1 {
			x.starts = slices.DeleteFunc(slices.Clone(x.starts), func(s start) bool { return c.isOf(x.ids[0], s) })
		}
		return len(x.starts) == 0
	})
}
