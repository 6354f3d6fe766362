package source

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// listWatcher lists and watches a kind for a reflector. The reflector decides when to
// list, to watch and to start over. The listWatcher applies the objects to the state
// and returns only their names to the reflector. A reflector holds all objects of a
// list until the list is complete, so this way it holds only names.
type listWatcher struct {
	live     *Live
	epoch    *epoch
	endpoint *endpoint
	stop     context.CancelFunc
	// anomalies go to the checker.
	anomalies chan anomaly

	mu      sync.Mutex
	closed  bool     // true when nothing may be applied any more
	listing *listing // the list in progress; nil if there is none
	// requested is when that list was requested.
	requested time.Time
	// stream is the open watch; nil if there is none. gap is true when the previous
	// watch ended early.
	stream *applyingWatch
	gap    bool
	// comparison is the comparison in progress; nil if there is none.
	comparison *comparison
}

// errReflectorStopped ends a list whose reflector was stopped.
var errReflectorStopped = errors.New("the reflector was stopped")

// close stops the listWatcher from applying anything.
func (lw *listWatcher) close() {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	lw.closed = true
}

// reportAnomaly notifies the checker, unless a notification is pending.
func (lw *listWatcher) reportAnomaly(d anomaly) {
	select {
	case lw.anomalies <- d:
	default:
	}
}

// reopen ends the open watch; the reflector opens another from its last resource
// version.
func (lw *listWatcher) reopen() {
	lw.mu.Lock()
	stream := lw.stream
	if stream == nil || lw.listing != nil {
		lw.mu.Unlock()
		return
	}
	stream.reopened = true
	lw.mu.Unlock()
	stream.server.Stop()
}

// list returns a page of a list to the reflector.
func (lw *listWatcher) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	// With resource version "0" servers ignore the limit, and with any other they may
	// answer from a stale cache.
	opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
	requestedAt := lw.live.ages.Now()
	page, err := lw.endpoint.page(ctx, opts)
	if err != nil {
		return nil, lw.handleError("list", err)
	}
	names, err := lw.addPage(page, opts.Continue == "", requestedAt)
	if err != nil || names.Continue != "" {
		return names, err
	}
	if err := lw.verify(ctx, lw.listing.sample, names.ResourceVersion); err != nil {
		return nil, lw.handleError("list", err)
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.closed {
		return nil, errReflectorStopped
	}
	lw.finishList()
	return names, nil
}

// addPage applies a page of a list, and returns what the reflector gets.
func (lw *listWatcher) addPage(page runtime.Object, first bool, requestedAt time.Time) (*nameList, error) {
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.closed {
		return nil, errReflectorStopped
	}
	lw.live.recordPage(lw.epoch, lw.endpoint.kind, listMeta(page).GetResourceVersion())
	if first {
		lw.startList(requestedAt)
	}
	m, names := listMeta(page), &nameList{}
	names.ResourceVersion, names.Continue, names.RemainingItemCount = m.GetResourceVersion(), m.GetContinue(), m.GetRemainingItemCount()
	err := meta.EachListItem(page, func(item runtime.Object) error {
		o, err := lw.addListed(item)
		names.Items = append(names.Items, o)
		return err
	})
	if err != nil {
		lw.live.setFollowing(lw.epoch, lw.endpoint.kind, Reading)
		return nil, lw.handleError("list", err)
	}
	return names, nil
}

// verify returns an error unless the API server's store has what the API server lists. If the kind was in use, the state
// is dropped: it is of another history.
func (lw *listWatcher) verify(ctx context.Context, sample *staleness.Sample, version string) error {
	if lw.live.opts.MaxStaleness <= 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lw.live.opts.MaxStaleness/probesPerAge)
	defer cancel()
	err := sample.Verify(ctx, version, lw.endpoint.pageIn)
	if _, other := errors.AsType[*staleness.HistoryError](err); other {
		if used := lw.live.endHistory(lw.endpoint.kind, version); used {
			lw.live.reset(lw.epoch, fmt.Sprintf("%s: %v", lw.endpoint.resource.GroupResource(), err))
		}
	}
	return err
}

// watch opens a watch for the reflector. With initial events the watch starts with
// the objects that exist, and a bookmark ends them.
func (lw *listWatcher) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if initial {
		opts.ResourceVersion = "" // the current state, read from the store
	}
	requestedAt := lw.live.ages.Now()
	w, err := lw.endpoint.watch(ctx, opts)
	switch {
	case err != nil && initial:
		return nil, err // the reflector falls back to a list
	case err != nil:
		lw.mu.Lock()
		lw.gap = true
		lw.mu.Unlock()
		return nil, lw.handleError("watch", err)
	}
	lw.mu.Lock()
	defer lw.mu.Unlock()
	if lw.listing = nil; initial {
		lw.startList(requestedAt)
	} else {
		lw.live.markReadable(lw.endpoint.kind)
		lw.live.setFollowing(lw.epoch, lw.endpoint.kind, Followed)
		if lw.gap {
			lw.reportAnomaly(anomalyGap)
		}
	}
	lw.gap = false
	lw.stream = &applyingWatch{
		lw: lw, server: w, events: make(chan watch.Event), done: make(chan struct{}),
		requested: requestedAt, resourceVersion: opts.ResourceVersion,
	}
	if opts.TimeoutSeconds != nil {
		lw.stream.timeout = time.Duration(*opts.TimeoutSeconds) * time.Second
	}
	go lw.stream.run()
	return lw.stream, nil
}

