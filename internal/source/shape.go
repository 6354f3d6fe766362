package source

import (
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The shapes below have only the fields of API objects that are decoded; other
// fields, most of the text, are skipped. trim decides what is kept; a test compares
// the two.

// identity is the metadata of any object.
type identity struct {
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	UID       types.UID `json:"uid"`
}

func (m identity) object() metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID}
}

type labelledIdentity struct {
	identity
	Labels map[string]string `json:"labels"`
}

func (m labelledIdentity) object() metav1.ObjectMeta {
	o := m.identity.object()
	o.Labels = m.Labels
	return o
}

type podShape struct {
	Metadata struct {
		identity
		Annotations struct {
			Mirror annotation `json:"kubernetes.io/config.mirror"`
		} `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		NodeName            string                        `json:"nodeName"`
		ServiceAccountName  string                        `json:"serviceAccountName"`
		ServiceAccount      string                        `json:"serviceAccount"`
		ImagePullSecrets    []corev1.LocalObjectReference `json:"imagePullSecrets"`
		InitContainers      []containerShape              `json:"initContainers"`
		Containers          []containerShape              `json:"containers"`
		EphemeralContainers []containerShape              `json:"ephemeralContainers"`
		Volumes             []volumeShape                 `json:"volumes"`
		ResourceClaims      []corev1.PodResourceClaim     `json:"resourceClaims"`
	} `json:"spec"`
	Status podStatusShape `json:"status"`
}

type podStatusShape struct {
	ResourceClaimStatuses       []corev1.PodResourceClaimStatus `json:"resourceClaimStatuses"`
	ExtendedResourceClaimStatus *struct {
		ResourceClaimName string `json:"resourceClaimName"`
	} `json:"extendedResourceClaimStatus"`
}

// annotation records whether an annotation is present.
type annotation bool

// UnmarshalJSONFrom treats null as an empty string, as Kubernetes does.
func (a *annotation) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	*a = true
	if dec.PeekKind() == jsontext.KindNull {
		return dec.SkipValue()
	}
	var value string
	return json.UnmarshalDecode(dec, &value)
}

type containerShape struct {
	Name string `json:"name"`
	Env  []struct {
		ValueFrom *struct {
			SecretKeyRef    *corev1.LocalObjectReference `json:"secretKeyRef"`
			ConfigMapKeyRef *corev1.LocalObjectReference `json:"configMapKeyRef"`
		} `json:"valueFrom"`
	} `json:"env"`
	EnvFrom []struct {
		SecretRef    *corev1.LocalObjectReference `json:"secretRef"`
		ConfigMapRef *corev1.LocalObjectReference `json:"configMapRef"`
	} `json:"envFrom"`
}

// volumeShape leaves out the templates of ephemeral volumes, which are large.
type volumeShape struct {
	Name string `json:"name"`
	corev1.VolumeSource
	Ephemeral *struct{} `json:"ephemeral"`
}

func (s *podShape) object() apiObject {
	pod := &corev1.Pod{
		ObjectMeta: s.Metadata.object(),
		Spec: corev1.PodSpec{
			NodeName:                 s.Spec.NodeName,
			ServiceAccountName:       s.Spec.ServiceAccountName,
			DeprecatedServiceAccount: s.Spec.ServiceAccount,
			ImagePullSecrets:         s.Spec.ImagePullSecrets,
			InitContainers:           containers(s.Spec.InitContainers),
			Containers:               containers(s.Spec.Containers),
			Volumes:                  make([]corev1.Volume, len(s.Spec.Volumes)),
			ResourceClaims:           s.Spec.ResourceClaims,
		},
		Status: corev1.PodStatus{ResourceClaimStatuses: s.Status.ResourceClaimStatuses},
	}
	if s.Metadata.Annotations.Mirror {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: ""}
	}
	for _, c := range containers(s.Spec.EphemeralContainers) {
		pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name, Env: c.Env, EnvFrom: c.EnvFrom},
		})
	}
	for i := range s.Spec.Volumes {
		v := &s.Spec.Volumes[i]
		pod.Spec.Volumes[i] = corev1.Volume{Name: v.Name, VolumeSource: v.VolumeSource}
		if v.Ephemeral != nil {
			pod.Spec.Volumes[i].Ephemeral = &corev1.EphemeralVolumeSource{}
		}
	}
	if extended := s.Status.ExtendedResourceClaimStatus; extended != nil {
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: extended.ResourceClaimName}
	}
	return pod
}

// containers builds only the containers that trim keeps, because a Container is a
// large struct.
func containers(shapes []containerShape) []corev1.Container {
	var built []corev1.Container
	for i := range shapes {
		if c := shapes[i].container(); len(c.Env)+len(c.EnvFrom) > 0 {
			built = append(built, c)
		}
	}
	return built
}

func (s *containerShape) container() corev1.Container {
	c := corev1.Container{Name: s.Name}
	for _, e := range s.Env {
		if e.ValueFrom == nil {
			continue
		}
		from := &corev1.EnvVarSource{}
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			from.SecretKeyRef = &corev1.SecretKeySelector{LocalObjectReference: *ref}
		}
		if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil {
			from.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{LocalObjectReference: *ref}
		}
		c.Env = append(c.Env, corev1.EnvVar{ValueFrom: from})
	}
	for _, e := range s.EnvFrom {
		from := corev1.EnvFromSource{}
		if e.SecretRef != nil {
			from.SecretRef = &corev1.SecretEnvSource{LocalObjectReference: *e.SecretRef}
		}
		if e.ConfigMapRef != nil {
			from.ConfigMapRef = &corev1.ConfigMapEnvSource{LocalObjectReference: *e.ConfigMapRef}
		}
		c.EnvFrom = append(c.EnvFrom, from)
	}
	return c
}
