package containment_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/containment"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// agentScope is a NodeScope about the account kube-system/agent.
func agentScope(mode v1alpha1.Mode, anywhere ...string) *v1alpha1.NodeScope {
	scope := &v1alpha1.NodeScope{Spec: v1alpha1.NodeScopeSpec{
		Subjects: []v1alpha1.Subject{{Namespace: "kube-system", Name: "agent"}}, Mode: mode,
	}}
	for _, resource := range anywhere {
		scope.Spec.Anywhere = append(scope.Spec.Anywhere, v1alpha1.AnywhereRule{
			APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"},
		})
	}
	return scope
}

// inUse lists the requests that the scopes about an account let pass: "NAME RULE RESOURCES"; a broken scope lets
// nothing pass.
func inUse(live *containment.Live, account string) string {
	user := nodeidentity.ServiceAccountUser("kube-system", account)
	policy := live.Policy().Load()
	var all []string
	for _, scope := range policy.Of(user) {
		all = append(all, scope.Name())
	}
	for _, p := range policy.Passing(user, "worker-1") {
		all = append(all, fmt.Sprint(p.Rule, p.Resources))
	}
	return strings.Join(all, " ")
}

func expectInUse(t *testing.T, live *containment.Live, account, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("in use for %s is %q", account, want), func() bool { return inUse(live, account) == want })
}

func TestTheLastValidGenerationStaysInUse(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.put(scopePath("agent"), agentScope(v1alpha1.Enforce, "pods"))
	live, _ := follow(t, c, containment.Options{})
	expectInUse(t, live, "agent", "agent anywhere[0][pods]")
	c.expectStatus(scopePath("agent"), "Accepted 1")
	for i, broken := range []any{
		map[string]any{"subjects": []any{}, "mode": "Enforce"},
		map[string]any{"subjects": "all", "mode": "Observe"},
		"nothing",
		nil,
		map[string]any{"mode": strings.Repeat("x", 100<<10)},
	} {
		c.put(scopePath("agent"), map[string]any{"spec": broken})
		code := "Invalid"
		if i == 4 {
			code = "TooLarge"
		}
		c.expectStatus(scopePath("agent"), fmt.Sprint(code, " ", i+2))
		if got := inUse(live, "agent"); got != "agent anywhere[0][pods]" {
			t.Errorf("%.50v: in use is %q", broken, got)
		}
	}
	c.put(scopePath("agent"), agentScope(v1alpha1.Enforce, "nodes"))
	expectInUse(t, live, "agent", "agent anywhere[0][nodes]")
	c.expectStatus(scopePath("agent"), "Accepted 7")
	// Another object of the same name has no valid generation.
	c.Remove(scopePath("agent"))
	expectInUse(t, live, "agent", "")
	c.put(scopePath("agent"), map[string]any{"spec": map[string]any{"mode": "Enforce"}})
	c.expectStatus(scopePath("agent"), "Invalid 1")
	if got := inUse(live, "agent"); got != "" {
		t.Errorf("in use is %q", got)
	}
}

func TestAScopeThatNeverWasValid(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	subjects := []any{map[string]any{"namespace": "kube-system", "name": "agent"}, "worse", map[string]any{
		"namespace": "kube-system", "name": "other",
	}}
	for name, mode := range map[string]string{"enforced": "Enforce", "observed": "Observe", "neither": "Off"} {
		c.put(scopePath(name), map[string]any{"spec": map[string]any{"subjects": subjects, "mode": mode}})
	}
	c.put(scopePath("good"), agentScope(v1alpha1.Observe, "pods"))
	live, observer := follow(t, c, containment.Options{})
	expectCounts(t, live, "nodescopes", "Accepted 1, Invalid 3")
	expectInUse(t, live, "other", "enforced")
	expectInUse(t, live, "agent", "enforced good anywhere[0][pods]")
	if !has(observer.all(), "enforced", containment.Invalid) || !has(observer.all(), "good", containment.Accepted) {
		t.Errorf("the changes are %+v", observer.all())
	}
	c.put(scopePath("enforced"), agentScope(v1alpha1.Enforce, "nodes"))
	expectInUse(t, live, "other", "")
}

// largeScope is larger than servers read.
func largeScope(mode string, subjects ...any) map[string]any {
	return map[string]any{"spec": map[string]any{
		"anywhere": []any{map[string]any{"resourceNames": []any{strings.Repeat("x", 1<<20)}}},
		"mode":     mode, "subjects": subjects,
	}}
}

func account(name string) any { return map[string]any{"namespace": "kube-system", "name": name} }

