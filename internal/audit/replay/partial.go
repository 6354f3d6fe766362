package replay

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// The type of partial reports. A program reads only partial reports of its own version, so
// their form may change.
const (
	PartialAPIVersion = "node-authorizer.io/v1alpha1"
	PartialKind       = "AuditPartialReport"
)

// Partial is the report of a part of a log, with what only merging needs. It is bounded as a report is.
type Partial struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Evaluation is the same for all parts of a log.
	Evaluation Evaluation `json:"evaluation"`
	// Share says which part of how many this is; nil if the user chose the files.
	Share *Share `json:"share,omitempty"`
	// Files are the files of this part, in order.
	Files  []PartialFile    `json:"files"`
	Read   auditlog.Summary `json:"read"`
	Report Report           `json:"report"`
	// Answered reports whether the part has responses.
	Answered bool `json:"answered,omitempty"`
	// Conforming are the nodes that authenticated as themselves. MoreNodes counts requests that show nodes beyond the bound.
	Conforming []string `json:"conforming,omitempty"`
	MoreNodes  int      `json:"moreNodes,omitempty"`
	// Unmatched counts stages whose other stage may be in another part.
	Unmatched Unmatched `json:"unmatched"`
	// StateNodes are the nodes of the state.
	StateNodes []string `json:"stateNodes"`

	// Name is the name of the file of this report, for errors.
	Name string `json:"-"`
}

// Evaluation is what the answers of the evaluators depend on.
type Evaluation struct {
	// Program is the version of the program.
	Program string `json:"program"`
	// State is the digest of the files of the state.
	State string `json:"state"`
	// Features are the version of Kubernetes and the feature gates.
	Features string `json:"features"`
	// AuthorizationConfig is the digest of the AuthorizationConfiguration; empty for none.
	AuthorizationConfig string `json:"authorizationConfig,omitempty"`
	// KeepSystemNodeBinding is the option of this name.
	KeepSystemNodeBinding bool `json:"keepSystemNodeBinding,omitempty"`
}

// Share is one of the parts that the files of a log are divided into.
type Share struct {
	// Index counts from 0.
	Index int `json:"index"`
	Count int `json:"count"`
	// Whole is the digest of the names and sizes of all files, WholeFiles their number.
	Whole      string `json:"whole"`
	WholeFiles int    `json:"wholeFiles"`
}

// PartialFile is a file of a part.
type PartialFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	// Begins is the digest of the first line; empty for an empty file. No two logs begin
	// with the same event.
	Begins string `json:"begins,omitempty"`
}

// Unmatched counts the first and the last stages of requests of which the part lacks the other stage. All of them
// were counted.
type Unmatched struct {
	Starts int `json:"starts"`
	Ends   int `json:"ends"`
}

// PartialFiles are the files without what they begin with.
func PartialFiles(files []auditlog.File) []PartialFile {
	all := make([]PartialFile, len(files))
	for i, f := range files {
		all[i] = PartialFile{Name: f.Name(), Size: f.Size}
	}
	return all
}

func (c *collector) partial(read auditlog.Summary, files []PartialFile) *Partial {
	p := &Partial{
		APIVersion: PartialAPIVersion, Kind: PartialKind, Files: files, StateNodes: c.ev.State.NodeNames(),
		Read: read, Unmatched: c.stages.unmatched(), Report: *c.report(read), Answered: c.answered, MoreNodes: c.ids.moreNodes,
	}
	for _, name := range slices.Sorted(maps.Keys(c.ids.nodes)) {
		if c.ids.nodes[name].conforms {
			p.Conforming = append(p.Conforming, name)
		}
	}
	return p
}

func (p *Partial) Write(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(p); err != nil {
		return fmt.Errorf("write a partial report: %w", err)
	}
	return nil
}

// ReadPartial reads a partial report. The program must have written it with the same version.
func ReadPartial(r io.Reader, name, program string) (*Partial, error) {
	p := &Partial{Name: name}
	decoder := json.NewDecoder(r)
	if err := decoder.Decode(p); err != nil {
		return nil, fmt.Errorf("%s is not a whole partial report, as audit --partial writes it: %w", name, strictjson.Explain(err))
	}
	switch {
	case p.APIVersion != PartialAPIVersion || p.Kind != PartialKind:
		return nil, fmt.Errorf("%s: kind %q of apiVersion %q: want %s of %s, as audit --partial writes it",
			name, p.Kind, p.APIVersion, PartialKind, PartialAPIVersion)
	case p.Evaluation.Program != program:
		return nil, fmt.Errorf("%s was written by version %s of the program, and this is %s: use one version for all parts and for merging",
			name, p.Evaluation.Program, program)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s has more after the partial report", name)
	}
	if s := p.Share; s != nil && (s.Count < 1 || s.Count > auditlog.MaxShares || s.Index < 0 || s.Index >= s.Count) {
		return nil, fmt.Errorf("%s: part %d of %d does not exist: there can be %d parts", name, s.Index, s.Count, auditlog.MaxShares)
	}
	return p, nil
}

// DigestFiles returns the digest of the names and sizes of files.
func DigestFiles(files []PartialFile) string {
	hash := sha256.New()
	for _, f := range files {
		fmt.Fprintf(hash, "%q %d\n", f.Name, f.Size)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// InputsDiffer says in what the inputs of two partial reports differ; empty if both are the same part of the same
// log. What files begin with does not count if one report does not have it.
func (p *Partial) InputsDiffer(other *Partial) string {
	sameShare := p.Share == other.Share || p.Share != nil && other.Share != nil && *p.Share == *other.Share
	if differ := p.Evaluation.differences(other.Evaluation); differ != "" {
		return differ
	}
	if !sameShare || DigestFiles(p.Files) != DigestFiles(other.Files) {
		return "the names or sizes of the files of the log"
	}
	for i, f := range p.Files {
		if begins := other.Files[i].Begins; f.Begins != begins && f.Begins != "" && begins != "" {
			return "what the files of the log begin with"
		}
	}
	return ""
}

func (e Evaluation) differences(other Evaluation) string {
	var named []string
	for _, field := range []struct {
		name   string
		differ bool
	}{
		{"the version of the program", e.Program != other.Program},
		{"the state (--from)", e.State != other.State},
		{"the version of Kubernetes or the feature gates", e.Features != other.Features},
		{"--authorization-config", e.AuthorizationConfig != other.AuthorizationConfig},
		{"--keep-system-node-binding", e.KeepSystemNodeBinding != other.KeepSystemNodeBinding},
	} {
		if field.differ {
			named = append(named, field.name)
		}
	}
	return strings.Join(named, ", ")
}

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
