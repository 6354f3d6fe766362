package containment

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// pageSize is the number of objects in a page, which is in memory as a whole. An object may have 1.5 MB.
const pageSize = 100

// writeTimeout is the time limit of a write.
const writeTimeout = 10 * time.Second

// client reads one resource, and writes its status.
type client struct {
	rest           rest.Interface
	parameters     runtime.ParameterCodec
	resource, kind string
}

// newREST returns a client for the group. Only the API server limits its requests.
func newREST(config *rest.Config) (rest.Interface, runtime.ParameterCodec, error) {
	scheme, gv := runtime.NewScheme(), v1alpha1.GroupVersion()
	for _, kind := range []string{v1alpha1.NodeScopeKind, v1alpha1.QuarantineKind} {
		scheme.AddKnownTypeWithName(gv.WithKind(kind), &object{})
		scheme.AddKnownTypeWithName(gv.WithKind(kind+"List"), &list{})
	}
	metav1.AddToGroupVersion(scheme, gv)
	config = rest.CopyConfig(config)
	config.GroupVersion, config.APIPath = &gv, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.QPS = -1
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to cluster %s: %w", config.Host, err)
	}
	return client, runtime.NewParameterCodec(scheme), nil
}

// list reads all objects, page by page. Of objects that are out of bounds it drops the specs.
func (c *client) list(ctx context.Context, opts metav1.ListOptions) (*list, error) {
	all, added := &list{}, 0
	for opts.Limit = pageSize; ; {
		var page list
		err := c.rest.Get().Resource(c.resource).VersionedParams(&opts, c.parameters).Do(ctx).Into(&page)
		if err != nil {
			return nil, err
		}
		for _, o := range page.Items {
			added += len(o.spec)
		}
		all.ResourceVersion, all.Items = page.ResourceVersion, append(all.Items, page.Items...)
		if added > maxSpecs {
			all.Items, added = bounded(all.Items), 0
		}
		if page.Continue == "" {
			return all, nil
		}
		opts.Continue, opts.ResourceVersion, opts.ResourceVersionMatch = page.Continue, "", ""
	}
}

func (c *client) watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return c.rest.Get().Resource(c.resource).VersionedParams(&opts, c.parameters).Watch(ctx)
}

// statusUpdate is an object of which only the status is sent: an API server takes nothing else
// from an update of a status.
type statusUpdate struct {
	Kind       string                   `json:"kind"`
	APIVersion string                   `json:"apiVersion"`
	Metadata   statusOf                 `json:"metadata"`
	Status     v1alpha1.NodeScopeStatus `json:"status"`
}

// statusOf makes the API server refuse the update if the object has changed.
type statusOf struct {
	Name            string `json:"name"`
	UID             string `json:"uid"`
	ResourceVersion string `json:"resourceVersion"`
}

// writeStatus writes the status of the version of the object that was read.
func (c *client) writeStatus(ctx context.Context, of *object, to status) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	body, err := json.Marshal(&statusUpdate{
		Kind: c.kind, APIVersion: v1alpha1.GroupVersion().String(),
		Metadata: statusOf{of.Name, string(of.UID), of.ResourceVersion},
		Status: v1alpha1.NodeScopeStatus{
			ObservedGeneration: to.observed, Conditions: []metav1.Condition{to.condition},
		},
	}, asKubernetes())
	if err == nil {
		err = c.rest.Put().Resource(c.resource).Name(of.Name).SubResource("status").Body(body).Do(ctx).Error()
	}
	if err != nil {
		return fmt.Errorf("write the status of %s %s: %w", c.resource, of.Name, err)
	}
	return nil
}

// Limits of writes. The log and the metrics do not depend on them.
const (
	statusAtOnce = 100
	// statusInterval is the time between writes after that.
	statusInterval = 50 * time.Millisecond
	// statusAgain is how often the same status of an object is written without a pause, although others write
	// another one: a server that knew less may have written it. After that there is statusPause between two
	// writes. A server of another version may always want another status.
	statusAgain = 10
	statusPause = time.Minute
	// statusRetry is the first pause after a failure. The others double, up to statusPause.
	statusRetry = time.Second
)

