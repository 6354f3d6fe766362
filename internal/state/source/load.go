package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// FileOptions are options for reading files.
type FileOptions struct {
	// Stdin is the input for the path "-".
	Stdin io.Reader
	// Progress, if set, is called from time to time, never concurrently.
	Progress func(manifest.Progress)
	// Retain keeps the trimmed objects themselves, for [WriteSnapshot].
	Retain bool
	// Inventory makes [State].Inventory, for attack paths. Retain implies it.
	Inventory bool
	// Parts reads only the parts that are asked for, as [Open] does, if the only input is the file of a
	// snapshot. It has no effect with Retain, Inventory and Places.
	Parts bool
	// PartsAbove, if not 0, reads such a snapshot in parts and makes no inventory if it has more pods
	// than that.
	PartsAbove int
	// Places notes where the objects of manifests are, for [State.Place].
	Places bool
	// Templates keeps objects that pods are made from, for [State.AddPlanned].
	Templates bool
}

func (o FileOptions) inventory() bool { return o.Inventory || o.Retain }

// LoadFiles reads manifests and snapshots. A path is a file, a folder, or "-"
// for standard input; files are YAML or JSON, of any number of documents or
// lists of them, and may be compressed with gzip or zstd.
//
// Objects of other kinds are skipped. Namespaced objects without a namespace are in
// "default". If several objects have the same name, the last one counts, and there is
// a warning. The first invalid document ends the load with a [manifest.Error].
//
// Memory use depends on the kept objects only. A list of any length is read item by
// item, also a YAML list in block style, which kubectl prints.
func LoadFiles(ctx context.Context, paths []string, opts FileOptions) (*State, error) {
	files, err := manifest.Files(paths)
	if err != nil {
		return nil, err
	}
	l := newLoader(opts)
	alone := len(files) == 1 && !opts.Retain && !opts.Places
	l.inParts = alone && opts.Parts && !opts.Inventory
	l.mayBeInParts = alone && opts.PartsAbove > 0
	for _, file := range files {
		if err := l.load(ctx, file); err != nil {
			return nil, err
		}
	}
	l.finish()
	l.state.Origin = render.Files(manifest.Names(files))
	return l.state, nil
}

// loader fills a state from files, one after the other.
type loader struct {
	state *State
	opts  FileOptions
	// policy holds RBAC objects until it is known whether they are from a cluster.
	policy  []object
	headers []*SnapshotHeader
	plain   bool // whether a file without snapshot header was among them
	kept    int
	// inParts leaves the objects of a snapshot to [State.Read].
	inParts bool
	// mayBeInParts does so if the snapshot has many pods.
	mayBeInParts bool
}

func newLoader(opts FileOptions) *loader {
	l := &loader{state: newState(), opts: opts}
	if opts.Retain {
		l.state.retained = &retained{}
	}
	if opts.inventory() {
		l.state.Inventory = inventory.New()
	}
	return l
}

// load reads one file.
func (l *loader) load(ctx context.Context, file manifest.File) error {
	expected := newExpectation(file.Name)
	if l.inParts || l.mayBeInParts {
		if opened, err := l.loadParts(ctx, file, expected); opened || err != nil {
			return err
		}
	}
	read := manifest.Parallel[content]{
		Stdin:  l.opts.Stdin,
		Decode: func(into *content, d *manifest.Document) error { return into.decode(d, l.opts) },
		Apply:  func(c *content) error { return l.apply(file.Name, c, expected) },
		Progress: func(stored int64) {
			if l.opts.Progress != nil {
				l.opts.Progress(manifest.Progress{Source: file.Name, Done: stored, Total: file.Size, Objects: l.kept})
			}
		},
	}
	if err := read.Read(ctx, file); err != nil {
		return err
	}
	l.plain = l.plain || !expected.snapshot
	return expected.check()
}

// apply applies the content of a batch of documents.
func (l *loader) apply(file string, c *content, expected *expectation) error {
	for _, h := range c.headers {
		if err := l.applyHeader(file, h); err != nil {
			return err
		}
		expected.add(h)
	}
	for i := range c.objects {
		o := &c.objects[i]
		replaced, err := l.state.set(o.kind, o.api, 0)
		if err != nil {
			return err
		}
		if replaced {
			l.state.warn("objects given twice", (&manifest.Error{
				File: file, Position: o.position,
				Object: o.kind.String() + " " + displayName(o.api),
				Err:    errors.New("given twice; the last one counts"),
			}).Error())
		}
		if o.kind.describe().rbac {
			l.policy = append(l.policy, *o)
		}
		l.state.retained.add(o)
		if l.opts.Places && !expected.snapshot {
			object := verdict.Object{Kind: o.kind.String(), Namespace: o.api.GetNamespace(), Name: o.api.GetName()}
			l.state.notePlace(object, file, o.position.Line)
		}
		expected.found[o.kind]++
		l.kept++
	}
	for _, a := range c.templates {
		l.state.templates = append(l.state.templates, a)
		if l.opts.Places {
			l.state.notePlace(a.ref().object(), a.file, a.line)
		}
		l.kept++
	}
	for _, k := range c.unused {
		expected.found[k]++
		if !expected.snapshot {
			l.state.facts.skipped[withGroup(k.String(), k.describe().group)]++
		}
	}
	if c.mappings && l.state.Inventory != nil {
		l.state.Inventory.NoteMappings()
	}
	for _, kind := range c.skipped {
		l.state.facts.skipped[kind]++
	}
	return nil
}

