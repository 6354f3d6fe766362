package source

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// volume keeps a volume that refers to objects, that brings tokens or certificates, or that a CSI driver may serve; for an
// inventory also the folders of the host.
func (t *podTrimmer) volume(v *corev1.Volume) (corev1.Volume, bool) {
	source, ok := trimVolumeSource(&v.VolumeSource, t.forInventory)
	if t.forInventory && v.HostPath != nil {
		source.HostPath, ok = &corev1.HostPathVolumeSource{}, true // levels of Pod Security refuse one that nothing mounts, too
		if t.mounted[v.Name] {
			source.HostPath.Path = v.HostPath.Path
		}
	}
	switch {
	case ok:
		return corev1.Volume{Name: v.Name, VolumeSource: source}, true
	case strings.HasPrefix(v.Name, generatedToken):
		return corev1.Volume{Name: v.Name}, false // its place is not one of the template
	}
	return corev1.Volume{}, false
}

// trimVolumeSource reports false for volumes that concern only the node itself.
// Volumes of in-tree drivers are kept unchanged if the audience of a token depends on
// the CSI driver that they migrate to. Source:
// https://kubernetes.io/docs/concepts/storage/volumes/#csi-migration
func trimVolumeSource(v *corev1.VolumeSource, places bool) (corev1.VolumeSource, bool) {
	t := corev1.VolumeSource{
		GCEPersistentDisk:    v.GCEPersistentDisk,
		AWSElasticBlockStore: v.AWSElasticBlockStore,
		AzureDisk:            v.AzureDisk,
		VsphereVolume:        v.VsphereVolume,
		PortworxVolume:       v.PortworxVolume,
		Projected:            trimProjected(v.Projected, places),
	}
	if s := v.Secret; s != nil {
		t.Secret = &corev1.SecretVolumeSource{SecretName: s.SecretName}
	}
	if s := v.ConfigMap; s != nil {
		t.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: s.LocalObjectReference}
	}
	if s := v.PersistentVolumeClaim; s != nil {
		t.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{ClaimName: s.ClaimName}
	}
	if v.Ephemeral != nil {
		t.Ephemeral = &corev1.EphemeralVolumeSource{}
	}
	if s := v.CSI; s != nil {
		t.CSI = &corev1.CSIVolumeSource{Driver: s.Driver, NodePublishSecretRef: s.NodePublishSecretRef}
	}
	if s := v.AzureFile; s != nil {
		t.AzureFile = &corev1.AzureFileVolumeSource{SecretName: s.SecretName, ShareName: s.ShareName}
	}
	if s := v.CephFS; s != nil {
		t.CephFS = &corev1.CephFSVolumeSource{SecretRef: s.SecretRef}
	}
	if s := v.Cinder; s != nil {
		t.Cinder = &corev1.CinderVolumeSource{VolumeID: s.VolumeID, SecretRef: s.SecretRef}
	}
	if s := v.FlexVolume; s != nil {
		t.FlexVolume = &corev1.FlexVolumeSource{SecretRef: s.SecretRef}
	}
	if s := v.RBD; s != nil {
		t.RBD = &corev1.RBDVolumeSource{SecretRef: s.SecretRef}
	}
	if s := v.ScaleIO; s != nil {
		t.ScaleIO = &corev1.ScaleIOVolumeSource{SecretRef: s.SecretRef}
	}
	if s := v.ISCSI; s != nil {
		t.ISCSI = &corev1.ISCSIVolumeSource{SecretRef: s.SecretRef}
	}
	if s := v.StorageOS; s != nil {
		t.StorageOS = &corev1.StorageOSVolumeSource{SecretRef: s.SecretRef}
	}
	// An empty projection is dropped unless the volume has another source: then it
	// decides which of them counts.
	alone := t
	alone.Projected = nil
	return t, alone != corev1.VolumeSource{} || t.Projected != nil && len(t.Projected.Sources) > 0
}

