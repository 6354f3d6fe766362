package source

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

func list(t *testing.T, s *stubServer, opts LiveOptions) *State {
	t.Helper()
	state, err := List(t.Context(), s.config(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestListReadsPages(t *testing.T) {
	s := newStub(t)
	for i := range 2*pageSize + 1 {
		s.set("pods", boundPod("shop", fmt.Sprintf("pod-%04d", i), "worker", "pull"))
	}
	var last manifest.Progress
	state := list(t, s, LiveOptions{Progress: func(p manifest.Progress) {
		if p.Source == "pods" {
			last = p
		}
	}})
	if n := state.Counts()["Pod"]; n != 2*pageSize+1 {
		t.Errorf("%d pods, want %d", n, 2*pageSize+1)
	}
	if !state.Graph.HasPath("worker", graph.Secret, "shop", "pull") {
		t.Error("the pods' secret is not related to their node")
	}
	if want := (manifest.Progress{Source: "pods", Done: 2*pageSize + 1, Total: 2*pageSize + 1, Objects: 2*pageSize + 1}); last != want {
		t.Errorf("last progress is %+v, want %+v", last, want)
	}
	if state.Version.String() != "1.36" || state.ServerVersion != "v1.36.3" || state.Origin != "cluster "+s.URL {
		t.Errorf("version %s, %s, origin %s", state.Version, state.ServerVersion, state.Origin)
	}
	for _, request := range s.requests {
		if strings.Contains(request, "secrets") || strings.Contains(request, "configmaps") || strings.Contains(request, "watch=") {
			t.Errorf("List sent %s", request)
		}
	}
	if !s.accepted["application/vnd.kubernetes.protobuf,application/json"] {
		t.Errorf("protobuf was not requested: %v", s.accepted)
	}
}

// When a continue token expires, the list is restarted, and objects that were deleted
// since the first attempt are not kept.
func TestListRestartsWhenContinueTokensExpire(t *testing.T) {
	s := newStub(t)
	for i := range pageSize + 1 {
		s.set("pods", boundPod("shop", fmt.Sprintf("pod-%04d", i), "worker", "pull"))
	}
	s.expire = listAttempts - 1
	deleted := false
	state := list(t, s, LiveOptions{Retain: true, Progress: func(p manifest.Progress) {
		if p.Source == "pods" && !deleted {
			deleted = true
			s.delete("pods", "shop/pod-0000")
		}
	}})
	if _, ok := state.Pod("shop", "pod-0000"); ok {
		t.Error("a pod that was deleted is in the state")
	}
	if n := state.Counts()["Pod"]; n != pageSize {
		t.Errorf("%d pods, want %d", n, pageSize)
	}
	if n := len(state.retained.objects[kindPod]); n != pageSize {
		t.Errorf("%d pods retained, want %d", n, pageSize)
	}
	s.expire = listAttempts
	s.set("pods", boundPod("shop", "pod-0000", "worker", "pull"))
	if _, err := List(t.Context(), s.config(), LiveOptions{}); err == nil {
		t.Error("a list that always expires is not an error")
	}
}

func TestListWithoutRights(t *testing.T) {
	s := newStub(t)
	s.set("pods", boundPod("shop", "api", "worker", "pull"))
	s.setAllowed("list resourceslices", false)
	s.setAllowed("list clusterroles", false)
	state := list(t, s, LiveOptions{})
	var got []string
	for _, m := range state.Missing() {
		got = append(got, fmt.Sprintf("%s rbac %v: %s", m.Resource, m.Kind&RBACKinds() != 0, m.Reason))
	}
	want := []string{
		`clusterroles.rbac.authorization.k8s.io rbac true: not allowed to list: clusterroles.rbac.authorization.k8s.io is ` +
			`forbidden: User "reader" cannot list resource "clusterroles" at the cluster scope; bind a cluster role with the ` +
			`verbs list and watch on clusterroles.rbac.authorization.k8s.io to the user`,
		`resourceslices.resource.k8s.io rbac false: not allowed to list: resourceslices.resource.k8s.io is forbidden: User ` +
			`"reader" cannot list resource "resourceslices" at the cluster scope; bind a cluster role with the verbs list and ` +
			`watch on resourceslices.resource.k8s.io to the user`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("missing is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if state.Counts()["Pod"] != 1 {
		t.Error("the pods were not read")
	}
	if state.RBACLoaded() {
		t.Error("RBAC is said to be loaded without the right to read cluster roles")
	}
}

func TestRBACLoaded(t *testing.T) {
	s := newStub(t)
	if !list(t, s, LiveOptions{}).RBACLoaded() {
		t.Error("a cluster whose RBAC is empty but readable counts as not loaded")
	}
	s.setAllowed("list roles", false)
	s.set("clusterroles", &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}})
	if !list(t, s, LiveOptions{}).RBACLoaded() {
		t.Error("a cluster role was read, but RBAC counts as not loaded")
	}
}

// Older servers serve other versions, or do not serve a kind.
func TestListOfOlderServers(t *testing.T) {
	node := "worker"
	s := newStub(t)
	s.version = "v1.32.4"
	s.unserve("certificates.k8s.io/v1", "podcertificaterequests")
	s.unserve("resource.k8s.io/v1", "resourceslices")
	s.serve(schema.GroupVersion{Group: resourcev1.GroupName, Version: "v1alpha3"}, kindResourceSlice)
	s.serve(schema.GroupVersion{Group: resourcev1.GroupName, Version: "v1beta1"}, kindResourceSlice)
	s.set("resourceslices", &resourcev1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1beta1.ResourceSliceSpec{NodeName: node},
	})
	state := list(t, s, LiveOptions{})
	if !state.Graph.HasPath(node, graph.ResourceSlice, "", "gpu") {
		t.Error("the slice is not related to its node")
	}
	if m := state.Missing(); len(m) != 0 {
		t.Errorf("a kind that is not served is missing: %v", m)
	}
	s.unserve("resource.k8s.io/v1beta1", "resourceslices")
	m := list(t, s, LiveOptions{}).Missing()
	if len(m) != 1 ||
		m[0].Reason != "the server serves resourceslices.resource.k8s.io only in version v1alpha3, which is not supported; "+
			"supported versions are v1, v1beta2, v1beta1" {
		t.Errorf("missing is %v", m)
	}
}

func TestResources(t *testing.T) {
	s := newStub(t)
	s.serve(schema.GroupVersion{Group: resourcev1.GroupName, Version: "v1beta1"}, kindResourceSlice)
	var got []string
	for _, r := range list(t, s, LiveOptions{}).Resources {
		got = append(got, fmt.Sprintf("%s/%s %v", r.Group, r.Name, r.Versions))
	}
	if want := "resource.k8s.io/resourceslices [v1 v1beta1]"; !slices.Contains(got, want) {
		t.Errorf("resources lack %q:\n%s", want, strings.Join(got, "\n"))
	}
	if !slices.IsSorted(got) || len(got) != int(kindCount) {
		t.Errorf("resources are not those served, sorted, without subresources:\n%s", strings.Join(got, "\n"))
	}
}

func TestVersionOutsideOfTheRange(t *testing.T) {
	s := newStub(t)
	s.version = "v1.29.1"
	state := list(t, s, LiveOptions{})
	want := []string{
		`kubernetes version "v1.29.1" is not supported: want 1.30 to 1.37; answers are for the version that is assumed ` +
			`instead`,
	}
	if state.Version != 0 || !slices.Equal(state.Warnings(), want) {
		t.Errorf("version %d, warnings %q", state.Version, state.Warnings())
	}
}

func TestUnreachableCluster(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, err = List(t.Context(), &rest.Config{Host: "https://" + address}, LiveOptions{})
	want := `ask for the version of cluster https://` + address + `: Get "https://` + address + `/version": dial tcp ` + address +
		`: connect: connection refused; check that the API server runs and can be reached from here, and that the kubeconfig ` +
		`names the right server (kubectl config view --minify)`
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v\nwant\n%s", err, want)
	}
}

