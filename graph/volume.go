package graph

import corev1 "k8s.io/api/core/v1"

// volumeReferences appends the references of a persistent volume: its claim first,
// then the secrets that a kubelet needs to use the volume. A volume without a claim
// has no references. Only the namespace and name of the claim count.
//
// Secrets that only controllers use (CSI controllerPublish and controllerExpand) are
// not among them. A secret without a namespace is in the claim's, except for cinder,
// storageOS and CSI, where such a reference is ignored.
func volumeReferences(refs references, pv *corev1.PersistentVolume) references {
	claim := pv.Spec.ClaimRef
	if claim == nil {
		return refs
	}
	// Not add: a volume may be bound to a claim without a name, which no pod
	// can mount; it stays the volume's claim.
	refs = append(refs, reference{kind: PersistentVolumeClaim, field: fieldClaimRef, namespace: claim.Namespace, name: claim.Name})

	source := &pv.Spec.PersistentVolumeSource
	switch {
	case source.AzureFile != nil:
		namespace := claim.Namespace
		if n := source.AzureFile.SecretNamespace; n != nil && *n != "" {
			namespace = *n
		}
		refs.addVolumeSecret(fieldPVAzureFile, namespace, source.AzureFile.SecretName)
	case source.CephFS != nil:
		refs.addSecretOrClaims(fieldPVCephFS, source.CephFS.SecretRef, claim.Namespace)
	case source.Cinder != nil:
		refs.addSecretReference(fieldPVCinder, source.Cinder.SecretRef)
	case source.FlexVolume != nil:
		refs.addSecretOrClaims(fieldPVFlex, source.FlexVolume.SecretRef, claim.Namespace)
	case source.RBD != nil:
		refs.addSecretOrClaims(fieldPVRBD, source.RBD.SecretRef, claim.Namespace)
	case source.ScaleIO != nil:
		refs.addSecretOrClaims(fieldPVScaleIO, source.ScaleIO.SecretRef, claim.Namespace)
	case source.ISCSI != nil:
		refs.addSecretOrClaims(fieldPVISCSI, source.ISCSI.SecretRef, claim.Namespace)
	case source.StorageOS != nil:
		if ref := source.StorageOS.SecretRef; ref != nil {
			refs.addVolumeSecret(fieldPVStorageOS, ref.Namespace, ref.Name)
		}
	case source.CSI != nil:
		refs.addSecretReference(fieldPVNodePublish, source.CSI.NodePublishSecretRef)
		refs.addSecretReference(fieldPVNodeStage, source.CSI.NodeStageSecretRef)
		refs.addSecretReference(fieldPVNodeExpand, source.CSI.NodeExpandSecretRef)
	}
	return refs
}

// addSecretOrClaims adds a secret that is in the claim's namespace unless the
// reference names another.
func (r *references) addSecretOrClaims(f field, ref *corev1.SecretReference, claimNamespace string) {
	if ref == nil {
		return
	}
	namespace := ref.Namespace
	if namespace == "" {
		namespace = claimNamespace
	}
	r.addVolumeSecret(f, namespace, ref.Name)
}

func (r *references) addSecretReference(f field, ref *corev1.SecretReference) {
	if ref != nil {
		r.addVolumeSecret(f, ref.Namespace, ref.Name)
	}
}

func (r *references) addVolumeSecret(f field, namespace, name string) {
	if namespace != "" {
		r.add(Secret, f, namespace, name, "")
	}
}
