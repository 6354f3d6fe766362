package generate

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podBuilder fills one pod and notes every object that it mentions.
type podBuilder struct {
	*generator
	pod      *corev1.Pod
	mentions []Object
}

// pod draws a pod: bound or not, mirror or not, in any phase.
func (g *generator) pod(namespace, name string) (*corev1.Pod, []Object) {
	b := &podBuilder{generator: g, pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace,
		Name:      name,
		UID:       types.UID(strconv.FormatUint(g.r.Uint64(), 16)),
	}}}
	b.place()
	b.accounts()
	b.containers()
	b.volumes()
	b.resourceClaims()
	return b.pod, b.mentions
}

// reference draws the name of an object of the pod's namespace. Now and then it
// is empty, as the API allows in most references.
func (b *podBuilder) reference(resource string) string {
	if chance(b.r, 3) {
		return ""
	}
	name := b.name()
	b.mention(resource, name)
	return name
}

func (b *podBuilder) mention(resource, name string) {
	b.mentions = append(b.mentions, Object{Resource: resource, Namespace: b.pod.Namespace, Name: name})
}

// place binds the pod or does not, and gives it a phase. Being nominated for a
// node is not being bound to it.
func (b *podBuilder) place() {
	if chance(b.r, 88) {
		b.pod.Spec.NodeName = b.node()
	}
	if chance(b.r, 10) {
		b.pod.Status.NominatedNodeName = b.node()
	}
	if chance(b.r, 8) {
		b.makeMirror()
	}
	b.pod.Status.Phase = pick(b.r, []corev1.PodPhase{
		corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown,
	})
	if chance(b.r, 5) {
		now := metav1.Unix(1700000000, 0)
		b.pod.DeletionTimestamp = &now
	}
}

// makeMirror sets the mirror annotation: its presence counts, its value does not.
func (b *podBuilder) makeMirror() {
	b.pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: pick(b.r, []string{"", "false", "6c9d"})}
}

// accounts sets the service account and the image pull secrets. The deprecated
// field serviceAccount does not count.
func (b *podBuilder) accounts() {
	if chance(b.r, 85) {
		b.pod.Spec.ServiceAccountName = b.reference("serviceaccounts")
	}
	if chance(b.r, 10) {
		b.pod.Spec.DeprecatedServiceAccount = b.name()
		b.mention("serviceaccounts", b.pod.Spec.DeprecatedServiceAccount)
	}
	for chance(b.r, 30) {
		b.pod.Spec.ImagePullSecrets = append(b.pod.Spec.ImagePullSecrets,
			corev1.LocalObjectReference{Name: b.reference("secrets")})
	}
}