// startWatch watches the stub until the test ends.
func startWatch(t *testing.T, s *stubServer, opts LiveOptions) *Live {
	t.Helper()
	opts.retry = &wait.Backoff{Duration: time.Millisecond, Steps: 1}
	live, err := Watch(t.Context(), s.config(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(live.Stop)
	return live
}

func waitSynced(t *testing.T, live *Live) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := live.WaitSynced(ctx); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return condition(), nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func TestWatchFollowsTheCluster(t *testing.T) {
	for name, watchList := range map[string]bool{"streamed": true, "listed": false} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.watchList = watchList
			for i := range pageSize + 1 {
				s.set("pods", boundPod("shop", fmt.Sprintf("pod-%04d", i), "worker", "pull"))
			}
			s.set("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}})
			live := startWatch(t, s, LiveOptions{})
			waitSynced(t, live)
			state := live.State()
			if state.Counts()["Pod"] != pageSize+1 || !state.HasNode("worker") {
				t.Fatalf("state is not complete when synced: %v", state.Counts())
			}
			if listed := s.received("GET /api/v1/pods?limit="); listed == watchList {
				t.Errorf("pods listed: %v", listed)
			}
			has := func(node string) func() bool {
				return func() bool { return state.Graph.HasPath(node, graph.Secret, "shop", "db") }
			}
			s.set("pods", boundPod("shop", "new", "worker", "db"))
			eventually(t, "added", has("worker"))
			s.set("pods", boundPod("shop", "new", "other", "db"))
			eventually(t, "moved", func() bool { return has("other")() && !has("worker")() })
			s.delete("pods", "shop/new")
			eventually(t, "deleted", func() bool { return !has("other")() })
			eventually(t, "deleted from the look-ups", func() bool { // the graph forgets it first
				_, ok := state.Pod("shop", "new")
				return !ok
			})
		})
	}
}

