package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

// Merger merges partial reports. Their order does not matter.
type Merger struct {
	first *Partial
	sums  *sums
	read  auditlog.Summary
	// shares has the files of each part by index.
	shares map[int]share
	// begins has the report and the file that begin with a line.
	begins map[string][2]string
	// unmatched are the stages of all parts that may have their other stage in another part.
	unmatched []Unmatched
}

type share struct {
	report string
	files  []PartialFile
}

func NewMerger() *Merger {
	return &Merger{sums: newSums(), shares: map[int]share{}, begins: map[string][2]string{}}
}

// Add adds a part. It returns an error for a part that was added before, and for one that was
// evaluated otherwise than the parts before.
func (m *Merger) Add(p *Partial) error {
	if err := m.accept(p); err != nil {
		return err
	}
	m.sums.merge(p)
	m.read.Files += p.Read.Files
	m.read.Lines += p.Read.Lines
	m.read.Events += p.Read.Events
	m.read.Broken = append(m.read.Broken, p.Read.Broken...)
	m.read.Unfinished = append(m.read.Unfinished, p.Read.Unfinished...)
	m.unmatched = append(m.unmatched, p.Unmatched)
	return nil
}

func (m *Merger) accept(p *Partial) error {
	if m.first == nil {
		m.first = &Partial{Evaluation: p.Evaluation, Share: p.Share, Name: p.Name, StateNodes: p.StateNodes}
		m.first.Report.LeftOut = p.Report.LeftOut
	}
	if differ := m.first.Evaluation.differences(p.Evaluation); differ != "" {
		return fmt.Errorf("%s and %s cannot be merged: they differ in %s", m.first.Name, p.Name, differ)
	}
	if !slices.Equal(m.first.StateNodes, p.StateNodes) || !slices.Equal(m.first.Report.LeftOut, p.Report.LeftOut) {
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

// Report returns the report of all parts. It returns an error if a part is missing.
func (m *Merger) Report() (*Report, auditlog.Summary, error) {
	if err := m.whole(); err != nil {
		return nil, m.read, err
	}
	if n := len(m.read.Broken); n > auditlog.MaxBroken {
		return nil, m.read, fmt.Errorf("%d lines of all parts could not be read: this is not an audit log, or it is badly damaged", n)
	}
	m.sums.totals.MaybeTwice += m.doubtful()
	r := m.sums.report(m.first.StateNodes, nil)
	if m.sums.ids.moreNodes > 0 {
		// Nodes that no part shows as conforming may be among those beyond the bound.
		r.Nodes.NotTold += len(r.Nodes.NeverConforming)
		r.Nodes.NeverConforming = []NeverConforming{}
	}
	r.LeftOut = m.first.Report.LeftOut
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

// doubtful returns how many requests may have been counted twice, because their stages are in two parts.
func (m *Merger) doubtful() (n int) {
	var starts int
	for _, u := range m.unmatched {
		starts += u.Starts
	}
	for _, u := range m.unmatched {
		n += min(u.Ends, starts-u.Starts)
	}
	return n
}
