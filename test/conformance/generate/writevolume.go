package generate

import (
	corev1 "k8s.io/api/core/v1"
)

// referenceMutations make a mirror pod refer to an object of the API, or nearly,
// outside of its volumes.
func referenceMutations() []mutation {
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	env := func(source corev1.EnvVarSource) func(*draft) {
		return func(d *draft) { d.inContainer([]corev1.EnvVar{{Name: "E", ValueFrom: &source}}, nil) }
	}
	from := func(source corev1.EnvFromSource) func(*draft) {
		return func(d *draft) { d.inContainer(nil, []corev1.EnvFromSource{source}) }
	}
	return []mutation{
		{"service account", Refused, func(d *draft) { d.pod.Spec.ServiceAccountName = pick(d.r, accountNames) }},
		{
			"service account in the deprecated field", Refused,
			func(d *draft) { d.pod.Spec.DeprecatedServiceAccount = pick(d.r, accountNames) },
		},
		{
			"image pull secret", Refused,
			func(d *draft) { d.pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{local(""), local("s")} },
		},
		{
			"image pull secret without a name", Allowed,
			func(d *draft) { d.pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{local("")} },
		},
		{"env of a secret", Refused, env(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("s")}})},
		{"env of a secret without a name", Allowed, env(corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Optional: new(true)}})},
		{
			"env of a config map", Refused,
			env(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local("c")}}),
		},
		{"env of a config map without a name", Allowed, env(corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{Key: "k"}})},
		{"env of a field", Allowed, env(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "spec.nodeName"}})},
		{"env of a resource", Allowed, env(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu"}})},
		{"env of a file", Allowed, env(corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{VolumeName: "v", Path: "p", Key: "k"}})},
		{"all of a secret", Refused, from(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("s")}})},
		{"all of a secret without a name", Allowed, from(corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{}})},
		{
			"all of a config map", Refused,
			from(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("c")}}),
		},
		{"all of a config map without a name", Allowed, from(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{}})},
		{"all of nothing", Allowed, from(corev1.EnvFromSource{Prefix: "P"})},
		{"resource claim", Refused, func(d *draft) {
			d.pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "c", ResourceClaimName: pick(d.r, []*string{nil, new("claim")})}}
		}},
	}
}

// inContainer adds variables to a container of any of the three sorts.
func (d *draft) inContainer(env []corev1.EnvVar, from []corev1.EnvFromSource) {
	c := corev1.Container{Name: "x", Env: env, EnvFrom: from}
	spec := &d.pod.Spec
	switch d.r.IntN(4) {
	case 0:
		spec.InitContainers = append(spec.InitContainers, c)
	case 1:
		spec.EphemeralContainers = append(spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name, Env: env, EnvFrom: from},
		})
	default:
		spec.Containers = append(spec.Containers, c)
	}
}

// volumeMutations give a mirror pod a volume of each kind.
func volumeMutations() []mutation {
	var mutations []mutation
	add := func(name string, outcome Outcome, sources ...corev1.VolumeSource) {
		mutations = append(mutations, mutation{"volume: " + name, outcome, func(d *draft) {
			v := corev1.Volume{Name: "v", VolumeSource: pick(d.r, sources)}
			d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, *v.DeepCopy())
		}})
	}
	for name, source := range volumesWithoutReferences() {
		add(name, Allowed, source)
	}
	for name, source := range volumesWithReferences() {
		add(name, Refused, source)
	}
	for name, p := range projections() {
		outcome := Refused
		if p.DownwardAPI != nil {
			outcome = Allowed
		}
		add("projected "+name, outcome, projectedVolume(p),
			projectedVolume(corev1.VolumeProjection{DownwardAPI: &corev1.DownwardAPIProjection{}}, p))
	}
	add("projected, of no sources", Allowed, projectedVolume())
	mutations = append(mutations, mutation{"volume: of an unknown kind", Refused, func(d *draft) {
		d.Undefaulted = true
		d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, corev1.Volume{Name: "v"})
	}})
	add("two sources at once", Either,
		corev1.VolumeSource{
			EmptyDir:              &corev1.EmptyDirVolumeSource{},
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"},
		},
		corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}, Secret: &corev1.SecretVolumeSource{SecretName: "s"}},
		corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}, CSI: &corev1.CSIVolumeSource{Driver: "d"}},
		corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{}, Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}},
		}},
		corev1.VolumeSource{
			NFS:       &corev1.NFSVolumeSource{},
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}},
		},
	)
	return sorted(mutations)
}

func projectedVolume(sources ...corev1.VolumeProjection) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}
}

