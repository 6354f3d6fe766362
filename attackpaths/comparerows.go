package attackpaths

import (
	"encoding/binary"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// changedRow is a change while it is put together with others.
type changedRow struct {
	outcome
	kind string
	// first is the start of the path.
	first  start
	starts []start
	ids    []int32
	except map[Holding]map[int32]bool
	// uses are the objects that tell rows with the same holdings apart.
	uses string
	path []Step
	used []Use
}

// outcome is how holdings are reached in both states, and whether it is expected.
type outcome struct {
	levels
	expected
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
		r.add([]Difference{c.change(x)})
	}
	return r
}

// add puts differences to their lists, in order.
func (r *Comparison) add(all []Difference) {
	for _, d := range all {
		switch {
		case !d.Widened():
			r.Narrowed = append(r.Narrowed, d)
		case d.Expected != "":
			r.Expected = append(r.Expected, d)
		default:
			r.Widened = append(r.Widened, d)
		}
	}
	for _, list := range [...][]Difference{r.Widened, r.Expected, r.Narrowed} {
		slices.SortFunc(list, func(a, b Difference) int { return compareDifferences(&a, &b) })
	}
}

func (c *comparer) change(x *changedRow) Difference {
	d := Difference{Kind: x.kind, Before: x.before, After: x.after, Path: x.path, Uses: x.used, Expected: x.expected.String()}
	for _, s := range x.starts {
		d.Starts = append(d.Starts, s.holding)
	}
	for _, id := range x.ids {
		d.Reached = append(d.Reached, c.holdings[id])
	}
	for start, ids := range x.except {
		if d.Except == nil {
			d.Except = map[Holding][]Holding{}
		}
		for _, id := range slices.Sorted(maps.Keys(ids)) {
			d.Except[start] = append(d.Except[start], c.holdings[id])
		}
		slices.SortFunc(d.Except[start], Holding.Compare)
	}
	return d
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

// expects says whether what changes is a finding.
func (d *delta) expects(c *comparer, m moved, l levels) expected {
	switch {
	case l.after < l.before:
		return isFinding
	case d.controlPlane && (m.id != c.admin || l.after != Certain):
		return ofControlPlane
	}
	return m.expected
}

// rowsOf makes rows of what changes for some starts.
func (c *comparer) rowsOf(d *delta) []*changedRow {
	slices.SortFunc(d.starts, compareStarts)
	byOutcome := map[outcome][]int32{}
	var order []outcome
	for _, m := range d.moved {
		l, ok := d.counts(c, m)
		if !ok {
			continue
		}
		o := outcome{l, d.expects(c, m, l)}
		if byOutcome[o] == nil {
			order = append(order, o)
		}
		byOutcome[o] = append(byOutcome[o], m.id)
	}
	var all []*changedRow
	for _, o := range order {
		all = append(all, c.split(d, o, byOutcome[o])...)
	}
	return all
}

// split makes a row for each kind of holdings and each set of objects that the paths need.
func (c *comparer) split(d *delta, l outcome, ids []int32) []*changedRow {
	s, other, level := &c.after, &c.before, l.after
	if l.before > l.after {
		s, other, level = &c.before, &c.after, l.before
	}
	p := &splitter{comparer: c, delta: d, outcome: l, finder: c.pathFinder(s, other, level), rows: map[rowKey]*changedRow{}}
	defer p.finder.release()
	slices.SortFunc(ids, func(a, b int32) int { return c.holdings[a].Compare(c.holdings[b]) })
	for _, from := range d.starts {
		var rest, mine []int32
		for _, id := range ids {
			if c.isOf(id, from) || d.except[from.holding][id] {
				rest = append(rest, id)
			} else {
				mine = append(mine, id)
			}
		}
		if len(mine) > 0 {
			p.take(from, mine)
		}
		if ids = rest; len(ids) == 0 {
			break
		}
	}
	for _, x := range p.order {
		c.concern(x, d)
	}
	return p.order
}

type rowKey struct{ kind, uses string }

// splitter makes rows of what changes for the starts of a delta.
type splitter struct {
	*comparer
	*delta
	outcome
	finder *pathFinder
	rows   map[rowKey]*changedRow
	order  []*changedRow
}

// take adds holdings that change for a start.
func (p *splitter) take(from start, ids []int32) {
	f := p.finder
	f.find(ids, f.side.vertexOf(from))
	for _, id := range ids {
		k := rowKey{kind: p.holdings[id].Kind}
		var used []Use
		if p.options.Changed != nil {
			used = f.uses(id)
			k.uses = p.usesID(used, id)
		}
		x := p.rows[k]
		if x == nil {
			if used == nil {
				used = f.uses(id)
			}
			x = &changedRow{outcome: p.outcome, kind: k.kind, uses: k.uses, first: from, path: f.pathTo(id), used: used}
			p.rows[k] = x
			p.order = append(p.order, x)
		}
		x.ids = append(x.ids, id)
	}
}

// concern gives a row the starts for which something in it changes: the one of the path comes first.
func (c *comparer) concern(x *changedRow, d *delta) {
	slices.SortFunc(x.ids, func(a, b int32) int { return c.holdings[a].Compare(c.holdings[b]) })
	in := make(map[int32]bool, len(x.ids))
	for _, id := range x.ids {
		in[id] = true
	}
	x.except = map[Holding]map[int32]bool{}
	for _, s := range d.starts {
		except := map[int32]bool{}
		for id := range d.except[s.holding] {
			if in[id] {
				except[id] = true
			}
		}
		left := len(x.ids) - len(except)
		for _, self := range [...]int32{c.idOf(s), c.credentialOf[c.idOf(s)]} {
			if self >= 0 && in[self] && !except[self] {
				left--
			}
		}
		if left == 0 {
			continue
		}
		if len(except) > 0 {
			x.except[s.holding] = except
		}
		x.starts = append(x.starts, s)
	}
	x.sortStarts()
}

// sortStarts sorts the starts, but for the first one of the path.
func (x *changedRow) sortStarts() {
	slices.SortFunc(x.starts, func(a, b start) int {
		switch {
		case a == b:
			return 0
		case a == x.first:
			return -1
		case b == x.first:
			return 1
		}
		return compareStarts(a, b)
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
		id = append(append(id, x.uses...), byte(x.before), byte(x.after), byte(x.expected), x.starts[0].holding.Kind[0])
		for _, h := range x.ids {
			id = binary.AppendUvarint(id, uint64(h))
		}
		known := index[string(id)]
		if known == nil {
			index[string(id)] = x
			all = append(all, x)
			continue
		}
		if compareStarts(x.first, known.first) < 0 {
			known.first, known.path, known.used = x.first, x.path, x.used
		}
		known.starts = append(known.starts, x.starts...)
		maps.Copy(known.except, x.except)
		known.sortStarts()
	}
	return all
}
