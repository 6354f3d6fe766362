package staleness_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	refused := &metav1.Status{
		Status: metav1.StatusFailure, Message: "too old resource version",
		Code: 410, Reason: metav1.StatusReasonExpired,
	}
	added := watch.Event{Type: watch.Added}
	event := func(events ...watch.Event) func(*testing.T, *staleness.Age) {
		return func(t *testing.T, age *staleness.Age) {
			w := watch.NewFakeWithChanSize(len(events), false)
			for _, e := range events {
				w.Action(e.Type, e.Object)
			}
			through, err := follow(age, &source{watch: w}).Watch(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for range events {
				<-through.ResultChan()
			}
			through.Stop()
		}
	}
	list := func(list *corev1.NodeList, err error) func(*testing.T, *staleness.Age) {
		return func(t *testing.T, age *staleness.Age) {
			_, _ = follow(age, &source{list: list, failure: err}).List(t.Context(), metav1.ListOptions{})
		}
	}
	node := &corev1.Node{}
	added.Object = node
	for _, tc := range []struct {
		rule    string
		do      func(*testing.T, *staleness.Age)
		current bool
	}{
		{"a list confirms", list(&corev1.NodeList{}, nil), true},
		{"a page before the last does not", list(&corev1.NodeList{ListMeta: metav1.ListMeta{Continue: "more"}}, nil), false},
		{"a failed list does not", list(nil, errors.New("no")), false},
		{"opening a watch does not", event(), false},
		{"an addition", event(added), true},
		{"a change", event(watch.Event{Type: watch.Modified, Object: node}), true},
		{"a deletion", event(watch.Event{Type: watch.Deleted, Object: node}), true},
		{"a bookmark", event(watch.Event{Type: watch.Bookmark, Object: node}), true},
		{"an error does not", event(watch.Event{Type: watch.Error, Object: refused}), false},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				age := staleness.New("nodes", 0, nil) // without a limit, watches begin without a list
				tc.do(t, age)
				synctest.Wait()
				if _, current := age.Value(); current != tc.current {
					t.Errorf("the copy is confirmed: %v, want %v", current, tc.current)
				}
			})
		})
	}
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