func TestAScopeThatIsTooLarge(t *testing.T) {
	t.Parallel()
	var many []any
	for i := range nodescope.MaxListed + 6 {
		many = append(many, account(fmt.Sprintf("agent-%d", i)))
	}
	for _, tc := range []struct {
		rule  string
		scope map[string]any
		// refused are the accounts that are refused, others some that are not.
		refused, others []string
		message         string
	}{
		{"refuses its accounts if it says Enforce", largeScope("Enforce", account("agent")), []string{"agent"}, []string{"other"}, ""},
		{"refuses nobody if it does not", largeScope("Observe", account("agent")), nil, []string{"agent"}, ""},
		{"refuses as many as it may list", largeScope("Enforce", many...), []string{"agent-0", "agent-63"}, []string{"agent-64"}, ""},
		{
			"refuses the accounts that can be read", largeScope("Enforce", "worse", 7, []any{account("inner")}, account("agent")),
			[]string{"agent"},
			[]string{"inner"},
			"",
		},
		{
			"says so if the subjects are too large", largeScope("Enforce", account(strings.Repeat("a", 100<<10)), account("agent")), nil,
			[]string{"agent"},
			"the subjects are not read either, so that their accounts are not refused",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.put(scopePath("large"), tc.scope)
			live, _ := follow(t, c, containment.Options{})
			expectCounts(t, live, "nodescopes", "TooLarge 1")
			for _, name := range tc.refused {
				expectInUse(t, live, name, "large")
			}
			for _, name := range tc.others {
				expectInUse(t, live, name, "")
			}
			c.expectStatus(scopePath("large"), "TooLarge 1")
			eventually(t, "there is an event", func() bool { return len(c.events()) == 1 })
			event := c.events()[0]
			if event.Reason != "TooLarge" || event.InvolvedObject.Kind != v1alpha1.NodeScopeKind {
				t.Errorf("the event is %+v", event)
			}
			said := strings.Contains(event.Message, "not refused")
			if said != (tc.message != "") || !strings.HasSuffix(event.Message, tc.message) {
				t.Errorf("the event says %q, want %q", event.Message, tc.message)
			}
		})
	}
}

// TestWhatATooLargeScopeRefusesFollowsIt: its generations replace each other, and the last valid one stays in use.
func TestWhatATooLargeScopeRefusesFollowsIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.put(scopePath("agent"), largeScope("Enforce", account("agent")))
	live, _ := follow(t, c, containment.Options{})
	expectInUse(t, live, "agent", "agent")
	c.put(scopePath("agent"), largeScope("Enforce", account("other")))
	expectInUse(t, live, "other", "agent")
	expectInUse(t, live, "agent", "")
	// The same subjects and mode, and nothing else.
	c.put(scopePath("agent"), map[string]any{"spec": map[string]any{"mode": "Enforce", "subjects": []any{account("other")}}})
	c.expectStatus(scopePath("agent"), "Accepted 3")
	c.put(scopePath("agent"), agentScope(v1alpha1.Enforce, "pods"))
	expectInUse(t, live, "agent", "agent anywhere[0][pods]")
	c.put(scopePath("agent"), largeScope("Enforce", account("other")))
	c.expectStatus(scopePath("agent"), "TooLarge 5")
	expectInUse(t, live, "agent", "agent anywhere[0][pods]")
	expectInUse(t, live, "other", "")
}

// TestTheStatusSaysWhatAnotherAPIServerServes: and follows it, without a change of the object.
func TestTheStatusSaysWhatAnotherAPIServerServes(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	scope := agentScope(v1alpha1.Enforce, "pods")
	scope.Spec.NamedAsNode = []v1alpha1.NamedRule{{APIGroups: []string{"x.io"}, Resources: []string{"things"}, Verbs: []string{"create"}}}
	c.put(scopePath("agent"), scope)
	var served atomic.Pointer[nodescope.Aggregation]
	live, _ := follow(t, c, containment.Options{Aggregation: served.Load})
	expect := func(want string) {
		t.Helper()
		eventually(t, "the status says "+want, func() bool { return c.message(scopePath("agent")) == want })
	}
	expect("the servers use this generation")
	served.Store(&nodescope.Aggregation{Versions: []schema.GroupVersion{{Group: "x.io", Version: "v1"}}, Complete: true})
	expect("the servers use this generation; but namedAsNode[0] names what another API server serves (x.io/v1): there it lets no " +
		"create, list, watch or deletion of a collection pass")
	served.Store(&nodescope.Aggregation{Complete: true})
	expect("the servers use this generation")
	expectInUse(t, live, "agent", "agent namedAsNode[0][things] anywhere[0][pods]")
}