// status returns the status that an object should have.
func (o *outcome) status(now time.Time) status {
	c := metav1.Condition{
		Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, ObservedGeneration: o.Generation,
		Reason: string(o.Code), Message: o.Message, LastTransitionTime: metav1.NewTime(now),
	}
	if o.Code == Accepted {
		c.Status = metav1.ConditionTrue
	}
	if was := &o.object.status.condition; was.Status == c.Status {
		c.LastTransitionTime = was.LastTransitionTime
	}
	return status{o.Generation, c}
}

// says reports whether a status is another one, except for its time. A quarantine that a server
// saw expire stays expired, although clocks differ.
func (s status) says(to status) bool {
	is, want := &s.condition, &to.condition
	if s.observed != to.observed || is.ObservedGeneration != want.ObservedGeneration {
		return false
	}
	return is.Reason == string(Expired) && want.Reason == string(Accepted) ||
		is.Status == want.Status && is.Reason == want.Reason && is.Message == want.Message
}

// writer writes statuses. All servers want to write the same; the API server accepts the first
// write, because each demands the version that was read.
type writer struct {
	client   *client
	current  func(name string) *object
	now      func() time.Time
	observer Observer
	limit    *rate.Limiter
	// queue has the names of objects whose status may have to be written.
	queue workqueue.TypedRateLimitingInterface[string]

	mu sync.Mutex
	// wanted are the statuses that objects should have, by name.
	wanted map[string]*wanted
}

type wanted struct {
	version
	status
	// limit limits how often this status is written.
	limit *rate.Limiter
}

func newWriter(client *client, opts *Options, current func(string) *object) *writer {
	return &writer{
		client: client, current: current, now: opts.Now, observer: opts.Observer, wanted: map[string]*wanted{},
		limit: rate.NewLimiter(rate.Every(statusInterval), statusAtOnce),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](statusRetry, statusPause)),
	}
}

// want sets the statuses that all objects should have.
func (w *writer) want(outcomes []outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, next := w.now(), make(map[string]*wanted, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		to := w.wanted[o.Name]
		if status := o.status(now); to == nil || to.version != o.version() || !to.says(status) {
			to = &wanted{o.version(), status, rate.NewLimiter(rate.Every(statusPause), statusAgain)}
		}
		if next[o.Name] = to; !o.object.status.says(to.status) {
			w.queue.Add(o.Name)
		}
	}
	w.wanted = next
}

// run writes until the context ends.
func (w *writer) run(ctx context.Context) {
	stop := context.AfterFunc(ctx, w.queue.ShutDown)
	defer stop()
	for {
		name, ended := w.queue.Get()
		if ended {
			return
		}
		w.write(ctx, name)
		w.queue.Done(name)
	}
}

func (w *writer) write(ctx context.Context, name string) {
	w.mu.Lock()
	to := w.wanted[name]
	w.mu.Unlock()
	is := w.current(name)
	if is == nil || to == nil || is.version() != to.version || is.status.says(to.status) {
		w.queue.Forget(name)
		return
	}
	if again := to.limit.Reserve(); again.Delay() > 0 {
		w.queue.AddAfter(name, again.Delay())
		again.Cancel()
		return
	}
	if w.limit.Wait(ctx) != nil {
		return
	}
	err := w.client.writeStatus(ctx, is, to.status)
	switch {
	case err == nil:
		w.queue.Forget(name)
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // a change comes, after which a status is wanted again
	case ctx.Err() == nil:
		w.observer.ContainmentWriteFailed(err)
		w.queue.AddRateLimited(name)
	}
}

// notify wakes the reader of a channel with room for one value.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake already
	}
}
