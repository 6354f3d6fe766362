package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// layout describes a cluster. Each pod mounts one secret, one configmap and one
// claim, which are its own or are shared by the pods of its namespace; with
// volumes, a bound persistent volume stands behind each claim.
type layout struct {
	nodes, namespaces, pods int
	shared                  bool
	volumes                 bool
}

// placement has the values of a pod that follow from its number.
type placement struct {
	node, namespace, name, owner int
}

func (l layout) place(i int) placement {
	p := placement{node: l.nodeOf(i), namespace: i * l.namespaces / l.pods, name: i, owner: i}
	if l.shared {
		p.owner = p.namespace
	}
	return p
}

// nodeOf spreads pods over nodes as a scheduler does: evenly, in no order.
func (l layout) nodeOf(i int) int {
	if l.pods == l.nodes {
		return i
	}
	return int(rand.NewPCG(1, uint64(i)).Uint64() % uint64(l.nodes))
}

// Names have the form and the length that they have in clusters. Each call
// returns a string of its own, as decoding does.
func nodeName(i int) string {
	return fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i>>16, i>>8&255, i&255)
}
func namespaceName(i int) string { return fmt.Sprintf("team-%03d-production", i) }
func podName(i int) string       { return fmt.Sprintf("service-%06d-6d4cf56db6-x%04x", i, i&0xffff) }
func accountName(i int) string   { return fmt.Sprintf("service-%06d", i) }
func secretName(i int) string    { return fmt.Sprintf("service-%06d-credentials", i) }
func configName(i int) string    { return fmt.Sprintf("service-%06d-config", i) }
func claimName(i int) string     { return fmt.Sprintf("data-service-%06d", i) }
func volumeName(i int) string    { return fmt.Sprintf("pvc-%08x-91d4-4c1e-9b2f-%012x", i, i) }

// pod returns the i-th pod.
func (l layout) pod(i int) *corev1.Pod {
	p := l.place(i)
	return newPod(p.node, namespaceName(p.namespace), podName(p.name), accountName(p.owner),
		secretVolume(secretName(p.owner)), configVolume(configName(p.owner)), claimVolume(claimName(p.owner)))
}

// claims is the number of claims, each of which has a volume if the layout has
// volumes.
func (l layout) claims() int {
	if l.shared {
		return l.namespaces
	}
	return l.pods
}

// volume returns the volume bound to the i-th claim.
func (l layout) volume(i int) *corev1.PersistentVolume {
	namespace := i
	if !l.shared {
		namespace = l.place(i).namespace
	}
	return newVolume(volumeName(i), namespaceName(namespace), claimName(i), nil)
}

func newPod(node int, namespace, name, account string, volumes ...corev1.Volume) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(strings.Clone(name))}}
	pod.Spec.NodeName = nodeName(node)
	pod.Spec.ServiceAccountName = account
	pod.Spec.Containers = []corev1.Container{{Name: strings.Clone("main")}}
	pod.Spec.Volumes = volumes
	return pod
}

func newVolume(name, namespace, claim string, secret *corev1.SecretReference) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: claim}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "disk.csi.example.com", NodePublishSecretRef: secret}
	return pv
}

func secretVolume(name string) corev1.Volume {
	return corev1.Volume{Name: strings.Clone("credentials"), VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: name},
	}}
}

func configVolume(name string) corev1.Volume {
	return corev1.Volume{Name: strings.Clone("config"), VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
	}}
}

func claimVolume(name string) corev1.Volume {
	return corev1.Volume{Name: strings.Clone("data"), VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}
}

// fill hands all objects of the layout to an implementation, each made just before
// and dropped right after.
func (l layout) fill(c implementation) {
	for i := range l.pods {
		c.pods.OnAdd(l.pod(i), true)
	}
	if l.volumes {
		for i := range l.claims() {
			c.volumes.OnAdd(l.volume(i), true)
		}
	}
}
