package source

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/internal/testing/randomcluster"
)

// templated adds objects that are made from templates, as those of real clusters: pods of DaemonSets,
// StatefulSets and Deployments with their volumes and claims, and some that differ from their template.
func templated(t *testing.T, s *stubServer, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 3))
	for i := range 40 {
		name := fmt.Sprintf("web-%d", i)
		pod := filler{}.filled(kindPod).(*corev1.Pod)
		if random.IntN(2) == 0 {
			pod = boundPod("shop", name, "", "pull")
		}
		pod.Namespace, pod.Name, pod.Spec.NodeName = "shop", name, fmt.Sprintf("worker-%d", random.IntN(4))
		pod.UID = types.UID(fmt.Sprintf("7f0c5a4e-91d4-4c1e-9b2f-%012x", i))
		if random.IntN(3) > 0 {
			pod.Spec.ResourceClaims = nil
		}
		token := fmt.Sprintf("kube-api-access-%05x", random.Uint32N(1<<20))
		pod.Spec.Volumes = append(pod.Spec.Volumes,
			corev1.Volume{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}},
			}}},
			corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name},
			}},
		)
		for c := range pod.Spec.Containers {
			mounts := &pod.Spec.Containers[c].VolumeMounts
			*mounts = append(*mounts, corev1.VolumeMount{Name: token}, corev1.VolumeMount{Name: "data", ReadOnly: true})
		}
		switch random.IntN(6) {
		case 0:
			pod.Spec.ServiceAccountName = name
		case 1:
			pod.UID = "of another form"
		case 2:
			pod.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": pod.Spec.NodeName}
		case 3:
			own := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: "In", Values: []string{pod.Spec.NodeName}}
			pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchFields: []corev1.NodeSelectorRequirement{own},
				}}},
			}}
		case 4:
			pod.Spec.Volumes[0].Name = "quotes \" and \x02 marks"
		}
		s.set("pods", pod)
		meta := metav1.ObjectMeta{Namespace: "shop", Name: "data-" + name}
		s.set("persistentvolumeclaims", &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: []string{"", "pv-" + name}[random.IntN(2)],
		}})
		pv := filler{}.filled(kindPersistentVolume).(*corev1.PersistentVolume)
		if random.IntN(2) == 0 {
			pv = &corev1.PersistentVolume{}
			pv.Spec.AzureFile = &corev1.AzureFilePersistentVolumeSource{SecretName: "key", ShareName: "s"}
		}
		pv.Name, pv.Spec.ClaimRef = "pv-"+name, &corev1.ObjectReference{Namespace: "shop", Name: meta.Name}
		s.set("persistentvolumes", pv)
		s.set("volumeattachments", &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "csi-" + name}, Spec: storagev1.VolumeAttachmentSpec{NodeName: pod.Spec.NodeName},
		})
	}
}

// loadedForms returns the state of a snapshot, by its form.
func loadedForms(t *testing.T, state *State, opts FileOptions) (json, binary *State) {
	t.Helper()
	load := func(form SnapshotForm) *State {
		var b bytes.Buffer
		if err := WriteSnapshot(&b, state, form); err != nil {
			t.Fatal(err)
		}
		opts.Stdin = &b
		loaded, err := LoadFiles(t.Context(), []string{"-"}, opts)
		if err != nil {
			t.Fatal(err)
		}
		return loaded
	}
	return load(JSONSnapshot), load(BinarySnapshot)
}

func compareForms(t *testing.T, what string, state *State) {
	t.Helper()
	for _, inventory := range []bool{false, true} {
		json, binary := loadedForms(t, state, FileOptions{Inventory: inventory})
		if got, want := answers(binary), answers(json); got != want {
			t.Fatalf("%s: answers from the binary form\n%s\nfrom JSON\n%s", what, got, want)
		}
		if got, want := fmt.Sprint(binary.Counts(), binary.Warnings(), binary.Skipped()), fmt.Sprint(json.Counts(), json.Warnings(),
			json.Skipped()); got != want {
			t.Fatalf("%s: %s\nwant %s", what, got, want)
		}
		if !inventory {
			continue
		}
		if got, want := binary.Inventory, json.Inventory; !reflect.DeepEqual(got, want) {
			for i, pod := range want.Pods() {
				if other := got.Pods()[i]; !reflect.DeepEqual(pod, other) {
					t.Errorf("pod %s is\n%+v %+v\nwant\n%+v %+v", pod.Name, other, other.Template, pod, pod.Template)
				}
			}
			t.Fatalf("%s: the inventories differ", what)
		}
	}
	json, binary := loadedForms(t, state, FileOptions{Retain: true})
	if !bytes.Equal(takeSnapshot(t, binary), takeSnapshot(t, json)) {
		t.Fatalf("%s: the snapshots of the snapshots differ", what)
	}
}

// Both forms of a snapshot give the same state.
func TestFormsOfSnapshotsAreEqual(t *testing.T) {
	templates, clusters := uint64(4), uint64(60)
	if testing.Short() {
		templates, clusters = 1, 6
	}
	for seed := range templates {
		s := fullCluster(t)
		templated(t, s, seed)
		compareForms(t, fmt.Sprintf("templates %d", seed), list(t, s, LiveOptions{Retain: true}))
	}
	for seed := range clusters {
		var docs bytes.Buffer
		for _, o := range randomcluster.New(seed).Objects {
			docs.Write(withKind(t, o))
		}
		state, err := LoadFiles(t.Context(), []string{"-"}, FileOptions{Stdin: &docs, Retain: true})
		if err != nil {
			t.Fatal(err)
		}
		compareForms(t, fmt.Sprintf("cluster %d", seed), state)
	}
}

// withKind returns an object as JSON, with its kind; nothing if the kind is not kept.
func withKind(t *testing.T, o runtime.Object) []byte {
	t.Helper()
	for k := range kindCount {
		if reflect.TypeOf(newAPIObject(k)) == reflect.TypeOf(o) {
			text, err := encode(k, o.DeepCopyObject().(apiObject))
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
	return nil
}
