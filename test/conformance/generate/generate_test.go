package generate

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func TestSameSeedSameCluster(t *testing.T) {
	o := RandomOptions(7)
	if a, b := New(7, o), New(7, o); !equality.Semantic.DeepEqual(a.Objects(), b.Objects()) {
		t.Error("clusters of one seed differ")
	}
	if a, b := NewHistory(7, o, 300), NewHistory(7, o, 300); !equality.Semantic.DeepEqual(a.Events, b.Events) {
		t.Error("histories of one seed differ")
	}
	a, b := NewAsker(7, New(7, o)), NewAsker(7, New(7, o))
	for range 500 {
		if x, y := a.Next(), b.Next(); !reflect.DeepEqual(x, y) {
			t.Fatalf("questions of one seed differ:\n%s\n%s", &x, &y)
		}
	}
}

func TestSameSeedSameWrites(t *testing.T) {
	if a, b := NewState(7), NewState(7); !equality.Semantic.DeepEqual(a, b) {
		t.Error("states of one seed differ")
	}
	a, b := NewWriter(7, NewState(7)), NewWriter(7, NewState(7))
	for range 2000 {
		if x, y := a.Next(), b.Next(); !reflect.DeepEqual(x, y) {
			t.Fatalf("writes of one seed differ:\n%s\n%s", x, y)
		}
	}
	if a, b := NewTolerant(7), NewTolerant(7); !equality.Semantic.DeepEqual(a, b) {
		t.Error("pods of one seed differ")
	}
}

// TestWritesLeaveTheStateAlone holds because writes about a state are drawn one
// after the other, and authorizers read it in between.
func TestWritesLeaveTheStateAlone(t *testing.T) {
	s := NewState(7)
	w := NewWriter(7, s)
	for range 2000 {
		w.Next()
	}
	if !equality.Semantic.DeepEqual(s, NewState(7)) {
		t.Error("drawing writes has changed the state")
	}
}

func TestEveryWriteHasAnAim(t *testing.T) {
	aims, w := Aims(), NewWriter(7, NewState(7))
	for range 5000 {
		write := w.Next()
		if _, known := aims[write.Aim]; !known && write.Aim != "several at once" {
			t.Fatalf("%s: the aim is not among those that are counted", write)
		}
	}
}

// TestEveryVolumeSourceIsTried walks the type of the API: a kind of volume that
// comes with a new version is one that mirror pods are tried with.
func TestEveryVolumeSourceIsTried(t *testing.T) {
	tried := make(map[string]bool)
	for _, sources := range []map[string]corev1.VolumeSource{volumesWithoutReferences(), volumesWithReferences()} {
		for _, v := range sources {
			note(tried, "volume", reflect.ValueOf(v))
		}
	}
	for _, p := range projections() {
		note(tried, "projection", reflect.ValueOf(p))
		note(tried, "volume", reflect.ValueOf(projectedVolume(p)))
	}
	for of, kind := range map[string]reflect.Type{
		"volume": reflect.TypeFor[corev1.VolumeSource](), "projection": reflect.TypeFor[corev1.VolumeProjection](),
	} {
		for i := range kind.NumField() {
			if name := of + "." + kind.Field(i).Name; !tried[name] {
				t.Errorf("no mirror pod is tried with %s", name)
			}
		}
	}
}

// clusters are enough of them that everything that can occur does.
func clusters() []*Cluster {
	var all []*Cluster
	for seed := range uint64(40) {
		all = append(all, New(seed, RandomOptions(seed)))
	}
	return all
}

// TestEveryReferenceOccurs walks the types of the API: each field of a volume,
// a persistent volume or a pod's status that can name an object does so
// somewhere.
func TestEveryReferenceOccurs(t *testing.T) {
	set := make(map[string]bool)
	for _, c := range clusters() {
		for _, pod := range c.Pods {
			for _, v := range pod.Spec.Volumes {
				note(set, "volume", reflect.ValueOf(v.VolumeSource))
				if v.Projected != nil {
					for _, p := range v.Projected.Sources {
						note(set, "projection", reflect.ValueOf(p))
					}
				}
			}
			note(set, "status", reflect.ValueOf(pod.Status))
			noteContainers(set, pod)
		}
		for _, pv := range c.PersistentVolumes {
			note(set, "pv", reflect.ValueOf(pv.Spec.PersistentVolumeSource))
			if pv.Spec.CSI != nil {
				note(set, "csi", reflect.ValueOf(*pv.Spec.CSI))
			}
		}
	}
	for _, want := range []string{
		"volume.Secret", "volume.ConfigMap", "volume.Projected", "volume.PersistentVolumeClaim", "volume.Ephemeral",
		"volume.AzureFile", "volume.CephFS", "volume.Cinder", "volume.FlexVolume", "volume.RBD", "volume.ScaleIO",
		"volume.ISCSI", "volume.StorageOS", "volume.CSI", "volume.HostPath", "volume.EmptyDir",
		"projection.Secret", "projection.ConfigMap", "projection.ServiceAccountToken", "projection.ClusterTrustBundle",
		"status.ResourceClaimStatuses", "status.ExtendedResourceClaimStatus", "status.NodeAllocatableResourceClaimStatuses",
		"pv.AzureFile", "pv.CephFS", "pv.Cinder", "pv.FlexVolume", "pv.RBD", "pv.ScaleIO", "pv.ISCSI", "pv.StorageOS", "pv.CSI", "pv.Local",
		"csi.NodePublishSecretRef", "csi.NodeStageSecretRef", "csi.NodeExpandSecretRef",
		"csi.ControllerPublishSecretRef", "csi.ControllerExpandSecretRef",
		"init env", "init envFrom", "main env", "main envFrom", "ephemeral env", "ephemeral envFrom",
	} {
		if !set[want] {
			t.Errorf("%s never occurs", want)
		}
	}
}

