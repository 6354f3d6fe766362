package cli

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// patches are the remedies of a script that run. Two that change one object are one patch: JSON patches name entries of
// lists by their places, which another patch moves.
type patches struct {
	remedies []verdict.Remedy
	written  []bool
}

// write writes the patch of a remedy, once, or the remedy as a comment if it does not run.
func (p *patches) write(page *render.Page, r *verdict.Remedy, place int, runs bool) {
	switch {
	case runs && p.written[place]:
		page.Comment("A command above makes this change too.")
	case runs:
		page.Remedy(p.remedies[place], nil)
		p.written[place] = true
	default:
		if readiness(r) == 0 {
			page.Comment("A command above changes the same object: run it first, and ask again.")
		}
		page.RemedyAsComment(*r)
	}
}

// add takes a remedy to those that run and returns its place, or false if it cannot run beside the others.
func (p *patches) add(r *verdict.Remedy) (place int, ok bool) {
	if readiness(r) > 0 {
		return 0, false
	}
	var shared []int
	for i := range p.remedies {
		if slices.ContainsFunc(r.Changes, func(c verdict.Change) bool { return changesObject(&p.remedies[i], c.Object) }) {
			shared = append(shared, i)
		}
	}
	switch len(shared) {
	case 0:
		p.remedies, p.written = append(p.remedies, *r), append(p.written, false)
		return len(p.remedies) - 1, true
	case 1:
		merged, ok := mergeRemedies(p.remedies[shared[0]], *r)
		if ok {
			p.remedies[shared[0]] = merged
		}
		return shared[0], ok
	}
	return 0, false
}

func changesObject(r *verdict.Remedy, o verdict.Object) bool {
	return slices.ContainsFunc(r.Changes, func(c verdict.Change) bool { return c.Object == o })
}

// mergeRemedies makes one patch of the changes of each object.
func mergeRemedies(a, b verdict.Remedy) (verdict.Remedy, bool) {
	merged := a
	merged.Changes = nil
	var done []verdict.Object
	for _, c := range slices.Concat(a.Changes, b.Changes) {
		if slices.Contains(done, c.Object) {
			continue
		}
		done = append(done, c.Object)
		changes, ok := mergePatches(changesOf(a, c.Object), changesOf(b, c.Object))
		if !ok {
			return a, false
		}
		merged.Changes = append(merged.Changes, changes...)
	}
	return merged, true
}

func changesOf(r verdict.Remedy, o verdict.Object) []verdict.Change {
	return slices.DeleteFunc(slices.Clone(r.Changes), func(c verdict.Change) bool { return c.Object != o })
}

// entry has the changes that a patch makes to one entry of a list: a test of the entry, and the changes after it.
type entry struct {
	list    string
	place   int
	changes []verdict.Change
}

var entryPath = regexp.MustCompile(`^/(rules|subjects)/([0-9]+)$`)

// mergePatches makes one patch of two for the same object, from the last entry of a list to the first. It cannot if both
// change one entry or field in different ways, or something else than fields and entries of these lists.
func mergePatches(a, b []verdict.Change) ([]verdict.Change, bool) {
	if len(a) == 0 || len(b) == 0 {
		return slices.Concat(a, b), true
	}
	var entries []entry
	var fields []verdict.Change
	for _, patch := range [...][]verdict.Change{a, b} {
		of, annotations, ok := entriesOf(patch)
		if !ok {
			return nil, false
		}
		for _, e := range of {
			i := slices.IndexFunc(entries, func(o entry) bool { return o.list == e.list && o.place == e.place })
			if i < 0 {
				entries = append(entries, e)
			} else if !slices.EqualFunc(entries[i].changes, e.changes, sameChange) {
				return nil, false
			}
		}
		for _, c := range annotations {
			i := slices.IndexFunc(fields, func(o verdict.Change) bool { return o.Path == c.Path })
			if i < 0 {
				fields = append(fields, c)
			} else if !sameChange(fields[i], c) {
				return nil, false
			}
		}
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return b.place - a.place })
	var all []verdict.Change
	for _, e := range entries {
		all = append(all, e.changes...)
	}
	return append(all, fields...), true
}

// entriesOf splits a patch by the entries of lists that it tests first; annotations are changes of annotations.
func entriesOf(patch []verdict.Change) (all []entry, annotations []verdict.Change, ok bool) {
	for _, c := range patch {
		match := entryPath.FindStringSubmatch(c.Path)
		switch {
		case match != nil && c.Op == verdict.Test:
			place, err := strconv.Atoi(match[2])
			if err != nil {
				return nil, nil, false
			}
			all = append(all, entry{list: match[1], place: place, changes: []verdict.Change{c}})
		case len(all) > 0 && underList(c.Path, all[len(all)-1].list):
			last := &all[len(all)-1]
			last.changes = append(last.changes, c)
		case c.Op == verdict.Add && underList(c.Path, "metadata"):
			annotations = append(annotations, c)
		default:
			return nil, nil, false
		}
	}
	return all, annotations, true
}

func underList(path, list string) bool { return strings.HasPrefix(path, "/"+list+"/") }

func sameChange(a, b verdict.Change) bool {
	return a.Op == b.Op && a.Path == b.Path && bytes.Equal(a.Value, b.Value)
}
