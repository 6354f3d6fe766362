package graph_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/graph"
)

// model is a naive implementation of the graph: a set of objects, from which every
// answer is computed.
type model struct {
	pods        map[string]*corev1.Pod
	volumes     map[string]*corev1.PersistentVolume
	attachments map[string]string
	slices      map[string]string
	requests    map[string]string
}

func newModel() *model {
	return &model{
		map[string]*corev1.Pod{},
		map[string]*corev1.PersistentVolume{},
		map[string]string{},
		map[string]string{},
		map[string]string{},
	}
}

type relation struct {
	node string
	kind graph.Kind
	key  string // namespace/name
}

func (m *model) relations() map[relation]bool {
	related := map[relation]bool{}
	for key, pod := range m.pods {
		m.podRelations(key, pod, related)
	}
	for _, pv := range m.volumes {
		claim := pv.Spec.ClaimRef
		if claim == nil {
			continue
		}
		for r := range maps.Clone(related) {
			if r.kind != graph.PersistentVolumeClaim || r.key != claim.Namespace+"/"+claim.Name {
				continue
			}
			related[relation{r.node, graph.PersistentVolume, "/" + pv.Name}] = true
			if csi := pv.Spec.CSI; csi != nil {
				for _, ref := range []*corev1.SecretReference{csi.NodeStageSecretRef, csi.NodePublishSecretRef} {
					if ref != nil {
						related[relation{r.node, graph.Secret, ref.Namespace + "/" + ref.Name}] = true
					}
				}
			}
		}
	}
	for kind, objects := range map[graph.Kind]map[string]string{
		graph.VolumeAttachment: m.attachments, graph.ResourceSlice: m.slices, graph.PodCertificateRequest: m.requests,
	} {
		for key, node := range objects {
			if node != "" {
				related[relation{node, kind, key}] = true
			}
		}
	}
	return related
}

func (m *model) podRelations(key string, pod *corev1.Pod, related map[relation]bool) {
	node := pod.Spec.NodeName
	if node == "" {
		return
	}
	add := func(kind graph.Kind, name string) {
		if name != "" {
			related[relation{node, kind, pod.Namespace + "/" + name}] = true
		}
	}
	related[relation{node, graph.Pod, key}] = true
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return
	}
	add(graph.ServiceAccount, pod.Spec.ServiceAccountName)
	for _, ref := range pod.Spec.ImagePullSecrets {
		add(graph.Secret, ref.Name)
	}
	for _, c := range pod.Spec.Containers {
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil {
				add(graph.Secret, from.SecretRef.Name)
			}
			if from.ConfigMapRef != nil {
				add(graph.ConfigMap, from.ConfigMapRef.Name)
			}
		}
	}
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Secret != nil:
			add(graph.Secret, v.Secret.SecretName)
		case v.PersistentVolumeClaim != nil:
			add(graph.PersistentVolumeClaim, v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			add(graph.PersistentVolumeClaim, pod.Name+"-"+v.Name)
		}
	}
}

// driver turns bytes into changes of a graph and a model. It uses few names, so that
// objects match often.
type driver struct {
	data  []byte
	graph *graph.Graph
	model *model
}

func (d *driver) next(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	b := int(d.data[0])
	d.data = d.data[1:]
	return b % n
}

func (d *driver) name(prefix string, n int) string { return fmt.Sprint(prefix, d.next(n)) }
func (d *driver) namespace() string                { return d.name("ns", 2) }

func (d *driver) node() string {
	if i := d.next(6); i > 0 {
		return fmt.Sprint("node", i)
	}
	return ""
}

func (d *driver) step() {
	switch d.next(10) {
	case 0, 1, 2:
		pod := d.pod()
		d.graph.SetPod(pod)
		d.model.pods[pod.Namespace+"/"+pod.Name] = pod
	case 3:
		ns, name := d.namespace(), d.name("pod", 5)
		d.graph.DeletePod(ns, name)
		delete(d.model.pods, ns+"/"+name)
	case 4, 5:
		pv := d.volume()
		d.graph.SetPersistentVolume(pv)
		d.model.volumes[pv.Name] = pv
	case 6:
		name := d.name("pv", 3)
		d.graph.DeletePersistentVolume(name)
		delete(d.model.volumes, name)
	case 7:
		name, node := d.name("va", 2), d.node()
		d.graph.SetVolumeAttachment(&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{NodeName: node},
		})
		d.model.attachments["/"+name] = node
	case 8:
		name, node := d.name("slice", 2), d.node()
		d.graph.SetResourceSlice(&resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{NodeName: &node},
		})
		d.model.slices["/"+name] = node
	case 9:
		ns, name, node := d.namespace(), d.name("pcr", 2), d.node()
		d.graph.SetPodCertificateRequest(&certificatesv1.PodCertificateRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name},
			Spec:       certificatesv1.PodCertificateRequestSpec{NodeName: types.NodeName(node)},
		})
		d.model.requests[ns+"/"+name] = node
	}
}

