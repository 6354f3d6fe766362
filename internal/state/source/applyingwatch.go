package source

import (
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// applyingWatch applies the events of a watch before the reflector gets them.
type applyingWatch struct {
	lw     *listWatcher
	server watch.Interface
	events chan watch.Event
	done   chan struct{}
	once   sync.Once

	// requested is when the watch was requested, timeout is how long the server keeps
	// it open, and resourceVersion is the version of its last event.
	requested       time.Time
	timeout         time.Duration
	resourceVersion string
	// reopened is true if [listWatcher.reopen] ended it.
	reopened bool
}

func (w *applyingWatch) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch. After it returns, no event of this watch is applied: it could
// overwrite newer state.
func (w *applyingWatch) Stop() {
	w.once.Do(func() {
		w.lw.mu.Lock()
		close(w.done)
		w.lw.mu.Unlock()
		w.server.Stop()
	})
}

func (w *applyingWatch) run() {
	defer close(w.events)
	defer w.recordEnd()
	for event := range w.server.ResultChan() {
		event, ok := w.applyUnlessStopped(event)
		if !ok {
			return
		}
		select {
		case w.events <- event:
		case <-w.done:
			return
		}
	}
}

// minLifetime is the fraction of its timeout that a watch normally stays open.
const minLifetime = 0.9

// recordEnd records that the watch has ended, and whether it ended early.
func (w *applyingWatch) recordEnd() {
	w.lw.mu.Lock()
	defer w.lw.mu.Unlock()
	if w.lw.stream == w {
		w.lw.stream = nil
		w.lw.gap = !w.reopened && float64(w.lw.live.ages.Now().Sub(w.requested)) < minLifetime*float64(w.timeout)
	}
}

// applyUnlessStopped returns false when the watch has been stopped.
func (w *applyingWatch) applyUnlessStopped(event watch.Event) (watch.Event, bool) {
	w.lw.mu.Lock()
	defer w.lw.mu.Unlock()
	select {
	case <-w.done:
		return event, false
	default:
	}
	event, err := w.lw.apply(event)
	if err != nil {
		// From here on, events are lost until the kind has been listed again.
		w.lw.live.recordError(w.lw.endpoint.kind, err)
		w.lw.live.setFollowing(w.lw.epoch, w.lw.endpoint.kind, Reading)
		status := apierrors.NewInternalError(err).Status()
		return watch.Event{Type: watch.Error, Object: &status}, true
	}
	return event, true
}
