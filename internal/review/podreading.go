package review

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// readPod returns the reading of a pod: for a create, or for an update of the status.
func readPod(subresource string) reading {
	if subresource == "" {
		return &mirrorPodReading{}
	}
	return &podStatusReading{}
}

// podStatusReading has the node of a pod, and the fields that must not change with its
// status.
type podStatusReading struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name   string                   `json:"name"`
		Labels value[map[string]string] `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		ResourceClaims list[corev1.PodResourceClaimStatus] `json:"resourceClaimStatuses"`
		Extended       *struct {
			RequestMappings   list[corev1.ContainerExtendedResourceRequest] `json:"requestMappings"`
			ResourceClaimName string                                        `json:"resourceClaimName"`
		} `json:"extendedResourceClaimStatus"`
		NodeAllocatable list[corev1.NodeAllocatableResourceClaimStatus] `json:"nodeAllocatableResourceClaimStatuses"`
	} `json:"status"`
}

func (r *podStatusReading) target() any { return r }

func (r *podStatusReading) resolve(p *pairing, from reading) {
	if from == nil {
		return
	}
	old := from.(*podStatusReading)
	r.Metadata.Labels.resolve(p, "metadata.labels", &old.Metadata.Labels)
	s, oldS := &r.Status, &old.Status
	s.ResourceClaims.resolve(p, "status.resourceClaimStatuses", &oldS.ResourceClaims)
	if s.Extended != nil && oldS.Extended != nil {
		s.Extended.RequestMappings.resolve(p, "status.extendedResourceClaimStatus.requestMappings", &oldS.Extended.RequestMappings)
	}
	s.NodeAllocatable.resolve(p, "status.nodeAllocatableResourceClaimStatuses", &oldS.NodeAllocatable)
}

func (r *podStatusReading) object() runtime.Object {
	pod := &corev1.Pod{
		TypeMeta: r.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: r.Metadata.Name, Labels: r.Metadata.Labels.decoded},
		Spec: corev1.PodSpec{NodeName: r.Spec.NodeName},
		Status: corev1.PodStatus{
			ResourceClaimStatuses: r.Status.ResourceClaims.decoded, NodeAllocatableResourceClaimStatuses: r.Status.NodeAllocatable.decoded,
		},
	}
	if extended := r.Status.Extended; extended != nil {
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
			RequestMappings: extended.RequestMappings.decoded, ResourceClaimName: extended.ResourceClaimName,
		}
	}
	return pod
}

// mirrorPodReading has the fields that make a pod a mirror pod of a node, and the first
// reference of each kind: a refusal names the first.
type mirrorPodReading struct {
	complete
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Annotations     mirrorAnnotation `json:"annotations"`
		OwnerReferences firstOwner       `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		NodeName                 string          `json:"nodeName"`
		ServiceAccountName       string          `json:"serviceAccountName"`
		DeprecatedServiceAccount string          `json:"serviceAccount"`
		ImagePullSecrets         firstSecret     `json:"imagePullSecrets"`
		InitContainers           firstContainer  `json:"initContainers"`
		Containers               firstContainer  `json:"containers"`
		EphemeralContainers      firstContainer  `json:"ephemeralContainers"`
		Volumes                  distinctVolumes `json:"volumes"`
		ResourceClaims           firstClaim      `json:"resourceClaims"`
	} `json:"spec"`
}

func (r *mirrorPodReading) target() any { return r }

func (r *mirrorPodReading) object() runtime.Object {
	s := &r.Spec
	pod := &corev1.Pod{
		TypeMeta:   r.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Annotations: r.Metadata.Annotations, OwnerReferences: r.Metadata.OwnerReferences},
		Spec: corev1.PodSpec{
			NodeName: s.NodeName, ServiceAccountName: s.ServiceAccountName, DeprecatedServiceAccount: s.DeprecatedServiceAccount,
			ImagePullSecrets: s.ImagePullSecrets, InitContainers: s.InitContainers, Containers: s.Containers,
			Volumes: s.Volumes.objects(), ResourceClaims: s.ResourceClaims,
		},
	}
	for _, c := range s.EphemeralContainers {
		common := corev1.EphemeralContainerCommon{Name: c.Name, Env: c.Env, EnvFrom: c.EnvFrom}
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: common})
	}
	return pod
}

// mirrorAnnotation keeps only the annotation of mirror pods.
type mirrorAnnotation map[string]string

