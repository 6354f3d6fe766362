package controller_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/join/bootstrap"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// A world has an API server, two replicas of the service, and machines that join, in fake time. One
// fault begins with one call, or one event of a watch.
type world struct {
	*testCluster
	fault *fault
	// at is the number of the call or the event with which the fault begins.
	at       int64
	replicas []*replica
	// ended is closed when the test ends.
	ended chan struct{}

	calls, events atomic.Int64
	mu            sync.Mutex
	began         time.Time // zero before the fault
	streams       []*stream
}

// fault is a fault of the API server or of a replica.
type fault struct {
	name string
	// lasts is for how long.
	lasts time.Duration
	// ofEvents is true if the fault begins with an event.
	ofEvents bool
	// begin is called with the call with which the fault begins; nil: nothing happens then.
	begin func(w *world, by *replica)
	// call answers a call during the fault, the first one included; nil: the API server does.
	call func(w *world, r *http.Request, do roundTrip) (*http.Response, error)
	// once is true if only the first call is answered so.
	once bool
	// holds is true if watches deliver nothing during the fault.
	holds bool
	// event handles the event with which the fault begins.
	event func(s *stream, event []byte) error
}

type roundTrip func(*http.Request) (*http.Response, error)

// replica is one server. It is also the transport of its clients.
type replica struct {
	w       *world
	next    http.RoundTripper
	service *bootstrap.Service
	dead    atomic.Bool
}

func newWorld(t *testing.T, f *fault, at int64) *world {
	cluster := &testCluster{t: t, api: fakeapiserver.New(fakeapiserver.Options{})}
	w := &world{testCluster: cluster, fault: f, at: at, ended: make(chan struct{})}
	for range 2 {
		w.replicas = append(w.replicas, &replica{w: w, next: w.api.InMemory(nil).Transport})
	}
	return w
}

// run runs the replicas until the context ends.
func (w *world) run(ctx context.Context) (wait func()) {
	var running sync.WaitGroup
	election := configv1alpha1.Defaults().Approver.LeaderElection
	election.Name = "approver"
	for i, r := range w.replicas {
		config := rest.CopyConfig(w.api.InMemory(nil))
		config.Transport = r
		client, err := kubernetes.NewForConfig(config)
		w.must(err)
		entries, err := ledger.NewClient(config)
		w.must(err)
		known := ledger.NewCache(entries)
		known.LimitAge(90*time.Second, nil)
		r.service = bootstrap.New(bootstrap.Options{
			Attestor: alwaysallow.New(), Ledger: entries, Known: known, Client: client, TokenTTL: 5 * time.Minute,
			Reattestation: bootstrap.Never, Timeout: 15 * time.Second, Observer: unobserved{},
		})
		c, err := controller.New(controller.Options{
			Client: client, Ledger: entries, Known: known, MaxStaleness: 90 * time.Second,
			Identity: fmt.Sprint("replica-", i), LeaderElection: election,
		})
		w.must(err)
		running.Go(func() { w.must(known.Run(ctx)) })
		running.Go(func() { w.must(c.Run(ctx)) })
	}
	return running.Wait
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Error(err)
	}
}

// start begins the fault if this is its call or event, and reports whether it is.
func (w *world) start(number int64, by *replica) bool {
	if number != w.at {
		return false
	}
	w.mu.Lock()
	w.began = time.Now()
	w.mu.Unlock()
	if w.fault.begin != nil {
		w.fault.begin(w, by)
	}
	return true
}

// end returns the end of the fault; false if it has not begun.
func (w *world) end() (time.Time, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.began.Add(w.fault.lasts), !w.began.IsZero()
}

// lasting reports whether the fault has begun and not ended.
func (w *world) lasting() bool {
	end, began := w.end()
	return began && time.Now().Before(end)
}

// latency is how long a call takes.
const latency = 2 * time.Millisecond

