package noderestriction_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

func local(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }

func projected(sources ...corev1.VolumeProjection) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}
}

// TestMirrorPodReferences has, for each way in which a pod can refer to an object of
// the API, the first minor in which a node may not create such a mirror pod; 0 for
// allowed ones. Before 1.34 an API server refused known references; since then it
// refuses everything that is not known to be allowed.
func TestMirrorPodReferences(t *testing.T) {
	const always, never = kubeversion.Oldest, 0
	ref, none := local("x"), local("")
	container := func(c corev1.Container) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, c) }
	}
	withVolume := func(source corev1.VolumeSource) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, volume("v", source)) }
	}
	secretEnv := func(name string) []corev1.EnvVar {
		return []corev1.EnvVar{
			{Name: "E", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local(name)}}},
		}
	}
	configMapEnv := func(name string) []corev1.EnvVar {
		return []corev1.EnvVar{
			{Name: "E", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local(name)}}},
		}
	}

	for _, tc := range []struct {
		reference string
		add       func(*corev1.Pod)
		since     kubeversion.Minor
	}{
		{"nothing", func(*corev1.Pod) {}, never},
		{"service account", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "x" }, always},
		{"service account in the deprecated field", func(p *corev1.Pod) { p.Spec.DeprecatedServiceAccount = "x" }, always},
		{"image pull secret", func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{ref} }, always},
		{"image pull secret without name", func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{none} }, never},
		{"resource claim", func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "x"}} }, 32},

		{"secret in env", container(corev1.Container{Env: secretEnv("x")}), always},
		{"secret in env without name", container(corev1.Container{Env: secretEnv("")}), never},
		{"config map in env", container(corev1.Container{Env: configMapEnv("x")}), always},
		{"config map in env without name", container(corev1.Container{Env: configMapEnv("")}), never},
		{
			"secret in envFrom",
			container(corev1.Container{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}}}}),
			always,
		},
		{
			"config map in envFrom",
			container(corev1.Container{
				EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: ref}}},
			}),
			always,
		},
		{"secret in an init container", func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Env: secretEnv("x")}} }, always},
		{"config map in an ephemeral container", func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{
				{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Env: configMapEnv("x")}},
			}
		}, always},

		{"secret volume", withVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "x"}}), always},
		{"secret volume without name", withVolume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), 34},
		{"config map volume", withVolume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: ref}}), always},
		{"config map volume without name", withVolume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}), 34},
		{
			"claim volume",
			withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "x"}}),
			always,
		},
		{
			"claim volume without name",
			withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}), always,
		},
		{"ephemeral volume", withVolume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}), 34},
		{"CSI volume", withVolume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "x"}}), 34},
		{
			"CSI volume with a secret",
			withVolume(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "x", NodePublishSecretRef: &ref}}), always,
		},
		{"glusterfs volume", withVolume(corev1.VolumeSource{Glusterfs: &corev1.GlusterfsVolumeSource{}}), 34},
		{"azureFile volume", withVolume(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{SecretName: "x"}}), always},
		{"azureFile volume without secret", withVolume(corev1.VolumeSource{AzureFile: &corev1.AzureFileVolumeSource{}}), 34},
		{"volume of an unknown kind", withVolume(corev1.VolumeSource{}), 34},

		{
			"projected secret",
			withVolume(projected(corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: ref}})), always,
		},
		{"projected secret without name", withVolume(projected(corev1.VolumeProjection{Secret: &corev1.SecretProjection{}})), 34},
		{
			"projected config map",
			withVolume(projected(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref}})),
			always,
		},
		{"projected config map without name", withVolume(projected(corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{}})), 34},
		{
			"projected token",
			withVolume(projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}})), 34,
		},
		{
			"projected trust bundle",
			withVolume(projected(corev1.VolumeProjection{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}})), always,
		},
		{
			"projected pod certificate",
			withVolume(projected(corev1.VolumeProjection{PodCertificate: &corev1.PodCertificateProjection{}})), 34,
		},
		{"projection of an unknown kind", withVolume(projected(corev1.VolumeProjection{})), 34},
		{"secret after a harmless projection", withVolume(projected(
			corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}},
			corev1.VolumeProjection{Secret: &corev1.SecretProjection{LocalObjectReference: ref}},
		)), always},
		{"projected downward API", withVolume(projected(corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}})), never},

		{"cephfs volume", withVolume(corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{SecretRef: &none}}), never},
		{"cephfs volume with a secret", withVolume(corev1.VolumeSource{CephFS: &corev1.CephFSVolumeSource{SecretRef: &ref}}), always},
		{"cinder volume", withVolume(corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{}}), never},
		{"cinder volume with a secret", withVolume(corev1.VolumeSource{Cinder: &corev1.CinderVolumeSource{SecretRef: &ref}}), always},
		{"flexVolume", withVolume(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{}}), never},
		{"flexVolume with a secret", withVolume(corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{SecretRef: &ref}}), always},
		{"rbd volume", withVolume(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{}}), never},
		{"rbd volume with a secret", withVolume(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{SecretRef: &ref}}), always},
		{"scaleIO volume", withVolume(corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{}}), never},
		{"scaleIO volume with a secret", withVolume(corev1.VolumeSource{ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: &ref}}), always},
		{"iscsi volume", withVolume(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{}}), never},
		{"iscsi volume with a secret", withVolume(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{SecretRef: &ref}}), always},
		{"storageOS volume", withVolume(corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{}}), never},
		{
			"storageOS volume with a secret",
			withVolume(corev1.VolumeSource{StorageOS: &corev1.StorageOSVolumeSource{SecretRef: &ref}}), always,
		},
		{
			"awsElasticBlockStore volume",
			withVolume(corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}}), never,
		},
		{"azureDisk volume", withVolume(corev1.VolumeSource{AzureDisk: &corev1.AzureDiskVolumeSource{}}), never},
		{"downwardAPI volume", withVolume(corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}}), never},
		{"emptyDir volume", withVolume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}), never},
		{"fc volume", withVolume(corev1.VolumeSource{FC: &corev1.FCVolumeSource{}}), never},
		{"flocker volume", withVolume(corev1.VolumeSource{Flocker: &corev1.FlockerVolumeSource{}}), never},
		{"gcePersistentDisk volume", withVolume(corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}}), never},
		{"gitRepo volume", withVolume(corev1.VolumeSource{GitRepo: &corev1.GitRepoVolumeSource{}}), never},
		{"image volume", withVolume(corev1.VolumeSource{Image: &corev1.ImageVolumeSource{}}), never},
		{"nfs volume", withVolume(corev1.VolumeSource{NFS: &corev1.NFSVolumeSource{}}), never},
		{"photon volume", withVolume(corev1.VolumeSource{PhotonPersistentDisk: &corev1.PhotonPersistentDiskVolumeSource{}}), never},
		{"portworx volume", withVolume(corev1.VolumeSource{PortworxVolume: &corev1.PortworxVolumeSource{}}), never},
		{"quobyte volume", withVolume(corev1.VolumeSource{Quobyte: &corev1.QuobyteVolumeSource{}}), never},
		{"vsphere volume", withVolume(corev1.VolumeSource{VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}}), never},
	} {
		t.Run(tc.reference, func(t *testing.T) {
			for _, minor := range kubeversion.Minors() {
				want := noderestriction.RestrictionsMet
				if tc.since != never && minor >= tc.since {
					want = noderestriction.MirrorPodRefersToObject
				}
				r := noderestriction.New(shop(), nil, kubeversion.For(minor))
				expectation{rule: minor.String(), request: createPod(tc.add), code: want}.check(t, r)
			}
		})
	}
}
