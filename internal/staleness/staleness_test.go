package staleness_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// clock is a clock that tests set. Its times have no monotonic reading.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func TestACopyIsTooOldAfterMax(t *testing.T) {
	c := &clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	age := staleness.New("nodes", 2*time.Minute, c.now)
	if _, ever := age.Value(); ever || age.Check() != nil {
		t.Error("a copy that was never made is too old")
	}
	age.MarkCurrent()
	c.Time = c.Add(2 * time.Minute)
	if got, ever := age.Value(); got != 2*time.Minute || !ever || age.Check() != nil {
		t.Errorf("the age is %v, %v, check %v", got, ever, age.Check())
	}
	c.Time = c.Add(time.Second)
	cause := errors.New("the API server answers 401")
	for _, tc := range []struct {
		cause error
		says  string
	}{
		{nil, "the copy of nodes is 2m1s old, and cluster.maxStaleness is 2m0s: nothing was received from it"},
		{cause, "the copy of nodes is 2m1s old, and cluster.maxStaleness is 2m0s: the API server answers 401"},
	} {
		age.Failed(tc.cause)
		if err := age.Check(); err == nil || err.Error() != tc.says || tc.cause != nil && !errors.Is(err, tc.cause) {
			t.Errorf("got %v, want %q", err, tc.says)
		}
	}
	age.MarkCurrent()
	if err := age.Check(); err == nil || !strings.Contains(err.Error(), "the source answers again") {
		t.Errorf("at once after the source answered again: %v", err)
	}
	c.Time = c.Add(time.Second)
	age.MarkCurrent()
	c.Time = c.Add(time.Second)
	if err := age.Check(); err != nil {
		t.Errorf("two seconds after the source answered again: %v", err)
	}
	age.MarkCurrent()
	c.Time = c.Add(2*time.Minute + 1)
	if err := age.Check(); err == nil || strings.Contains(err.Error(), "401") {
		t.Errorf("the old cause is still reported: %v", err)
	}
}

func TestWithoutMaxNothingIsTooOld(t *testing.T) {
	c := &clock{time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	age := staleness.New("nodes", 0, c.now)
	age.MarkCurrent()
	c.Time = c.AddDate(1, 0, 0)
	if err := age.Check(); err != nil {
		t.Error(err)
	}
}

func TestWhatConfirmsACopy(t *testing.T) {
	yes := true
	initial := metav1.ListOptions{SendInitialEvents: &yes}
	end := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
	refused := &metav1.Status{
		Status: metav1.StatusFailure, Message: "too old resource version",
		Code: 410, Reason: metav1.StatusReasonExpired,
	}
	added := watch.Event{Type: watch.Added}
	event := func(opts metav1.ListOptions, events ...watch.Event) func(*staleness.Age) {
		return func(age *staleness.Age) {
			w := watch.NewFakeWithChanSize(len(events), false)
			for _, e := range events {
				w.Action(e.Type, e.Object)
			}
			through := age.Watch(w, opts)
			for range events {
				<-through.ResultChan()
			}
			through.Stop()
		}
	}
	node := &corev1.Node{}
	added.Object = node
	initialEnd := watch.Event{Type: watch.Bookmark, Object: end}
	for _, tc := range []struct {
		rule    string
		do      func(*staleness.Age)
		current bool
	}{
		{"a list confirms", func(a *staleness.Age) { a.List(&corev1.NodeList{}, nil) }, true},
		{"a page before the last does not", func(a *staleness.Age) {
			a.List(&corev1.NodeList{ListMeta: metav1.ListMeta{Continue: "more"}}, nil)
		}, false},
		{"a failed list does not", func(a *staleness.Age) { a.List(nil, errors.New("no")) }, false},
		{"opening a watch does not", event(metav1.ListOptions{}), false},
		{"an addition", event(metav1.ListOptions{}, added), true},
		{"a change", event(metav1.ListOptions{}, watch.Event{Type: watch.Modified, Object: node}), true},
		{"a deletion", event(metav1.ListOptions{}, watch.Event{Type: watch.Deleted, Object: node}), true},
		{"a bookmark", event(metav1.ListOptions{}, watch.Event{Type: watch.Bookmark, Object: node}), true},
		{"an error does not", event(metav1.ListOptions{}, watch.Event{Type: watch.Error, Object: refused}), false},
		{"an initial event does not", event(initial, added), false},
		{"the end of the initial events", event(initial, added, initialEnd), true},
		{"an event after the initial events", event(initial, initialEnd, added), true},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				age := staleness.New("nodes", time.Minute, nil)
				tc.do(age)
				synctest.Wait()
				if _, current := age.Value(); current != tc.current {
					t.Errorf("the copy is confirmed: %v, want %v", current, tc.current)
				}
			})
		})
	}
}

