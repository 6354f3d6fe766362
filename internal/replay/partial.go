package replay

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/badjson"
)

// The type of partial reports. A program reads only partial reports of its own version, so
// their form may change.
const (
	PartialAPIVersion = "node-authorizer.io/v1alpha1"
	PartialKind       = "AuditPartialReport"
)

// Partial is the report of a part of a log, in a form that can be merged. It is bounded: it
// has what a report has, and up to 524,288 requests of which it has only one stage.
type Partial struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Evaluation is the same for all parts of a log.
	Evaluation Evaluation `json:"evaluation"`
	// Share says which part of how many this is; nil if the user chose the files.
	Share *Share `json:"share,omitempty"`
	// Files are the files of this part, in order.
	Files []PartialFile `json:"files"`
	Read  PartialRead   `json:"read"`
	Sums  Sums          `json:"sums"`
	Open  Open          `json:"open"`
	// StateNodes are the nodes of the state.
	StateNodes []string `json:"stateNodes"`
	LeftOut    []string `json:"leftOut,omitempty"`

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

// PartialRead is the summary of what was read.
type PartialRead struct {
	Bytes      int64       `json:"bytes"`
	Broken     []LineError `json:"broken,omitempty"`
	Unfinished []LineError `json:"unfinished,omitempty"`
}

// LineError is a line that could not be read.
type LineError struct {
	File  string `json:"file"`
	Line  int    `json:"line"`
	Error string `json:"error"`
}

// Open are requests of which the part has only one stage with a response. The other may be in
// another part.
type Open struct {
	// Starts have been counted.
	Starts []stageKey `json:"starts,omitempty"`
	// Ends have not: they count unless another part has their start.
	Ends []OpenEnd `json:"ends,omitempty"`
	// Kinds are what ends add to the report.
	Kinds []Sums `json:"kinds,omitempty"`
	// ForgottenStarts and ForgottenEnds were counted and are not listed.
	ForgottenStarts int `json:"forgottenStarts,omitempty"`
	ForgottenEnds   int `json:"forgottenEnds,omitempty"`
}

// OpenEnd is the last stage of a request.
type OpenEnd struct {
	Key stageKey  `json:"key"`
	At  time.Time `json:"at"`
	// Of is the position in Kinds.
	Of int `json:"of"`
}

// partial makes the partial report of what was read.
func (c *collector) partial(read auditlog.Summary) *Partial {
	c.addRead(read, c.stages.doubtful)
	p := &Partial{
		APIVersion: PartialAPIVersion, Kind: PartialKind, Files: []PartialFile{}, StateNodes: c.ev.State.NodeNames(),
		Read: PartialRead{Bytes: read.Bytes, Broken: lineErrors(read.Broken), Unfinished: lineErrors(read.Unfinished)},
	}
	at := c.ids.resolver()
	c.exportOpen(&p.Open, at)
	c.answerAsNodes(c.would, at)
	p.Sums = c.export()
	return p
}

// answerAsNodes adds the answers to the users of the nodes that this part shows.
func (c *collector) answerAsNodes(t *tally, at *resolver) {
	for _, l := range t.entries.kept {
		if node := at.node(l.Place); node != "" && l.asked != nil {
			l.AsNodes = map[string]string{node: c.asNode(l, node)}
		}
	}
}

func (c *collector) exportOpen(into *Open, at *resolver) {
	into.ForgottenStarts, into.ForgottenEnds = c.stages.forgotStarts, c.stages.forgotEnds
	c.stages.eachStart(func(key stageKey) { into.Starts = append(into.Starts, key) })
	kinds, of := map[string]int{}, map[*outcome]int{}
	c.stages.eachEnd(func(key stageKey, end pendingEnd) {
		kind, known := of[end.outcome]
		if !known {
			sums := c.kindOf(end, at)
			text, err := json.Marshal(sums)
			if err != nil {
				panic(fmt.Sprintf("encode the kind of a request: %v", err)) // it has only texts and numbers
			}
			if kind, known = kinds[string(text)]; !known {
				kind = len(into.Kinds)
				kinds[string(text)] = kind
				into.Kinds = append(into.Kinds, sums)
			}
			of[end.outcome] = kind
		}
		into.Ends = append(into.Ends, OpenEnd{key, end.at, kind})
	})
	slices.SortFunc(into.Starts, func(a, b stageKey) int { return slices.Compare(a[:], b[:]) })
	into.sortEnds()
}

// sortEnds sorts ends, and kinds by the first of their ends.
func (o *Open) sortEnds() {
	slices.SortFunc(o.Ends, func(a, b OpenEnd) int { return cmp.Or(slices.Compare(a.Key[:], b.Key[:]), a.At.Compare(b.At)) })
	moved := map[int]int{}
	kinds := make([]Sums, 0, len(o.Kinds))
	for i := range o.Ends {
		to, known := moved[o.Ends[i].Of]
		if !known {
			to = len(kinds)
			kinds = append(kinds, o.Kinds[o.Ends[i].Of])
			moved[o.Ends[i].Of] = to
		}
		o.Ends[i].Of = to
	}
	o.Kinds = kinds
}

// kindOf returns what an end adds to the report. The times are filled in when it counts.
func (c *collector) kindOf(end pendingEnd, at *resolver) Sums {
	one := newCollector(c.ctx, c.ev)
	o := *end.outcome
	o.at = time.Time{}
	one.add(&o)
	one.answerAsNodes(one.would, at)
	return one.export()
}

func lineErrors(all []*auditlog.LineError) []LineError {
	var out []LineError
	for _, e := range all {
		out = append(out, LineError{e.File, e.Line, e.Err.Error()})
	}
	return out
}

func (e LineError) read() *auditlog.LineError {
	return &auditlog.LineError{File: e.File, Line: e.Line, Err: errors.New(e.Error)}
}

// Write writes a partial report.
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
		return nil, fmt.Errorf("%s is not a whole partial report, as audit --partial writes it: %w", name, badjson.Explain(err))
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
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// check checks what merging relies on.
func (p *Partial) check() error {
	if s := p.Share; s != nil && (s.Count < 1 || s.Index < 0 || s.Index >= s.Count) {
		return fmt.Errorf("part %d of %d does not exist", s.Index, s.Count)
	}
	if s := p.Share; s != nil && s.Count > auditlog.MaxShares {
		return fmt.Errorf("part %d of %d: there can be %d parts", s.Index, s.Count, auditlog.MaxShares)
	}
	for i, end := range p.Open.Ends {
		if end.Of < 0 || end.Of >= len(p.Open.Kinds) {
			return fmt.Errorf("open.ends[%d].of: there is no kind %d", i, end.Of)
		}
	}
	return nil
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

// differences names the fields in which two evaluations differ.
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