// handleError handles the error of a request. If access is forbidden or the resource
// is not served, it stops the reflector, which would retry every few seconds.
func (lw *listWatcher) handleError(verb string, err error) error {
	k, resource := lw.endpoint.kind, lw.endpoint.resource.GroupResource()
	switch {
	case apierrors.IsForbidden(err):
		lw.live.markUnreadable(lw.epoch, k, missingReason(verb, resource, err))
		lw.stop()
	case apierrors.IsNotFound(err):
		lw.live.markNotServed(lw.epoch, k)
		lw.stop()
	default:
		if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
			lw.reportAnomaly(anomalyVersion)
		}
		lw.live.recordError(k, fmt.Errorf("%s %s: %w", verb, resource, err))
	}
	return err
}

func (lw *listWatcher) startList(requestedAt time.Time) {
	lw.requested, lw.comparison = requestedAt, nil
	lw.live.listStarted(lw.epoch, lw.endpoint.kind, requestedAt)
	lw.listing = &listing{
		state: lw.live.state, kind: lw.endpoint.kind, keys: map[objectKey]struct{}{},
		sample: lw.live.newSample(lw.endpoint.kind),
	}
}

// finishList removes objects that were not listed.
func (lw *listWatcher) finishList() {
	lw.listing.removeUnlisted()
	lw.live.report(lw.endpoint.resource.Resource, int64(lw.listing.count), 0, lw.listing.count%progressStep)
	lw.listing = nil
	if k := lw.endpoint.kind; k.describe().rbac {
		lw.live.state.rbacRead(k)
	}
	lw.live.listCompleted(lw.epoch, lw.endpoint.kind, lw.requested)
	lw.live.setFollowing(lw.epoch, lw.endpoint.kind, Followed)
	lw.live.markSettled(lw.endpoint.kind)
}

// progressStep is the number of objects between two progress reports.
const progressStep = 1000

// addListed applies an object of a list to the state.
func (lw *listWatcher) addListed(o runtime.Object) (runtime.Object, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return nil, err
	}
	named := &objectName{version: m.GetResourceVersion()}
	lw.listing.sample.Add(m)
	named.key, err = lw.listing.addObject(o)
	err = lw.skipUnkept(err)
	if lw.listing.count%progressStep == 0 {
		lw.live.report(lw.endpoint.resource.Resource, int64(lw.listing.count), -1, progressStep)
	}
	return named, err
}

// skipUnkept records and drops the error of an object that could not be kept whole:
// one object must not stop the events of all others.
func (lw *listWatcher) skipUnkept(err error) error {
	if unkept := new(unkeptError); errors.As(err, &unkept) {
		lw.live.recordError(lw.endpoint.kind, err)
		return nil
	}
	return err
}

// apply applies an event and returns the event that the reflector gets instead.
func (lw *listWatcher) apply(event watch.Event) (watch.Event, error) {
	lw.recordEvent(event)
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted:
	case watch.Bookmark:
		m, err := meta.Accessor(event.Object)
		if err == nil && lw.listing != nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
			if err := lw.verify(lw.epoch.ctx, lw.listing.sample, m.GetResourceVersion()); err != nil {
				return event, err
			}
			lw.finishList()
			lw.live.markReadable(lw.endpoint.kind)
		}
		return event, nil
	default:
		if err := apierrors.FromObject(event.Object); event.Type == watch.Error {
			if apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
				lw.reportAnomaly(anomalyVersion)
			}
			lw.live.recordError(lw.endpoint.kind, err)
		}
		return event, nil
	}
	m, err := meta.Accessor(event.Object)
	if err != nil {
		return event, err
	}
	named := &objectName{key: keyOf(m.GetNamespace(), m.GetName()), version: m.GetResourceVersion()}
	lw.comparison.recordEvent(named.key)
	switch {
	case event.Type == watch.Deleted:
		lw.live.state.remove(lw.endpoint.kind, m.GetNamespace(), m.GetName())
		lw.live.recordDeleted(lw.endpoint.kind, m)
		if lw.listing != nil {
			delete(lw.listing.keys, named.key)
			lw.listing.sample.Remove(m)
		}
	case lw.listing != nil:
		_, err = lw.addListed(event.Object)
	default:
		_, err = lw.live.state.applyReceived(lw.endpoint.kind, event.Object)
		err = lw.skipUnkept(err)
	}
	return watch.Event{Type: event.Type, Object: named}, err
}

// recordEvent records the time and resource version of an event. While a kind is
// being listed, an event counts only as a page: it says nothing about the objects
// that follow.
func (lw *listWatcher) recordEvent(event watch.Event) {
	m, err := meta.Accessor(event.Object)
	if event.Type == watch.Error || err != nil {
		return
	}
	version := m.GetResourceVersion()
	if lw.listing != nil {
		lw.live.recordPage(lw.epoch, lw.endpoint.kind, version)
		return
	}
	if staleness.Older(version, lw.stream.resourceVersion) {
		lw.reportAnomaly(anomalyVersion)
	} else {
		lw.stream.resourceVersion = version
	}
	lw.live.recordEvent(lw.epoch, lw.endpoint.kind, version)
}

// objectName is what the reflector gets instead of an object.
type objectName struct {
	key     objectKey
	version string
}

// GetObjectMeta returns the metadata that a reflector reads.
func (n *objectName) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: n.key.namespace.Value(), Name: n.key.name, ResourceVersion: n.version}
}

// GetObjectKind returns no kind.
func (n *objectName) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the name itself, which never changes.
func (n *objectName) DeepCopyObject() runtime.Object { return n }

// nameList is what the reflector gets instead of a page of a list.
type nameList struct {
	metav1.ListMeta
	Items []runtime.Object
}

// GetObjectKind returns no kind.
func (l *nameList) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the list itself, which never changes.
func (l *nameList) DeepCopyObject() runtime.Object { return l }
