package source

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// inventoryShape returns the shape of a kind of which an inventory needs more, or that only it
// needs; nil for others.
func inventoryShape(k kind) shape {
	switch k {
	case kindPod:
		return &inventoryPodShape{}
	case kindNode:
		return &inventoryNodeShape{}
	case kindPersistentVolume:
		return &inventoryVolumeShape{}
	case kindServiceAccount:
		return &inventoryServiceAccountShape{}
	case kindNamespace:
		return &namespaceShape{}
	case kindResourceQuota:
		return &resourceQuotaShape{}
	case kindRuntimeClass:
		return &runtimeClassShape{}
	case kindSecret:
		return &secretShape{}
	case kindValidatingWebhookConfiguration:
		return &validatingWebhooksShape{}
	case kindMutatingWebhookConfiguration:
		return &mutatingWebhooksShape{}
	case kindValidatingAdmissionPolicy:
		return &admissionPolicyShape{}
	case kindValidatingAdmissionPolicyBinding:
		return &admissionPolicyBindingShape{}
	}
	return nil
}

// inventoryPodShape has the fields of podShape, and those that an inventory needs.
type inventoryPodShape struct {
	Metadata struct {
		labelledIdentity
		Annotations struct {
			Mirror annotation `json:"kubernetes.io/config.mirror"`
		} `json:"annotations"`
		OwnerReferences []metav1.OwnerReference `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		NodeName            string                        `json:"nodeName"`
		ServiceAccountName  string                        `json:"serviceAccountName"`
		ServiceAccount      string                        `json:"serviceAccount"`
		ImagePullSecrets    []corev1.LocalObjectReference `json:"imagePullSecrets"`
		InitContainers      []inventoryContainerShape     `json:"initContainers"`
		Containers          []inventoryContainerShape     `json:"containers"`
		EphemeralContainers []inventoryContainerShape     `json:"ephemeralContainers"`
		Volumes             []volumeShape                 `json:"volumes"`
		ResourceClaims      []corev1.PodResourceClaim     `json:"resourceClaims"`
		NodeSelector        map[string]string             `json:"nodeSelector"`
		Affinity            *corev1.Affinity              `json:"affinity"`
		Tolerations         []corev1.Toleration           `json:"tolerations"`
		HostPID             bool                          `json:"hostPID"`
		HostNetwork         bool                          `json:"hostNetwork"`
		HostUsers           *bool                         `json:"hostUsers"`
		RuntimeClassName    *string                       `json:"runtimeClassName"`
		SecurityContext     *corev1.PodSecurityContext    `json:"securityContext"`
		Resources           *corev1.ResourceRequirements  `json:"resources"`
	} `json:"spec"`
	Status struct {
		podStatusShape
		Phase corev1.PodPhase `json:"phase"`
	} `json:"status"`
}

// inventoryContainerShape is a container with its rights over its host.
type inventoryContainerShape struct {
	containerShape
	SecurityContext *corev1.SecurityContext `json:"securityContext"`
	VolumeMounts    []corev1.VolumeMount    `json:"volumeMounts"`
	Resources       struct {
		Requests corev1.ResourceList `json:"requests"`
	} `json:"resources"`
	RestartPolicy *corev1.ContainerRestartPolicy `json:"restartPolicy"`
	// Image, Command and Args tell components of the control plane. They are not kept.
	Image   string   `json:"image"`
	Command []string `json:"command"`
	Args    []string `json:"args"`
}

func (s *inventoryContainerShape) container() corev1.Container {
	c := s.containerShape.container()
	if len(c.Env) > 0 { // with the places of variables that refer to nothing
		env := make([]corev1.EnvVar, len(s.Env))
		next := 0
		for i := range s.Env {
			if s.Env[i].ValueFrom != nil {
				env[i] = c.Env[next]
				next++
			}
		}
		c.Env = env
	}
	c.SecurityContext, c.VolumeMounts = s.SecurityContext, s.VolumeMounts
	c.Resources.Requests, c.RestartPolicy = s.Resources.Requests, s.RestartPolicy
	c.Image, c.Command, c.Args = s.Image, s.Command, s.Args
	return c
}

func (s *inventoryPodShape) object() apiObject {
	base := &podShape{Status: s.Status.podStatusShape}
	base.Metadata.identity, base.Metadata.Annotations = s.Metadata.identity, s.Metadata.Annotations
	base.Spec.NodeName = s.Spec.NodeName
	base.Spec.ServiceAccountName, base.Spec.ServiceAccount = s.Spec.ServiceAccountName, s.Spec.ServiceAccount
	base.Spec.ImagePullSecrets, base.Spec.ResourceClaims, base.Spec.Volumes = s.Spec.ImagePullSecrets, s.Spec.ResourceClaims, s.Spec.Volumes
	pod := base.object().(*corev1.Pod)
	pod.Labels, pod.OwnerReferences = s.Metadata.Labels, s.Metadata.OwnerReferences
	for i := range s.Spec.InitContainers {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, s.Spec.InitContainers[i].container())
	}
	for i := range s.Spec.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, s.Spec.Containers[i].container())
	}
	for i := range s.Spec.EphemeralContainers {
		c := corev1.EphemeralContainerCommon(s.Spec.EphemeralContainers[i].container())
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: c})
	}
	pod.Spec.NodeSelector, pod.Spec.Affinity, pod.Spec.Tolerations = s.Spec.NodeSelector, s.Spec.Affinity, s.Spec.Tolerations
	pod.Spec.HostUsers, pod.Spec.RuntimeClassName = s.Spec.HostUsers, s.Spec.RuntimeClassName
	pod.Spec.Resources, pod.Status.Phase = s.Spec.Resources, s.Status.Phase
	pod.Spec.HostPID, pod.Spec.HostNetwork, pod.Spec.SecurityContext = s.Spec.HostPID, s.Spec.HostNetwork, s.Spec.SecurityContext
	return pod
}

type inventoryNodeShape struct {
	Metadata labelledIdentity `json:"metadata"`
	Spec     struct {
		Taints []corev1.Taint `json:"taints"`
	} `json:"spec"`
	Status struct {
		NodeInfo struct {
			KubeletVersion string `json:"kubeletVersion"`
		} `json:"nodeInfo"`
		Allocatable corev1.ResourceList `json:"allocatable"`
	} `json:"status"`
}

func (s *inventoryNodeShape) object() apiObject {
	node := &corev1.Node{ObjectMeta: s.Metadata.object()}
	node.Spec.Taints, node.Status.Allocatable = s.Spec.Taints, s.Status.Allocatable
	node.Status.NodeInfo.KubeletVersion = s.Status.NodeInfo.KubeletVersion
	return node
}

// inventoryVolumeShape has the fields of persistentVolumeShape, and those that an inventory needs.
type inventoryVolumeShape struct {
	Metadata identity `json:"metadata"`
	Spec     struct {
		persistentVolumeSpecShape
		NodeAffinity     *corev1.VolumeNodeAffinity `json:"nodeAffinity"`
		StorageClassName string                     `json:"storageClassName"`
	} `json:"spec"`
}

func (s *inventoryVolumeShape) object() apiObject {
	base := &persistentVolumeShape{Metadata: s.Metadata, Spec: s.Spec.persistentVolumeSpecShape}
	pv := base.object().(*corev1.PersistentVolume)
	pv.Spec.NodeAffinity, pv.Spec.StorageClassName = s.Spec.NodeAffinity, s.Spec.StorageClassName
	return pv
}

type inventoryServiceAccountShape struct {
	serviceAccountShape
	AutomountServiceAccountToken *bool `json:"automountServiceAccountToken"`
}

func (s *inventoryServiceAccountShape) object() apiObject {
	account := s.serviceAccountShape.object().(*corev1.ServiceAccount)
	account.AutomountServiceAccountToken = s.AutomountServiceAccountToken
	return account
}

type namespaceShape struct {
	Metadata struct {
		labelledIdentity
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status corev1.NamespaceStatus `json:"status"`
}

func (s *namespaceShape) object() apiObject {
	namespace := &corev1.Namespace{ObjectMeta: s.Metadata.labelledIdentity.object(), Status: s.Status}
	namespace.DeletionTimestamp = s.Metadata.DeletionTimestamp
	return namespace
}

// secretShape has no field for the data.
type secretShape struct {
	Metadata struct {
		identity
		Annotations struct {
			Account *string `json:"kubernetes.io/service-account.name"`
		} `json:"annotations"`
	} `json:"metadata"`
	Type corev1.SecretType `json:"type"`
}

func (s *secretShape) object() apiObject {
	secret := &corev1.Secret{ObjectMeta: s.Metadata.object(), Type: s.Type}
	if account := s.Metadata.Annotations.Account; account != nil {
		secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: *account}
	}
	return secret
}

// webhookShape is a webhook of either kind.
type webhookShape struct {
	Name              string                           `json:"name"`
	Rules             []admissionv1.RuleWithOperations `json:"rules"`
	NamespaceSelector *metav1.LabelSelector            `json:"namespaceSelector"`
}

type validatingWebhooksShape struct {
	Metadata identity       `json:"metadata"`
	Webhooks []webhookShape `json:"webhooks"`
}

func (s *validatingWebhooksShape) object() apiObject {
	c := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: s.Metadata.object()}
	for _, w := range s.Webhooks {
		c.Webhooks = append(c.Webhooks, admissionv1.ValidatingWebhook{Name: w.Name, Rules: w.Rules, NamespaceSelector: w.NamespaceSelector})
	}
	return c
}

type mutatingWebhooksShape validatingWebhooksShape

func (s *mutatingWebhooksShape) object() apiObject {
	c := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: s.Metadata.object()}
	for _, w := range s.Webhooks {
		c.Webhooks = append(c.Webhooks, admissionv1.MutatingWebhook{Name: w.Name, Rules: w.Rules, NamespaceSelector: w.NamespaceSelector})
	}
	return c
}

type admissionPolicyShape struct {
	Metadata identity                                  `json:"metadata"`
	Spec     admissionv1.ValidatingAdmissionPolicySpec `json:"spec"`
}

func (s *admissionPolicyShape) object() apiObject {
	return &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: s.Metadata.object(), Spec: s.Spec}
}

type admissionPolicyBindingShape struct {
	Metadata identity                                         `json:"metadata"`
	Spec     admissionv1.ValidatingAdmissionPolicyBindingSpec `json:"spec"`
}

func (s *admissionPolicyBindingShape) object() apiObject {
	return &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: s.Metadata.object(), Spec: s.Spec}
}

// resourceQuotaShape has what tells whether a quota is full.
type resourceQuotaShape struct {
	Metadata identity `json:"metadata"`
	Spec     struct {
		Hard          corev1.ResourceList         `json:"hard"`
		Scopes        []corev1.ResourceQuotaScope `json:"scopes"`
		ScopeSelector *corev1.ScopeSelector       `json:"scopeSelector"`
	} `json:"spec"`
	Status struct {
		Used corev1.ResourceList `json:"used"`
	} `json:"status"`
}

func (s *resourceQuotaShape) object() apiObject {
	quota := &corev1.ResourceQuota{ObjectMeta: s.Metadata.object()}
	quota.Spec = corev1.ResourceQuotaSpec{Hard: s.Spec.Hard, Scopes: s.Spec.Scopes, ScopeSelector: s.Spec.ScopeSelector}
	quota.Status.Used = s.Status.Used
	return quota
}

type runtimeClassShape struct {
	Metadata identity `json:"metadata"`
	Handler  string   `json:"handler"`
}

func (s *runtimeClassShape) object() apiObject {
	return &nodev1.RuntimeClass{ObjectMeta: s.Metadata.object(), Handler: s.Handler}
}
