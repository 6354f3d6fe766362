package source

import (
	"context"
	"errors"
	"unique"

	"github.com/node-authorizer/node-authorizer/internal/snapshot"
)

// rowReader reads objects of a section into a state. One goroutine decodes and records them, another
// relates them to nodes, in their order.
type rowReader struct {
	*rowDecoder
	ctx   context.Context // ends reading
	state *State
	// alone is called for objects that are decoded alone, and finally for each object.
	alone func(apiObject, *snapshot.Row) error
	each  func()
	// skip leaves out objects that the state has. Otherwise they are decoded alone.
	skip bool
	// retain decodes all objects alone.
	retain bool
}

// rowBatch is how many objects are handed over together.
const rowBatch = 256

// readRow is a decoded row: the object itself, or the one that it shares.
type readRow struct {
	row    snapshot.Row
	shaped *shapedObject
	object apiObject
}

func (d *rowReader) read(s *snapshot.Section, want snapshot.Selection) error {
	names, err := s.Names()
	if err != nil {
		return err
	}
	if d.names == nil {
		d.names = make([]interned, len(names))
	}
	full, empty := make(chan []readRow, 4), make(chan []readRow, 6)
	var applyErr error
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		applyErr = d.apply(full, empty)
	}()
	var batch []readRow
	err = s.Scan(want, func(r *snapshot.Row) error {
		read := readRow{row: *r}
		if skipped, err := d.decodeRow(&read); skipped || err != nil {
			return err
		}
		if batch = append(batch, read); len(batch) < rowBatch {
			return nil
		}
		select {
		case full <- batch:
		case <-stopped:
			return errStopped
		}
		select {
		case batch = <-empty:
			batch = batch[:0]
		default:
			batch = make([]readRow, 0, rowBatch)
		}
		return nil
	})
	if err == nil {
		select {
		case full <- batch:
		case <-stopped:
		}
	}
	close(full)
	<-stopped
	if applyErr != nil {
		return applyErr
	}
	return err
}

// errStopped ends decoding when an object could not be applied.
var errStopped = errors.New("stopped")

// decodeRow decodes an object and records it, if it shares one.
func (d *rowReader) decodeRow(read *readRow) (skipped bool, err error) {
	r := &read.row
	key := objectKey{d.interned(r.NamespaceRef, r.Value(snapshot.Namespace)), r.Value(snapshot.Name)}
	held := d.state.holdsKey(d.kind, key)
	if held && d.skip {
		return true, nil
	}
	if !held && !d.retain {
		if read.shaped, err = d.shaped(r); err != nil {
			return false, err
		}
	}
	if read.shaped == nil {
		read.object, err = d.decode(r)
		return false, err
	}
	d.state.recordShaped(d.kind, key, d.interned(r.NodeRef, r.Value(snapshot.Node)), read.shaped, r)
	return false, nil
}

// interned returns the name at a position among the names of the section.
func (d *rowReader) interned(at int, name string) interned {
	if d.names[at] == (interned{}) {
		d.names[at] = unique.Make(name)
	}
	return d.names[at]
}

// apply relates objects to nodes.
func (d *rowReader) apply(full <-chan []readRow, empty chan<- []readRow) error {
	for batch := range full {
		if err := context.Cause(d.ctx); err != nil {
			return err
		}
		for i := range batch {
			if err := d.applyRow(&batch[i]); err != nil {
				return err
			}
		}
		select {
		case empty <- batch:
		default:
		}
	}
	return nil
}

func (d *rowReader) applyRow(read *readRow) error {
	if read.shaped == nil {
		return d.alone(read.object, &read.row)
	}
	s := read.shaped
	s.fill(&read.row)
	if err := sameNames(s.api, &read.row); err != nil {
		return err
	}
	if d.state.Inventory != nil {
		d.state.Inventory.Set(s.api)
	}
	d.state.relate(s.api)
	d.each()
	return nil
}

func (s *State) holdsKey(k kind, key objectKey) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.objects.table(k).has(key)
}

// recordShaped keeps what record keeps of an object.
func (s *State) recordShaped(k kind, key objectKey, node interned, shaped *shapedObject, r *snapshot.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch k {
	case kindPod:
		s.objects.pods[key] = podRecord{
			uid: packedUID(r.UID), node: node, account: shaped.account.interned(r), rest: shaped.rest.interned(r), mirror: shaped.mirror,
		}
	case kindPersistentVolume:
		s.objects.volumes[key] = volumeRecord{source: shaped.rest.interned(r)}
	case kindPersistentVolumeClaim:
		s.objects.claims[key] = stamped[string]{record: shaped.volume.of(r)}
	default:
		s.objects.others[k][key] = 0
	}
}
