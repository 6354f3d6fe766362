package containment_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

func TestAQuarantineHoldsFromItsWriteToItsDeletion(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.quarantine("before", "worker-1")
	live, observer := follow(t, c, containment.Options{})
	expectQuarantine(t, live, "worker-1", "before")
	c.put(quarantinePath("credential"), &v1alpha1.Quarantine{Spec: v1alpha1.QuarantineSpec{Credential: "JTI=1"}})
	eventually(t, "the credential is quarantined", func() bool {
		name, found, err := live.QuarantinedCredential("JTI=1")
		return name == "credential" && found && err == nil
	})
	c.quarantine("then", "worker-2")
	expectQuarantine(t, live, "worker-2", "then")
	c.expectStatus(quarantinePath("then"), "Accepted 1")
	c.Remove(quarantinePath("before"))
	expectQuarantine(t, live, "worker-1", "")
	eventually(t, "two nodes are counted no more", func() bool { return live.QuarantinedNodes() == 1 })
	if !has(observer.all(), "then", containment.Accepted) {
		t.Errorf("the changes are %+v", observer.all())
	}
}

func TestBeforeAnythingIsReadThereIsNoAnswer(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.outage(v1alpha1.Group)
	live, observer := follow(t, c, containment.Options{})
	if _, _, err := live.Quarantined("worker-1"); !notRead(err) {
		t.Errorf("the error is %v", err)
	}
	eventually(t, "the observer is notified", func() bool { return len(observer.reached()) == 2 })
	for _, err := range []error{live.NodeScopesFresh(), live.QuarantinesFresh()} {
		if !notRead(err) || !strings.Contains(err.Error(), "unavailable for the test") {
			t.Errorf("the error is %v", err)
		}
	}
	c.outage("")
	synced(t, live)
	eventually(t, "the observer is notified", func() bool { return len(observer.reached()) == 4 })
}

func TestWhatIsNotFollowedHasNoErrors(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	live, err := containment.New(containment.Options{Cluster: c.Config()})
	if err != nil {
		t.Fatal(err)
	}
	name, found, err := live.Quarantined("worker-1")
	if name != "" || found || err != nil || live.Fresh() != nil || len(live.Ages()) > 0 || len(live.Stats()) > 0 {
		t.Errorf("got %q, %v, %v, %v", name, found, err, live.Fresh())
	}
}

func TestAQuarantineEndsWithoutAnEvent(t *testing.T) {
	t.Parallel()
	c, clock := newCluster(t), newClock()
	end := metav1.NewTime(clock.Now().Add(time.Hour))
	c.put(quarantinePath("hour"), &v1alpha1.Quarantine{Spec: v1alpha1.QuarantineSpec{Node: "worker-1", ExpirationTime: &end}})
	// The interval is so long that nothing is compiled again.
	late, _ := follow(t, c, containment.Options{Now: clock.Now, Interval: time.Hour})
	expectQuarantine(t, late, "worker-1", "hour")
	c.expectStatus(quarantinePath("hour"), "Accepted 1")
	clock.advance(time.Hour)
	if got := quarantined(late, "worker-1"); got != "" {
		t.Errorf("after its end, the Quarantine is %q", got)
	}
	prompt, _ := follow(t, c, containment.Options{Now: clock.Now})
	synced(t, prompt)
	c.expectStatus(quarantinePath("hour"), "Expired 1")
	if prompt.QuarantinedNodes() != 0 {
		t.Errorf("%d nodes are quarantined", prompt.QuarantinedNodes())
	}
}

func TestTheStatusSaysThatAQuarantineEndsWithoutAnEvent(t *testing.T) {
	t.Parallel()
	c, clock := newCluster(t), newClock()
	end := metav1.NewTime(clock.Now().Add(time.Hour))
	c.put(quarantinePath("hour"), &v1alpha1.Quarantine{Spec: v1alpha1.QuarantineSpec{Node: "worker-1", ExpirationTime: &end}})
	_, _ = follow(t, c, containment.Options{Now: clock.Now})
	c.expectStatus(quarantinePath("hour"), "Accepted 1")
	clock.advance(time.Hour)
	c.expectStatus(quarantinePath("hour"), "Expired 1")
	// A server with another clock does not deny it.
	behind := newClock()
	live, observer := follow(t, c, containment.Options{Now: behind.Now})
	expectQuarantine(t, live, "worker-1", "hour")
	c.quarantine("last", "worker-2")
	c.expectStatus(quarantinePath("last"), "Accepted 1")
	if got := c.accepted(quarantinePath("hour")); got != "Expired 1" {
		t.Errorf("the status is %s, after %+v", got, observer.all())
	}
}