// TestTheStatusSaysWhatAScopeLeavesOpen: only of one that enforces, and without another condition.
func TestTheStatusSaysWhatAScopeLeavesOpen(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	open := func(mode v1alpha1.Mode, otherwise v1alpha1.Effect, resources ...string) *v1alpha1.NodeScope {
		s := agentScope(mode)
		s.Spec.Otherwise = otherwise
		for _, r := range resources {
			s.Spec.Anywhere = append(s.Spec.Anywhere, v1alpha1.AnywhereRule{
				APIGroups: []string{""}, Resources: []string{r}, Verbs: []string{"create"},
			})
		}
		return s
	}
	many := make([]string, nodescope.MaxListed)
	for i := range many {
		many[i] = "serviceaccounts/token"
	}
	c.put(scopePath("observes"), open(v1alpha1.Observe, v1alpha1.Allow, "serviceaccounts/token"))
	c.put(scopePath("held"), open(v1alpha1.Enforce, v1alpha1.Deny, "events"))
	c.put(scopePath("pods"), open(v1alpha1.Enforce, v1alpha1.Deny, "pods", "pods/exec"))
	c.put(scopePath("open"), open(v1alpha1.Enforce, v1alpha1.Allow, "serviceaccounts/token"))
	c.put(scopePath("wide-open"), open(v1alpha1.Enforce, v1alpha1.Allow, many...))
	follow(t, c, containment.Options{})
	for name, want := range map[string]string{
		"observes": "the servers use this generation", "held": "the servers use this generation",
		"open": "the servers use this generation; but anywhere[0] lets the account create serviceaccounts/token: a right to create " +
			"serviceaccounts/token gives the account; such a token can name another node; what no rule names is not held to the node",
		"pods": "the servers use this generation; but anywhere[0] lets the account create pods: who creates pods in a namespace uses " +
			"its service accounts, secrets and, unless Pod Security forbids it, nodes; anywhere[1] lets the account create " +
			"pods/exec: a right to exec into a pod, or to add a container to it, controls its processes",
	} {
		eventually(t, name+" says "+want, func() bool { return c.message(scopePath(name)) == want })
	}
	c.expectStatus(scopePath("open"), "Accepted 1")
	eventually(t, "the message is bounded", func() bool {
		message := c.message(scopePath("wide-open"))
		return strings.HasSuffix(message, "; and 62 more") && len(message) < 1024
	})
	if events := c.events(); len(events) > 0 {
		t.Errorf("there are events: %v", events)
	}
}

func TestTheOldestScopesOfAnAccountCount(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for i := range nodescope.MaxScopes + 1 {
		scope := agentScope(v1alpha1.Observe, "pods")
		scope.ObjectMeta = age(i)
		c.put(scopePath(fmt.Sprintf("s-%03d", nodescope.MaxScopes-i)), scope)
	}
	live, _ := follow(t, c, containment.Options{})
	expectCounts(t, live, "nodescopes", fmt.Sprintf("Accepted %d, LimitExceeded 1", nodescope.MaxScopes))
	c.expectStatus(scopePath("s-000"), "LimitExceeded 1")
	c.Remove(scopePath("s-001"))
	expectCounts(t, live, "nodescopes", fmt.Sprintf("Accepted %d", nodescope.MaxScopes))
}

// TestSpecsForWhichThereIsRoomAgainAreRead: the specs of the youngest objects are dropped, and read again
// when older objects are gone.
func TestSpecsForWhichThereIsRoomAgainAreRead(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const objects, kept, filling = 300, 8 << 20 / (60 << 10), 60<<10 - 170
	for i := range objects {
		q := &v1alpha1.Quarantine{ObjectMeta: age(objects - i)} // the oldest comes last
		q.Spec.Node, q.Spec.Reason = fmt.Sprintf("worker-%03d", objects-i), strings.Repeat("x", filling)
		c.put(quarantinePath(q.Spec.Node), q)
	}
	live, _ := follow(t, c, containment.Options{})
	synced(t, live)
	first := live.QuarantinedNodes()
	if first < kept || first > kept+5 {
		t.Fatalf("%d nodes are quarantined, want about %d", first, kept)
	}
	if quarantined(live, "worker-001") == "" || quarantined(live, fmt.Sprintf("worker-%03d", objects)) != "" {
		t.Error("not the oldest objects count")
	}
	for i := range objects - 50 {
		c.Remove(quarantinePath(fmt.Sprintf("worker-%03d", i+1)))
	}
	eventually(t, "the others are in use", func() bool { return live.QuarantinedNodes() == 50 })
	expectQuarantine(t, live, fmt.Sprintf("worker-%03d", objects), fmt.Sprintf("worker-%03d", objects))
}
