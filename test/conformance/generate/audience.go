package generate

import (
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// routeToAudience draws a volume that may give a pod's node an audience: a
// projected token, a CSI driver, a claim, an in-tree source that migrates to a
// driver; or one that gives none.
func (b *stateBuilder) routeToAudience() corev1.VolumeSource {
	switch b.r.IntN(20) {
	case 0, 1, 2:
		return corev1.VolumeSource{Projected: b.projection()}
	case 3, 4, 5, 6:
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: pick(b.r, objectNames)}}
	case 7, 8, 9:
		source := &corev1.EphemeralVolumeSource{}
		if chance(b.r, 85) {
			source.VolumeClaimTemplate = &corev1.PersistentVolumeClaimTemplate{}
		}
		return corev1.VolumeSource{Ephemeral: source}
	case 10, 11:
		return corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: pick(b.r, append([]string{"gone.example.com", ""}, drivers...))}}
	case 12:
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	default:
		return b.migratedInlineVolume()
	}
}

// projection mixes tokens and pod certificates with sources that give nothing.
func (b *stateBuilder) projection() *corev1.ProjectedVolumeSource {
	projected := &corev1.ProjectedVolumeSource{}
	for range b.r.IntN(4) {
		switch b.r.IntN(4) {
		case 0, 1:
			projected.Sources = append(projected.Sources, corev1.VolumeProjection{
				ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: pick(b.r, audiences), Path: "token"},
			})
		case 2:
			projected.Sources = append(projected.Sources, corev1.VolumeProjection{
				PodCertificate: &corev1.PodCertificateProjection{SignerName: pick(b.r, signers), KeyType: "ED25519"},
			})
		default:
			projected.Sources = append(projected.Sources, corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}})
		}
	}
	return projected
}

// azureDiskKind draws a kind of disk, of which "Managed" alone migrates, in any
// case of its letters.
func azureDiskKind(r *rand.Rand) *corev1.AzureDataDiskKind {
	if chance(r, 30) {
		return nil
	}
	return new(pick(r, []corev1.AzureDataDiskKind{"Managed", "managed", "Dedicated", "Shared"}))
}

// awsVolume draws an id of a volume, in a form that translates or does not.
func awsVolume(r *rand.Rand) string {
	return pick(r, []string{"vol-1", "aws://us-east-1a/vol-1", "aws:///vol-1", "aws://us-east-1a/v/x", "http://a/vol-1", "%zz", ""})
}

// migratedInlineVolume draws an in-tree source that stands for a CSI driver. An
// inline vSphere volume with a storage policy is rare, because Kubernetes'
// translation panics on it.
func (b *stateBuilder) migratedInlineVolume() corev1.VolumeSource {
	switch b.r.IntN(7) {
	case 0:
		return corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: awsVolume(b.r), Partition: 1}}
	case 1:
		return corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "pd"}}
	case 2:
		return corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{VolumeID: "c"}}
	case 3:
		return corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: "u", Kind: azureDiskKind(b.r)}}
	case 4:
		return corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "s", ShareName: "f"}}
	case 5:
		volume := &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "p"}
		if chance(b.r, 15) {
			volume.StoragePolicyName = "gold"
		}
		return corev1.VolumeSource{VsphereVolume: volume}
	default:
		return corev1.VolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "w"}}
	}
}

// migratedVolume draws the source of a persistent volume.
func (b *stateBuilder) migratedVolume() corev1.PersistentVolumeSource {
	switch b.r.IntN(14) {
	case 0:
		return corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: awsVolume(b.r)}}
	case 1:
		return corev1.PersistentVolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: "pd"}}
	case 2:
		return corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: "c"}}
	case 3:
		return corev1.PersistentVolumeSource{
			AzureDisk: &corev1.AzureDiskVolumeSource{DiskName: "d", DataDiskURI: "u", Kind: azureDiskKind(b.r)},
		}
	case 4:
		source := &corev1.AzureFilePersistentVolumeSource{SecretName: "s", ShareName: "f"}
		if chance(b.r, 50) {
			source.SecretNamespace = new(pick(b.r, []string{"", "shop"}))
		}
		return corev1.PersistentVolumeSource{AzureFile: source}
	case 5:
		return corev1.PersistentVolumeSource{
			VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{VolumePath: "p", StoragePolicyName: "gold"},
		}
	case 6:
		return corev1.PersistentVolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{VolumeID: "w"}}
	case 7, 8:
		return corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "n", Path: "/"}}
	case 9:
		return corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/l"}}
	default:
		return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: pick(b.r, drivers), VolumeHandle: "h"}}
	}
}

func extendedClaimStatus(r *rand.Rand) *corev1.PodExtendedResourceClaimStatus {
	status := &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: pick(r, objectNames)}
	for range r.IntN(3) {
		status.RequestMappings = append(status.RequestMappings, corev1.ContainerExtendedResourceRequest{
			ContainerName: "main", ResourceName: pick(r, []string{"example.com/gpu", "example.com/nic"}), RequestName: pick(r, volumeNames),
		})
	}
	return status
}

func allocatableClaimStatus(r *rand.Rand) corev1.NodeAllocatableResourceClaimStatus {
	status := corev1.NodeAllocatableResourceClaimStatus{ResourceClaimName: pick(r, objectNames)}
	for range r.IntN(3) {
		status.Containers = append(status.Containers, pick(r, volumeNames))
	}
	for range r.IntN(2) {
		status.Mapping = append(status.Mapping, corev1.NodeAllocatableMappedResources{Name: corev1.ResourceCPU, Quantity: quantity(r)})
	}
	for range r.IntN(2) {
		status.Overhead = append(status.Overhead, corev1.NodeAllocatableOverheadResources{
			Name: corev1.ResourceMemory, PerPod: quantity(r), PerContainer: quantity(r),
		})
	}
	return status
}

// quantity draws one of few amounts, two of which are written in two ways; or
// none.
func quantity(r *rand.Rand) *resource.Quantity {
	text := pick(r, []string{"", "1", "1000m", "2", "1Gi", "1024Mi", "0"})
	if text == "" {
		return nil
	}
	return new(resource.MustParse(text))
}