func TestTheOldestQuarantinesCount(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	limit := newLimit(2, true)
	for i, name := range []string{"c", "b", "a"} {
		c.put(quarantinePath(name), &v1alpha1.Quarantine{ObjectMeta: age(i), Spec: v1alpha1.QuarantineSpec{Node: "worker-" + name}})
	}
	c.put(quarantinePath("again"), &v1alpha1.Quarantine{ObjectMeta: age(9), Spec: v1alpha1.QuarantineSpec{Node: "worker-c"}})
	c.put(quarantinePath("credential"), &v1alpha1.Quarantine{ObjectMeta: age(9), Spec: v1alpha1.QuarantineSpec{Credential: "JTI=1"}})
	live, _ := follow(t, c, containment.Options{MaxQuarantinedNodes: limit.get})
	expectCounts(t, live, "quarantines", "Accepted 4, LimitExceeded 1")
	expectQuarantine(t, live, "worker-a", "")
	c.expectStatus(quarantinePath("a"), "LimitExceeded 1")
	c.expectStatus(quarantinePath("again"), "Accepted 1") // it names no other node
	c.expectStatus(quarantinePath("credential"), "Accepted 1")

	c.Remove(quarantinePath("b"))
	expectQuarantine(t, live, "worker-a", "a")
	c.expectStatus(quarantinePath("a"), "Accepted 1")
}

func TestWithoutTheNumberOfNodesOneNodeIsDecided(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	limit := newLimit(0, false)
	c.put(quarantinePath("a"), &v1alpha1.Quarantine{ObjectMeta: age(1), Spec: v1alpha1.QuarantineSpec{Node: "worker-a"}})
	live, _ := follow(t, c, containment.Options{MaxQuarantinedNodes: limit.get})
	expectQuarantine(t, live, "worker-a", "a")
	c.put(quarantinePath("b"), &v1alpha1.Quarantine{ObjectMeta: age(2), Spec: v1alpha1.QuarantineSpec{Node: "worker-b"}})
	expectQuarantine(t, live, "worker-b", "?")
	limit.set(2, true)
	expectQuarantine(t, live, "worker-b", "b")
}

func TestABrokenQuarantineKeepsItsLastValidGeneration(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.quarantine("a", "worker-1")
	live, _ := follow(t, c, containment.Options{})
	expectQuarantine(t, live, "worker-1", "a")
	for _, spec := range []any{
		map[string]any{"node": "worker-1", "allow": "everything"},
		map[string]any{},
		map[string]any{"node": "worker-1", "reason": strings.Repeat("x", 100<<10)},
	} {
		c.put(quarantinePath("a"), map[string]any{"spec": spec})
		c.quarantine("mark", "worker-mark")
		expectQuarantine(t, live, "worker-mark", "mark")
		if got := quarantined(live, "worker-1"); got != "a" {
			t.Errorf("%.50v: the Quarantine is %q", spec, got)
		}
		c.Remove(quarantinePath("mark"))
		expectQuarantine(t, live, "worker-mark", "")
	}
	c.expectStatus(quarantinePath("a"), "TooLarge 4")
	c.Remove(quarantinePath("a"))
	expectQuarantine(t, live, "worker-1", "")
}

func TestAStaleCopyHasNoAnswers(t *testing.T) {
	t.Parallel()
	c, clock := newCluster(t), newClock()
	c.quarantine("a", "worker-1")
	live, _ := follow(t, c, containment.Options{Now: clock.Now, MaxStaleness: time.Minute})
	expectQuarantine(t, live, "worker-1", "a")
	eventually(t, "NodeScopes have been read too", func() bool { return live.Fresh() == nil })
	// An event after the lists shows that the watches are open, which the outage then ends.
	c.quarantine("b", "worker-2")
	c.put(scopePath("s"), &v1alpha1.NodeScope{})
	expectQuarantine(t, live, "worker-2", "b")
	expectCounts(t, live, "nodescopes", "Invalid 1")
	c.outage(v1alpha1.Group)
	clock.advance(2 * time.Minute)
	if _, _, err := live.Quarantined("worker-1"); !isOld(err) || !isOld(live.NodeScopesFresh()) {
		t.Errorf("the errors are %v and %v", err, live.NodeScopesFresh())
	}
	c.Remove(quarantinePath("a")) // while nothing is watched
	c.outage("")
	eventually(t, "it is current again", func() bool {
		clock.advance(10 * time.Millisecond)
		return live.Fresh() == nil
	})
	expectQuarantine(t, live, "worker-1", "")
}

func TestARestoredStoreIsNoticed(t *testing.T) {
	t.Parallel()
	first := newCluster(t)
	for range 5 {
		first.quarantine("a", "worker-1")
	}
	live, _ := follow(t, first, containment.Options{MaxStaleness: time.Hour})
	expectQuarantine(t, live, "worker-1", "a")
	// The watch ends, and the store has the objects of before, with another spec.
	first.outage(v1alpha1.Group)
	first.put(quarantinePath("a"), map[string]any{
		"metadata": map[string]any{"generation": 1}, "spec": map[string]any{"node": "worker-2"},
	})
	first.outage("")
	expectQuarantine(t, live, "worker-2", "a")
	expectQuarantine(t, live, "worker-1", "")
}

func isOld(err error) bool {
	_, old := errors.AsType[*staleness.Error](err)
	return old
}
