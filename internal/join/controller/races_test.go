package controller_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// Changes of an entry.
func anotherToken(e *v1alpha1.NodeAttestation) { e.Spec.TokenID = "cccccc" }
func revocation(e *v1alpha1.NodeAttestation)   { e.Status.Phase = v1alpha1.Revoked }
func newerEvidence(e *v1alpha1.NodeAttestation) {
	e.Spec.EvidenceTime = &metav1.Time{Time: e.Spec.AttestedTime.Time}
}

// The approver has read the entry, and another client changes it before the key is written. The
// first write wins.
func TestTheEntryChangesWhileATokenIsBound(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*v1alpha1.NodeAttestation)
		want   string
	}{
		{"the machine is given another token", anotherToken, "Denied TokenUnknown"},
		{"the machine is revoked", revocation, "Denied AttestationRevoked"},
		{"another approver binds the token to another key", bound("sha256:00"), "Denied TokenAlreadyUsed"},
		{"the machine is given another name", func(e *v1alpha1.NodeAttestation) { e.Spec.NodeName = "worker-2" }, "Denied WrongNodeName"},
		{"the machine's evidence is newer", newerEvidence, "Approved ClientCertificateApproved"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Parallel()
			var s *testCluster
			meanwhile := sync.OnceFunc(func() { s.change("aws-i-1", tc.change) })
			s = newTestCluster(t, fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
				if r.Method == http.MethodPut && strings.HasSuffix(r.URL.Path, "/nodeattestations/aws-i-1/status") {
					meanwhile()
				}
				return fakeapiserver.NoFault
			}})
			s.machine("aws-i-1", "worker-1", "aaaaaa")
			s.start(controller.Options{})
			s.put(requestPath("it"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
			s.await("it", tc.want)
		})
	}
}

// The token is bound, the approval fails, and another client changes the entry before the retry.
func TestTheEntryChangesBeforeTheApproval(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		change func(*v1alpha1.NodeAttestation)
		want   string
	}{
		{"the machine is given another token", anotherToken, "Denied TokenUnknown"},
		{"the machine is revoked", revocation, "Denied AttestationRevoked"},
		{"the machine's evidence is newer", newerEvidence, "Approved ClientCertificateApproved"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Parallel()
			var s *testCluster
			var failed atomic.Bool
			s = newTestCluster(t, fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
				if strings.HasSuffix(r.URL.Path, "/approval") && failed.CompareAndSwap(false, true) {
					if s.entry("aws-i-1").BoundKey() == "" {
						t.Error("an approval is written before the token is bound")
					}
					s.change("aws-i-1", tc.change)
					return fakeapiserver.Unavailable
				}
				return fakeapiserver.NoFault
			}})
			s.machine("aws-i-1", "worker-1", "aaaaaa")
			s.start(controller.Options{})
			s.put(requestPath("it"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
			s.await("it", tc.want)
		})
	}
}

// The owner of a replaced token can create any number of requests with it. They share the lists of
// the ledger.
func TestRequestsWithUnknownTokensShareLists(t *testing.T) {
	var lists atomic.Int64
	s := newTestCluster(t, fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
		if strings.HasSuffix(r.URL.Path, "/nodeattestations") && r.URL.Query().Get("watch") == "" {
			lists.Add(1)
		}
		return fakeapiserver.NoFault
	}})
	s.machine("aws-i-1", "worker-1", "bbbbbb")
	const requests = 40
	for i := range requests {
		s.put(requestPath(fmt.Sprintf("it-%d", i)), withToken(t, "aaaaaa", newKey(t), "worker-1"))
	}
	s.start(controller.Options{})
	for i := range requests {
		s.await(fmt.Sprintf("it-%d", i), "Denied TokenUnknown")
	}
	if n := lists.Load(); n > requests/4 {
		t.Errorf("the ledger was listed %d times for %d requests", n, requests)
	}
}

// The owner of a certificate of such a node can create any number of requests. The ledger is listed
// at most once a second for all of them, and for requests with unknown tokens too.
func TestRequestsOfUnattestedNodesShareLists(t *testing.T) {
	var mu sync.Mutex
	var lists []time.Time
	s := newTestCluster(t, fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
		if strings.HasSuffix(r.URL.Path, "/nodeattestations") && r.URL.RawQuery == "" { // the informer has parameters
			mu.Lock()
			lists = append(lists, time.Now())
			mu.Unlock()
		}
		return fakeapiserver.NoFault
	}})
	s.machine("aws-i-1", "worker-1", "bbbbbb")
	s.machine("aws-i-2", "worker-2", "cccccc", revocation)
	const requests = 60
	name := func(i int) string { return fmt.Sprintf("it-%d", i) }
	want := map[string]string{}
	for i := range requests {
		switch i % 3 {
		case 0:
			s.put(requestPath(name(i)), ofNode(t, fmt.Sprintf("worker-%d", 10+i)))
			want[name(i)] = "Denied NotAttested"
		case 1:
			s.put(requestPath(name(i)), ofNode(t, "worker-2"))
			want[name(i)] = "Denied AttestationRevoked"
		case 2:
			s.put(requestPath(name(i)), withToken(t, "aaaaaa", newKey(t), "worker-1"))
			want[name(i)] = "Denied TokenUnknown"
		}
	}
	s.start(controller.Options{})
	for i := range requests {
		s.until(name(i)+" is decided", func() bool { return decision(s.request(name(i))) != "" })
	}
	for name, want := range want {
		if got := decision(s.request(name)); got != want {
			t.Errorf("request %s: %s, want %s", name, got, want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(lists) >= requests {
		t.Errorf("the ledger was listed %d times for %d requests", len(lists), requests)
	}
	for i := 1; i < len(lists); i++ {
		if between := lists[i].Sub(lists[i-1]); between < time.Second {
			t.Errorf("the ledger was listed %s after another list", between)
		}
	}
}

// The node was not in the ledger when its request was evaluated first.
func TestAnEntryThatIsCreatedDuringAList(t *testing.T) {
	var s *testCluster
	meanwhile := sync.OnceFunc(func() { s.machine("aws-i-9", "worker-9", "bbbbbb") })
	s = newTestCluster(t, fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
		if strings.HasSuffix(r.URL.Path, "/nodeattestations") && r.URL.RawQuery == "" {
			meanwhile()
		}
		return fakeapiserver.NoFault
	}})
	s.start(controller.Options{})
	s.put(requestPath("it"), ofNode(t, "worker-9"))
	s.await("it", "Approved RenewalApproved")
}

// No request is denied while the ledger cannot be listed.
func TestAFailedListIsAnError(t *testing.T) {
	var lists atomic.Int64
	s := newTestCluster(t, fakeapiserver.Options{Fault: func(r *http.Request) fakeapiserver.Fault {
		if strings.HasSuffix(r.URL.Path, "/nodeattestations") && r.URL.RawQuery == "" && lists.Add(1) == 1 {
			return fakeapiserver.Unavailable
		}
		return fakeapiserver.NoFault
	}})
	reported := &events{}
	s.start(controller.Options{Observer: reported})
	s.put(requestPath("it"), ofNode(t, "worker-9"))
	s.await("it", "Denied NotAttested")
	s.until("the denial is reported", func() bool { return len(reported.of("it")) > 1 })
	if got := reported.of("it"); got[0] != "error" || lists.Load() < 2 {
		t.Errorf("reported %v after %d lists", got, lists.Load())
	}
}