// After a gap that the server has compacted, objects that were deleted in it are
// removed.
func TestWatchAfterAGap(t *testing.T) {
	for name, watchList := range map[string]bool{"streamed": true, "listed": false} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t)
			s.watchList = watchList
			s.set("pods", boundPod("shop", "old", "worker", "db"))
			s.set("clusterroles", &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "old"}})
			live := startWatch(t, s, LiveOptions{})
			waitSynced(t, live)
			s.mu.Lock() // no watcher sees these changes
			delete(s.objects["pods"], "shop/old")
			delete(s.objects["clusterroles"], "old")
			s.mu.Unlock()
			s.compact()
			s.set("pods", boundPod("shop", "new", "worker", "other"))
			eventually(t, "the new pod", func() bool { return live.State().Graph.HasPath("worker", graph.Secret, "shop", "other") })
			eventually(t, "the deleted pod", func() bool { return !live.State().Graph.HasPath("worker", graph.Secret, "shop", "db") })
			eventually(t, "the deleted role", func() bool { return live.State().Counts()["ClusterRole"] == 0 })
		})
	}
}

// A missing right is reported once, regardless of retries. The kind is read as soon
// as the right is granted.
func TestWatchWithoutRights(t *testing.T) {
	for _, verb := range []string{"list", "watch"} {
		t.Run(verb, func(t *testing.T) {
			s := newStub(t)
			s.setAllowed(verb+" persistentvolumes", false)
			s.set("persistentvolumes", &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}})
			var mu sync.Mutex
			var reports []string
			live := startWatch(t, s, LiveOptions{MissingChanged: func(m Missing, missing bool) {
				mu.Lock()
				defer mu.Unlock()
				reports = append(reports, fmt.Sprint(m.Resource, " ", missing))
			}})
			waitSynced(t, live)
			eventually(t, "what is missing", func() bool { // the watch follows the list
				m := live.State().Missing()
				return len(m) == 1 && m[0].Resource.Resource == "persistentvolumes"
			})
			attempts := func() int {
				s.mu.Lock()
				defer s.mu.Unlock()
				n := 0
				for _, r := range s.requests {
					if strings.HasPrefix(r, "GET /api/v1/persistentvolumes?limit") {
						n++
					}
				}
				return n
			}
			eventually(t, "three attempts", func() bool { return attempts() >= 3 })
			s.setAllowed(verb+" persistentvolumes", true)
			eventually(t, "the right", func() bool { return len(live.State().Missing()) == 0 })
			eventually(t, "the volume", func() bool { return live.State().Counts()["PersistentVolume"] == 1 })
			mu.Lock()
			defer mu.Unlock()
			if want := []string{"persistentvolumes true", "persistentvolumes false"}; !slices.Equal(reports, want) {
				t.Errorf("reports are %q, want %q", reports, want)
			}
		})
	}
}

// A kind that the server starts to serve later is read.
func TestWatchOfAKindServedLater(t *testing.T) {
	s := newStub(t)
	s.unserve("resource.k8s.io/v1", "resourceslices")
	node := "worker"
	live := startWatch(t, s, LiveOptions{})
	waitSynced(t, live)
	s.mu.Lock()
	s.serve(schema.GroupVersion{Group: resourcev1.GroupName, Version: "v1beta1"}, kindResourceSlice)
	s.mu.Unlock()
	s.set("resourceslices", &resourcev1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"}, Spec: resourcev1beta1.ResourceSliceSpec{NodeName: node},
	})
	eventually(t, "the slice", func() bool { return live.State().Graph.HasPath(node, graph.ResourceSlice, "", "gpu") })
}

// When the context ends, the error names the pending resources.
func TestWaitSyncedNamesPendingResources(t *testing.T) {
	s := newStub(t)
	live := startWatch(t, s, LiveOptions{})
	waitSynced(t, live)
	if !live.Synced() {
		t.Error("not synced after WaitSynced")
	}
	unsynced := &Live{client: live.client, synced: make(chan struct{}), pending: map[kind]error{
		kindPod: nil, kindNode: fmt.Errorf("connection refused"),
	}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := unsynced.WaitSynced(ctx)
	want := "read cluster " + s.URL + ": context canceled while waiting for nodes (connection refused), pods"
	if err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}
