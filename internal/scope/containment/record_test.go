package containment_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
)

const recordPath = "/api/v1/namespaces/" + containment.RecordNamespace + "/configmaps/" + containment.RecordName

// writeRecord writes the record as the deployment has it, or with a number.
func (c *cluster) writeRecord(nodes string) {
	c.t.Helper()
	record := &corev1.ConfigMap{}
	if nodes != "" {
		record.Data = map[string]string{containment.RecordKey: nodes}
	}
	c.put(recordPath, record)
}

func (c *cluster) record() string {
	var read corev1.ConfigMap
	if _, err := c.Get(recordPath, &read); err != nil {
		c.t.Error(err)
	}
	return read.Data[containment.RecordKey]
}

func (c *cluster) expectRecord(want string) {
	c.t.Helper()
	eventuallyNothing(c.t, "the record is "+want, func() string {
		if is := c.record(); is != want {
			return "it is " + is
		}
		return ""
	})
}

// forge writes a Quarantine with a status that no server has written.
func (c *cluster) forge(name, node string, accepted metav1.ConditionStatus) {
	c.put(quarantinePath(name), &v1alpha1.Quarantine{
		ObjectMeta: age(9), Spec: v1alpha1.QuarantineSpec{Node: node}, Status: v1alpha1.QuarantineStatus{
			ObservedGeneration: 1,
			Conditions:         []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: accepted, Reason: "Accepted"}},
		},
	})
}

// quarantineAged makes a Quarantine of a node, of which the nth is younger than those before it.
func (c *cluster) quarantineAged(n int, node string) {
	c.put(quarantinePath("of-"+node), &v1alpha1.Quarantine{ObjectMeta: age(n), Spec: v1alpha1.QuarantineSpec{Node: node}})
}

// edit changes a Quarantine, but not the node that it cuts off.
func (c *cluster) edit(name string) {
	var q v1alpha1.Quarantine
	if _, err := c.Get(quarantinePath(name), &q); err != nil {
		c.t.Fatal(err)
	}
	q.Spec.Reason += "!"
	c.put(quarantinePath(name), &q)
	c.expectStatus(quarantinePath(name), fmt.Sprint("Accepted ", q.Generation+1))
}

func TestAClusterThatLosesNodesEndsNoQuarantine(t *testing.T) {
	t.Parallel()
	c, clock := newCluster(t), newClock()
	c.writeRecord("")
	limit := newLimit(3, true)
	opts := containment.Options{MaxQuarantinedNodes: limit.get, Record: true, Now: clock.Now}
	live, _ := follow(t, c, opts)
	for i, node := range []string{"a", "b", "c"} {
		c.quarantineAged(i, node)
		c.expectStatus(quarantinePath("of-"+node), "Accepted 1")
	}
	c.expectRecord("3")
	limit.set(1, true)
	c.quarantineAged(-1, "d")
	c.expectStatus(quarantinePath("of-d"), "LimitExceeded 1")
	started, _ := follow(t, c, opts)
	c.edit("of-c")
	servers := []*containment.Live{live, started}
	expect := func(nodes string) {
		t.Helper()
		for _, server := range servers {
			for _, node := range []string{"a", "b", "c", "d"} {
				want := ""
				for _, n := range nodes {
					if string(n) == node {
						want = "of-" + node
					}
				}
				expectQuarantine(t, server, node, want)
			}
		}
	}
	expect("abc")
	// A place that becomes free is not for others.
	c.Remove(quarantinePath("of-a"))
	expect("bc")
	c.expectStatus(quarantinePath("of-d"), "LimitExceeded 1")
	// Two looks at the record later, no more than these may be quarantined.
	for range 3 {
		clock.advance(2 * time.Minute)
		c.quarantine(fmt.Sprint("mark-", clock.Now().Unix()), "b")
		c.expectStatus(quarantinePath(fmt.Sprint("mark-", clock.Now().Unix())), "Accepted 1")
	}
	c.expectRecord("2")
	c.forge("forged", "e", metav1.ConditionTrue)
	c.expectStatus(quarantinePath("forged"), "LimitExceeded 1")
	for _, server := range servers {
		expectQuarantine(t, server, "e", "")
	}
}

