package approver_test

import (
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/internal/approver"
	"github.com/node-authorizer/node-authorizer/internal/fakeapiserver"
)

// TestNothingIsDecidedByWhatIsTooOld lets one watch be silent for too long, while a
// request arrives by another.
func TestNothingIsDecidedByWhatIsTooOld(t *testing.T) {
	const limit = 2 * time.Minute
	for _, silent := range []string{"nodeattestations", "nodes"} {
		t.Run(silent, func(t *testing.T) {
			s := newStand(t, fakeapiserver.Options{})
			hear := map[string]func(){
				"nodeattestations": func() { s.machine("aws-i-3", "worker-3", "cccccc") },
				"nodes": func() {
					s.put("/api/v1/nodes/other", &corev1.Node{Status: corev1.NodeStatus{Phase: corev1.NodePhase(time.Now().String())}})
				},
			}
			s.machine("aws-i-1", "worker-1", "aaaaaa")
			s.machine("aws-i-2", "worker-2", "bbbbbb")
			s.put("/api/v1/nodes/other", &corev1.Node{})
			told := &events{}
			var elapsed atomic.Int64
			began := time.Now()
			now := func() time.Time { return began.Add(time.Duration(elapsed.Load())) }
			s.start(approver.Options{Observer: told, Clock: now, MaxStaleness: limit})
			s.put(requestPath("young"), withToken(t, "aaaaaa", newKey(t), "worker-1"))
			s.await("young", "Approved ClientCertificateApproved")

			elapsed.Store(int64(limit + time.Second))
			for source, heard := range hear {
				if source != silent {
					heard()
				}
			}
			s.put(requestPath("old"), withToken(t, "bbbbbb", newKey(t), "worker-2"))
			s.until("a try is counted", func() bool { return told.tooOld.Load() > 0 })
			elapsed.Add(int64(10 * time.Second)) // the others have settled
			tries := told.tooOld.Load()
			s.until("it is tried again", func() bool { return told.tooOld.Load() > tries+1 })
			if conditions := s.request("old").Status.Conditions; len(conditions) > 0 || len(told.of("old")) > 0 {
				t.Errorf("decided by what is too old: %+v, told %v", conditions, told.of("old"))
			}

			hear[silent]()
			s.until("it is heard from", func() bool {
				elapsed.Add(int64(time.Second))
				return len(s.request("old").Status.Conditions) > 0
			})
			s.await("old", "Approved ClientCertificateApproved")
		})
	}
}