// A reflector lists again when it gets the error that a resource version is too old.
func TestEachWatchBeginsWithAList(t *testing.T) {
	yes := true
	begin := func(age *staleness.Age, opts metav1.ListOptions, want bool) {
		t.Helper()
		if err := age.Begin(opts); (err == nil) != want || err != nil && !apierrors.IsResourceExpired(err) {
			t.Errorf("the watch may begin: %v, want %v", err, want)
		}
	}
	age := staleness.New("nodes", time.Minute, nil)
	begin(age, metav1.ListOptions{}, false)
	age.List(&corev1.NodeList{ListMeta: metav1.ListMeta{Continue: "more"}}, nil)
	begin(age, metav1.ListOptions{}, false)
	age.List(&corev1.NodeList{}, nil)
	begin(age, metav1.ListOptions{}, true)
	begin(age, metav1.ListOptions{}, false)
	begin(age, metav1.ListOptions{SendInitialEvents: &yes}, true)
	begin(age, metav1.ListOptions{}, false)
	begin(staleness.New("nodes", 0, nil), metav1.ListOptions{}, true)
}

// It ends before the copy is too old, so that a list can confirm the copy.
func TestASilentWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		age := staleness.New("nodes", 2*time.Minute, nil)
		age.List(&corev1.NodeList{}, nil)
		w := watch.NewFake()
		through := age.Watch(w, metav1.ListOptions{})
		for range 5 {
			time.Sleep(80 * time.Second)
			w.Action(watch.Bookmark, &corev1.Node{})
			if _, more := <-through.ResultChan(); !more {
				t.Fatal("a watch with bookmarks ended")
			}
		}
		began := time.Now()
		if event, more := <-through.ResultChan(); more || time.Since(began) != 90*time.Second {
			t.Errorf("got %v after %s, want the end after 90s", event, time.Since(began))
		}
		if err := age.Check(); err != nil {
			t.Errorf("the copy is too old when the watch ends: %v", err)
		}
		if !w.IsStopped() {
			t.Error("the watch of the API server was not stopped")
		}
		unlimited := staleness.New("nodes", 0, nil).Watch(watch.NewFake(), metav1.ListOptions{})
		select {
		case <-unlimited.ResultChan():
			t.Error("a watch without a limit ended")
		case <-time.After(24 * time.Hour):
		}
		unlimited.Stop()
		through.Stop()
	})
}

func TestACopyThatWasTooOldSettles(t *testing.T) {
	now := time.Now()
	age := staleness.New("Secret a/b", time.Minute, func() time.Time { return now })
	for round := range 2 {
		age.MarkCurrent()
		for _, step := range []struct {
			rule   string
			passes time.Duration
			usable bool
		}{
			{"too old", time.Minute + 1, false},
			{"still too old", time.Second, false},
			{"its source has answered again", 0, false},
			{"the changes that were missed may still arrive", time.Second, false},
			{"settled", time.Second, true},
			{"young", time.Second, true},
		} {
			if now = now.Add(step.passes); step.passes == 0 {
				age.MarkCurrent()
			}
			if err := age.Check(); (err == nil) != step.usable {
				t.Errorf("round %d, %s: %v", round, step.rule, err)
			}
		}
	}
}
