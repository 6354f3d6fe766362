package staleness_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// source is an API server with nodes. A test sets its list, the events of its watch and its store separately.
type source struct {
	watch *watch.FakeWatcher

	mu      sync.Mutex
	list    *corev1.NodeList
	failure error
	// store has the objects of the store; nil if they are the listed objects.
	store *corev1.NodeList
	// exact is the error of reads from the store.
	exact error
}

func (s *source) answer(list *corev1.NodeList, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list, s.failure = list, err
}

// restore sets the objects of the store, and the error of reads from it.
func (s *source) restore(store *corev1.NodeList, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store, s.exact = store, err
}

// read reads one object from the store, at the version of the list.
func (s *source) read(opts metav1.ListOptions) (runtime.Object, error) {
	if opts.ResourceVersion != s.list.ResourceVersion {
		return nil, fmt.Errorf("the version is %q", opts.ResourceVersion)
	}
	if s.exact != nil {
		return nil, s.exact
	}
	found := &corev1.NodeList{}
	for _, n := range cmp.Or(s.store, s.list).Items {
		if opts.FieldSelector == "metadata.name="+n.Name {
			found.Items = append(found.Items, n)
		}
	}
	return found, nil
}

func follow(age *staleness.Age, s *source) *staleness.Followed {
	return age.Follow(func(_ context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
			return s.read(opts)
		}
		if opts.ResourceVersion != "" || opts.ResourceVersionMatch != "" {
			return nil, fmt.Errorf("the list is of the version %q %s", opts.ResourceVersion, opts.ResourceVersionMatch)
		}
		if s.failure != nil {
			return nil, s.failure
		}
		return s.list, nil
	}, func(context.Context, metav1.ListOptions) (watch.Interface, error) { return s.watch, nil })
}

// node returns a node with a version.
func node(name string, version int) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: strconv.Itoa(version)}}
}

func with(n *corev1.Node, change func(*corev1.Node)) *corev1.Node {
	change(n)
	return n
}

// nodes returns a list, at the highest version of its nodes.
func nodes(all ...*corev1.Node) *corev1.NodeList {
	list, version := &corev1.NodeList{}, 0
	for _, n := range all {
		list.Items = append(list.Items, *n)
		of, _ := strconv.Atoi(n.ResourceVersion)
		version = max(version, of)
	}
	list.ResourceVersion = strconv.Itoa(version)
	return list
}

// A reflector lists again when it gets the error that a resource version is too old.
func TestEachWatchBeginsWithAList(t *testing.T) {
	begin := func(f *staleness.Followed, opts metav1.ListOptions, want bool) {
		t.Helper()
		w, err := f.Watch(t.Context(), opts)
		if (err == nil) != want || err != nil && (!apierrors.IsResourceExpired(err) || !staleness.IsDue(err)) {
			t.Errorf("the watch may begin: %v, want %v", err, want)
		}
		if err == nil {
			w.Stop()
		}
	}
	s := &source{watch: watch.NewFake()}
	f := follow(staleness.New("nodes", time.Minute, nil), s)
	list := func(of *corev1.NodeList) {
		t.Helper()
		s.answer(of, nil)
		if _, err := f.List(t.Context(), metav1.ListOptions{ResourceVersion: "0"}); err != nil {
			t.Fatal(err)
		}
	}
	begin(f, metav1.ListOptions{}, false)
	list(&corev1.NodeList{ListMeta: metav1.ListMeta{Continue: "more"}})
	begin(f, metav1.ListOptions{}, false)
	list(&corev1.NodeList{})
	begin(f, metav1.ListOptions{}, true)
	begin(f, metav1.ListOptions{}, false)
	list(&corev1.NodeList{})
	s.answer(nil, errors.New("the API server answers 429"))
	if _, err := f.List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("the list has no error")
	}
	begin(f, metav1.ListOptions{}, false)
	begin(follow(staleness.New("nodes", 0, nil), s), metav1.ListOptions{}, true)
}

// followed is an open watch of a copy with a limit of two minutes.
type followed struct {
	*source
	follows *staleness.Followed
	age     *staleness.Age
	through watch.Interface
	// began is when the copy was listed.
	began time.Time
}

const limit = 2 * time.Minute

