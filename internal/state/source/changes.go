package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

var errNoName = errors.New("metadata.name is empty")

// Changes are objects to add to a state, as kubectl apply would.
type Changes struct {
	added []addition
	// Skipped counts objects of other kinds, by kind and group.
	Skipped map[string]int
	// Origin says where the objects are from.
	Origin string
}

// addition is one object with its place.
type addition struct {
	object   object
	workload *workload
	file     string
	line     int
}

// ChangeOptions are options for reading changes.
type ChangeOptions struct {
	// Stdin is the input for the path "-".
	Stdin io.Reader
	// Progress, if set, is called from time to time, never concurrently.
	Progress func(manifest.Progress)
	// Namespace is the namespace of objects that name none.
	Namespace string
}

// ReadChanges reads manifests as [LoadFiles] does, and objects with pod templates too. The first invalid
// document ends it with a [manifest.Error].
func ReadChanges(ctx context.Context, paths []string, opts ChangeOptions) (*Changes, error) {
	files, err := manifest.Files(paths)
	if err != nil {
		return nil, err
	}
	c := &Changes{Skipped: map[string]int{}, Origin: render.Files(manifest.Names(files))}
	for _, file := range files {
		if err := c.read(ctx, file, opts); err != nil {
			return nil, err
		}
	}
	if len(c.added) == 0 && len(c.Skipped) == 0 {
		return nil, fmt.Errorf("no objects in %s, so that nothing would change: see whether what writes it has failed", c.Origin)
	}
	return c, nil
}

// additions are the decoded objects of a batch of documents.
type additions struct {
	objects []addition
	skipped []string
}

func (a *additions) reset() {
	clear(a.objects)
	a.objects, a.skipped = a.objects[:0], a.skipped[:0]
}

func (c *Changes) read(ctx context.Context, file manifest.File, opts ChangeOptions) error {
	read := manifest.Parallel[additions]{
		Stdin:  opts.Stdin,
		Decode: func(into *additions, d *manifest.Document) error { return into.decode(d, opts.Namespace) },
		Apply: func(a *additions) error {
			c.added = append(c.added, a.objects...)
			for _, kind := range a.skipped {
				c.Skipped[kind]++
			}
			return nil
		},
		Reset: (*additions).reset,
		Progress: func(stored int64) {
			if opts.Progress != nil {
				opts.Progress(manifest.Progress{Source: file.Name, Done: stored, Total: file.Size, Objects: len(c.added)})
			}
		},
	}
	return read.Read(ctx, file)
}

func (a *additions) decode(d *manifest.Document, namespace string) error {
	if err := d.CheckType(); err != nil {
		return err
	}
	if d.Group() == snapshotGroup {
		return d.Fail(errors.New("a snapshot is a whole state, not a change: name it with --from or --to"))
	}
	at := addition{file: d.File(), line: d.Line("metadata", "name")}
	if w, ok := workloadKindOf(d.Group(), d.Kind); ok {
		var err error
		if at.workload, err = decodeWorkload(d, w, namespace); err != nil {
			return err
		}
		a.objects = append(a.objects, at)
		return nil
	}
	k, kept := kindOf(d.Group(), d.Kind)
	if !kept {
		a.skipped = append(a.skipped, kindAndGroup(d))
		return d.Validate()
	}
	o, err := decodeAddition(d, k, namespace)
	if err != nil {
		return err
	}
	at.object = o
	a.objects = append(a.objects, at)
	return nil
}

func decodeAddition(d *manifest.Document, k kind, namespace string) (object, error) {
	if versions := k.describe().versions; !slices.Contains(versions, d.Version()) {
		return object{}, unsupportedVersion(d, versions)
	}
	if k == kindPod {
		pod, err := decodePlannedPod(d, namespace)
		return object{kind: k, api: pod, position: d.Position()}, err
	}
	o, err := decodeDocument(d, k, true, namespace)
	if err != nil {
		return object{}, err
	}
	if ns, ok := o.(*corev1.Namespace); ok {
		labels := map[string]string{corev1.LabelMetadataName: ns.Name}
		for k, v := range ns.Labels {
			labels[k] = v
		}
		labels[corev1.LabelMetadataName] = ns.Name
		ns.Labels = labels
	}
	return object{kind: k, api: o, position: d.Position()}, nil
}

// Len is how many objects of known kinds there are.
func (c *Changes) Len() int { return len(c.added) }

// place renders where an object is, for messages.
func (a *addition) place() string { return fmt.Sprintf("%s:%d", a.file, a.line) }
