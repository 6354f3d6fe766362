package review

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// reading decodes the objects of a request: only the fields that the rules for its operation
// read. Other fields may hold any JSON.
type reading interface {
	layout
	// resolve decodes what target skipped. The old reading is nil if the old object is
	// not read; otherwise it is of the same type.
	resolve(p *pairing, old reading)
}

// readings are the kinds of objects that NodeRestriction reads. The rules for pods depend on
// the subresource of the request.
var readings = map[schema.GroupVersionKind]func(subresource string) reading{
	{Version: "v1", Kind: "Pod"}:                                                          readPod,
	{Version: "v1", Kind: "Node"}:                                                         reads[nodeReading],
	{Version: "v1", Kind: "PersistentVolumeClaim"}:                                        reads[claimReading],
	{Group: authenticationv1.GroupName, Version: "v1", Kind: "TokenRequest"}:              reads[tokenReading],
	{Group: certificatesv1.GroupName, Version: "v1", Kind: "CertificateSigningRequest"}:   reads[signingReading],
	{Group: certificatesv1.GroupName, Version: "v1", Kind: "PodCertificateRequest"}:       reads[podCertificateReading],
	{Group: certificatesv1.GroupName, Version: "v1beta1", Kind: "PodCertificateRequest"}:  reads[podCertificateBetaReading],
	{Group: certificatesv1.GroupName, Version: "v1alpha1", Kind: "PodCertificateRequest"}: reads[podCertificateBetaReading],
	{Group: coordinationv1.GroupName, Version: "v1", Kind: "Lease"}:                       onlyName[coordinationv1.Lease],
	{Group: "policy", Version: "v1", Kind: "Eviction"}:                                    onlyName[policyv1.Eviction],
	{Group: "policy", Version: "v1beta1", Kind: "Eviction"}:                               onlyName[policyv1beta1.Eviction],
	{Group: resourcev1.GroupName, Version: "v1", Kind: "ResourceSlice"}:                   slice(sliceV1),
	{Group: resourcev1.GroupName, Version: "v1beta2", Kind: "ResourceSlice"}:              slice(sliceV1beta2),
	{Group: resourcev1.GroupName, Version: "v1beta1", Kind: "ResourceSlice"}:              slice(sliceV1beta1),
	{Group: resourcev1.GroupName, Version: "v1alpha3", Kind: "ResourceSlice"}:             slice(sliceV1alpha3),
	{Group: resourcev1.GroupName, Version: "v1alpha2", Kind: "ResourceSlice"}:             slice(sliceV1alpha2),
	{Group: storagev1.GroupName, Version: "v1", Kind: "CSINode"}:                          reads[csiNodeReading],
}

func reads[T any, P interface {
	*T
	reading
}](string) reading {
	return P(new(T))
}

// complete is embedded in readings that skip nothing.
type complete struct{}

func (complete) resolve(*pairing, reading) {}

// nodeReading has the fields of a Node that the node may not change.
type nodeReading struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name            string                      `json:"name"`
		Labels          value[map[string]string]    `json:"labels"`
		OwnerReferences list[metav1.OwnerReference] `json:"ownerReferences"`
	} `json:"metadata"`
	Spec struct {
		Taints       list[corev1.Taint]       `json:"taints"`
		ConfigSource *corev1.NodeConfigSource `json:"configSource"`
	} `json:"spec"`
}

func (r *nodeReading) target() any { return r }

func (r *nodeReading) resolve(p *pairing, from reading) {
	if from == nil {
		r.Metadata.Labels.resolve(p, "metadata.labels", nil)
		return
	}
	old := from.(*nodeReading)
	r.Metadata.Labels.resolve(p, "metadata.labels", &old.Metadata.Labels)
	r.Metadata.OwnerReferences.resolve(p, "metadata.ownerReferences", &old.Metadata.OwnerReferences)
	r.Spec.Taints.resolve(p, "spec.taints", &old.Spec.Taints)
}

func (r *nodeReading) object() runtime.Object {
	return &corev1.Node{
		TypeMeta: r.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: r.Metadata.Name, Labels: r.Metadata.Labels.decoded, OwnerReferences: r.Metadata.OwnerReferences.decoded,
		},
		//lint:ignore SA1019 NodeRestriction refuses it
		Spec: corev1.NodeSpec{Taints: r.Spec.Taints.decoded, ConfigSource: r.Spec.ConfigSource},
	}
}

