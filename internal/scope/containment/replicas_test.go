package containment_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
)

func TestTwoServersWriteOneStatusAndOneEvent(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first, one := follow(t, c, containment.Options{})
	second, two := follow(t, c, containment.Options{})
	synced(t, first)
	synced(t, second)
	c.quarantine("good", "worker-1")
	c.quarantine("bad", "")
	c.expectStatus(quarantinePath("good"), "Accepted 1")
	c.expectStatus(quarantinePath("bad"), "Invalid 1")
	eventually(t, "there is an event", func() bool { return len(c.events()) == 1 })
	event := c.events()[0]
	about := event.InvolvedObject
	if event.Reason != "Invalid" || event.Type != corev1.EventTypeWarning || about.Kind != v1alpha1.QuarantineKind ||
		about.Name != "bad" || about.UID == "" || event.FirstTimestamp.IsZero() {
		t.Errorf("the event is %+v", event)
	}
	// Another object goes the whole way on both, after the first ones.
	c.quarantine("mark", "worker-mark")
	c.expectStatus(quarantinePath("mark"), "Accepted 1")
	for _, live := range []*containment.Live{first, second} {
		expectQuarantine(t, live, "worker-mark", "mark")
	}
	for _, name := range []string{"good", "bad"} {
		history, err := c.History(quarantinePath(name))
		if err != nil || len(history) != 2 {
			t.Errorf("%s has %d versions, want one without and one with a status: %v", name, len(history), err)
		}
	}
	if len(c.events()) != 1 {
		t.Errorf("the events are %+v", c.events())
	}
	if failed := append(one.failed(), two.failed()...); len(failed) > 0 {
		t.Errorf("writes failed: %v", failed)
	}
}

func TestAStatusIsNotFoughtOver(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	live, _ := follow(t, c, containment.Options{})
	c.quarantine("a", "worker-1")
	c.expectStatus(quarantinePath("a"), "Accepted 1")
	// Another writer always wants another status.
	for range 20 {
		c.put(quarantinePath("a"), map[string]any{"spec": map[string]any{"node": "worker-1"}, "status": map[string]any{
			"observedGeneration": 1, "conditions": []any{map[string]any{"type": "Accepted", "status": "Unknown", "reason": "Other"}},
		}})
		c.quarantine("mark", "worker-mark")
		c.expectStatus(quarantinePath("mark"), "Accepted 1")
		c.Remove(quarantinePath("mark"))
	}
	if got := c.accepted(quarantinePath("a")); got != "Other 1" {
		t.Errorf("within a minute, the status is %s", got)
	}
	// A change has its own status at once.
	c.quarantine("a", "worker-2")
	c.expectStatus(quarantinePath("a"), "Accepted 2")
	expectQuarantine(t, live, "worker-2", "a")
}

func TestAFailedWriteIsReportedAndTriedAgain(t *testing.T) {
	t.Parallel()
	c, clock := newCluster(t), newClock()
	live, observer := follow(t, c, containment.Options{Now: clock.Now})
	synced(t, live)
	c.mu.Lock()
	c.down = "/status"
	c.mu.Unlock()
	c.quarantine("a", "worker-1")
	expectQuarantine(t, live, "worker-1", "a")
	eventually(t, "the observer is notified", func() bool { return len(observer.failed()) == 1 })
	if err := observer.failed()[0]; !strings.HasPrefix(err.Error(), "write the status of quarantines a: ") {
		t.Errorf("the error is %v", err)
	}
	c.mu.Lock()
	c.down = ""
	c.mu.Unlock()
	clock.advance(time.Hour)
	c.quarantine("mark", "worker-mark") // wakes the writer
	c.expectStatus(quarantinePath("a"), "Accepted 1")
}

func TestEventsAreLimited(t *testing.T) {
	t.Parallel()
	c, clock := newCluster(t), newClock()
	for i := range 60 {
		c.quarantine(fmt.Sprintf("bad-%02d", i), "")
	}
	live, _ := follow(t, c, containment.Options{Now: clock.Now})
	expectCounts(t, live, "quarantines", "Invalid 60")
	eventually(t, "the first events are written", func() bool { return len(c.events()) == 25 })
	clock.advance(10 * time.Second) // enough for one more
	c.quarantine("last", "")
	eventually(t, "the last event is written", func() bool { return len(c.events()) > 25 })
	if got := len(c.events()); got != 26 {
		t.Errorf("%d events were written", got)
	}
}

func TestAFloodOfChangesIsCompiledInBatches(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	live, observer := follow(t, c, containment.Options{})
	synced(t, live)
	const writes = 2000
	for i := range writes {
		c.quarantine("a", fmt.Sprint("worker-", i))
	}
	expectQuarantine(t, live, fmt.Sprint("worker-", writes-1), "a")
	if got := len(observer.all()); got > writes/4 {
		t.Errorf("%d writes were compiled %d times", writes, got)
	}
	if stats := live.Stats(); stats[1].Changes != writes || stats[1].LastChange.IsZero() {
		t.Errorf("the changes are %+v", stats)
	}
}