// note records the fields of a struct that are set.
func note(set map[string]bool, of string, v reflect.Value) {
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			set[of+"."+v.Type().Field(i).Name] = true
		}
	}
}

func noteContainers(set map[string]bool, pod *corev1.Pod) {
	add := func(kind string, env []corev1.EnvVar, from []corev1.EnvFromSource) {
		set[kind+" env"] = set[kind+" env"] || len(env) > 0
		set[kind+" envFrom"] = set[kind+" envFrom"] || len(from) > 0
	}
	for _, c := range pod.Spec.InitContainers {
		add("init", c.Env, c.EnvFrom)
	}
	for _, c := range pod.Spec.Containers {
		add("main", c.Env, c.EnvFrom)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		add("ephemeral", c.Env, c.EnvFrom)
	}
}

func TestClustersAreConfusing(t *testing.T) {
	found := make(map[string]bool)
	for _, c := range clusters() {
		busy, namespaces, fanOut := make(map[string]bool), make(map[string]map[string]bool), make(map[Object]int)
		for _, pod := range c.Pods {
			busy[pod.Spec.NodeName] = true
			if namespaces[pod.Name] == nil {
				namespaces[pod.Name] = make(map[string]bool)
			}
			namespaces[pod.Name][pod.Namespace] = true
			_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
			if mirror && len(c.mentions[pod]) > 0 {
				found["a mirror pod that refers to objects"] = true
			}
			found["an unbound pod"] = found["an unbound pod"] || pod.Spec.NodeName == ""
			seen := make(map[Object]bool)
			for _, object := range c.mentions[pod] {
				found["an object mentioned twice by one pod"] = found["an object mentioned twice by one pod"] || seen[object]
				if !seen[object] {
					fanOut[object]++
				}
				seen[object] = true
			}
		}
		for _, node := range c.Nodes {
			found["a node without pods"] = found["a node without pods"] || !busy[node]
			found["a node whose name begins another's"] = found["a node whose name begins another's"] ||
				slices.ContainsFunc(c.Nodes, func(other string) bool { return other != node && strings.HasPrefix(other, node) })
		}
		for _, in := range namespaces {
			found["a name in many namespaces"] = found["a name in many namespaces"] || len(in) > 3
		}
		for _, pods := range fanOut {
			found["an object that more than 200 pods mention"] = found["an object that more than 200 pods mention"] || pods > 200
		}
	}
	for _, want := range []string{
		"a mirror pod that refers to objects", "an unbound pod", "an object mentioned twice by one pod", "a node without pods",
		"a node whose name begins another's", "a name in many namespaces", "an object that more than 200 pods mention",
	} {
		if !found[want] {
			t.Errorf("no cluster has %s", want)
		}
	}
}

func TestArrivalsKeepEachObjectsOrder(t *testing.T) {
	o, steps := RandomHistory(3)
	h := NewHistory(3, o, steps)
	want := h.State(h.Events).Objects()
	for name, events := range map[string][]Event{
		"shuffled": h.Shuffled(1), "small gaps": h.Compressed(1, 30), "big gaps": h.Compressed(1, 90),
	} {
		if got := h.State(events).Objects(); !equality.Semantic.DeepEqual(got, want) {
			t.Errorf("%s: the final state differs", name)
		}
	}
}

func TestGapsHideEvents(t *testing.T) {
	o, steps := RandomHistory(3)
	h := NewHistory(3, o, steps)
	if all, seen := len(h.Events), len(h.Compressed(1, 90)); seen >= all {
		t.Errorf("%d of %d events are seen through big gaps, want fewer", seen, all)
	}
}

func TestWhatIsMentionedIsAskedFor(t *testing.T) {
	for _, c := range clusters()[:5] {
		for object := range c.targets() {
			if !slices.ContainsFunc(Resources, func(kind Resource) bool { return kind.Resource == object }) {
				t.Errorf("objects of %s are mentioned but never asked for", object)
			}
		}
	}
}
