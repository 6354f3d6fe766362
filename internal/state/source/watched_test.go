package source

import (
	"errors"
	"math/bits"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statusOf returns the status of a resource.
func statusOf(t *testing.T, live *Live, name string) Watched {
	t.Helper()
	all := live.Resources()
	i := slices.IndexFunc(all, func(w Watched) bool { return w.Resource.Resource == name })
	if i < 0 {
		t.Fatalf("%s is not among %v", name, all)
	}
	return all[i]
}

func TestResourcesReportTheirSyncState(t *testing.T) {
	s := newStub(t)
	s.unserve("resource.k8s.io/v1", "resourceslices")
	s.setAllowed("list persistentvolumes", false)
	begin := time.Now()
	live := startWatch(t, s, LiveOptions{})
	waitSynced(t, live)

	for name, want := range map[string]Following{
		"pods": Followed, "clusterroles": Followed, "persistentvolumes": Unreadable, "resourceslices": NotServed,
	} {
		eventually(t, name, func() bool { return statusOf(t, live, name).Following == want })
	}
	if all := live.Resources(); len(all) != bits.OnesCount32(uint32(NodeKinds())) ||
		!slices.IsSortedFunc(all, func(a, b Watched) int {
			return slices.Compare([]byte(a.Resource.String()), []byte(b.Resource.String()))
		}) {
		t.Errorf("not all, or not sorted: %v", all)
	}
	if last := statusOf(t, live, "resourceslices").LastEvent; !last.IsZero() {
		t.Errorf("a resource that is not served has an event at %v", last)
	}
	before := statusOf(t, live, "pods").LastEvent
	if before.Before(begin) {
		t.Errorf("the last event of pods is at %v, before the watch started", before)
	}
	s.set("pods", boundPod("shop", "api", "worker", "db"))
	eventually(t, "a later event", func() bool { return statusOf(t, live, "pods").LastEvent.After(before) })
}

// Errors are counted, and cleared by the next event.
func TestResourcesReportErrors(t *testing.T) {
	s := newStub(t)
	live := startWatch(t, s, LiveOptions{})
	waitSynced(t, live)
	before := statusOf(t, live, "nodes").Errors
	live.recordError(kindNode, errors.New("connection refused"))
	if w := statusOf(t, live, "nodes"); w.Errors != before+1 || w.Err == nil || w.Following != Followed {
		t.Errorf("after an error: %+v", w)
	}
	s.set("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}})
	eventually(t, "no error any more", func() bool { return statusOf(t, live, "nodes").Err == nil })
}

func TestWatchWithoutRBACReadsNoRoles(t *testing.T) {
	s := newStub(t)
	live := startWatch(t, s, LiveOptions{WithoutRBAC: true})
	waitSynced(t, live)
	for _, w := range live.Resources() {
		if w.Resource.Group == rbacv1.GroupName {
			t.Errorf("%s is watched", w.Resource)
		}
	}
	if s.received("GET /apis/" + rbacv1.GroupName + "/v1/") {
		t.Error("roles or bindings were requested")
	}
}
