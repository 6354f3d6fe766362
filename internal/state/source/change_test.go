package source

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/graph"
)

func TestListenersGetTheNodeOfTheObject(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "api"}
	node := "worker"
	for _, tc := range []struct {
		rule   string
		kind   kind
		object apiObject
		want   []string
	}{
		{"a bound pod concerns its node", kindPod, boundPod("shop", "api", node, "db"), []string{node}},
		{"a pod that is bound to no node concerns none", kindPod, boundPod("shop", "api", "", "db"), nil},
		{"a node concerns itself", kindNode, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, []string{node}},
		{"an attachment concerns its node", kindVolumeAttachment, &storagev1.VolumeAttachment{
			ObjectMeta: meta, Spec: storagev1.VolumeAttachmentSpec{NodeName: node},
		}, []string{node}},
		{"a slice concerns its node", kindResourceSlice, &resourcev1.ResourceSlice{
			ObjectMeta: meta, Spec: resourcev1.ResourceSliceSpec{NodeName: &node},
		}, []string{node}},
		{"a slice that many nodes reach concerns none", kindResourceSlice, &resourcev1.ResourceSlice{ObjectMeta: meta}, nil},
		{"a certificate request concerns its node", kindPodCertificateRequest, &certificatesv1.PodCertificateRequest{
			ObjectMeta: meta, Spec: certificatesv1.PodCertificateRequestSpec{NodeName: "worker"},
		}, []string{node}},
		{"a volume could concern any node", kindPersistentVolume, &corev1.PersistentVolume{ObjectMeta: meta}, []string{""}},
		{"a claim could concern any node", kindPersistentVolumeClaim, &corev1.PersistentVolumeClaim{ObjectMeta: meta}, []string{""}},
		{"a service account could concern any node", kindServiceAccount, &corev1.ServiceAccount{ObjectMeta: meta}, []string{""}},
		{"a driver could concern any node", kindCSIDriver, &storagev1.CSIDriver{ObjectMeta: meta}, []string{""}},
		{"roles concern none", kindClusterRole, &rbacv1.ClusterRole{ObjectMeta: meta}, nil},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := newState()
			var got []string
			defer s.OnChange(func(node string) { got = append(got, node) })()
			if _, err := s.set(tc.kind, tc.object, 0); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("called with %q, want %q", got, tc.want)
			}
		})
	}
}

// When a listener is called, the state has the record and the relation.
func TestListenersAreCalledAfterTheStateShowsTheChange(t *testing.T) {
	s := newState()
	calls := 0
	stop := s.OnChange(func(node string) {
		calls++
		if _, ok := s.Pod("shop", "api"); !ok || !s.Graph.HasPath(node, graph.Secret, "shop", "db") {
			t.Error("called before the state showed the change")
		}
	})
	pod := boundPod("shop", "api", "worker", "db")
	if _, err := s.set(kindPod, pod, 0); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := s.set(kindPod, pod, 0); err != nil {
		t.Fatal(err)
	}
	if calls != 1 {
		t.Errorf("%d calls, want one before stop", calls)
	}
}

// The record of a pod exists as long as its relations.
func TestRecordsOutlastRelations(t *testing.T) {
	const pods = 3000
	s := newState()
	name := func(i int) string { return fmt.Sprintf("pod-%d", i) }
	related := func(i int) bool { return s.Graph.HasPath("worker", graph.Pod, "shop", name(i)) }
	recorded := func(i int) bool { _, ok := s.Pod("shop", name(i)); return ok }

	var all sync.WaitGroup
	all.Go(func() {
		for i := range pods {
			if _, err := s.set(kindPod, boundPod("shop", name(i), "worker", "db"), 0); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range pods {
		for !related(i) {
			runtime.Gosched()
		}
		if !recorded(i) {
			t.Fatalf("%s is related before it is recorded", name(i))
		}
	}
	all.Wait()
	all.Go(func() {
		for i := range pods {
			s.remove(kindPod, "shop", name(i))
		}
	})
	for i := range pods {
		for recorded(i) {
			runtime.Gosched()
		}
		if related(i) {
			t.Fatalf("%s is related after its record was removed", name(i))
		}
	}
	all.Wait()
}

func TestListenersMayBeAddedAndRemovedDuringChanges(t *testing.T) {
	s := newState()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				s.OnChange(func(string) {})()
			}
		})
		all.Go(func() {
			for range 200 {
				if _, err := s.set(kindPod, boundPod("shop", "api", "worker", "db"), 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if left := s.listeners.list.Load(); len(*left) != 0 {
		t.Errorf("%d listeners are left", len(*left))
	}
}

func TestKnownNodesHaveAnObjectOrARelation(t *testing.T) {
	s := newState()
	for k, o := range map[kind]apiObject{
		kindNode: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "with-object"}},
		kindPod:  boundPod("shop", "api", "with-pod", "db"),
	} {
		if _, err := s.set(k, o, 0); err != nil {
			t.Fatal(err)
		}
	}
	for node, want := range map[string]bool{"with-object": true, "with-pod": true, "unknown": false} {
		if got := s.KnowsNode(node); got != want {
			t.Errorf("knows %s: %v, want %v", node, got, want)
		}
	}
}
