package staleness_test

import (
	"errors"
	"net/http"
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

// tooLarge is the answer of an API server whose store does not have a resource version yet.
var tooLarge = &apierrors.StatusError{ErrStatus: metav1.Status{
	Status: metav1.StatusFailure, Code: http.StatusGatewayTimeout, Reason: metav1.StatusReasonTimeout,
	Message: "Too large resource version: 275, current: 230",
	Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}},
}}

// A store was restored, and the API server lists and watches from its cache. As soon as the copy is compared, it may not be
// used. It may be used again when the API server lists what its store has.
func TestACopyOfACacheThatIsNotTheStores(t *testing.T) {
	lists := nodes(node("a", 1), node("b", 2))
	for rule, tc := range map[string]struct {
		store *corev1.NodeList
		err   error
		says  string
	}{
		"an object is gone":             {nodes(node("a", 1)), nil, "its store has b at resource version 2 as not existing"},
		"an object has another version": {nodes(node("a", 1), node("b", 1)), nil, "as version 1 with"},
		"an object has another UID": {
			nodes(node("a", 1), with(node("b", 2), func(n *corev1.Node) { n.UID = "x" })), nil, `the UID "x"`,
		},
		"everything is gone":                {nodes(), nil, "as not existing"},
		"its resource version is lower":     {nil, tooLarge, "its store does not have resource version 2 yet: Too large resource version"},
		"an older object is gone":           {nodes(node("b", 2)), nil, "its store has a at resource version 2 as not existing"},
		"all of its objects are other ones": {nodes(node("c", 1), node("d", 2)), nil, "as not existing"},
	} {
		t.Run(rule, func(t *testing.T) {
			inBubble(t, lists, func(t *testing.T, f *followed) {
				f.restore(tc.store, tc.err)
				f.bookmarks(t, time.Minute)
				f.ends(t, limit*3/4)
				for range 3 {
					if err := f.age.Check(); err == nil || !strings.Contains(err.Error(), tc.says) ||
						!strings.Contains(err.Error(), "restart this kube-apiserver") {
						t.Errorf("the copy may be used, or not because of %q: %v", tc.says, err)
					}
					if _, err := f.follows.List(t.Context(), metav1.ListOptions{}); err == nil {
						t.Error("the same list is accepted")
					} else if _, is := errors.AsType[*staleness.HistoryError](err); !is {
						t.Error(err)
					}
					time.Sleep(time.Minute)
				}
				if tc.store != nil {
					f.answer(tc.store, nil)
				}
				f.restore(nil, nil)
				if _, err := f.follows.List(t.Context(), metav1.ListOptions{}); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Second)
				if err := f.age.Check(); err != nil {
					t.Errorf("after a list that is the store's: %v", err)
				}
			})
		})
	}
}

// The store has an object again that was deleted after the backup.
func TestADeletedObjectThatTheStoreHasAgain(t *testing.T) {
	inBubble(t, nodes(node("a", 1), node("b", 2)), func(t *testing.T, f *followed) {
		f.deliver(t, watch.Deleted, node("b", 3))
		f.answer(nodes(node("a", 1)), nil)
		f.bookmarks(t, 3*time.Minute)
		f.restore(nodes(node("a", 1), node("b", 2)), nil)
		f.ends(t, 3*time.Minute+limit*3/4)
		if err := f.age.Check(); err == nil || !strings.Contains(err.Error(), "and it lists not existing") {
			t.Error(err)
		}
	})
}

// Objects of the new history are newer than those of the one that has ended, and do not hide these.
func TestNewObjectsDoNotHideThoseOfAnEndedHistory(t *testing.T) {
	old := []*corev1.Node{node("a", 1), node("b", 2), node("dropped", 3)}
	inBubble(t, nodes(old...), func(t *testing.T, f *followed) {
		f.restore(nil, tooLarge)
		f.bookmarks(t, time.Minute)
		f.ends(t, limit*3/4)
		store := []*corev1.Node{node("a", 1), node("b", 2)}
		for i := range 30 {
			added := node(strings.Repeat("n", i+1), 10+i)
			old, store = append(old, added), append(store, added)
		}
		f.answer(nodes(old...), nil)
		f.restore(nodes(store...), nil)
		if _, err := f.follows.List(t.Context(), metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "has dropped at") {
			t.Errorf("the list has an object of a history that ended: %v", err)
		}
	})
}

// A watch that begins with all objects ends before the reflector knows that they are all.
func TestInitialEventsThatAreNotTheStores(t *testing.T) {
	for _, restored := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			yes := true
			s := &source{watch: watch.NewFake(), list: nodes(node("a", 1), node("b", 2))}
			if restored {
				s.store = nodes(node("a", 1))
			}
			age := staleness.New("nodes", limit, nil)
			through, err := follow(age, s).Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &yes})
			if err != nil {
				t.Fatal(err)
			}
			defer through.Stop()
			end := node("", 2)
			end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			go func() {
				for i := range s.list.Items {
					s.watch.Add(&s.list.Items[i])
				}
				s.watch.Action(watch.Bookmark, end)
			}()
			var last watch.Event
			for range 3 {
				last = <-through.ResultChan()
			}
			_, current := age.Value()
			want := watch.Bookmark
			if restored {
				want = watch.Error
			}
			if last.Type != want || current == restored {
				t.Errorf("restored %v: the last event is %+v, want a %s; the copy is confirmed: %v", restored, last, want, current)
			}
		})
	}
}