// inBubble runs a test of a copy that was listed and is watched.
func inBubble(t *testing.T, list *corev1.NodeList, test func(*testing.T, *followed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &followed{source: &source{watch: watch.NewFake(), list: list}, age: staleness.New("nodes", limit, nil), began: time.Now()}
		f.follows = follow(f.age, f.source)
		if _, err := f.follows.List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		var err error
		if f.through, err = f.follows.Watch(t.Context(), metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		defer f.through.Stop()
		test(t, f)
	})
}

// deliver lets the watch deliver an event.
func (f *followed) deliver(t *testing.T, event watch.EventType, object *corev1.Node) {
	t.Helper()
	f.watch.Action(event, object)
	if _, more := <-f.through.ResultChan(); !more {
		t.Fatalf("after %s, the watch has ended", time.Since(f.began))
	}
	synctest.Wait()
}

// bookmarks delivers a bookmark each ten seconds for a time. Meanwhile the copy may be used.
func (f *followed) bookmarks(t *testing.T, until time.Duration) {
	t.Helper()
	for time.Since(f.began) < until {
		time.Sleep(10 * time.Second)
		f.deliver(t, watch.Bookmark, &corev1.Node{})
		if err := f.age.Check(); err != nil {
			t.Fatalf("after %s: %v", time.Since(f.began), err)
		}
	}
}

// ends expects that the watch ends within a time since the copy was listed.
func (f *followed) ends(t *testing.T, within time.Duration) {
	t.Helper()
	for range f.through.ResultChan() {
	}
	if after := time.Since(f.began); after > within {
		t.Errorf("the watch ended after %s, and must end within %s", after, within)
	}
	if !f.watch.IsStopped() {
		t.Error("the watch of the API server was not stopped")
	}
}

// A watch ends before the copy is too old, so that a list can confirm the copy, and shows a store that was restored.
func TestAWatchEndsBeforeTheCopyIsTooOld(t *testing.T) {
	for rule, test := range map[string]func(*testing.T, *followed){
		"with bookmarks": func(t *testing.T, f *followed) { f.bookmarks(t, time.Minute) },
		"with changes": func(t *testing.T, f *followed) {
			f.deliver(t, watch.Modified, node("a", 3))
			f.deliver(t, watch.Deleted, node("b", 4))
		},
		"silent": func(*testing.T, *followed) {},
	} {
		t.Run(rule, func(t *testing.T) {
			inBubble(t, nodes(node("a", 1), node("b", 2)), func(t *testing.T, f *followed) {
				test(t, f)
				f.ends(t, limit*3/4)
				if err := f.age.Check(); err != nil {
					t.Errorf("the copy is too old when the watch ends: %v", err)
				}
				f.answer(nil, errors.New("the API server answers 429"))
				if _, err := f.follows.List(t.Context(), metav1.ListOptions{}); err == nil {
					t.Error("the list has no error")
				}
				time.Sleep(limit + time.Second)
				if err := f.age.Check(); err == nil || !strings.Contains(err.Error(), "429") {
					t.Errorf("without a list: %v", err)
				}
				f.answer(nodes(node("a", 3)), nil)
				if _, err := f.follows.List(t.Context(), metav1.ListOptions{}); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Second)
				if err := f.age.Check(); err != nil {
					t.Errorf("after a list: %v", err)
				}
			})
		})
	}
}

func TestWatchesWithoutALimitDoNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{watch: watch.NewFake()}
		unlimited, err := follow(staleness.New("nodes", 0, nil), s).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-unlimited.ResultChan():
			t.Error("a watch without a limit ended")
		case <-time.After(24 * time.Hour):
		}
		unlimited.Stop()
	})
}

// An event that nobody receives confirms nothing: the reflector lists again.
func TestAnEventThatIsNotReceivedConfirmsNothing(t *testing.T) {
	inBubble(t, nodes(node("a", 1)), func(t *testing.T, f *followed) {
		time.Sleep(time.Minute)
		go f.watch.Modify(node("a", 2))
		synctest.Wait()
		f.through.Stop()
		synctest.Wait()
		if age, _ := f.age.Value(); age != time.Minute {
			t.Errorf("the age is %v", age)
		}
	})
}
