package review

import (
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
)

// distinctVolumes keeps the first of the volumes that are equal for every rule.
type distinctVolumes []volumeLike

// volumeLike is what the rules for mirror pods read of a volume.
type volumeLike struct {
	name string
	volumeTraits
}

// volumeTraits distinguish volumes.
type volumeTraits struct {
	// onNode: a kubelet mounts it without the API. SecretRef: a field names a secret that
	// is needed to mount it.
	onNode, secretRef        bool
	csi, csiSecretRef        bool
	glusterfs, claim         bool
	configMap, secret, azure presence
	// projected has one byte for each different source, in order, after the first byte.
	projected string
}

// presence of a reference: missing, without a name, or with a name.
type presence uint8

const (
	absent presence = iota
	unnamed
	withName
)

func presenceOf(there bool, name string) presence {
	switch {
	case !there:
		return absent
	case name == "":
		return unnamed
	}
	return withName
}

// UnmarshalJSONFrom reads the volumes.
func (v *distinctVolumes) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*v = nil
	seen := map[volumeTraits]struct{}{}
	return eachEntry(d, func(text *volumeText) {
		traits := text.traits()
		if _, alike := seen[traits]; alike {
			return
		}
		seen[traits] = struct{}{}
		*v = append(*v, volumeLike{text.Name, traits})
	})
}

func (v distinctVolumes) objects() []corev1.Volume {
	var volumes []corev1.Volume
	for i := range v {
		volumes = append(volumes, corev1.Volume{Name: v[i].name, VolumeSource: v[i].source()})
	}
	return volumes
}

type (
	// there is a kind of volume of which only the presence matters.
	there = *struct{}
	// withSecretRef is a kind of volume that may need a secret.
	withSecretRef struct {
		SecretRef *nameOf `json:"secretRef"`
	}
	// secretName is a reference to a secret by its name.
	secretName struct {
		SecretName string `json:"secretName"`
	}
)

// volumeText is the JSON of a volume.
type volumeText struct {
	Name string `json:"name"`

	DownwardAPI          there `json:"downwardAPI"`
	EmptyDir             there `json:"emptyDir"`
	HostPath             there `json:"hostPath"`
	Image                there `json:"image"`
	GitRepo              there `json:"gitRepo"`
	AWSElasticBlockStore there `json:"awsElasticBlockStore"`
	AzureDisk            there `json:"azureDisk"`
	GCEPersistentDisk    there `json:"gcePersistentDisk"`
	PhotonPersistentDisk there `json:"photonPersistentDisk"`
	VsphereVolume        there `json:"vsphereVolume"`
	FC                   there `json:"fc"`
	Flocker              there `json:"flocker"`
	NFS                  there `json:"nfs"`
	PortworxVolume       there `json:"portworxVolume"`
	Quobyte              there `json:"quobyte"`

	CephFS     *withSecretRef `json:"cephfs"`
	Cinder     *withSecretRef `json:"cinder"`
	FlexVolume *withSecretRef `json:"flexVolume"`
	RBD        *withSecretRef `json:"rbd"`
	ScaleIO    *withSecretRef `json:"scaleIO"`
	ISCSI      *withSecretRef `json:"iscsi"`
	StorageOS  *withSecretRef `json:"storageos"`

	Glusterfs             there `json:"glusterfs"`
	PersistentVolumeClaim there `json:"persistentVolumeClaim"`
	Ephemeral             there `json:"ephemeral"`
	CSI                   *struct {
		NodePublishSecretRef *nameOf `json:"nodePublishSecretRef"`
	} `json:"csi"`
	ConfigMap *nameOf     `json:"configMap"`
	Secret    *secretName `json:"secret"`
	AzureFile *secretName `json:"azureFile"`
	Projected *struct {
		Sources distinctSources `json:"sources"`
	} `json:"projected"`
}

func (t *volumeText) traits() volumeTraits {
	traits := volumeTraits{
		glusterfs: t.Glusterfs != nil, claim: t.PersistentVolumeClaim != nil || t.Ephemeral != nil,
		csi: t.CSI != nil, csiSecretRef: t.CSI != nil && t.CSI.NodePublishSecretRef.isSet(),
	}
	for _, kind := range []there{
		t.DownwardAPI, t.EmptyDir, t.HostPath, t.Image, t.GitRepo, t.AWSElasticBlockStore, t.AzureDisk, t.GCEPersistentDisk,
		t.PhotonPersistentDisk, t.VsphereVolume, t.FC, t.Flocker, t.NFS, t.PortworxVolume, t.Quobyte,
	} {
		traits.onNode = traits.onNode || kind != nil
	}
	for _, kind := range []*withSecretRef{t.CephFS, t.Cinder, t.FlexVolume, t.RBD, t.ScaleIO, t.ISCSI, t.StorageOS} {
		traits.onNode = traits.onNode || kind != nil
		traits.secretRef = traits.secretRef || kind != nil && kind.SecretRef.isSet()
	}
	if t.ConfigMap != nil {
		traits.configMap = presenceOf(true, t.ConfigMap.Name)
	}
	if t.Secret != nil {
		traits.secret = presenceOf(true, t.Secret.SecretName)
	}
	if t.AzureFile != nil {
		traits.azure = presenceOf(true, t.AzureFile.SecretName)
	}
	if t.Projected != nil {
		traits.projected = projects + string(t.Projected.Sources)
	}
	return traits
}

