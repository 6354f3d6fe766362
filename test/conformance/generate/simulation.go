package generate

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// simulation changes a cluster: each step is one event.
type simulation struct {
	*generator
	current map[string]any
}

// step changes one object.
func (s *simulation) step() Event {
	e := s.event()
	if e.Deleted {
		delete(s.current, e.key())
	} else {
		s.current[e.key()] = e.Object
	}
	return e
}

func (s *simulation) event() Event {
	switch n := s.r.IntN(100); {
	case n < 60:
		return s.podEvent()
	case n < 80:
		return s.volumeEvent()
	case n < 87:
		return s.replace(s.volumeAttachment("csi-" + s.index(s.o.VolumeAttachments)))
	case n < 94:
		return s.replace(s.resourceSlice("slice-" + s.index(s.o.ResourceSlices)))
	default:
		return s.replace(s.podCertificateRequest(pick(s.r, s.cluster.Namespaces), "req-"+s.index(s.o.PodCertificateRequests)))
	}
}

// index draws the number of an object among about n.
func (s *simulation) index(n int) string { return strconv.Itoa(s.r.IntN(n/2 + 1)) }

// replace sets an object whether it exists or not, or deletes it. Deleting what
// does not exist happens too.
func (s *simulation) replace(object any) Event {
	e := Event{Object: object, Deleted: chance(s.r, 30)}
	if e.Deleted {
		if last, ok := s.current[e.key()]; ok {
			e.Object = last
		}
	}
	return e
}

func (s *simulation) volumeEvent() Event {
	pv := s.persistentVolume("pv-" + s.index(s.o.PersistentVolumes))
	last, ok := s.current[Event{Object: pv}.key()].(*corev1.PersistentVolume)
	if !ok || chance(s.r, 40) {
		return s.replace(pv)
	}
	changed := last.DeepCopy()
	switch s.r.IntN(4) {
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
func (s *simulation) podEvent() Event {
	namespace, name := s.podKey(s.r.IntN(s.o.Pods + 1))
	last, exists := s.current[Event{Object: podNamed(namespace, name)}.key()].(*corev1.Pod)
	switch n := s.r.IntN(100); {
	case exists && n < 25:
		return Event{Object: last, Deleted: true}
	case exists && n < 80:
		return Event{Object: s.changePod(last)}
	case !exists && n < 3:
		return Event{Object: podNamed(namespace, name), Deleted: true}
	}
	return Event{Object: s.addPod(namespace, name)}
}

func podNamed(namespace, name string) *corev1.Pod {
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, name
	return pod
}

// changePod draws one change of a pod, also ones that the API server would
// refuse but that a watch with a gap shows, such as a bound pod becoming
// unbound or moving to another node.
func (s *simulation) changePod(last *corev1.Pod) *corev1.Pod {
	b := &podBuilder{generator: s.generator, pod: last.DeepCopy()}
	b.mentions = append(b.mentions, s.cluster.mentions[last]...)
	switch s.r.IntN(10) {
	case 0:
		b.pod.Spec.NodeName = ""
	case 1:
		b.pod.Spec.NodeName = s.node()
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
	s.cluster.mentions[b.pod] = b.mentions
	return b.pod
}

// changeClaims replaces the statuses of the pod's claims.
func (b *podBuilder) changeClaims() {
	b.pod.Status.ResourceClaimStatuses = nil
	for _, claim := range b.pod.Spec.ResourceClaims {
		b.claimStatus(claim.Name)
	}
}