// UnmarshalJSONFrom reads the annotations.
func (m *mirrorAnnotation) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	if d.PeekKind() != jsontext.KindBeginObject {
		return json.UnmarshalDecode(d, (*map[string]string)(m)) // null, or an error
	}
	return eachMember(d, func(key string) error {
		if key != corev1.MirrorPodAnnotationKey {
			return d.SkipValue()
		}
		var annotation string
		err := json.UnmarshalDecode(d, &annotation)
		*m = mirrorAnnotation{corev1.MirrorPodAnnotationKey: annotation}
		return err
	})
}

// maxOwners is the maximum number of owners that are counted.
const maxOwners = 1000

// firstOwner keeps the first owner and the number of owners.
type firstOwner []metav1.OwnerReference

// UnmarshalJSONFrom reads the owners.
func (f *firstOwner) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*f = nil
	return eachEntry(d, func(o *metav1.OwnerReference) {
		switch {
		case len(*f) == 0:
			*f = append(*f, *o)
		case len(*f) < maxOwners:
			*f = append(*f, metav1.OwnerReference{})
		}
	})
}

// nameOf is a reference to an object by its name.
type nameOf struct {
	Name string `json:"name"`
}

func (n *nameOf) isSet() bool { return n != nil && n.Name != "" }

// firstSecret keeps the first reference that names a secret.
type firstSecret []corev1.LocalObjectReference

// UnmarshalJSONFrom reads the references.
func (f *firstSecret) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*f = nil
	return eachEntry(d, func(n *nameOf) {
		if len(*f) == 0 && n.isSet() {
			*f = append(*f, corev1.LocalObjectReference{Name: n.Name})
		}
	})
}

// firstClaim keeps one entry, if there are any.
type firstClaim []corev1.PodResourceClaim

// UnmarshalJSONFrom reads the claims.
func (f *firstClaim) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*f = nil
	return eachEntry(d, func(*struct{}) { *f = firstClaim{{}} })
}

// firstContainer keeps the first container whose environment refers to an object.
type firstContainer []corev1.Container

// UnmarshalJSONFrom reads the containers.
func (f *firstContainer) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*f = nil
	return eachEntry(d, func(c *struct {
		Name    string       `json:"name"`
		Env     firstEnv     `json:"env"`
		EnvFrom firstEnvFrom `json:"envFrom"`
	},
	) {
		if len(*f) == 0 && len(c.Env)+len(c.EnvFrom) > 0 {
			*f = append(*f, corev1.Container{Name: c.Name, Env: c.Env, EnvFrom: c.EnvFrom})
		}
	})
}

// firstEnv keeps the first variable that refers to an object.
type firstEnv []corev1.EnvVar

// UnmarshalJSONFrom reads the variables.
func (f *firstEnv) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*f = nil
	return eachEntry(d, func(v *struct {
		ValueFrom *struct {
			SecretKeyRef    *nameOf `json:"secretKeyRef"`
			ConfigMapKeyRef *nameOf `json:"configMapKeyRef"`
		} `json:"valueFrom"`
	},
	) {
		if len(*f) > 0 || v.ValueFrom == nil {
			return
		}
		from := &corev1.EnvVarSource{}
		if v.ValueFrom.SecretKeyRef.isSet() {
			from.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference(*v.ValueFrom.SecretKeyRef)}
		}
		if v.ValueFrom.ConfigMapKeyRef.isSet() {
			from.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference(*v.ValueFrom.ConfigMapKeyRef),
			}
		}
		if from.SecretKeyRef != nil || from.ConfigMapKeyRef != nil {
			*f = append(*f, corev1.EnvVar{ValueFrom: from})
		}
	})
}

// firstEnvFrom keeps the first source that refers to an object.
type firstEnvFrom []corev1.EnvFromSource

// UnmarshalJSONFrom reads the sources.
func (f *firstEnvFrom) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	*f = nil
	return eachEntry(d, func(s *struct {
		SecretRef    *nameOf `json:"secretRef"`
		ConfigMapRef *nameOf `json:"configMapRef"`
	},
	) {
		if len(*f) > 0 || !s.SecretRef.isSet() && !s.ConfigMapRef.isSet() {
			return
		}
		source := corev1.EnvFromSource{}
		if s.SecretRef.isSet() {
			source.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference(*s.SecretRef)}
		}
		if s.ConfigMapRef.isSet() {
			source.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference(*s.ConfigMapRef)}
		}
		*f = append(*f, source)
	})
}
