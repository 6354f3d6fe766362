package review

import (
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// Objects of AdmissionReviews may be hostile. They are decoded into types of k8s.io/api, except for what rules do not
// read. So an object takes a small multiple of the memory of its text.

// reading says how values of a type are decoded.
type reading struct {
	of reflect.Type
	by *json.Unmarshalers
}

// The options are made once, because they note how each type is decoded.
var (
	// readWhole is for objects that users give. No rule reads the status of a node, which is most of its text.
	readWhole = optionsOf(syntax(), []reading{skip[corev1.NodeStatus](), shortQuantities()})

	readMirrorPod = optionsOf(checked(), slices.Concat(readings(), podReadings(), mirrorPodReadings()))
	readPodStatus = optionsOf(checked(), slices.Concat(readings(), podReadings(), podStatusReadings()))
	readOther     = optionsOf(checked(), slices.Concat(readings(), otherReadings()))
)

func optionsOf(syntax json.Options, all []reading) json.Options {
	by := make([]*json.Unmarshalers, len(all))
	for i, r := range all {
		by[i] = r.by
	}
	return json.JoinOptions(syntax, json.WithUnmarshalers(json.JoinUnmarshalers(by...)))
}

// readOnly returns the options for decoding only what rules read of an object of a kind. The rules for pods depend on
// the subresource of the request.
func readOnly(kind schema.GroupVersionKind, subresource string) json.Options {
	switch {
	case kind != corev1.SchemeGroupVersion.WithKind("Pod"):
		return readOther
	case subresource == "":
		return readMirrorPod
	}
	return readPodStatus
}

// readings are the readings of all kinds.
func readings() []reading {
	return []reading{skip[[]metav1.ManagedFieldsEntry](), bounded[metav1.OwnerReference](), shortQuantities()}
}

func podReadings() []reading {
	return []reading{
		skip[corev1.Affinity](), skip[[]corev1.Toleration](), skip[[]corev1.HostAlias](), skip[corev1.PodSecurityContext](),
		skip[[]corev1.TopologySpreadConstraint](), skip[corev1.ResourceRequirements](), skip[corev1.ResourceList](),
		first(func(*corev1.PodResourceClaim) bool { return true }),
	}
}

// mirrorPodReadings are for new pods: the fields that make a pod a mirror pod of a node, and the first
// reference of each kind, because a refusal names the first.
func mirrorPodReadings() []reading {
	return []reading{
		skip[corev1.PodStatus](), skip[[]corev1.ContainerPort](), skip[[]corev1.ContainerResizePolicy](), skip[[]corev1.VolumeMount](),
		skip[[]corev1.VolumeDevice](), skip[corev1.Probe](), skip[corev1.Lifecycle](), skip[[]corev1.KeyToPath](),
		skip[[]corev1.DownwardAPIVolumeFile](), skip[metav1.LabelSelector](), skip[corev1.PersistentVolumeClaimTemplate](),
		mirrorAnnotation(),
		first(func(r *corev1.LocalObjectReference) bool { return r.Name != "" }),
		first(func(c *corev1.Container) bool { return len(c.Env)+len(c.EnvFrom) > 0 }),
		first(func(c *corev1.EphemeralContainer) bool { return len(c.Env)+len(c.EnvFrom) > 0 }),
		first(func(v *corev1.EnvVar) bool {
			from := v.ValueFrom
			return from != nil && (from.SecretKeyRef != nil && from.SecretKeyRef.Name != "" ||
				from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Name != "")
		}),
		first(func(s *corev1.EnvFromSource) bool {
			return s.SecretRef != nil && s.SecretRef.Name != "" || s.ConfigMapRef != nil && s.ConfigMapRef.Name != ""
		}),
		firstOfEach(noderestriction.VolumeReferences),
		firstOfEach(func(p *corev1.VolumeProjection) [3]string {
			source := &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{*p}}
			return noderestriction.VolumeReferences(&corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: source}})
		}),
	}
}

// mirrorAnnotation keeps only the annotation of mirror pods. No rule reads another map of a new pod.
func mirrorAnnotation() reading {
	return reading{reflect.TypeFor[map[string]string](), json.UnmarshalFromFunc(func(d *jsontext.Decoder, into *map[string]string) error {
		*into = nil
		return eachMember(d, func(key string) error {
			if key != corev1.MirrorPodAnnotationKey {
				return d.SkipValue()
			}
			var annotation string
			err := json.UnmarshalDecode(d, &annotation)
			*into = map[string]string{key: annotation}
			return err
		})
	})}
}

// podStatusReadings are for updates of the status: the node of a pod, and the fields that must not change with its
// status.
func podStatusReadings() []reading {
	return []reading{
		skip[[]corev1.Container](), skip[[]corev1.EphemeralContainer](), skip[[]corev1.Volume](), skip[[]corev1.PodCondition](),
		skip[[]corev1.ContainerStatus](), skip[[]corev1.PodVolumeHealth](),
		bounded[corev1.ContainerExtendedResourceRequest](), bounded[corev1.NodeAllocatableResourceClaimStatus](),
		bounded[corev1.NodeAllocatableOverheadResources](),
	}
}

// otherReadings are for all kinds except pods. Of a claim, rules compare nearly all fields.
func otherReadings() []reading {
	return []reading{
		skip[corev1.NodeStatus](), bounded[corev1.Taint](),
		skip[[]corev1.PersistentVolumeClaimCondition](), bounded[metav1.LabelSelectorRequirement](),
		bounded[corev1.VolumeHealthCondition](),
		skip[[]certificatesv1.CertificateSigningRequestCondition](), skip[[]metav1.Condition](),
		bounded[storagev1.CSINodeDriver](), skip[storagev1.CSINodeStatus](),
		skip[corev1.NodeSelector](), skip[[]resourcev1.Device](), skip[[]resourcev1.CounterSet](),
		skip[[]resourcev1beta2.Device](), skip[[]resourcev1beta2.CounterSet](),
		skip[[]resourcev1beta1.Device](), skip[[]resourcev1beta1.CounterSet](),
	}
}
