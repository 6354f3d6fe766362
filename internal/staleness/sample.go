package staleness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// sampleSize is how many objects of each sort are read again after a list.
const sampleSize = 4

// ReadFunc lists objects in a namespace, or in none.
type ReadFunc = func(ctx context.Context, namespace string, opts metav1.ListOptions) (runtime.Object, error)

// History has known facts about earlier objects of a resource. The zero value knows nothing. It is not safe for concurrent
// use.
type History struct {
	// deleted are the objects that a watch deleted last, the latest last.
	deleted []objectKey
	// ended is the highest resource version of a history that the store does not have; empty if there was none.
	ended string
}

// Deleted records that a watch deleted an object.
func (h *History) Deleted(m metav1.Object) {
	h.deleted = append(slices.DeleteFunc(h.deleted, func(k objectKey) bool { return k == keyOf(m) }), keyOf(m))
	h.deleted = h.deleted[max(0, len(h.deleted)-sampleSize):]
}

// End records that the store does not have the history up to a resource version.
func (h *History) End(version string) {
	if h.ended == "" || Older(h.ended, version) {
		h.ended = version
	}
}

// A Sample has the objects of a list that show whether the API server's store has what the API server lists.
//
// Since Kubernetes 1.31, an API server answers lists from its cache, also lists of the current state. The cache follows
// the store with a watch. If the store is restored from a backup while the API server runs, the cache keeps what the
// store does not have any more, for good. But an object that is selected by name at an exact resource version is always
// read from the store. So after each list the newest objects are read again at its resource version: they are the ones that a
// backup does not have. The newest ones of a history that has ended are read too, because later ones may hide them, and
// so are the objects that were deleted last, which a backup has again. In a history that has not ended, the store
// answers like the list, even if objects have changed since.
type Sample struct {
	ended          string
	newest, before []sampled
	deleted        []objectKey
}

type sampled struct {
	objectKey
	objectVersion
}

// NewSample returns the sample of a list, to which its objects have to be added.
func NewSample(history *History) *Sample {
	return &Sample{ended: history.ended, deleted: slices.Clone(history.deleted)}
}

// Add adds an object of the list.
func (s *Sample) Add(m metav1.Object) {
	o := sampled{keyOf(m), versionOf(m)}
	s.newest = keepNewest(s.newest, o)
	if s.ended != "" && !Older(s.ended, o.resource) {
		s.before = keepNewest(s.before, o)
	}
	if i := slices.Index(s.deleted, o.objectKey); i >= 0 {
		s.deleted = slices.Delete(s.deleted, i, i+1)
	}
}

// Remove removes an object that was deleted while the list was read.
func (s *Sample) Remove(m metav1.Object) {
	is := func(o sampled) bool { return o.objectKey == keyOf(m) }
	s.newest, s.before = slices.DeleteFunc(s.newest, is), slices.DeleteFunc(s.before, is)
}

// keepNewest adds an object if it is one of the newest ones, and replaces an earlier version of it.
func keepNewest(all []sampled, o sampled) []sampled {
	all = slices.DeleteFunc(all, func(is sampled) bool { return is.objectKey == o.objectKey })
	at, _ := slices.BinarySearchFunc(all, o, func(is, o sampled) int {
		if Older(is.resource, o.resource) {
			return 1
		}
		return -1
	})
	all = slices.Insert(all, at, o)
	return all[:min(len(all), sampleSize)]
}

// Verify reads the objects at the resource version of the list, all at the same time. It returns a [*HistoryError] if the
// store has other ones.
func (s *Sample) Verify(ctx context.Context, version string, read ReadFunc) error {
	want := map[objectKey]objectVersion{}
	for _, key := range s.deleted {
		want[key] = objectVersion{}
	}
	for _, o := range slices.Concat(s.newest, s.before) {
		want[o.objectKey] = o.objectVersion
	}
	var reading sync.WaitGroup
	errs := make(chan error, len(want))
	for key, want := range want {
		reading.Go(func() { errs <- key.verify(ctx, version, want, read) })
	}
	reading.Wait()
	close(errs)
	var unread error
	for err := range errs {
		if _, other := errors.AsType[*HistoryError](err); other {
			return err
		}
		unread = cmp.Or(unread, err)
	}
	return unread
}

// verify returns an error unless the store has a version of an object at a resource version.
func (k objectKey) verify(ctx context.Context, version string, want objectVersion, read ReadFunc) error {
	is, err := k.at(ctx, version, read)
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return &HistoryError{fmt.Sprintf("its store does not have resource version %s yet: %v", version, err)}
	case err != nil:
		return fmt.Errorf("compare %s with the API server's store: %w", k, err)
	case is != want:
		return &HistoryError{fmt.Sprintf("its store has %s at resource version %s as %s, and it lists %s", k, version, is, want)}
	}
	return nil
}

// at reads the version of one object from the store, at a resource version.
func (k objectKey) at(ctx context.Context, version string, read ReadFunc) (objectVersion, error) {
	list, err := read(ctx, k.namespace, metav1.ListOptions{
		FieldSelector: "metadata.name=" + k.name, ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	if err != nil {
		return objectVersion{}, err
	}
	found := map[objectKey]objectVersion{}
	err = eachItem(list, func(m metav1.Object) { found[keyOf(m)] = versionOf(m) })
	return found[k], err
}

// String returns the name for messages.
func (k objectKey) String() string {
	if k.namespace == "" {
		return k.name
	}
	return k.namespace + "/" + k.name
}

// String returns the version for messages.
func (v objectVersion) String() string {
	if v == (objectVersion{}) {
		return "not existing"
	}
	return fmt.Sprintf("version %s with the UID %q", v.resource, v.uid)
}

// HistoryError means that an API server lists what its store does not have.
type HistoryError struct{ evidence string }

// Error implements error.
func (e *HistoryError) Error() string {
	return "the API server does not list what its store has, which was restored or replaced; restart this kube-apiserver: " + e.evidence
}

// Older reports whether resource version a is older than b. It is false if either is not a valid resource version.
func Older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

func eachItem(list runtime.Object, do func(metav1.Object)) error {
	return meta.EachListItem(list, func(item runtime.Object) error {
		m, err := meta.Accessor(item)
		if err != nil {
			return fmt.Errorf("read a list: %w", err)
		}
		do(m)
		return nil
	})
}