func (d *driver) pod() *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace(), Name: d.name("pod", 5)}}
	pod.Spec.NodeName = d.node()
	if d.next(8) == 1 {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
	}
	pod.Spec.ServiceAccountName = d.name("sa", 2)
	container := corev1.Container{Name: d.name("c", 3)}
	for range d.next(4) {
		container.EnvFrom = append(container.EnvFrom,
			fromSecret(d.name("secret", 4)), fromConfigMap(d.name("config", 3)))
	}
	pod.Spec.Containers = []corev1.Container{container}
	for range d.next(4) {
		v := corev1.Volume{Name: d.name("v", 3)}
		switch d.next(3) {
		case 0:
			v.Secret = &corev1.SecretVolumeSource{SecretName: d.name("secret", 4)}
		case 1:
			v.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: d.name("claim", 3)}
		case 2:
			v.Ephemeral = &corev1.EphemeralVolumeSource{}
		}
		pod.Spec.Volumes = append(pod.Spec.Volumes, v)
	}
	return pod
}

func (d *driver) volume() *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: d.name("pv", 3)}}
	if d.next(5) > 0 {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: d.namespace(), Name: d.name("claim", 3)}
	}
	csi := &corev1.CSIPersistentVolumeSource{ControllerPublishSecretRef: &corev1.SecretReference{Namespace: "ns0", Name: "controller-only"}}
	if d.next(3) > 0 {
		csi.NodeStageSecretRef = &corev1.SecretReference{Namespace: d.namespace(), Name: d.name("secret", 4)}
	}
	if d.next(3) > 0 {
		csi.NodePublishSecretRef = &corev1.SecretReference{Namespace: d.namespace(), Name: d.name("secret", 4)}
	}
	pv.Spec.CSI = csi
	return pv
}

// compare compares every answer about every known name.
func (d *driver) compare(t *testing.T) {
	t.Helper()
	want := d.model.relations()
	for i := 1; i < 6; i++ {
		node := fmt.Sprint("node", i)
		got := map[relation]bool{}
		for _, r := range d.graph.Reach(node) {
			key := relation{node, r.Kind, r.Namespace + "/" + r.Name}
			got[key] = true
			if !d.graph.HasPath(node, r.Kind, r.Namespace, r.Name) {
				t.Fatalf("%v is in Reach but has no path", key)
			}
			if last := r.Paths[0][len(r.Paths[0])-1].To; last.Kind != "Node" || last.Name != node {
				t.Fatalf("path of %v ends at %v", key, last)
			}
			paths := d.graph.Paths(node, r.Kind, r.Namespace, r.Name)
			if !reflect.DeepEqual(paths, r.Paths) || !reflect.DeepEqual(paths, d.graph.PathsByNode(r.Kind, r.Namespace, r.Name)[node]) {
				t.Fatalf("%v has different paths in Paths, Reach and PathsByNode", key)
			}
			if !slices.Contains(d.graph.NodesReaching(r.Kind, r.Namespace, r.Name), node) {
				t.Fatalf("NodesReaching %v lacks the node", key)
			}
		}
		for r := range want {
			if r.node == node && !got[r] {
				t.Fatalf("missing relation %v", r)
			}
		}
		for r := range got {
			if !want[r] {
				t.Fatalf("relation %v should not be", r)
			}
		}
	}
	d.compareEveryName(t, want)
}

func (d *driver) compareEveryName(t *testing.T, want map[relation]bool) {
	t.Helper()
	for i := range 6 {
		node := fmt.Sprint("node", i)
		for _, ns := range []string{"ns0", "ns1"} {
			for n := range 5 {
				for kind, prefix := range map[graph.Kind]string{
					graph.Pod: "pod", graph.Secret: "secret", graph.ConfigMap: "config", graph.ServiceAccount: "sa",
					graph.PersistentVolumeClaim: "claim", graph.PodCertificateRequest: "pcr",
				} {
					name := fmt.Sprint(prefix, n)
					if got := d.graph.HasPath(node, kind, ns, name); got != want[relation{node, kind, ns + "/" + name}] {
						t.Fatalf("HasPath(%s, %s, %s, %s) = %v", node, kind, ns, name, got)
					}
				}
			}
		}
		if d.graph.HasPath(node, graph.Secret, "ns0", "controller-only") {
			t.Fatal("a secret that only controllers use is reachable")
		}
	}
}

func run(t *testing.T, data []byte) {
	t.Helper()
	d := &driver{data: data, graph: graph.New(), model: newModel()}
	for steps := 0; len(d.data) > 0; steps++ {
		d.step()
		if steps%8 == 0 {
			d.compare(t)
		}
	}
	d.compare(t)
	for key, pod := range d.model.pods {
		d.graph.DeletePod(pod.Namespace, pod.Name)
		delete(d.model.pods, key)
	}
	d.compare(t)
	for name := range d.model.volumes {
		d.graph.DeletePersistentVolume(name)
	}
	for i := range 2 {
		d.graph.DeleteVolumeAttachment(fmt.Sprint("va", i))
		d.graph.DeleteResourceSlice(fmt.Sprint("slice", i))
		d.graph.DeletePodCertificateRequest("ns0", fmt.Sprint("pcr", i))
		d.graph.DeletePodCertificateRequest("ns1", fmt.Sprint("pcr", i))
	}
	if stats := d.graph.Stats(); len(stats.Vertices) != 0 || stats.Links != 0 {
		t.Fatalf("an emptied graph still has %v", stats)
	}
}