// RoundTrip implements http.RoundTripper.
func (r *replica) RoundTrip(request *http.Request) (*http.Response, error) {
	w := r.w
	first := !w.fault.ofEvents && w.start(w.calls.Add(1)-1, r)
	if r.dead.Load() {
		return nil, syscall.ECONNREFUSED
	}
	if err := w.pause(request.Context(), latency); err != nil {
		return nil, err
	}
	do := r.do
	if w.fault.call != nil && (first || w.lasting() && !w.fault.once) {
		return w.fault.call(w, request, do)
	}
	return do(request)
}

// do executes a call.
func (r *replica) do(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if err == nil && isWatch(request) && response.StatusCode == http.StatusOK {
		response.Body = r.w.relay(r, response.Body)
	}
	return response, err
}

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

func isList(r *http.Request) bool {
	return r.Method == http.MethodGet && !isWatch(r) && (strings.HasSuffix(r.URL.Path, "/nodeattestations") ||
		strings.HasSuffix(r.URL.Path, "/certificatesigningrequests") || strings.HasSuffix(r.URL.Path, "/nodes"))
}

// stream is a watch.
type stream struct {
	w    *world
	of   *replica
	to   *io.PipeWriter
	held []byte // an event that follows the next one
	// silent is true if it delivers nothing any more.
	silent atomic.Bool
}

// relay passes the events of a watch on.
func (w *world) relay(of *replica, from io.ReadCloser) io.ReadCloser {
	out, in := io.Pipe()
	s := &stream{w: w, of: of, to: in}
	w.mu.Lock()
	w.streams = append(w.streams, s)
	w.mu.Unlock()
	go func() {
		defer from.Close()
		events := bufio.NewReader(from)
		for {
			event, err := events.ReadBytes('\n')
			if err == nil {
				err = s.pass(event)
			}
			if err != nil {
				_ = in.CloseWithError(err)
				return
			}
		}
	}()
	return out
}

// pass sends an event, or lets the fault handle it.
func (s *stream) pass(event []byte) error {
	for s.silent.Load() || s.w.fault.holds && s.w.lasting() {
		if err := s.w.pause(context.Background(), 100*time.Millisecond); err != nil {
			return err
		}
	}
	if s.w.fault.ofEvents && s.w.start(s.w.events.Add(1)-1, s.of) {
		return s.w.fault.event(s, event)
	}
	if held := s.held; held != nil {
		s.held = nil
		event = append(event, held...)
	}
	_, err := s.to.Write(event)
	return err
}

// eachStream calls a function for each watch that was opened.
func (w *world) eachStream(f func(*stream)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.streams {
		f(s)
	}
}

// pause waits, unless the context or the test ends.
func (w *world) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.ended:
		return io.EOF
	}
}

// boot is a machine that joins: its client, which asks the replicas one after the other, and its
// kubelet. It returns an error if the machine is refused.
func (w *world) boot(n int) error {
	node := fmt.Sprintf("worker-%d", n)
	ask := &attest.Request{NodeName: node, RemoteAddr: netip.MustParseAddr("10.0.0.7"), Body: []byte("{}")}
	var grant *bootstrap.Grant
	for try := n; grant == nil; try++ {
		if r := w.replicas[try%len(w.replicas)]; !r.dead.Load() {
			ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
			grant, _, _ = r.service.Join(ctx, ask)
			cancel()
		}
		if grant == nil {
			if err := w.pause(context.Background(), 3*time.Second); err != nil {
				return err
			}
		}
	}
	first := withToken(w.t, grant.Token.ID, newKey(w.t), node)
	if err := w.requests("client-"+node, first, "Approved ClientCertificateApproved"); err != nil {
		return err
	}
	w.issue("client-"+node, time.Now().Add(time.Hour))
	return w.requests("serving-"+node, ofNode(w.t, node, "10.0.0.7"), "Approved ServingCertificateApproved")
}

type unobserved struct{}

func (unobserved) Attested(bootstrap.Event) {}
