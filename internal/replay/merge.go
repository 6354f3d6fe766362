package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/render"
)

// Merger merges partial reports. Their order does not matter.
type Merger struct {
	first  *Partial
	sums   *sums
	read   auditlog.Summary
	stages *stages[*mergedEnd]
	// shares has the files of each part by index.
	shares map[int]share
	// begins has the report and the file that begin with a line.
	begins map[string][2]string
	// kinds are those of the open ends of all parts.
	kinds []*mergedKind
	// open are the numbers that doubts depend on.
	open []openCounts
}

type share struct {
	report string
	files  []PartialFile
}

// mergedEnd is one end of a kind.
type mergedEnd struct {
	kind *mergedKind
	at   time.Time
}

// mergedKind collects the ends of a kind that count.
type mergedKind struct {
	sums        Sums
	n           int
	first, last time.Time
}

type openCounts struct{ starts, ends, forgottenStarts, forgottenEnds int }

// NewMerger returns a merger without parts.
func NewMerger() *Merger {
	return &Merger{
		sums: newSums(), shares: map[int]share{}, begins: map[string][2]string{},
		stages: newStages(func(end *mergedEnd) { end.kind.count(end.at) }, nil),
	}
}

// Add adds a part. It returns an error for a part that was added before, and for one that was
// evaluated otherwise than the parts before.
func (m *Merger) Add(p *Partial) error {
	if err := m.accept(p); err != nil {
		return err
	}
	m.sums.merge(p.Sums)
	m.read.Bytes += p.Read.Bytes
	for _, e := range p.Read.Broken {
		m.read.Broken = append(m.read.Broken, e.read())
	}
	for _, e := range p.Read.Unfinished {
		m.read.Unfinished = append(m.read.Unfinished, e.read())
	}
	if t := p.Sums.Totals; t != nil {
		m.read.Files, m.read.Lines, m.read.Events = m.read.Files+t.Files, m.read.Lines+t.Lines, m.read.Events+t.Events
	}
	m.addOpen(&p.Open)
	return nil
}

func (m *Merger) accept(p *Partial) error {
	if m.first == nil {
		m.first = &Partial{Evaluation: p.Evaluation, Share: p.Share, Name: p.Name, StateNodes: p.StateNodes, LeftOut: p.LeftOut}
	}
	if differ := m.first.Evaluation.differences(p.Evaluation); differ != "" {
		return fmt.Errorf("%s and %s cannot be merged: they differ in %s", m.first.Name, p.Name, differ)
	}
	if !slices.Equal(m.first.StateNodes, p.StateNodes) || !slices.Equal(m.first.LeftOut, p.LeftOut) {
		return fmt.Errorf("%s and %s cannot be merged: they differ in the nodes or the ignored bindings of the state", m.first.Name, p.Name)
	}
	if (m.first.Share == nil) != (p.Share == nil) {
		return fmt.Errorf("%s and %s cannot be merged: one is a part that --part chose, the other is not", m.first.Name, p.Name)
	}
	if p.Share != nil {
		return m.acceptShare(p)
	}
	return m.acceptFiles(p)
}

func (m *Merger) acceptShare(p *Partial) error {
	first, s := m.first.Share, p.Share
	if first.Count != s.Count {
		return fmt.Errorf("%s is part %d of %d, and %s part %d of %d: divide the files into one number of parts",
			m.first.Name, first.Index, first.Count, p.Name, s.Index, s.Count)
	}
	if first.Whole != s.Whole {
		return fmt.Errorf("%s was chosen from %s, and %s from %d, or their names or sizes differ: files were written, "+
			"renamed or removed between the parts; leave out the file that is being written, and run all parts again",
			m.first.Name, render.Count(first.WholeFiles, "file"), p.Name, s.WholeFiles)
	}
	if before, given := m.shares[s.Index]; given {
		return fmt.Errorf("%s and %s are both part %d of %d", before.report, p.Name, s.Index, s.Count)
	}
	m.shares[s.Index] = share{p.Name, p.Files}
	return nil
}