// Whoever may write statuses can neither quarantine more nodes than the limit allows, nor end Quarantines within it.
func TestAForgedStatusDoesNotPassTheLimit(t *testing.T) {
	t.Parallel()
	for rule, recorded := range map[string]bool{"a number of nodes": false, "a share of the nodes": true} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.writeRecord("")
			for i := range 7 {
				c.forge(fmt.Sprint("forged-", i), fmt.Sprint("worker-", i), metav1.ConditionTrue)
			}
			limit := newLimit(1, true)
			opts := containment.Options{MaxQuarantinedNodes: limit.get, Record: recorded}
			first, _ := follow(t, c, opts)
			second, _ := follow(t, c, opts)
			for _, live := range []*containment.Live{first, second} {
				expectCounts(t, live, "quarantines", "Accepted 1, LimitExceeded 6")
				expectQuarantine(t, live, "worker-0", "forged-0")
				if n := live.QuarantinedNodes(); n != 1 {
					t.Errorf("%d nodes are quarantined", n)
				}
			}
			for i := range 7 {
				want := "LimitExceeded 1"
				if i == 0 {
					want = "Accepted 1"
				}
				c.expectStatus(quarantinePath(fmt.Sprint("forged-", i)), want)
			}
			limit.set(7, true)
			c.forge("forged-3", "worker-3", metav1.ConditionFalse)
			for _, live := range []*containment.Live{first, second} {
				expectQuarantine(t, live, "worker-3", "forged-3")
			}
		})
	}
}

// Without the record, the limit of now counts, and the server says so once.
func TestWithoutARecordTheLimitOfNowCounts(t *testing.T) {
	t.Parallel()
	for rule, of := range map[string]struct {
		exists bool
		fault  bool
		is     func(error) bool
	}{
		"it does not exist":  {false, false, apierrors.IsNotFound},
		"it may not be read": {true, true, apierrors.IsForbidden},
	} {
		t.Run(rule, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			if of.exists {
				c.writeRecord("2")
			}
			if of.fault {
				c.forbid(http.MethodGet, "/configmaps/")
			}
			limit := newLimit(2, true)
			live, observer := follow(t, c, containment.Options{MaxQuarantinedNodes: limit.get, Record: true})
			for i, node := range []string{"a", "b"} {
				c.quarantineAged(i, node)
				c.expectStatus(quarantinePath("of-"+node), "Accepted 1")
			}
			limit.set(1, true)
			c.expectStatus(quarantinePath("of-b"), "LimitExceeded 1")
			expectQuarantine(t, live, "a", "of-a")
			expectQuarantine(t, live, "b", "")
			if errs := observer.ofRecord(); len(errs) != 1 || !of.is(errs[0]) {
				t.Errorf("reported: %v", errs)
			}
		})
	}
}

// As long as it is not known how many are recorded, nothing that was accepted ends.
func TestARecordThatCannotBeReadYetEndsNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.writeRecord("2")
	for _, node := range []string{"a", "b"} {
		c.forge("of-"+node, node, metav1.ConditionTrue)
	}
	c.outage("/configmaps/")
	live, observer := follow(t, c, containment.Options{MaxQuarantinedNodes: newLimit(1, true).get, Record: true})
	eventually(t, "it is reported", func() bool { return len(observer.ofRecord()) == 1 })
	expectQuarantine(t, live, "b", "?")
	c.outage("")
	expectQuarantine(t, live, "b", "of-b")
	history, err := c.History(quarantinePath("of-b"))
	if err != nil || strings.Contains(fmt.Sprint(history), "LimitExceeded") {
		t.Errorf("its statuses were %v, %v", history, err)
	}
	eventually(t, "it is reported", func() bool { return len(observer.ofRecord()) == 2 && observer.ofRecord()[1] == nil })
}

func TestWhatIsNoNumberIsReplaced(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.writeRecord("many")
	live, _ := follow(t, c, containment.Options{MaxQuarantinedNodes: newLimit(2, true).get, Record: true})
	c.quarantine("a", "worker-1")
	c.quarantine("b", "worker-2")
	expectQuarantine(t, live, "worker-2", "b")
	c.expectRecord("2")
}
