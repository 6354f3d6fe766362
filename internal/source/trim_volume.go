package source

import (
	corev1 "k8s.io/api/core/v1"
)

// trimVolumes keeps the volumes that refer to objects, that bring tokens or
// certificates, or that a CSI driver may serve.
func trimVolumes(volumes []corev1.Volume) []corev1.Volume {
	kept := volumes[:0]
	for i := range volumes {
		source, ok := trimVolumeSource(&volumes[i].VolumeSource)
		if ok {
			kept = append(kept, corev1.Volume{Name: volumes[i].Name, VolumeSource: source})
		}
	}
	return orNil(kept)
}

// trimVolumeSource reports false for volumes that concern only the node itself.
// Volumes of in-tree drivers are kept unchanged if the audience of a token depends on
// the CSI driver that they migrate to. Source:
// https://kubernetes.io/docs/concepts/storage/volumes/#csi-migration
func trimVolumeSource(v *corev1.VolumeSource) (corev1.VolumeSource, bool) {
	t := corev1.VolumeSource{
		GCEPersistentDisk:    v.GCEPersistentDisk,
		AWSElasticBlockStore: v.AWSElasticBlockStore,
		AzureDisk:            v.AzureDisk,
		VsphereVolume:        v.VsphereVolume,
		PortworxVolume:       v.PortworxVolume,
		Projected:            trimProjected(v.Projected),
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

func trimProjected(projected *corev1.ProjectedVolumeSource) *corev1.ProjectedVolumeSource {
	if projected == nil {
		return nil
	}
	kept := projected.Sources[:0]
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
		if t != (corev1.VolumeProjection{}) {
			kept = append(kept, t)
		}
	}
	return &corev1.ProjectedVolumeSource{Sources: orNil(kept)}
}

// trimPersistentVolume keeps the claim, the driver, and the secrets that a
// kubelet uses.
func trimPersistentVolume(pv *corev1.PersistentVolume) {
	var claim *corev1.ObjectReference
	if ref := pv.Spec.ClaimRef; ref != nil {
		claim = &corev1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name}
	}
	*pv = corev1.PersistentVolume{
		ObjectMeta: named(&pv.ObjectMeta),
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef:               claim,
			PersistentVolumeSource: trimPersistentVolumeSource(&pv.Spec.PersistentVolumeSource),
		},
	}
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
