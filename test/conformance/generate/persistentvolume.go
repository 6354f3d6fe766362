package generate

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// persistentVolume draws a volume, claimed or not; several may be bound to one
// claim, and a claim may be one that no pod uses.
func (g *generator) persistentVolume(name string) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if chance(g.r, 85) {
		pv.Spec.ClaimRef = g.claimRef()
	}
	pv.Status.Phase = pick(g.r, []corev1.PersistentVolumePhase{corev1.VolumeBound, corev1.VolumeReleased, corev1.VolumeAvailable})
	pv.Spec.PersistentVolumeSource = g.persistentVolumeSource()
	return pv
}

// claimRef draws the claim that a volume is bound to: mostly one that a pod
// may mention. Its uid, and whether the claim exists, do not count.
func (g *generator) claimRef() *corev1.ObjectReference {
	ref := &corev1.ObjectReference{Namespace: pick(g.r, g.cluster.Namespaces), Name: g.name(), UID: "1"}
	if chance(g.r, 25) && len(g.cluster.Pods) > 0 {
		if pod := pick(g.r, g.cluster.Pods); len(pod.Spec.Volumes) > 0 {
			ref.Namespace, ref.Name = pod.Namespace, pod.Name+"-"+pick(g.r, pod.Spec.Volumes).Name
		}
	}
	if chance(g.r, 2) {
		ref.Namespace = ""
	}
	if chance(g.r, 2) {
		ref.Name = ""
	}
	return ref
}

// secretNamespace draws a namespace for a volume's secret: often none, which
// means the claim's for some sources and nowhere for others.
func (g *generator) secretNamespace() string {
	if chance(g.r, 40) {
		return ""
	}
	return pick(g.r, g.cluster.Namespaces)
}

func (g *generator) secretReference() *corev1.SecretReference {
	if chance(g.r, 15) {
		return nil
	}
	ref := &corev1.SecretReference{Namespace: g.secretNamespace(), Name: g.name()}
	if chance(g.r, 3) {
		ref.Name = ""
	}
	return ref
}

func (g *generator) persistentVolumeSource() corev1.PersistentVolumeSource {
	switch g.r.IntN(12) {
	case 0:
		return corev1.PersistentVolumeSource{AzureFile: g.azureFile()}
	case 1:
		return corev1.PersistentVolumeSource{CephFS: &corev1.CephFSPersistentVolumeSource{SecretRef: g.secretReference()}}
	case 2:
		return corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{SecretRef: g.secretReference()}}
	case 3:
		return corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "x/y", SecretRef: g.secretReference()}}
	case 4:
		return corev1.PersistentVolumeSource{RBD: &corev1.RBDPersistentVolumeSource{SecretRef: g.secretReference()}}
	case 5:
		return corev1.PersistentVolumeSource{ScaleIO: &corev1.ScaleIOPersistentVolumeSource{SecretRef: g.secretReference()}}
	case 6:
		return corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{SecretRef: g.secretReference()}}
	case 7:
		return corev1.PersistentVolumeSource{StorageOS: g.storageOS()}
	case 8:
		return g.plainPersistentVolumeSource()
	default:
		return corev1.PersistentVolumeSource{CSI: g.csi()}
	}
}

// azureFile draws the one source whose namespace is a pointer: nil and "" both
// mean the claim's.
func (g *generator) azureFile() *corev1.AzureFilePersistentVolumeSource {
	source := &corev1.AzureFilePersistentVolumeSource{ShareName: "s"}
	if ref := g.secretReference(); ref != nil {
		source.SecretName, source.SecretNamespace = ref.Name, &ref.Namespace
	}
	if chance(g.r, 30) {
		source.SecretNamespace = nil
	}
	return source
}

func (g *generator) storageOS() *corev1.StorageOSPersistentVolumeSource {
	source := &corev1.StorageOSPersistentVolumeSource{VolumeNamespace: pick(g.r, g.cluster.Namespaces)}
	if ref := g.secretReference(); ref != nil {
		source.SecretRef = &corev1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name}
	}
	return source
}

// csi draws the source with five secrets, of which the controller's two are
// none of a node's business.
func (g *generator) csi() *corev1.CSIPersistentVolumeSource {
	return &corev1.CSIPersistentVolumeSource{
		Driver:                     "csi.example.com",
		VolumeHandle:               g.name(),
		NodePublishSecretRef:       g.secretReference(),
		NodeStageSecretRef:         g.secretReference(),
		NodeExpandSecretRef:        g.secretReference(),
		ControllerPublishSecretRef: g.secretReference(),
		ControllerExpandSecretRef:  g.secretReference(),
	}
}

func (g *generator) plainPersistentVolumeSource() corev1.PersistentVolumeSource {
	switch g.r.IntN(3) {
	case 0:
		return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/" + g.name()}}
	case 1:
		namespace := pick(g.r, g.cluster.Namespaces)
		return corev1.PersistentVolumeSource{
			Glusterfs: &corev1.GlusterfsPersistentVolumeSource{EndpointsName: g.name(), EndpointsNamespace: &namespace},
		}
	default:
		return corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: g.name()}}
	}
}
