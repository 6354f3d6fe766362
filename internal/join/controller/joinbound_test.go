package controller_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// TestMain removes the handlers of client-go's errors, which sleep until a real time that a test in fake
// time does not reach.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	os.Exit(m.Run())
}

// joinBound is how long after the end of a fault all machines are ready.
const joinBound = 60 * time.Second

// errNoAnswer is the error of a connection on which nothing came.
var errNoAnswer = errors.New("no answer")

// singleFaults are the single faults after which machines must be ready within the bound.
func singleFaults() []*fault {
	return []*fault{
		{name: "a call fails", once: true, call: failing},
		{name: "the answer to a call is lost", once: true, call: answerLost},
		{name: "a call is not answered", once: true, call: func(w *world, r *http.Request, do roundTrip) (*http.Response, error) {
			if _, err := answerLost(w, r, do); !errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, err
			}
			limit := 65 * time.Second // the time limit of internal/apiserver
			if isWatch(r) {
				limit = 30 * time.Second
			}
			return nil, errors.Join(errNoAnswer, w.pause(r.Context(), limit))
		}},
		{name: "the API server is frozen", lasts: 20 * time.Second, holds: true, call: frozen},
		{
			name: "the API server is unreachable", lasts: 20 * time.Second, begin: cut,
			call: func(*world, *http.Request, roundTrip) (*http.Response, error) { return nil, syscall.ECONNREFUSED },
		},
		{
			// This is shorter than the life of a token.
			name: "the API server is unreachable for four minutes", lasts: 4 * time.Minute, begin: cut,
			call: func(*world, *http.Request, roundTrip) (*http.Response, error) { return nil, syscall.ECONNREFUSED },
		},
		{name: "etcd is stopped", lasts: 20 * time.Second, holds: true, call: slowly(5*time.Second, failing)},
		{name: "watches are cut", begin: cut},
		{name: "watches are silent", begin: func(w *world, _ *replica) {
			w.eachStream(func(s *stream) { s.silent.Store(true) })
		}},
		{name: "an event is lost", ofEvents: true, event: func(*stream, []byte) error { return nil }},
		{name: "two events are reordered", ofEvents: true, event: func(s *stream, event []byte) error {
			s.held = bytes.Clone(event)
			return nil
		}},
		{name: "the replica that makes the call is killed", begin: func(w *world, by *replica) {
			by.dead.Store(true)
			w.eachStream(func(s *stream) {
				if s.of == by {
					_ = s.to.CloseWithError(io.ErrUnexpectedEOF)
				}
			})
		}},
		{name: "the lease is lost", begin: loseLease},
		{name: "lists are slow", lasts: time.Minute, call: func(w *world, r *http.Request, do roundTrip) (*http.Response, error) {
			if isList(r) {
				return slowly(5*time.Second, pass)(w, r, do)
			}
			return do(r)
		}},
		{name: "every update conflicts", lasts: 20 * time.Second, call: conflicts},
	}
}

func pass(_ *world, r *http.Request, do roundTrip) (*http.Response, error) { return do(r) }

func failing(*world, *http.Request, roundTrip) (*http.Response, error) {
	return fakeapiserver.Failure("broken for the test"), nil
}

// conflicts takes a while: the elector of client-go releases a lease again and again without a pause.
func conflicts(w *world, r *http.Request, do roundTrip) (*http.Response, error) {
	if r.Method == http.MethodPut {
		return slowly(50*time.Millisecond, conflict)(w, r, do)
	}
	return do(r)
}

