package staleness_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
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

// A store was restored, and the API server lists and watches from its cache. When the copy is listed, it may not be
// used. It may be used again when the API server lists the objects of its store.
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
					if _, err := f.follows.List(t.Context(), metav1.ListOptions{}); err == nil {
						t.Error("the list is accepted")
					} else if _, is := errors.AsType[*staleness.HistoryError](err); !is {
						t.Error(err)
					}
					if err := f.age.Check(); err == nil || !strings.Contains(err.Error(), tc.says) ||
						!strings.Contains(err.Error(), "restart this kube-apiserver") {
						t.Errorf("the copy may be used, or not because of %q: %v", tc.says, err)
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
		f.restore(nodes(node("a", 1), node("b", 2)), nil)
		f.ends(t, limit*3/4)
		_, _ = f.follows.List(t.Context(), metav1.ListOptions{})
		if err := f.age.Check(); err == nil || !strings.Contains(err.Error(), "and it lists not existing") {
			t.Error(err)
		}
	})
}

// Objects of the new history are newer than objects of the history that has ended, and do not hide these.
func TestNewObjectsDoNotHideThoseOfAnEndedHistory(t *testing.T) {
	old := []*corev1.Node{node("a", 1), node("b", 2), node("dropped", 3)}
	inBubble(t, nodes(old...), func(t *testing.T, f *followed) {
		f.restore(nil, tooLarge)
		f.bookmarks(t, time.Minute)
		f.ends(t, limit*3/4)
		_, _ = f.follows.List(t.Context(), metav1.ListOptions{})
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
