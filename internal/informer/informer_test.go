package informer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/internal/informer"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

// TestMain removes the handlers of client-go's errors, which sleep until a real time that a test in fake
// time does not reach.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// cluster is an API server with nodes, whose name and version are texts such as "worker-1@2".
type cluster struct {
	mu    sync.Mutex
	nodes []string
	down  bool
	lists int
	watch *watch.FakeWatcher
	// transform is the informer's; it may be nil.
	transform cache.TransformFunc
}

func (c *cluster) source() informer.Source[*corev1.NodeList] {
	return informer.Source[*corev1.NodeList]{
		List: func(context.Context, metav1.ListOptions) (*corev1.NodeList, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.lists++; c.down {
				return nil, errors.New("down")
			}
			list := &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
			for _, n := range c.nodes {
				list.Items = append(list.Items, *node(n))
			}
			return list, nil
		},
		Watch: func(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if c.down || opts.SendInitialEvents != nil {
				return nil, errors.New("not served")
			}
			c.watch = watch.NewFake()
			return c.watch, nil
		},
		Example: &corev1.Node{}, Name: "nodes",
	}
}

// set changes the nodes, and whether the API server answers.
func (c *cluster) set(down bool, nodes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.down, c.nodes = down, nodes
}

func node(text string) *corev1.Node {
	n := &corev1.Node{}
	name, version := text[:len(text)-2], text[len(text)-1:]
	n.Name, n.ResourceVersion = name, version
	return n
}

// follow runs an informer in fake time, and records the calls of its functions.
func follow(t *testing.T, c *cluster, steps func(i *informer.Informer, calls func() []string)) {
	synctest.Test(t, func(t *testing.T) {
		age := staleness.New("nodes", 10*time.Minute, nil).LimitWatches(informer.WatchLife)
		i := informer.New(c.source(), age, nil)
		var seen []string
		note := func(what string) []func(any) {
			return []func(any){func(object any) {
				n := object.(*corev1.Node)
				seen = append(seen, fmt.Sprintf("%s %s@%s", what, n.Name, n.ResourceVersion))
			}}
		}
		i.Changed, i.Deleted, i.Transform = note("changed"), note("deleted"), c.transform
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); i.Run(ctx) }()
		synctest.Wait()
		steps(i, func() []string {
			synctest.Wait()
			calls := slices.Sorted(slices.Values(seen))
			seen = nil
			return calls
		})
		cancel()
		<-done
	})
}

func want(t *testing.T, rule string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", rule, got, want)
	}
}

func TestFunctionsAreCalledForEachChange(t *testing.T) {
	c := &cluster{nodes: []string{"a@1", "b@1"}}
	follow(t, c, func(i *informer.Informer, calls func() []string) {
		want(t, "the first list", calls(), "changed a@1", "changed b@1")
		if !i.HasSynced() {
			t.Error("it has not synced")
		}
		c.watch.Add(node("c@2"))
		c.watch.Modify(node("a@3"))
		c.watch.Delete(node("b@4"))
		want(t, "events", calls(), "changed a@3", "changed c@2", "deleted b@1")
		want(t, "the copy", slices.Sorted(slices.Values(i.ListKeys())), "a", "c")
	})
}

// The copy has an object under the name that the Transform gives it, and finds it by that name when it is deleted.
func TestATransformChangesNames(t *testing.T) {
	c := &cluster{nodes: []string{"long-a@1", "long-b@1"}, transform: func(object any) (any, error) {
		n := object.(*corev1.Node).DeepCopy()
		n.Name = strings.TrimPrefix(n.Name, "long-")
		return n, nil
	}}
	follow(t, c, func(i *informer.Informer, calls func() []string) {
		want(t, "the first list", calls(), "changed a@1", "changed b@1")
		c.watch.Modify(node("long-a@2"))
		c.watch.Delete(node("long-b@3"))
		want(t, "events", calls(), "changed a@2", "deleted b@1")
		want(t, "the copy", i.ListKeys(), "a")
	})
}

// A watch that does not deliver a change is no reason to miss it for long.
func TestAListShowsWhatAWatchDidNotDeliver(t *testing.T) {
	c := &cluster{nodes: []string{"a@1", "b@1"}}
	follow(t, c, func(_ *informer.Informer, calls func() []string) {
		calls()
		c.set(false, "a@1", "c@2")
		time.Sleep(informer.WatchLife + 2*time.Second)
		want(t, "after the life of a watch", calls(), "changed c@2", "deleted b@1")
	})
}

func TestThePauseDoesNotGrow(t *testing.T) {
	c := &cluster{}
	follow(t, c, func(_ *informer.Informer, calls func() []string) {
		c.set(true)
		c.watch.Stop()
		time.Sleep(time.Hour)
		c.set(false, "a@1")
		time.Sleep(2 * time.Second)
		want(t, "two seconds after a fault of an hour", calls(), "changed a@1")
		if c.lists > 3700 {
			t.Errorf("it listed %d times in an hour", c.lists)
		}
	})
}
