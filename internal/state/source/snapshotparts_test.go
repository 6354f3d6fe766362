package source

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/testing/randomcluster"
)

// templated adds objects that are made from templates, as in real clusters: pods of DaemonSets,
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

// loadSnapshot reads a snapshot of a state from a file.
func loadSnapshot(t *testing.T, state *State, opts FileOptions) *State {
	t.Helper()
	var b bytes.Buffer
	if err := WriteSnapshot(&b, state); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.snapshot")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded, err := LoadFiles(t.Context(), []string{path}, opts)
	if err != nil {
		t.Fatal(err)
	}
	if many := opts.PartsAbove > 0 && state.Counts()["Pod"] > opts.PartsAbove; loaded.Partial() != (opts.Parts || many) {
		t.Fatalf("the state is partial: %t", loaded.Partial())
	}
	return loaded
}

// comparePartsOfFile compares a snapshot that is read in parts, by node and by name and at last all of it, with
// the whole.
func comparePartsOfFile(t *testing.T, what string, state *State) {
	t.Helper()
	whole, parts := loadSnapshot(t, state, FileOptions{}), loadSnapshot(t, state, FileOptions{Parts: true})
	nodes := parts.NodesOfFile()
	slices.Sort(nodes)
	for _, node := range slices.Compact(nodes) {
		if !whole.KnowsNode(node) {
			t.Fatalf("%s: the whole does not know node %s", what, node)
		}
		one := loadSnapshot(t, state, FileOptions{Parts: true})
		if err := one.Read(Part{Kinds: AllKinds(), Node: node}); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []graph.Kind{graph.Pod, graph.ConfigMap, graph.VolumeAttachment} {
			if got, want := one.Graph.Objects(node, kind), whole.Graph.Objects(node, kind); !slices.Equal(got, want) {
				t.Fatalf("%s: node %s has the objects of kind %s %v, want %v", what, node, kind, got, want)
			}
		}
	}
	for _, key := range whole.keys(kindPod) {
		got, found := parts.Pod(key.namespace.Value(), key.name)
		if want, _ := whole.Pod(key.namespace.Value(), key.name); !found || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: pod %s is %v, want %v", what, key.name, got, want)
		}
	}
	if err := parts.ReadAll(); err != nil {
		t.Fatal(err)
	}
	if got, want := answers(parts), answers(whole); got != want {
		t.Fatalf("%s: answers of all parts\n%s\nof the whole\n%s", what, got, want)
	}
	if got, want := fmt.Sprint(parts.Counts(), parts.Warnings(), parts.Missing()), fmt.Sprint(whole.Counts(), whole.Warnings(),
		whole.Missing()); got != want {
		t.Fatalf("%s: %s\nwant %s", what, got, want)
	}
}

func TestPartsOfASnapshotAreItsWhole(t *testing.T) {
	templates, clusters := uint64(2), uint64(30)
	if testing.Short() {
		templates, clusters = 1, 6
	}
	for seed := range templates {
		s := fullCluster(t)
		templated(t, s, seed)
		comparePartsOfFile(t, fmt.Sprintf("templates %d", seed), list(t, s, LiveOptions{Retain: true}))
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
		comparePartsOfFile(t, fmt.Sprintf("cluster %d", seed), state)
	}
}

// A snapshot of more pods than wanted is read in parts, and without an inventory.
func TestPartsAbove(t *testing.T) {
	state := list(t, fullCluster(t), LiveOptions{Retain: true})
	if loadSnapshot(t, state, FileOptions{PartsAbove: 100, Inventory: true}).Inventory == nil {
		t.Error("of few pods there is no inventory")
	}
	if loadSnapshot(t, state, FileOptions{PartsAbove: 10, Inventory: true}).Inventory != nil {
		t.Error("of many pods there is an inventory")
	}
}

// A part that is damaged is an error that names the file, the kind and the place.
func TestDamagedPart(t *testing.T) {
	var b bytes.Buffer
	if err := WriteSnapshot(&b, list(t, fullCluster(t), LiveOptions{Retain: true})); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.snapshot")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	state, err := LoadFiles(t.Context(), []string{path}, FileOptions{Parts: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), b.Len()), 0o600); err != nil {
		t.Fatal(err)
	}
	err = state.Read(Part{Kinds: Pods, Node: "worker-1"})
	if err == nil || !strings.Contains(err.Error(), path+": snapshot is damaged: objects of kind Pod in bytes ") {
		t.Errorf("error is %v", err)
	}
}

// withKind returns an object as JSON, with its kind; nothing if the kind is not kept.
func withKind(t *testing.T, o runtime.Object) []byte {
	t.Helper()
	for k := range kindCount {
		if reflect.TypeOf(k.describe().empty()) == reflect.TypeOf(o) {
			text, err := encode(k, o.DeepCopyObject().(apiObject))
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
	}
	return nil
}
