package containment_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// cluster is an API server whose requests may fail.
type cluster struct {
	*fakeapiserver.Server
	t *testing.T

	mu sync.Mutex
	// down is a part of the paths that are not served, and forbidden of those that are forbidden to a method; empty
	// for none.
	down, method, forbidden string
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t}
	c.Server = fakeapiserver.New(fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.down != "" && strings.Contains(r.URL.Path, c.down) {
			return fakeapiserver.Unavailable
		}
		if c.forbidden != "" && r.Method == c.method && strings.Contains(r.URL.Path, c.forbidden) {
			return fakeapiserver.Forbidden
		}
		return fakeapiserver.NoFault
	}})
	t.Cleanup(c.Close)
	return c
}

func (c *cluster) outage(paths string) {
	c.mu.Lock()
	c.down = paths
	c.mu.Unlock()
	c.Disconnect()
}

func (c *cluster) forbid(method, paths string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.method, c.forbidden = method, paths
}

func path(resource, name string) string {
	return "/apis/" + v1alpha1.GroupVersion().String() + "/" + resource + "/" + name
}

func scopePath(name string) string      { return path(v1alpha1.NodeScopeResource, name) }
func quarantinePath(name string) string { return path(v1alpha1.QuarantineResource, name) }

// put stores an object. Objects that are created later are younger.
func (c *cluster) put(path string, object any) {
	c.t.Helper()
	if err := c.Put(path, object); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) quarantine(name, node string) {
	c.put(quarantinePath(name), &v1alpha1.Quarantine{Spec: v1alpha1.QuarantineSpec{Node: node}})
}

// age is the creation time of the nth object.
func age(n int) metav1.ObjectMeta {
	return metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC))}
}

// accepted returns the condition of an object, as CODE GENERATION; empty if it has none.
func (c *cluster) accepted(path string) string {
	condition, generation := c.condition(path)
	if condition == nil {
		return ""
	}
	return fmt.Sprint(condition.Reason, " ", generation)
}

// message returns the message of the condition of an object; empty if it has none.
func (c *cluster) message(path string) string {
	condition, _ := c.condition(path)
	if condition == nil {
		return ""
	}
	return condition.Message
}

func (c *cluster) condition(path string) (*metav1.Condition, int64) {
	var read struct {
		Status v1alpha1.NodeScopeStatus `json:"status"`
	}
	if found, err := c.Get(path, &read); err != nil || !found {
		return nil, 0
	}
	for i, condition := range read.Status.Conditions {
		if condition.Type == v1alpha1.ConditionAccepted {
			return &read.Status.Conditions[i], read.Status.ObservedGeneration
		}
	}
	return nil, 0
}

func (c *cluster) expectStatus(path, want string) {
	c.t.Helper()
	eventually(c.t, path+" is "+want, func() bool { return c.accepted(path) == want })
}

func (c *cluster) events() []corev1.Event {
	c.t.Helper()
	all, err := kubernetes.NewForConfigOrDie(c.Config()).CoreV1().Events("default").List(c.t.Context(), metav1.ListOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return all.Items
}

// recorder is an observer that records its calls.
type recorder struct {
	mu       sync.Mutex
	changes  []containment.Change
	reach    []string
	failures []error
	// unrecorded are the errors of the record of quarantined nodes; nil when it can be used again.
	unrecorded []error
}

func (r *recorder) ContainmentChanged(c containment.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, c)
}

func (r *recorder) ContainmentUnreachable(resource string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reach = append(r.reach, fmt.Sprint(resource, " ", err != nil))
}

func (r *recorder) ContainmentWriteFailed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, err)
}

func (r *recorder) ContainmentUnrecorded(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unrecorded = append(r.unrecorded, err)
}

func (r *recorder) ofRecord() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.unrecorded)
}

func (r *recorder) all() []containment.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.changes)
}

func (r *recorder) failed() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.failures)
}

func (r *recorder) reached() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.reach)
}

// follow follows both resources until the test ends.
func follow(t *testing.T, c *cluster, opts containment.Options) (*containment.Live, *recorder) {
	t.Helper()
	observer := &recorder{}
	opts.Cluster, opts.Observer, opts.NodeScopes, opts.Quarantines = c.Config(), observer, true, true
	if opts.Interval == 0 {
		opts.Interval = time.Millisecond
	}
	live, err := containment.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { live.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	return live, observer
}

func synced(t *testing.T, live *containment.Live) {
	t.Helper()
	eventually(t, "everything has been read", func() bool { return live.Fresh() == nil })
}

// quarantined returns the name of the Quarantine of a node: "" if there is none, "?" for an error.
func quarantined(live *containment.Live, node string) string {
	name, _, err := live.Quarantined(node)
	if err != nil {
		return "?"
	}
	return name
}

func expectQuarantine(t *testing.T, live *containment.Live, node, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the Quarantine of %s is %q", node, want), func() bool { return quarantined(live, node) == want })
}

// counts returns the numbers of objects by status: "Accepted 2, Invalid 1".
func counts(live *containment.Live, resource string) string {
	var all []string
	for _, s := range live.Stats() {
		if s.Resource != resource {
			continue
		}
		for _, code := range slices.Sorted(maps.Keys(s.Objects)) {
			all = append(all, fmt.Sprint(code, " ", s.Objects[code]))
		}
	}
	return strings.Join(all, ", ")
}

func expectCounts(t *testing.T, live *containment.Live, resource, want string) {
	t.Helper()
	eventually(t, resource+" are "+want, func() bool { return counts(live, resource) == want })
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	eventuallyNothing(t, what, func() string {
		if condition() {
			return ""
		}
		return "it is not so"
	})
}

// eventuallyNothing waits until nothing is missing any more.
func eventuallyNothing(t *testing.T, what string, missing func() string) {
	t.Helper()
	var last string
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		last = missing()
		return last == "", nil
	})
	if err != nil {
		t.Fatalf("%s: %v: %s", what, err, last)
	}
}

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

// has reports whether a change says something about an object.
func has(changes []containment.Change, name string, code verdict.Code) bool {
	return slices.ContainsFunc(changes, func(c containment.Change) bool {
		return slices.ContainsFunc(c.Changed, func(o containment.Object) bool { return o.Name == name && o.Code == code })
	})
}

func notRead(err error) bool {
	_, is := errors.AsType[*containment.NotReadError](err)
	return is
}
