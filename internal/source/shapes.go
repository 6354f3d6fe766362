package source

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// shape is a decoded document; object builds the API object from it.
type shape interface {
	object() apiObject
}

// newShape returns an empty shape of the kind.
func newShape(k kind, forInventory bool) shape {
	if s := inventoryShape(k); forInventory && s != nil {
		return s
	}
	switch k {
	case kindAPIService:
		return &apiServiceShape{}
	case kindPod:
		return &podShape{}
	case kindPersistentVolume:
		return &persistentVolumeShape{}
	case kindPersistentVolumeClaim:
		return &persistentVolumeClaimShape{}
	case kindNode:
		return &nodeShape{}
	case kindNodeScope:
		return &nodeScopeShape{}
	case kindQuarantine:
		return &quarantineShape{}
	case kindServiceAccount:
		return &serviceAccountShape{}
	case kindCSIDriver:
		return &csiDriverShape{}
	case kindVolumeAttachment:
		return &volumeAttachmentShape{}
	case kindResourceSlice:
		return &resourceSliceShape{}
	case kindPodCertificateRequest:
		return &podCertificateRequestShape{}
	case kindRole:
		return &roleShape{}
	case kindClusterRole:
		return &clusterRoleShape{}
	case kindRoleBinding:
		return &roleBindingShape{}
	default:
		return &clusterRoleBindingShape{}
	}
}

type persistentVolumeShape struct {
	Metadata identity                  `json:"metadata"`
	Spec     persistentVolumeSpecShape `json:"spec"`
}

type persistentVolumeSpecShape struct {
	corev1.PersistentVolumeSource
	ClaimRef *struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"claimRef"`
}

func (s *persistentVolumeShape) object() apiObject {
	pv := &corev1.PersistentVolume{ObjectMeta: s.Metadata.object()}
	pv.Spec.PersistentVolumeSource = s.Spec.PersistentVolumeSource
	if ref := s.Spec.ClaimRef; ref != nil {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: ref.Namespace, Name: ref.Name}
	}
	return pv
}

type persistentVolumeClaimShape struct {
	Metadata identity       `json:"metadata"`
	Spec     claimSpecShape `json:"spec"`
}

func (s *persistentVolumeClaimShape) object() apiObject {
	return &corev1.PersistentVolumeClaim{ObjectMeta: s.Metadata.object(), Spec: s.Spec.object()}
}

type claimSpecShape struct {
	VolumeName       string  `json:"volumeName"`
	StorageClassName *string `json:"storageClassName"`
}

func (s *claimSpecShape) object() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{VolumeName: s.VolumeName, StorageClassName: s.StorageClassName}
}

type nodeShape struct {
	Metadata labelledIdentity `json:"metadata"`
	Status   nodeStatusShape  `json:"status"`
}

type nodeStatusShape struct {
	NodeInfo struct {
		KubeletVersion string `json:"kubeletVersion"`
	} `json:"nodeInfo"`
}

func (s *nodeShape) object() apiObject {
	return &corev1.Node{
		ObjectMeta: s.Metadata.object(),
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: s.Status.NodeInfo.KubeletVersion}},
	}
}

type serviceAccountShape struct {
	Metadata identity `json:"metadata"`
}

func (s *serviceAccountShape) object() apiObject {
	return &corev1.ServiceAccount{ObjectMeta: s.Metadata.object()}
}

type csiDriverShape struct {
	Metadata identity `json:"metadata"`
	Spec     struct {
		TokenRequests []storagev1.TokenRequest `json:"tokenRequests"`
	} `json:"spec"`
}

func (s *csiDriverShape) object() apiObject {
	return &storagev1.CSIDriver{
		ObjectMeta: s.Metadata.object(),
		Spec:       storagev1.CSIDriverSpec{TokenRequests: s.Spec.TokenRequests},
	}
}

type volumeAttachmentShape struct {
	Metadata identity `json:"metadata"`
	Spec     struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
}

func (s *volumeAttachmentShape) object() apiObject {
	return &storagev1.VolumeAttachment{
		ObjectMeta: s.Metadata.object(),
		Spec:       storagev1.VolumeAttachmentSpec{NodeName: s.Spec.NodeName},
	}
}

type resourceSliceShape struct {
	Metadata identity `json:"metadata"`
	Spec     struct {
		NodeName *string `json:"nodeName"`
	} `json:"spec"`
	// NodeName is the node in v1alpha2.
	NodeName *string `json:"nodeName"`
}

func (s *resourceSliceShape) object() apiObject {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: s.Metadata.object(),
		Spec:       resourcev1.ResourceSliceSpec{NodeName: s.Spec.NodeName},
	}
	if s.Spec.NodeName == nil {
		slice.Spec.NodeName = s.NodeName
	}
	return slice
}

type podCertificateRequestShape struct {
	Metadata identity `json:"metadata"`
	Spec     struct {
		NodeName types.NodeName `json:"nodeName"`
	} `json:"spec"`
}

func (s *podCertificateRequestShape) object() apiObject {
	return &certificatesv1.PodCertificateRequest{
		ObjectMeta: s.Metadata.object(),
		Spec:       certificatesv1.PodCertificateRequestSpec{NodeName: s.Spec.NodeName},
	}
}

// restorableIdentity also says whether the API server restores an object when it starts.
type restorableIdentity struct {
	labelledIdentity
	Annotations struct {
		AutoUpdate string `json:"rbac.authorization.kubernetes.io/autoupdate"`
	} `json:"annotations"`
}

func (m restorableIdentity) object() metav1.ObjectMeta {
	o := m.labelledIdentity.object()
	if m.Annotations.AutoUpdate != "" {
		o.Annotations = map[string]string{autoUpdate: m.Annotations.AutoUpdate}
	}
	return o
}

type roleShape struct {
	Metadata restorableIdentity  `json:"metadata"`
	Rules    []rbacv1.PolicyRule `json:"rules"`
}

func (s *roleShape) object() apiObject {
	return &rbacv1.Role{ObjectMeta: s.Metadata.object(), Rules: s.Rules}
}

type clusterRoleShape struct {
	Metadata        restorableIdentity      `json:"metadata"`
	Rules           []rbacv1.PolicyRule     `json:"rules"`
	AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
}

func (s *clusterRoleShape) object() apiObject {
	return &rbacv1.ClusterRole{ObjectMeta: s.Metadata.object(), Rules: s.Rules, AggregationRule: s.AggregationRule}
}

type roleBindingShape struct {
	Metadata restorableIdentity `json:"metadata"`
	Subjects []rbacv1.Subject   `json:"subjects"`
	RoleRef  rbacv1.RoleRef     `json:"roleRef"`
}

func (s *roleBindingShape) object() apiObject {
	return &rbacv1.RoleBinding{ObjectMeta: s.Metadata.object(), Subjects: s.Subjects, RoleRef: s.RoleRef}
}

type clusterRoleBindingShape roleBindingShape

func (s *clusterRoleBindingShape) object() apiObject {
	return &rbacv1.ClusterRoleBinding{ObjectMeta: s.Metadata.object(), Subjects: s.Subjects, RoleRef: s.RoleRef}
}
