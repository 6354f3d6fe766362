package controller_test

import (
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/join/controller"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// Nothing is decided while one watch is silent for too long, even if a request arrives on
// another watch.
func TestNothingIsDecidedFromStaleCopies(t *testing.T) {
	const limit = 2 * time.Minute
	for _, silent := range []string{"nodeattestations", "nodes"} {
		t.Run(silent, func(t *testing.T) {
			s := newTestCluster(t, fakeapiserver.Options{})
			update := map[string]func(){
				"nodeattestations": func() { s.machine("aws-i-3", "worker-3", "cccccc") },
				"nodes": func() {
					node := &corev1.Node{}
					node.Status.Phase = corev1.NodePhase(time.Now().String())
					s.put("/api/v1/nodes/other", node)
				},
			}
			s.machine("aws-i-1", "worker-1", "aaaaaa")
			s.machine("aws-i-2", "worker-2", "bbbbbb")
			s.put("/api/v1/nodes/other", &corev1.Node{})
			reported := &events{}
			var elapsed atomic.Int64
			began := time.Now()
			now := func() time.Time { return began.Add(time.Duration(elapsed.Load())) }
			s.start(controller.Options{Observer: reported, Clock: now, MaxStaleness: limit})
			s.put(requestPath("young"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
			s.await("young", "Approved ClientCertificateApproved")
			// The approver wrote the binding before it approved. The watch delivers it some time
			// later, and makes the copy fresh then.
			s.until("the binding is delivered", func() bool {
				entry, exists := s.known.Get("aws-i-1")
				return exists && entry.Status.Binding != nil
			})

			elapsed.Store(int64(limit + time.Second))
			for source, send := range update {
				if source != silent {
					send()
				}
			}
			s.put(requestPath("old"), withToken(t, "bbbbbb", newKey(t), "worker-2"))
			s.until("a try is counted", func() bool { return reported.tooOld.Load() > 0 })
			elapsed.Add(int64(10 * time.Second)) // the other watches have settled
			tries := reported.tooOld.Load()
			s.until("it is tried again", func() bool { return reported.tooOld.Load() > tries+1 })
			if conditions := s.request("old").Status.Conditions; len(conditions) > 0 || len(reported.of("old")) > 0 {
				t.Errorf("decided from a stale copy: %+v, reported %v", conditions, reported.of("old"))
			}

			s.until("every watch delivers events", func() bool {
				elapsed.Add(int64(time.Second))
				for _, send := range update {
					send()
				}
				return len(s.request("old").Status.Conditions) > 0
			})
			s.await("old", "Approved ClientCertificateApproved")
		})
	}
}