// nameReading is for objects of which only the name is read.
type nameReading[T any, P interface {
	*T
	runtime.Object
	metav1.Object
}] struct {
	complete
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

func onlyName[T any, P interface {
	*T
	runtime.Object
	metav1.Object
}](string) reading {
	return &nameReading[T, P]{}
}

func (r *nameReading[T, P]) target() any { return r }

func (r *nameReading[T, P]) object() runtime.Object {
	object := P(new(T))
	object.GetObjectKind().SetGroupVersionKind(r.GroupVersionKind())
	object.SetName(r.Metadata.Name)
	return object
}

// tokenReading has the audiences and the bound object of a token.
type tokenReading struct {
	complete
	metav1.TypeMeta `json:",inline"`
	Spec            struct {
		Audiences      []string                               `json:"audiences"`
		BoundObjectRef *authenticationv1.BoundObjectReference `json:"boundObjectRef"`
	} `json:"spec"`
}

func (r *tokenReading) target() any { return r }

func (r *tokenReading) object() runtime.Object {
	return &authenticationv1.TokenRequest{
		TypeMeta: r.TypeMeta,
		Spec:     authenticationv1.TokenRequestSpec{Audiences: r.Spec.Audiences, BoundObjectRef: r.Spec.BoundObjectRef},
	}
}

// signingReading has the signer and the certificate request.
type signingReading struct {
	complete
	metav1.TypeMeta `json:",inline"`
	Spec            struct {
		Request    []byte `json:"request"`
		SignerName string `json:"signerName"`
	} `json:"spec"`
}

func (r *signingReading) target() any { return r }

func (r *signingReading) object() runtime.Object {
	return &certificatesv1.CertificateSigningRequest{
		TypeMeta: r.TypeMeta,
		Spec:     certificatesv1.CertificateSigningRequestSpec{Request: r.Spec.Request, SignerName: r.Spec.SignerName},
	}
}

// certificateFields identify the node and the pod of a certificate request.
type certificateFields struct {
	complete
	metav1.TypeMeta `json:",inline"`
	Spec            struct {
		SignerName         string         `json:"signerName"`
		PodName            string         `json:"podName"`
		PodUID             types.UID      `json:"podUID"`
		ServiceAccountName string         `json:"serviceAccountName"`
		ServiceAccountUID  types.UID      `json:"serviceAccountUID"`
		NodeName           types.NodeName `json:"nodeName"`
		NodeUID            types.UID      `json:"nodeUID"`
	} `json:"spec"`
}

type (
	podCertificateReading     struct{ certificateFields }
	podCertificateBetaReading struct{ certificateFields }
)

func (r *certificateFields) target() any { return r }

func (r *podCertificateReading) object() runtime.Object {
	s := &r.Spec
	return &certificatesv1.PodCertificateRequest{TypeMeta: r.TypeMeta, Spec: certificatesv1.PodCertificateRequestSpec{
		SignerName: s.SignerName, PodName: s.PodName, PodUID: s.PodUID, ServiceAccountName: s.ServiceAccountName,
		ServiceAccountUID: s.ServiceAccountUID, NodeName: s.NodeName, NodeUID: s.NodeUID,
	}}
}

func (r *podCertificateBetaReading) object() runtime.Object {
	s := &r.Spec
	return &certificatesv1beta1.PodCertificateRequest{TypeMeta: r.TypeMeta, Spec: certificatesv1beta1.PodCertificateRequestSpec{
		SignerName: s.SignerName, PodName: s.PodName, PodUID: s.PodUID, ServiceAccountName: s.ServiceAccountName,
		ServiceAccountUID: s.ServiceAccountUID, NodeName: s.NodeName, NodeUID: s.NodeUID,
	}}
}

// sliceReading has the node that a resource slice names.
type sliceReading struct {
	complete
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	// NodeName is the field of v1alpha2.
	NodeName *string `json:"nodeName"`
	Spec     struct {
		NodeName *string `json:"nodeName"`
	} `json:"spec"`
	build func(*sliceReading) runtime.Object
}

func slice(build func(*sliceReading) runtime.Object) func(string) reading {
	return func(string) reading { return &sliceReading{build: build} }
}

func (r *sliceReading) target() any            { return r }
func (r *sliceReading) object() runtime.Object { return r.build(r) }

func (r *sliceReading) meta() metav1.ObjectMeta { return metav1.ObjectMeta{Name: r.Metadata.Name} }

func sliceV1(r *sliceReading) runtime.Object {
	return &resourcev1.ResourceSlice{
		TypeMeta: r.TypeMeta, ObjectMeta: r.meta(), Spec: resourcev1.ResourceSliceSpec{NodeName: r.Spec.NodeName},
	}
}

func sliceV1beta2(r *sliceReading) runtime.Object {
	return &resourcev1beta2.ResourceSlice{
		TypeMeta: r.TypeMeta, ObjectMeta: r.meta(), Spec: resourcev1beta2.ResourceSliceSpec{NodeName: r.Spec.NodeName},
	}
}

func sliceV1beta1(r *sliceReading) runtime.Object {
	slice := &resourcev1beta1.ResourceSlice{TypeMeta: r.TypeMeta, ObjectMeta: r.meta()}
	if r.Spec.NodeName != nil {
		slice.Spec.NodeName = *r.Spec.NodeName
	}
	return slice
}

func sliceV1alpha3(r *sliceReading) runtime.Object {
	spec := map[string]any{}
	if r.Spec.NodeName != nil {
		spec["nodeName"] = *r.Spec.NodeName
	}
	return untyped(r, "spec", spec)
}

func sliceV1alpha2(r *sliceReading) runtime.Object {
	if r.NodeName == nil {
		return untyped(r, "", nil)
	}
	return untyped(r, "nodeName", *r.NodeName)
}

func untyped(r *sliceReading, field string, content any) runtime.Object {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(r.GroupVersionKind())
	object.SetName(r.Metadata.Name)
	if field != "" {
		object.Object[field] = content
	}
	return object
}

// csiNodeReading has the fields of a CSINode that the node may not change with its status.
type csiNodeReading struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Drivers list[storagev1.CSINodeDriver] `json:"drivers"`
	} `json:"spec"`
}

func (r *csiNodeReading) target() any { return r }

func (r *csiNodeReading) resolve(p *pairing, from reading) {
	if from != nil {
		r.Spec.Drivers.resolve(p, "spec.drivers", &from.(*csiNodeReading).Spec.Drivers)
	}
}

func (r *csiNodeReading) object() runtime.Object {
	return &storagev1.CSINode{
		TypeMeta: r.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: r.Metadata.Name},
		Spec: storagev1.CSINodeSpec{Drivers: r.Spec.Drivers.decoded},
	}
}