func conflict(*world, *http.Request, roundTrip) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(http.StatusConflict)
	fmt.Fprint(recorder, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}`)
	return recorder.Result(), nil
}

func answerLost(_ *world, r *http.Request, do roundTrip) (*http.Response, error) {
	response, err := do(r)
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	return nil, io.ErrUnexpectedEOF
}

func frozen(w *world, r *http.Request, do roundTrip) (*http.Response, error) {
	end, _ := w.end()
	if err := w.pause(r.Context(), time.Until(end)); err != nil {
		return nil, err
	}
	return do(r)
}

// slowly delays the answers of a fault.
func slowly(by time.Duration, call func(*world, *http.Request, roundTrip) (*http.Response, error),
) func(*world, *http.Request, roundTrip) (*http.Response, error) {
	return func(w *world, r *http.Request, do roundTrip) (*http.Response, error) {
		if err := w.pause(r.Context(), by); err != nil {
			return nil, err
		}
		return call(w, r, do)
	}
}

func cut(w *world, _ *replica) {
	w.eachStream(func(s *stream) { _ = s.to.CloseWithError(io.ErrUnexpectedEOF) })
}

// loseLease gives the lease to a candidate that never renews it.
func loseLease(w *world, _ *replica) {
	holder, seconds, now := "another", int32(15), metav1.NowMicro()
	w.put("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/approver", &coordinationv1.Lease{
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	})
}

// requests creates a request as a kubelet does, and waits for its approval. A kubelet repeats requests
// that fail.
func (w *world) requests(name string, csr *certificatesv1.CertificateSigningRequest, want string) error {
	for created := false; ; {
		if !created && !w.lasting() {
			csr.CreationTimestamp = metav1.Now()
			w.put(requestPath(name), csr)
			created = true
		}
		if created {
			switch got := decision(w.request(name)); got {
			case want:
				return nil
			case "":
			default:
				return fmt.Errorf("request %s: %s", name, got)
			}
		}
		if err := w.pause(context.Background(), 500*time.Millisecond); err != nil {
			return fmt.Errorf("request %s is not decided", name)
		}
	}
}

const joining = 3

// joins runs one world, and reports whether the fault began.
func joins(t *testing.T, f *fault, at int64) (began bool) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, f, at)
		ctx, cancel := context.WithCancel(t.Context())
		wait := w.run(ctx)
		results := make(chan error, joining)
		for n := range joining {
			go func() {
				time.Sleep(time.Duration(n) * 700 * time.Millisecond)
				results <- w.boot(n)
			}()
		}
		ready, overdue := 0, false
		for ready < joining {
			select {
			case err := <-results:
				if ready++; err != nil {
					t.Errorf("call or event %d: %v", at, err)
				}
			case <-time.After(time.Second):
				if end, began := w.end(); !overdue && (began && time.Since(end) > joinBound || time.Since(startOfBubble) > time.Hour) {
					t.Errorf("call or event %d: %d of %d machines are ready %s after the fault", at, ready, joining, joinBound)
					overdue = true
					close(w.ended)
				}
			}
		}
		_, began = w.end()
		cancel()
		if !overdue {
			close(w.ended)
		}
		w.api.Close()
		wait()
	})
	return began
}

// startOfBubble is when the time of each test in a bubble begins.
var startOfBubble = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// After any single fault, which may begin with any call or event, all machines are ready
// within the bound. Each call and each event is tried, with -short each tenth, until a fault did not begin
// before all were ready.
func TestMachinesAreReadySoonAfterAnyFault(t *testing.T) {
	step := int64(1)
	if testing.Short() {
		step = 10
	}
	for _, f := range singleFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			at := int64(0)
			for ; joins(t, f, at); at += step {
				if t.Failed() {
					break
				}
			}
			if at < 20 {
				t.Errorf("the fault began with %d calls or events only", at)
			}
			t.Logf("%d calls or events", at)
		})
	}
}

// Requests that wait for a list of the ledger share it, however long lists take: none waits for the
// others' lists.
func TestRequestsShareSlowLists(t *testing.T) {
	const requests, took = 40, 5 * time.Second
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &fault{lasts: time.Hour, call: func(w *world, r *http.Request, do roundTrip) (*http.Response, error) {
			if isList(r) {
				return slowly(took, pass)(w, r, do)
			}
			return do(r)
		}}, 0)
		name := func(n int) string { return fmt.Sprintf("unknown-%d", n) }
		for n := range requests {
			csr := withToken(t, "aaaaaa", newKey(t), "worker-1")
			if n%2 == 1 {
				csr = ofNode(t, "worker-1", "10.0.0.7") // it has no entry
			}
			w.put(requestPath(name(n)), csr)
		}
		ctx, cancel := context.WithCancel(t.Context())
		wait := w.run(ctx)
		time.Sleep(5 * took) // one list of the informers and its comparison with the store, two of the ledger, and the pauses between
		for n := range requests {
			if decision(w.request(name(n))) == "" {
				t.Errorf("request %s is not decided", name(n))
			}
		}
		cancel()
		close(w.ended)
		w.api.Close()
		wait()
	})
}