// anyName is a placeholder for a name of which only matters that it is not empty.
const anyName = "x"

func (p presence) name() string {
	if p == withName {
		return anyName
	}
	return ""
}

func (t *volumeTraits) source() corev1.VolumeSource {
	var s corev1.VolumeSource
	if t.onNode {
		s.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if t.secretRef {
		s.FlexVolume = &corev1.FlexVolumeSource{SecretRef: &corev1.LocalObjectReference{Name: anyName}}
	}
	if t.csi {
		s.CSI = &corev1.CSIVolumeSource{}
	}
	if t.csiSecretRef {
		s.CSI.NodePublishSecretRef = &corev1.LocalObjectReference{Name: anyName}
	}
	if t.glusterfs {
		s.Glusterfs = &corev1.GlusterfsVolumeSource{}
	}
	if t.claim {
		s.PersistentVolumeClaim = &corev1.PersistentVolumeClaimVolumeSource{}
	}
	if t.configMap != absent {
		s.ConfigMap = &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: t.configMap.name()}}
	}
	if t.secret != absent {
		s.Secret = &corev1.SecretVolumeSource{SecretName: t.secret.name()}
	}
	if t.azure != absent {
		s.AzureFile = &corev1.AzureFileVolumeSource{SecretName: t.azure.name()}
	}
	if kinds, ok := strings.CutPrefix(t.projected, projects); ok {
		s.Projected = &corev1.ProjectedVolumeSource{}
		for _, kind := range []byte(kinds) {
			s.Projected.Sources = append(s.Projected.Sources, sourceKind(kind).projection())
		}
	}
	return s
}

// projects is the first byte of the traits of a projected volume.
const projects = "p"

// sourceKind is the set of the kinds of objects that a projected source projects.
type sourceKind uint8

const (
	projectsConfigMap sourceKind = 1 << iota
	configMapNamed
	projectsSecret
	secretNamed
	projectsToken
	projectsTrustBundle
	projectsCertificate
	projectsDownwardAPI
)

// distinctSources are the different kinds of sources, in order.
type distinctSources []byte

// UnmarshalJSONFrom reads the sources.
func (s *distinctSources) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*s = nil
	var seen [256]bool
	return eachEntry(d, func(text *sourceText) {
		if kind := text.kind(); !seen[kind] {
			seen[kind] = true
			*s = append(*s, byte(kind))
		}
	})
}

// sourceText is the JSON of a source of a projected volume.
type sourceText struct {
	ConfigMap           *nameOf `json:"configMap"`
	Secret              *nameOf `json:"secret"`
	ServiceAccountToken there   `json:"serviceAccountToken"`
	ClusterTrustBundle  there   `json:"clusterTrustBundle"`
	PodCertificate      there   `json:"podCertificate"`
	DownwardAPI         there   `json:"downwardAPI"`
}

func (t *sourceText) kind() sourceKind {
	var kind sourceKind
	for _, f := range []struct {
		holds bool
		bit   sourceKind
	}{
		{t.ConfigMap != nil, projectsConfigMap},
		{t.ConfigMap.isSet(), configMapNamed},
		{t.Secret != nil, projectsSecret},
		{t.Secret.isSet(), secretNamed},
		{t.ServiceAccountToken != nil, projectsToken},
		{t.ClusterTrustBundle != nil, projectsTrustBundle},
		{t.PodCertificate != nil, projectsCertificate},
		{t.DownwardAPI != nil, projectsDownwardAPI},
	} {
		if f.holds {
			kind |= f.bit
		}
	}
	return kind
}

func (k sourceKind) projection() corev1.VolumeProjection {
	var p corev1.VolumeProjection
	reference := func(named sourceKind) corev1.LocalObjectReference {
		if k&named != 0 {
			return corev1.LocalObjectReference{Name: anyName}
		}
		return corev1.LocalObjectReference{}
	}
	if k&projectsConfigMap != 0 {
		p.ConfigMap = &corev1.ConfigMapProjection{LocalObjectReference: reference(configMapNamed)}
	}
	if k&projectsSecret != 0 {
		p.Secret = &corev1.SecretProjection{LocalObjectReference: reference(secretNamed)}
	}
	if k&projectsToken != 0 {
		p.ServiceAccountToken = &corev1.ServiceAccountTokenProjection{}
	}
	if k&projectsTrustBundle != 0 {
		p.ClusterTrustBundle = &corev1.ClusterTrustBundleProjection{}
	}
	if k&projectsCertificate != 0 {
		p.PodCertificate = &corev1.PodCertificateProjection{}
	}
	if k&projectsDownwardAPI != 0 {
		p.DownwardAPI = &corev1.DownwardAPIProjection{}
	}
	return p
}
