package installed

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	internalcontainment "github.com/node-authorizer/node-authorizer/internal/scope/containment"
)

// failures are the writes of statuses and events that failed.
type failures struct {
	mu  sync.Mutex
	all []error
}

func (f *failures) ContainmentChanged(internalcontainment.Change) {}

func (f *failures) ContainmentUnreachable(_ string, err error) { f.ContainmentWriteFailed(err) }

func (f *failures) ContainmentUnrecorded(err error) { f.ContainmentWriteFailed(err) }

func (f *failures) ContainmentWriteFailed(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, err)
}

// conditionOf returns "REASON GENERATION" of the condition Accepted; empty if there is none.
func conditionOf(t *testing.T, resource schema.GroupVersionResource, name string) string {
	t.Helper()
	read, err := containment(t, resource).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(read.Object, "status", "conditions")
	observed, _, _ := unstructured.NestedInt64(read.Object, "status", "observedGeneration")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == policyv1alpha1.ConditionAccepted {
			return fmt.Sprint(c["reason"], " ", observed)
		}
	}
	return ""
}

// TestServerSaysWhatBecameOfObjects: with the rights that we install, it follows both resources and writes
// their statuses.
func TestServerSaysWhatBecameOfObjects(t *testing.T) {
	config := rest.CopyConfig(plane.AdminConfig())
	config.Impersonate.UserName = "node-authorizer"
	failed := &failures{}
	live, err := internalcontainment.New(internalcontainment.Options{
		Cluster: config, NodeScopes: true, Quarantines: true, Observer: failed, MaxStaleness: time.Minute,
		MaxQuarantinedNodes: func() (int, bool) { return 1, true },
	})
	if err != nil {
		t.Fatal(err)
	}
	createContained(t, scopes, "live", agent)
	createContained(t, quarantines, "live-a", "node: live-a")
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { live.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	expect := func(resource schema.GroupVersionResource, name, want string) {
		t.Helper()
		got := ""
		err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			got = conditionOf(t, resource, name)
			return got == want, nil
		})
		if err != nil {
			t.Errorf("%s %s is %q, want %q", resource.Resource, name, got, want)
		}
	}
	expect(scopes, "live", "Accepted 1")
	expect(quarantines, "live-a", "Accepted 1")
	createContained(t, quarantines, "live-b", "node: live-b") // while it is watched
	expect(quarantines, "live-b", "LimitExceeded 1")
	if name, found, err := live.Quarantined("live-a"); name != "live-a" || !found || err != nil {
		t.Errorf("the Quarantine of node live-a is %q, %v", name, err)
	}
	failed.mu.Lock()
	defer failed.mu.Unlock()
	if len(failed.all) > 0 {
		t.Errorf("writes failed: %v", failed.all)
	}
}