func projections() map[string]corev1.VolumeProjection {
	ref := corev1.LocalObjectReference{Name: "x"}
	return map[string]corev1.VolumeProjection{
		"downward API":              {DownwardAPI: &corev1.DownwardAPIProjection{}},
		"secret":                    {Secret: &corev1.SecretProjection{LocalObjectReference: ref}},
		"secret without a name":     {Secret: &corev1.SecretProjection{}},
		"config map":                {ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: ref}},
		"config map without a name": {ConfigMap: &corev1.ConfigMapProjection{}},
		"service account token":     {ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "t"}},
		"cluster trust bundle":      {ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{Path: "p"}},
		"pod certificate":           {PodCertificate: &corev1.PodCertificateProjection{SignerName: "x/y"}},
		"source of an unknown kind": {},
	}
}

// volumesWithoutReferences has the kinds of volumes that a mirror pod may have.
func volumesWithoutReferences() map[string]corev1.VolumeSource {
	return map[string]corev1.VolumeSource{
		"awsElasticBlockStore":         {AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{}},
		"azureDisk":                    {AzureDisk: &corev1.AzureDiskVolumeSource{}},
		"cephfs":                       {CephFS: &corev1.CephFSVolumeSource{SecretRef: &corev1.LocalObjectReference{}}},
		"cinder":                       {Cinder: &corev1.CinderVolumeSource{}},
		"downwardAPI":                  {DownwardAPI: &corev1.DownwardAPIVolumeSource{}},
		"emptyDir":                     {EmptyDir: &corev1.EmptyDirVolumeSource{}},
		"fc":                           {FC: &corev1.FCVolumeSource{}},
		"flexVolume":                   {FlexVolume: &corev1.FlexVolumeSource{Driver: "x/y"}},
		"flocker":                      {Flocker: &corev1.FlockerVolumeSource{}},
		"gcePersistentDisk":            {GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{}},
		"gitRepo":                      {GitRepo: &corev1.GitRepoVolumeSource{}},
		"hostPath":                     {HostPath: &corev1.HostPathVolumeSource{}},
		"image":                        {Image: &corev1.ImageVolumeSource{}},
		"iscsi":                        {ISCSI: &corev1.ISCSIVolumeSource{}},
		"nfs":                          {NFS: &corev1.NFSVolumeSource{}},
		"photonPersistentDisk":         {PhotonPersistentDisk: &corev1.PhotonPersistentDiskVolumeSource{}},
		"portworxVolume":               {PortworxVolume: &corev1.PortworxVolumeSource{}},
		"quobyte":                      {Quobyte: &corev1.QuobyteVolumeSource{}},
		"rbd":                          {RBD: &corev1.RBDVolumeSource{}},
		"scaleIO":                      {ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: &corev1.LocalObjectReference{}}},
		"storageos":                    {StorageOS: &corev1.StorageOSVolumeSource{}},
		"vsphereVolume":                {VsphereVolume: &corev1.VsphereVirtualDiskVolumeSource{}},
		"flexVolume of a nameless ref": {FlexVolume: &corev1.FlexVolumeSource{SecretRef: &corev1.LocalObjectReference{}}},
	}
}

// volumesWithReferences has the kinds of volumes that a mirror pod may not
// have: they name objects of the API, or may.
func volumesWithReferences() map[string]corev1.VolumeSource {
	ref := &corev1.LocalObjectReference{Name: "s"}
	return map[string]corev1.VolumeSource{
		"secret":                             {Secret: &corev1.SecretVolumeSource{SecretName: "s"}},
		"secret without a name":              {Secret: &corev1.SecretVolumeSource{}},
		"configMap":                          {ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: *ref}},
		"configMap without a name":           {ConfigMap: &corev1.ConfigMapVolumeSource{}},
		"csi":                                {CSI: &corev1.CSIVolumeSource{Driver: "d"}},
		"csi with a secret":                  {CSI: &corev1.CSIVolumeSource{Driver: "d", NodePublishSecretRef: ref}},
		"glusterfs":                          {Glusterfs: &corev1.GlusterfsVolumeSource{}},
		"persistentVolumeClaim":              {PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}},
		"persistentVolumeClaim without name": {PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}},
		"ephemeral": {
			Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}},
		},
		"ephemeral without a template": {Ephemeral: &corev1.EphemeralVolumeSource{}},
		"azureFile":                    {AzureFile: &corev1.AzureFileVolumeSource{SecretName: "s"}},
		"azureFile without a secret":   {AzureFile: &corev1.AzureFileVolumeSource{}},
		"cephfs with a secret":         {CephFS: &corev1.CephFSVolumeSource{SecretRef: ref}},
		"cinder with a secret":         {Cinder: &corev1.CinderVolumeSource{SecretRef: ref}},
		"flexVolume with a secret":     {FlexVolume: &corev1.FlexVolumeSource{SecretRef: ref}},
		"iscsi with a secret":          {ISCSI: &corev1.ISCSIVolumeSource{SecretRef: ref}},
		"rbd with a secret":            {RBD: &corev1.RBDVolumeSource{SecretRef: ref}},
		"scaleIO with a secret":        {ScaleIO: &corev1.ScaleIOVolumeSource{SecretRef: ref}},
		"storageos with a secret":      {StorageOS: &corev1.StorageOSVolumeSource{SecretRef: ref}},
	}
}
