package generate

import corev1 "k8s.io/api/core/v1"

// targets lists the objects that are worth asking about in a cluster, by resource. It knows
// which pod mentions which object, not which mentions count: the authorizers decide that.
func (c *Cluster) targets() map[string][]target {
	targets := make(map[string][]target)
	add := func(object Object, node string) {
		targets[object.Resource] = append(targets[object.Resource], target{object, node})
	}
	for _, pod := range c.Pods {
		add(Object{"pods", pod.Namespace, pod.Name}, pod.Spec.NodeName)
		for _, object := range c.mentions[pod] {
			add(object, pod.Spec.NodeName)
		}
	}
	c.volumeTargets(add)
	for _, va := range c.VolumeAttachments {
		add(Object{"volumeattachments", "", va.Name}, va.Spec.NodeName)
	}
	for _, slice := range c.ResourceSlices {
		node := ""
		if slice.Spec.NodeName != nil {
			node = *slice.Spec.NodeName
		}
		add(Object{"resourceslices", "", slice.Name}, node)
	}
	for _, request := range c.PodCertificateRequests {
		add(Object{"podcertificaterequests", request.Namespace, request.Name}, string(request.Spec.NodeName))
	}
	return targets
}

// volumeTargets adds persistent volumes and the secrets that they mention,
// each with a node that mentions the volume's claim.
func (c *Cluster) volumeTargets(add func(Object, string)) {
	claimed := make(map[Object][]string)
	for _, pod := range c.Pods {
		for _, object := range c.mentions[pod] {
			if object.Resource == "persistentvolumeclaims" {
				claimed[object] = append(claimed[object], pod.Spec.NodeName)
			}
		}
	}
	for i, pv := range c.PersistentVolumes {
		node, namespace := "", ""
		if ref := pv.Spec.ClaimRef; ref != nil {
			namespace = ref.Namespace
			if nodes := claimed[Object{"persistentvolumeclaims", ref.Namespace, ref.Name}]; len(nodes) > 0 {
				node = nodes[i%len(nodes)]
			}
		}
		add(Object{"persistentvolumes", "", pv.Name}, node)
		for _, secret := range volumeSecrets(pv) {
			add(Object{"secrets", secret.Namespace, secret.Name}, node)
			add(Object{"secrets", namespace, secret.Name}, node)
		}
	}
}

// volumeSecrets lists every secret that a volume mentions, a node's business
// or not.
func volumeSecrets(pv *corev1.PersistentVolume) []corev1.SecretReference {
	var secrets []corev1.SecretReference
	add := func(refs ...*corev1.SecretReference) {
		for _, ref := range refs {
			if ref != nil {
				secrets = append(secrets, *ref)
			}
		}
	}
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.AzureFile != nil:
		ref := corev1.SecretReference{Name: s.AzureFile.SecretName}
		if s.AzureFile.SecretNamespace != nil {
			ref.Namespace = *s.AzureFile.SecretNamespace
		}
		add(&ref)
	case s.StorageOS != nil && s.StorageOS.SecretRef != nil:
		add(&corev1.SecretReference{Namespace: s.StorageOS.SecretRef.Namespace, Name: s.StorageOS.SecretRef.Name})
	case s.CephFS != nil:
		add(s.CephFS.SecretRef)
	case s.Cinder != nil:
		add(s.Cinder.SecretRef)
	case s.FlexVolume != nil:
		add(s.FlexVolume.SecretRef)
	case s.RBD != nil:
		add(s.RBD.SecretRef)
	case s.ScaleIO != nil:
		add(s.ScaleIO.SecretRef)
	case s.ISCSI != nil:
		add(s.ISCSI.SecretRef)
	case s.CSI != nil:
		add(s.CSI.NodePublishSecretRef, s.CSI.NodeStageSecretRef, s.CSI.NodeExpandSecretRef,
			s.CSI.ControllerPublishSecretRef, s.CSI.ControllerExpandSecretRef)
	}
	return secrets
}
