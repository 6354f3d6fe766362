package source

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/node-authorizer/node-authorizer/graph"
)

// tokenPod returns a pod with each kind of string that a record keeps.
func tokenPod(text string) *corev1.Pod {
	volume := func(source corev1.VolumeSource) corev1.Volume { return corev1.Volume{Name: text, VolumeSource: source} }
	pod := boundPod("shop", "api", "worker", "db")
	pod.UID = types.UID(text)
	pod.Spec.ServiceAccountName = text
	pod.Spec.Volumes = append(
		pod.Spec.Volumes,
		volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: text}},
			{PodCertificate: &corev1.PodCertificateProjection{SignerName: text}},
		}}}),
		volume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: text}}),
		volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: text}}),
		volume(corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: text}}),
		volume(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: text}}),
		volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}),
	)
	return pod
}

// API servers do not validate all strings of pods.
func TestPodsWithInvalidUTF8AreKept(t *testing.T) {
	s := newState()
	pod := tokenPod("x\xff")
	trim(pod, false)
	if err := s.applyObject(kindPod, pod, 0); err != nil {
		t.Fatal(err)
	}
	kept, ok := s.Pod("shop", "api")
	if !ok || kept.Spec.NodeName != "worker" {
		t.Fatalf("the pod is %v", kept)
	}
	for _, v := range kept.Spec.Volumes {
		if v.Projected != nil && v.Projected.Sources[0].ServiceAccountToken.Audience != "x\uFFFD" {
			t.Errorf("the audience is %q", v.Projected.Sources[0].ServiceAccountToken.Audience)
		}
	}
	if !s.Graph.HasPath("worker", graph.Secret, "shop", "db") {
		t.Error("the pod is not in the graph")
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	volume.Spec.AWSElasticBlockStore = &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "x\xff"}
	if err := s.applyObject(kindPersistentVolume, volume, 0); err != nil {
		t.Fatal(err)
	}
	if kept, ok := s.PersistentVolume("pv"); !ok || kept.Spec.AWSElasticBlockStore == nil {
		t.Errorf("the volume is %v", kept)
	}
}

// FuzzRecord adds and removes pods with arbitrary strings.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{
		"", "x\xff", "\x00", "\ud7ff", "\"\\", strings.Repeat("\xc0", 300), "0b2f3a5e-5cd6-4a7b-8d5b-1f6a3f1c9e77",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := newState()
		pod := tokenPod(text)
		volumes := len(pod.Spec.Volumes)
		trim(pod, false)
		if err := s.applyObject(kindPod, pod, 0); err != nil {
			t.Fatal(err)
		}
		kept, ok := s.Pod("shop", "api")
		if !ok || len(kept.Spec.Volumes) != volumes {
			t.Fatalf("kept %v with %d volumes, want %d", ok, len(kept.Spec.Volumes), volumes)
		}
		s.remove(kindPod, "shop", "api")
		if s.Graph.HasPath("worker", graph.Secret, "shop", "db") {
			t.Error("the pod's relations stay")
		}
	})
}

// sendEvent sends one event through the listWatcher of pods and returns the event
// that the reflector gets.
func sendEvent(t *testing.T, live *Live, event watch.Event) watch.Event {
	t.Helper()
	e, err := live.client.endpoint(kindPod, "v1")
	if err != nil {
		t.Fatal(err)
	}
	server := watch.NewFake()
	w := &applyingWatch{
		lw:     &listWatcher{live: live, epoch: live.currentEpoch(), endpoint: e, stop: func() {}},
		server: server, events: make(chan watch.Event), done: make(chan struct{}),
	}
	go w.run()
	defer w.Stop()
	server.Action(event.Type, event.Object)
	return <-w.ResultChan()
}

// An event that cannot be applied ends the watch. The error is reported until the
// kind has been listed again.
func TestAnEventThatCannotBeAppliedEndsTheWatch(t *testing.T) {
	s := newStub(t)
	live := startWatch(t, s, LiveOptions{})
	waitSynced(t, live)
	eventually(t, "pods are synced", func() bool { return statusOf(t, live, "pods").Following == Followed })
	live.Stop() // so that its own watch changes nothing
	before := statusOf(t, live, "pods").Errors
	if got := sendEvent(t, live, watch.Event{Type: watch.Modified, Object: &nameless{}}); got.Type != watch.Error {
		t.Errorf("the reflector gets %v", got)
	}
	if w := statusOf(t, live, "pods"); w.Following != Reading || w.Errors != before+1 || w.Err == nil {
		t.Errorf("pods are %+v", w)
	}
}

// nameless is an object that has no metadata.
type nameless struct{ metav1.TypeMeta }

func (n *nameless) DeepCopyObject() runtime.Object { return n }

// An object whose record cannot be encoded does not end the watch.
func TestAnUnkeptObjectDoesNotEndTheWatch(t *testing.T) {
	live := startWatch(t, newStub(t), LiveOptions{})
	waitSynced(t, live)
	live.Stop() // so that its own watch changes nothing
	e, err := live.client.endpoint(kindPod, "v1")
	if err != nil {
		t.Fatal(err)
	}
	lw := &listWatcher{live: live, epoch: live.currentEpoch(), endpoint: e, stop: func() {}}
	before := statusOf(t, live, "pods")
	if err := lw.skipUnkept(&unkeptError{errors.New("keep Pod shop/api: no")}); err != nil {
		t.Errorf("skipUnkept: %v", err)
	}
	if after := statusOf(t, live, "pods"); after.Errors != before.Errors+1 || after.Following != before.Following {
		t.Errorf("pods are %+v, were %+v", after, before)
	}
	broken := errors.New("broken")
	if err := lw.skipUnkept(broken); !errors.Is(err, broken) {
		t.Errorf("skipUnkept: %v", err)
	}
}
