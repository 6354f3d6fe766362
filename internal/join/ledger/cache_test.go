package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/join/ledger"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// entry returns the entry of a machine with a node name.
func entry(id, node string) *v1alpha1.NodeAttestation {
	return &v1alpha1.NodeAttestation{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.EntryName("test", id)},
		Spec:       v1alpha1.NodeAttestationSpec{Provider: "test", InstanceID: id, NodeName: node, TokenID: "abc123"},
	}
}

func create(t *testing.T, client *ledger.Client, e *v1alpha1.NodeAttestation) *v1alpha1.NodeAttestation {
	t.Helper()
	created, err := client.Create(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return condition(), nil })
	if err != nil {
		t.Fatal(err)
	}
}

func names(entries []*v1alpha1.NodeAttestation) []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

func TestCacheFollowsTheLedger(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	server := fakeapiserver.New(fakeapiserver.Options{Clock: func() time.Time { return now }, WatchList: true})
	client, err := ledger.NewClient(server.InMemory(nil))
	if err != nil {
		t.Fatal(err)
	}
	create(t, client, entry("i-2", "worker-1"))
	cache := ledger.NewCache(client)
	changes := make(chan string, 100)
	cache.OnChange(func(e *v1alpha1.NodeAttestation) { changes <- fmt.Sprint(e.Name, " ", e.Phase()) })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	if cache.Synced() {
		t.Error("a cache that does not run is synced")
	}
	go func() { done <- cache.Run(ctx) }()
	eventually(t, cache.Synced)

	create(t, client, entry("i-1", "worker-1")) // as old as i-2: the name decides
	now = now.Add(time.Second)
	younger := create(t, client, entry("i-0", "worker-1"))
	create(t, client, entry("i-3", "worker-2"))
	eventually(t, func() bool { return len(cache.All()) == 4 })
	if got, want := names(cache.ByNode("worker-1")), []string{"test-i-1", "test-i-2", "test-i-0"}; !slices.Equal(got, want) {
		t.Errorf("entries of worker-1 are %v, want %v", got, want)
	}

	younger.Status.Phase = v1alpha1.Revoked
	if younger, err = client.UpdateStatus(t.Context(), younger); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { e, ok := cache.Get("test-i-0"); return ok && e.Phase() == v1alpha1.Revoked })
	younger.Spec.NodeName = "worker-2"
	if _, err := client.Update(t.Context(), younger); !apierrors.IsInvalid(err) {
		t.Errorf("error is %v: a revoked entry was changed", err)
	}
	wrong := metav1.NewPreconditionDeleteOptions("another").Preconditions
	if err := client.Delete(t.Context(), "test-i-3", wrong); !apierrors.IsConflict(err) {
		t.Errorf("error is %v, want a conflict", err)
	}
	if err := client.Delete(t.Context(), "test-i-3", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(cache.ByNode("worker-2")) == 0 })
	if _, err := client.Get(t.Context(), "test-i-3"); !apierrors.IsNotFound(err) {
		t.Errorf("error is %v, want NotFound", err)
	}

	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	var seen []string
	for len(seen) < 6 {
		seen = append(seen, <-changes)
	}
	want := []string{
		"test-i-2 Issued", "test-i-1 Issued", "test-i-0 Issued", "test-i-3 Issued", "test-i-0 Revoked", "test-i-3 Issued",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("changes are %q, want %q", seen, want)
	}
}

func TestChangesAtTheSameTimeAreConflicts(t *testing.T) {
	server := fakeapiserver.New(fakeapiserver.Options{Clock: time.Now, WatchList: true})
	client, err := ledger.NewClient(server.InMemory(nil))
	if err != nil {
		t.Fatal(err)
	}
	mine := create(t, client, entry("i-1", "worker-1"))
	theirs := mine.DeepCopy()
	theirs.Spec.TokenID = "def456"
	if _, err := client.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Update(t.Context(), mine); !apierrors.IsConflict(err) {
		t.Errorf("error is %v, want a conflict", err)
	}
	if _, err := client.UpdateStatus(t.Context(), mine); !apierrors.IsConflict(err) {
		t.Errorf("error is %v, want a conflict", err)
	}
	if _, err := client.Create(t.Context(), entry("i-1", "worker-1")); !apierrors.IsAlreadyExists(err) {
		t.Errorf("error is %v, want AlreadyExists", err)
	}
}

func TestCacheGetsTooOld(t *testing.T) {
	var elapsed atomic.Int64
	began := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { return began.Add(time.Duration(elapsed.Load())) }
	server := fakeapiserver.New(fakeapiserver.Options{Clock: now, WatchList: true})
	client, err := ledger.NewClient(server.InMemory(nil))
	if err != nil {
		t.Fatal(err)
	}
	cache := ledger.NewCache(client)
	cache.LimitAge(time.Minute, now)
	if err := cache.Fresh(); !errors.Is(err, ledger.ErrNotRead) {
		t.Errorf("before it runs: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	eventually(t, func() bool { return cache.Fresh() == nil })
	elapsed.Store(int64(time.Minute))
	if err := cache.Fresh(); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	elapsed.Add(1)
	var old *staleness.Error
	if err := cache.Fresh(); !errors.As(err, &old) || old.Source != "nodeattestations.node-authorizer.io" {
		t.Errorf("beyond the limit: %v", err)
	}
	create(t, client, entry("i-1", "worker-1"))
	eventually(t, func() bool { _, known := cache.Get("test-i-1"); return known })
	elapsed.Add(int64(2 * time.Second))
	if err := cache.Fresh(); err != nil {
		t.Errorf("after an event: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The owner is found under any node name, as long as its entry has the certificate.
func TestCacheFindsTheOwnerOfACertificate(t *testing.T) {
	server := fakeapiserver.New(fakeapiserver.Options{WatchList: true})
	client, err := ledger.NewClient(server.InMemory(nil))
	if err != nil {
		t.Fatal(err)
	}
	cache := ledger.NewCache(client)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	owner := create(t, client, entry("i-1", "worker-1"))
	create(t, client, entry("i-2", "worker-1"))
	owner.Status.Credentials = []string{"X509SHA256=aa", "X509SHA256=bb"}
	if owner, err = client.UpdateStatus(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	owner.Spec.NodeName = "worker-2"
	if owner, err = client.Update(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(cache.ByNode("worker-2")) == 1 })
	for id, want := range map[string][]string{
		"X509SHA256=aa": {"test-i-1"}, "X509SHA256=bb": {"test-i-1"}, "X509SHA256=cc": nil, "": nil,
	} {
		if got := names(cache.ByCredential(id)); !slices.Equal(got, want) {
			t.Errorf("%q is of %v, want %v", id, got, want)
		}
	}
	owner.Status.Credentials = []string{"X509SHA256=bb"}
	if _, err := client.UpdateStatus(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return len(cache.ByCredential("X509SHA256=aa")) == 0 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