func (m *Merger) acceptFiles(p *Partial) error {
	for _, f := range p.Files {
		if f.Begins == "" {
			continue
		}
		if before, given := m.begins[f.Begins]; given {
			return fmt.Errorf("%s of %s and %s of %s begin with the same event: the requests would count twice",
				before[1], before[0], f.Name, p.Name)
		}
		m.begins[f.Begins] = [2]string{p.Name, f.Name}
	}
	return nil
}

func (m *Merger) addOpen(o *Open) {
	m.open = append(m.open, openCounts{len(o.Starts), len(o.Ends), o.ForgottenStarts, o.ForgottenEnds})
	kinds := make([]*mergedKind, len(o.Kinds))
	for i, sums := range o.Kinds {
		kinds[i] = &mergedKind{sums: sums}
	}
	for _, end := range o.Ends {
		m.stages.end(end.Key, &mergedEnd{kinds[end.Of], end.At})
	}
	for _, key := range o.Starts {
		m.stages.start(key)
	}
	m.kinds = append(m.kinds, kinds...)
}

func (k *mergedKind) count(at time.Time) {
	if k.n == 0 || at.Before(k.first) {
		k.first = at
	}
	if k.n == 0 || at.After(k.last) {
		k.last = at
	}
	k.n++
}

// Report returns the report of all parts. It returns an error if a part is missing.
func (m *Merger) Report() (*Report, auditlog.Summary, error) {
	if err := m.whole(); err != nil {
		return nil, m.read, err
	}
	if n := len(m.read.Broken); n > auditlog.MaxBroken {
		return nil, m.read, fmt.Errorf("%d lines of all parts could not be read: this is not an audit log, or it is badly damaged", n)
	}
	m.stages.eachEnd(func(_ stageKey, end *mergedEnd) { end.kind.count(end.at) })
	for _, k := range m.kinds {
		if k.n > 0 {
			m.sums.merge(k.sums.scaled(k.n, k.first, k.last))
		}
	}
	m.sums.totals.MaybeTwice += m.stages.doubtful + m.doubtful()
	r := m.sums.report(nodesOf(m.first.StateNodes), func(l *Listed, node string) string {
		if answer := l.AsNodes[node]; answer != "" {
			return answer
		}
		return saysUndetermined
	})
	r.LeftOut = m.first.LeftOut
	return r, m.read, nil
}

// whole checks that all parts were added.
func (m *Merger) whole() error {
	if m.first == nil {
		return errors.New("no partial report was given")
	}
	s := m.first.Share
	if s == nil {
		return nil
	}
	var files []PartialFile
	var missing []string
	for i := range s.Count {
		part, given := m.shares[i]
		if !given {
			missing = append(missing, fmt.Sprint(i))
		}
		files = append(files, part.files...)
	}
	const few = 20
	switch {
	case len(missing) > few:
		return fmt.Errorf("missing: %d of %s, index %s and more", len(missing), render.Count(s.Count, "part"),
			strings.Join(missing[:few], ", "))
	case len(missing) > 0:
		return fmt.Errorf("missing: %d of %s, index %s", len(missing), render.Count(s.Count, "part"), strings.Join(missing, ", "))
	case DigestFiles(files) != s.Whole:
		return fmt.Errorf("the parts together do not have all of the %s that they were chosen from", render.Count(s.WholeFiles, "file"))
	}
	return nil
}

// doubtful returns how many requests may have been counted twice, because one part forgot a
// stage whose other stage is in another part.
func (m *Merger) doubtful() (n int) {
	var starts, ends int
	for _, o := range m.open {
		starts += o.forgottenStarts
		ends += o.forgottenEnds
	}
	for _, o := range m.open {
		n += min(o.starts+o.forgottenStarts, ends-o.forgottenEnds) + min(o.ends, starts-o.forgottenStarts)
	}
	return n
}