func displayName(o apiObject) string {
	if o.GetNamespace() == "" {
		return o.GetName()
	}
	return o.GetNamespace() + "/" + o.GetName()
}

func (l *loader) applyHeader(file string, h *SnapshotHeader) error {
	s := l.state
	if h.KubernetesVersion != "" {
		if s.ServerVersion != "" && s.ServerVersion != h.KubernetesVersion {
			s.warn("versions", fmt.Sprintf("%s: snapshot is of Kubernetes %s, another was of %s; the last one counts",
				file, h.KubernetesVersion, s.ServerVersion))
		}
		s.setVersion(h.KubernetesVersion)
	}
	if h.Resources != nil {
		s.Resources = slices.Clone(h.Resources)
	}
	for _, m := range h.Missing {
		is := func(i *kindInfo) bool { return i.group == m.Group && i.resource == m.Resource }
		if k, ok := findKind(is); ok && (s.Inventory != nil || !k.describe().inventory) {
			s.markMissing(k, m.Reason)
		}
	}
	s.facts.complete = s.facts.complete || h.Cluster || h.Complete
	if h.RBACReadable {
		s.facts.rbacRead = 1<<kindCount - 1
	}
	l.headers = append(l.headers, h)
	return nil
}

// setVersion records the server's version and warns when it is not supported.
func (s *State) setVersion(version string) {
	s.ServerVersion = version
	minor, err := kubeversion.Parse(version)
	if err != nil {
		s.warn("versions", err.Error()+"; answers are for the version that is assumed instead")
		return
	}
	s.Version = minor
}

// finish decides whether to compute aggregated cluster roles: in manifests no
// controller has done it, in a cluster its controller does.
func (l *loader) finish() {
	fromCluster := !l.plain && !slices.ContainsFunc(l.headers, func(h *SnapshotHeader) bool { return !h.Cluster })
	l.state.fromCluster = fromCluster
	if fromCluster {
		return
	}
	l.state.RBAC = rbac.NewPolicy(rbac.ComputeAggregation())
	for _, o := range l.policy {
		setPolicy(l.state.RBAC, o.api)
	}
	l.state.compareAggregated()
}

// compareAggregated warns about aggregated cluster roles with explicit rules that a
// cluster's controller would replace. The explicit rules count.
func (s *State) compareAggregated() {
	differences, complete := s.RBAC.AggregationDifferences()
	for _, d := range differences {
		s.warn("aggregated cluster roles whose rules differ", fmt.Sprintf(
			"ClusterRole %s: its rules differ from what its aggregationRule selects in this state (%d missing, %d more) and "+
				"count as they are; "+
				"a cluster's controller would replace them: leave the rules out to have them computed", d.Role, d.Missing, d.Extra))
	}
	if !complete {
		s.warn("aggregated cluster roles whose rules differ",
			"there are too many cluster roles to compare the rules of all aggregated ones with what they select")
	}
}

// Reader makes a state from documents that a caller reads for other purposes too. It is not safe
// for concurrent use.
type Reader struct {
	loader   *loader
	file     string
	expected *expectation
	taken    int
	// err is the first error. What follows it is not taken.
	err error
}

// NewReader returns a reader that makes a state without objects. Stdin and Progress of the options
// have no effect.
func NewReader(opts FileOptions) *Reader { return &Reader{loader: newLoader(opts)} }

// Wants reports whether a state may keep something of a document of this type.
func (r *Reader) Wants(apiVersion, kind string) bool {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		group = ""
	}
	k, kept := kindOf(group, kind)
	return group == snapshotGroup || kept && (r.loader.opts.inventory() || !k.describe().inventory)
}

// Take adds a document that is wanted. The documents of one file have to follow each other. State
// returns the first error: the caller may have use for the other documents.
func (r *Reader) Take(d *manifest.Document) {
	if r.err == nil {
		r.err = r.take(d)
	}
}

func (r *Reader) take(d *manifest.Document) error {
	if r.expected == nil || d.File() != r.file {
		if err := r.endFile(); err != nil {
			return err
		}
		r.file, r.expected = d.File(), newExpectation(d.File())
	}
	r.taken++
	var c content
	if err := c.decode(d, r.loader.opts); err != nil {
		return err
	}
	return r.loader.apply(r.file, &c, r.expected)
}

// Taken returns how many documents were taken.
func (r *Reader) Taken() int { return r.taken }

// endFile checks that a file is complete.
func (r *Reader) endFile() error {
	if r.expected == nil {
		return nil
	}
	r.loader.plain = r.loader.plain || !r.expected.snapshot
	return r.expected.check()
}

// State returns the state when all documents are taken; nil if there were none. Origin says where
// the documents are from.
func (r *Reader) State(origin string) (*State, error) {
	if r.err != nil || r.taken == 0 {
		return nil, r.err
	}
	if err := r.endFile(); err != nil {
		return nil, err
	}
	r.loader.finish()
	r.loader.state.Origin = origin
	return r.loader.state, nil
}
