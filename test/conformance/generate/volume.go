package generate

import (
	corev1 "k8s.io/api/core/v1"
)

// volumes draws volumes of every source. Volume names are distinct within the
// pod and few over the cluster, so that the claims of generic ephemeral volumes
// ("<pod>-<volume>") collide with other names.
func (b *podBuilder) volumes() {
	for _, i := range b.r.Perm(len(volumeNames))[:b.r.IntN(5)] {
		b.pod.Spec.Volumes = append(b.pod.Spec.Volumes, corev1.Volume{
			Name:         volumeNames[i],
			VolumeSource: b.volumeSource(volumeNames[i]),
		})
	}
}

// volumeSource draws one of the sources; half of the volumes hold a claim.
func (b *podBuilder) volumeSource(volume string) corev1.VolumeSource {
	if chance(b.r, 30) {
		return b.claimSource()
	}
	if chance(b.r, 20) {
		b.mention("persistentvolumeclaims", b.pod.Name+"-"+volume)
		return corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}
	}
	sources := []func() corev1.VolumeSource{
		b.secretSource, b.configMapSource, b.projectedSource, b.driverSource, b.remoteSource, b.remoteSource, b.plainSource,
	}
	return pick(b.r, sources)()
}

func (b *podBuilder) claimSource() corev1.VolumeSource {
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
		ClaimName: b.reference("persistentvolumeclaims"),
	}}
}

func (b *podBuilder) secretSource() corev1.VolumeSource {
	return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: b.reference("secrets")}}
}

func (b *podBuilder) configMapSource() corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: b.reference("configmaps")},
	}}
}

// projectedSource mixes projections, of which secrets and config maps count.
func (b *podBuilder) projectedSource() corev1.VolumeSource {
	projected := &corev1.ProjectedVolumeSource{}
	for range b.r.IntN(4) {
		projected.Sources = append(projected.Sources, b.projection())
	}
	return corev1.VolumeSource{Projected: projected}
}

func (b *podBuilder) projection() corev1.VolumeProjection {
	switch b.r.IntN(6) {
	case 0:
		return corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}}
	case 1:
		return corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}
	case 2:
		bundle := b.name()
		return corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Name: &bundle, Path: "ca"}}
	case 3:
		return corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{SignerName: "example.com/signer"}}
	case 4:
		return corev1.VolumeProjection{Secret: &corev1.SecretProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: b.reference("secrets")},
		}}
	default:
		return corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: b.reference("configmaps")},
		}}
	}
}

// secretRef draws a volume driver's secret reference, which may be absent.
func (b *podBuilder) secretRef() *corev1.LocalObjectReference {
	if chance(b.r, 15) {
		return nil
	}
	return &corev1.LocalObjectReference{Name: b.reference("secrets")}
}

func (b *podBuilder) driverSource() corev1.VolumeSource {
	return corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "csi.example.com", NodePublishSecretRef: b.secretRef()}}
}

// remoteSource draws one of the in-tree storage drivers that take a secret.
func (b *podBuilder) remoteSource() corev1.VolumeSource {
	switch b.r.IntN(8) {
	case 0:
		return corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: b.reference("secrets"), ShareName: "s"}}
	case 1:
		return corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{SecretRef: b.secretRef()}}
	case 2:
		return corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{SecretRef: b.secretRef()}}
	case 3:
		return corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: "x/y", SecretRef: b.secretRef()}}
	case 4:
		return corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: b.secretRef()}}
	case 5:
		return corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: b.secretRef()}}
	case 6:
		return corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: b.secretRef()}}
	default:
		return corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: b.secretRef()}}
	}
}

// plainSource draws a source that refers to nothing that a node may read
// through the graph; the names that it carries are bait.
func (b *podBuilder) plainSource() corev1.VolumeSource {
	bait := b.name()
	switch b.r.IntN(7) {
	case 0:
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	case 1:
		return corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/" + bait}}
	case 2:
		return corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}}
	case 3:
		return corev1.VolumeSource{Glusterfs: &corev1.GlusterfsVolumeSource{EndpointsName: bait}}
	case 4:
		return corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: bait}}
	case 5:
		return corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: bait}}
	default:
		return corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{Server: bait, Path: "/"}}
	}
}
