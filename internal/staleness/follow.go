package staleness

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

// ListFunc lists objects, or a page of them.
type ListFunc = func(context.Context, metav1.ListOptions) (runtime.Object, error)

// WatchFunc opens a watch of the same objects.
type WatchFunc = func(context.Context, metav1.ListOptions) (watch.Interface, error)

// ListInterval returns the time between two lists of a copy that may be as old as the limit without a confirmation. So
// there is time for a list to fail, and another before the copy is too old. The times of servers differ.
func ListInterval(limit time.Duration) time.Duration {
	const jitter = 0.2
	return wait.Jitter(limit*5/8, jitter)
}

// Followed lists and watches the objects of a copy for one reflector. A watch ends after [ListInterval], so that the
// reflector lists again: see [Followed.Watch]. With an age without a limit it does neither more nor less than its functions.
type Followed struct {
	age   *Age
	list  ListFunc
	watch WatchFunc

	mu      sync.Mutex
	history History

	// The reflector sets the following fields, and makes one call at a time: when the last list was requested,
	// its sample, and whether it is complete and no watch began since.
	requested time.Time
	sample    *Sample
	listed    bool
}

type objectKey struct{ namespace, name string }

// objectVersion identifies one version of one object.
type objectVersion struct {
	uid      types.UID
	resource string
}

// Follow returns the lists and watches of the copy with this age.
func (a *Age) Follow(list ListFunc, watch WatchFunc) *Followed {
	return &Followed{age: a, list: list, watch: watch}
}

// List lists for a reflector, from the API server's store. With the resource version that a reflector asks for, an API
// server that has lost its store answers from its cache, even if that is old.
func (f *Followed) List(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if opts.Continue == "" {
		f.mu.Lock()
		f.requested, f.sample, f.listed = f.age.deadline.Now(), NewSample(&f.history), false
		f.mu.Unlock()
	}
	opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	list, err := f.list(ctx, opts)
	if err != nil {
		f.age.Failed(err)
		return nil, err
	}
	if err := eachItem(list, f.sample.Add); err != nil {
		return nil, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return nil, fmt.Errorf("read a list: %w", err)
	}
	if m.GetContinue() == "" {
		if err := f.verify(ctx, m.GetResourceVersion()); err != nil {
			return nil, err
		}
		f.listed = true
		f.age.confirm(f.requested)
	}
	return list, nil
}

// verify returns an error unless the list is what the API server's store has. If it is another one, the copy may not be
// used any more.
func (f *Followed) verify(ctx context.Context, version string) error {
	if f.age.max <= 0 {
		return nil
	}
	err := f.sample.Verify(ctx, version, func(ctx context.Context, _ string, opts metav1.ListOptions) (runtime.Object, error) {
		return f.list(ctx, opts)
	})
	if _, other := errors.AsType[*HistoryError](err); other {
		f.mu.Lock()
		f.history.End(version)
		f.mu.Unlock()
		f.age.contradict(err)
	} else if err != nil {
		f.age.Failed(err)
	}
	return err
}

// Watch opens a watch for a reflector.
//
// With a limit, it is an error that makes the reflector list if no list came before, even if the previous watch ended as
// planned. This has three reasons. The list shows at once that the copy is current; the first bookmark comes a minute
// later, if the API server has anything to send at all. It shows changes that the watch did not deliver. And the API
// server's store may have been restored from a backup: a watch does not report the objects that are gone.
func (f *Followed) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if f.age.max > 0 && !f.listed {
		return nil, errDue
	}
	f.listed = false
	from, err := f.watch(ctx, opts)
	if err != nil {
		f.age.Failed(err)
		return nil, err
	}
	events := make(chan watch.Event)
	through := watch.NewProxyWatcher(events)
	go f.pass(from, events, through.StopChan())
	return through, nil
}

// errDue makes a reflector list.
var errDue = apierrors.NewResourceExpired("it is listed before it is watched again")

// IsDue reports whether the error of a watch only says that a list is due.
func IsDue(err error) bool { return errors.Is(err, errDue) }

// pass passes events on until the watch ends, or a list is due.
func (f *Followed) pass(from watch.Interface, to chan<- watch.Event, stopped <-chan struct{}) {
	defer close(to)
	defer from.Stop()
	life := time.Duration(math.MaxInt64)
	if f.age.max > 0 {
		life = ListInterval(f.age.max)
	}
	if f.age.watchLife > 0 {
		life = min(life, f.age.watchLife)
	}
	end := time.NewTimer(life)
	defer end.Stop()
	for {
		select {
		case event, more := <-from.ResultChan():
			if !more {
				return
			}
			select {
			case to <- event:
				f.record(event)
			case <-stopped:
				return
			}
		case <-end.C:
			return
		case <-stopped:
			return
		}
	}
}

// record records an event that the reflector has.
func (f *Followed) record(event watch.Event) {
	if event.Type == watch.Error {
		f.age.Failed(apierrors.FromObject(event.Object))
		return
	}
	if m, err := meta.Accessor(event.Object); err == nil && event.Type == watch.Deleted {
		f.mu.Lock()
		f.history.Deleted(m)
		f.mu.Unlock()
	}
	f.age.MarkCurrent()
}

func keyOf(m metav1.Object) objectKey { return objectKey{m.GetNamespace(), m.GetName()} }

func versionOf(m metav1.Object) objectVersion {
	return objectVersion{m.GetUID(), m.GetResourceVersion()}
}