// trimProjected keeps the sources that count. If places count, the others stay, empty, beside them.
func trimProjected(projected *corev1.ProjectedVolumeSource, places bool) *corev1.ProjectedVolumeSource {
	if projected == nil {
		return nil
	}
	kept, any := make([]corev1.VolumeProjection, 0, len(projected.Sources)), false
	for i := range projected.Sources {
		s, t := &projected.Sources[i], corev1.VolumeProjection{}
		if s.Secret != nil {
			t.Secret = &corev1.SecretProjection{LocalObjectReference: s.Secret.LocalObjectReference}
		}
		if s.ConfigMap != nil {
			t.ConfigMap = &corev1.ConfigMapProjection{LocalObjectReference: s.ConfigMap.LocalObjectReference}
		}
		if s.ServiceAccountToken != nil {
			t.ServiceAccountToken = &corev1.ServiceAccountTokenProjection{Audience: s.ServiceAccountToken.Audience}
		}
		if s.PodCertificate != nil {
			t.PodCertificate = &corev1.PodCertificateProjection{SignerName: s.PodCertificate.SignerName}
		}
		counts := t != corev1.VolumeProjection{}
		any = any || counts
		if counts || places {
			kept = append(kept, t)
		}
	}
	if !any {
		kept = nil
	}
	return &corev1.ProjectedVolumeSource{Sources: kept}
}

// trimPersistentVolume keeps the claim, the driver, and the secrets that a
// kubelet uses; for an inventory also the folder of a node that a volume is, and the nodes that have it.
func trimPersistentVolume(pv *corev1.PersistentVolume, forInventory bool) {
	var claim *corev1.ObjectReference
	if ref := pv.Spec.ClaimRef; ref != nil {
		claim = &corev1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name}
	}
	kept := corev1.PersistentVolume{
		ObjectMeta: named(&pv.ObjectMeta),
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef:               claim,
			PersistentVolumeSource: trimPersistentVolumeSource(&pv.Spec.PersistentVolumeSource),
		},
	}
	if forInventory {
		if host := pv.Spec.HostPath; host != nil {
			kept.Spec.HostPath = &corev1.HostPathVolumeSource{Path: host.Path}
		}
		if local := pv.Spec.Local; local != nil {
			kept.Spec.Local = &corev1.LocalVolumeSource{Path: local.Path}
		}
		if kept.Spec.HostPath != nil || kept.Spec.Local != nil {
			kept.Spec.StorageClassName = pv.Spec.StorageClassName
			if a := pv.Spec.NodeAffinity; a != nil {
				kept.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: a.Required}
			}
		}
	}
	*pv = kept
}

func trimPersistentVolumeSource(v *corev1.PersistentVolumeSource) corev1.PersistentVolumeSource {
	t := corev1.PersistentVolumeSource{
		GCEPersistentDisk:    v.GCEPersistentDisk,
		AWSElasticBlockStore: v.AWSElasticBlockStore,
		AzureDisk:            v.AzureDisk,
		VsphereVolume:        v.VsphereVolume,
		PortworxVolume:       v.PortworxVolume,
	}
	if s := v.CSI; s != nil {
		t.CSI = &corev1.CSIPersistentVolumeSource{
			Driver:               s.Driver,
			NodePublishSecretRef: s.NodePublishSecretRef,
			NodeStageSecretRef:   s.NodeStageSecretRef,
			NodeExpandSecretRef:  s.NodeExpandSecretRef,
		}
	}
	if s := v.AzureFile; s != nil {
		t.AzureFile = &corev1.AzureFilePersistentVolumeSource{
			SecretName: s.SecretName, SecretNamespace: s.SecretNamespace, ShareName: s.ShareName,
		}
	}
	if s := v.CephFS; s != nil {
		t.CephFS = &corev1.CephFSPersistentVolumeSource{SecretRef: s.SecretRef}
	}
	if s := v.Cinder; s != nil {
		t.Cinder = &corev1.CinderPersistentVolumeSource{VolumeID: s.VolumeID, SecretRef: s.SecretRef}
	}
	if s := v.FlexVolume; s != nil {
		t.FlexVolume = &corev1.FlexPersistentVolumeSource{SecretRef: s.SecretRef}
	}
	if s := v.RBD; s != nil {
		t.RBD = &corev1.RBDPersistentVolumeSource{SecretRef: s.SecretRef}
	}
	if s := v.ScaleIO; s != nil {
		t.ScaleIO = &corev1.ScaleIOPersistentVolumeSource{SecretRef: s.SecretRef}
	}
	if s := v.ISCSI; s != nil {
		t.ISCSI = &corev1.ISCSIPersistentVolumeSource{SecretRef: s.SecretRef}
	}
	if s := v.StorageOS; s != nil {
		t.StorageOS = &corev1.StorageOSPersistentVolumeSource{SecretRef: trimObjectReference(s.SecretRef)}
	}
	return t
}

func trimObjectReference(ref *corev1.ObjectReference) *corev1.ObjectReference {
	if ref == nil {
		return nil
	}
	return &corev1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name}
}
