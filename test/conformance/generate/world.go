package generate

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// world lives: each step is one event.
type world struct {
	*generator
	current map[string]any
}

// step changes one object.
func (w *world) step() Event {
	e := w.event()
	if e.Deleted {
		delete(w.current, e.key())
	} else {
		w.current[e.key()] = e.Object
	}
	return e
}

func (w *world) event() Event {
	switch n := w.r.IntN(100); {
	case n < 60:
		return w.podEvent()
	case n < 80:
		return w.volumeEvent()
	case n < 87:
		return w.replace(w.volumeAttachment("csi-" + w.index(w.o.VolumeAttachments)))
	case n < 94:
		return w.replace(w.resourceSlice("slice-" + w.index(w.o.ResourceSlices)))
	default:
		return w.replace(w.podCertificateRequest(pick(w.r, w.cluster.Namespaces), "req-"+w.index(w.o.PodCertificateRequests)))
	}
}

// index draws the number of an object among about n.
func (w *world) index(n int) string { return strconv.Itoa(w.r.IntN(n/2 + 1)) }

// replace sets an object whether it exists or not, or deletes it. Deleting what
// does not exist happens too.
func (w *world) replace(object any) Event {
	e := Event{Object: object, Deleted: chance(w.r, 30)}
	if e.Deleted {
		if last, ok := w.current[e.key()]; ok {
			e.Object = last
		}
	}
	return e
}

func (w *world) volumeEvent() Event {
	pv := w.persistentVolume("pv-" + w.index(w.o.PersistentVolumes))
	last, ok := w.current[Event{Object: pv}.key()].(*corev1.PersistentVolume)
	if !ok || chance(w.r, 40) {
		return w.replace(pv)
	}
	changed := last.DeepCopy()
	switch w.r.IntN(4) {
	case 0:
		changed.Spec.ClaimRef = pv.Spec.ClaimRef
	case 1:
		changed.Spec.ClaimRef = nil
	case 2:
		changed.Spec.PersistentVolumeSource = pv.Spec.PersistentVolumeSource
	default: // nothing that counts
		changed.Labels = map[string]string{"seen": "yes"}
	}
	return Event{Object: changed}
}

// podEvent creates, re-creates, changes or deletes a pod.
func (w *world) podEvent() Event {
	namespace, name := w.podKey(w.r.IntN(w.o.Pods + 1))
	last, exists := w.current[Event{Object: podNamed(namespace, name)}.key()].(*corev1.Pod)
	switch n := w.r.IntN(100); {
	case exists && n < 25:
		return Event{Object: last, Deleted: true}
	case exists && n < 80:
		return Event{Object: w.changePod(last)}
	case !exists && n < 3:
		return Event{Object: podNamed(namespace, name), Deleted: true}
	}
	return Event{Object: w.addPod(namespace, name)}
}

func podNamed(namespace, name string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, name
	return pod
}

// changePod draws one change of a pod, also ones that the API server would
// refuse but that a watch with a gap shows, such as a bound pod becoming
// unbound or moving to another node.
func (w *world) changePod(last *corev1.Pod) *corev1.Pod {
	b := &podBuilder{generator: w.generator, pod: last.DeepCopy()}
	b.mentions = append(b.mentions, w.cluster.mentions[last]...)
	switch w.r.IntN(10) {
	case 0:
		b.pod.Spec.NodeName = ""
	case 1:
		b.pod.Spec.NodeName = w.node()
	case 2:
		b.ephemeralContainer()
	case 3:
		b.changeClaims()
	case 4:
		b.extendedClaim()
	case 5:
		b.pod.Status.ExtendedResourceClaimStatus = nil
	case 6:
		b.makeMirror()
	case 7:
		b.pod.Annotations = nil
	case 8:
		b.pod.Status.Phase = corev1.PodSucceeded
	default:
		b.pod.Labels = map[string]string{"seen": "yes"}
	}
	w.cluster.mentions[b.pod] = b.mentions
	return b.pod
}

// changeClaims replaces the statuses of the pod's claims.
func (b *podBuilder) changeClaims() {
	b.pod.Status.ResourceClaimStatuses = nil
	for _, claim := range b.pod.Spec.ResourceClaims {
		b.claimStatus(claim.Name)
	}
}
