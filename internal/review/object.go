package review

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
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

	"github.com/node-authorizer/node-authorizer/internal/badjson"
)

// layout decodes the JSON of one kind.
type layout interface {
	// target returns the value to decode into.
	target() any
	// object returns the decoded object. It is called after decoding into target.
	object() runtime.Object
}

// layouts are the kinds of objects that NodeRestriction reads, in the versions that API
// servers of the supported minors serve. Versions that k8s.io/api no longer has are decoded
// as unstructured objects. Layouts are for objects that users give on the command line;
// objects of AdmissionReviews, which may be hostile, have readings.
var layouts = map[schema.GroupVersionKind]func() layout{
	{Version: "v1", Kind: "Pod"}:                                                          whole[corev1.Pod],
	{Version: "v1", Kind: "Node"}:                                                         func() layout { return &nodeLayout{} },
	{Version: "v1", Kind: "PersistentVolumeClaim"}:                                        whole[corev1.PersistentVolumeClaim],
	{Group: authenticationv1.GroupName, Version: "v1", Kind: "TokenRequest"}:              whole[authenticationv1.TokenRequest],
	{Group: certificatesv1.GroupName, Version: "v1", Kind: "CertificateSigningRequest"}:   whole[certificatesv1.CertificateSigningRequest],
	{Group: certificatesv1.GroupName, Version: "v1", Kind: "PodCertificateRequest"}:       whole[certificatesv1.PodCertificateRequest],
	{Group: certificatesv1.GroupName, Version: "v1beta1", Kind: "PodCertificateRequest"}:  whole[certificatesv1beta1.PodCertificateRequest],
	{Group: certificatesv1.GroupName, Version: "v1alpha1", Kind: "PodCertificateRequest"}: whole[certificatesv1beta1.PodCertificateRequest],
	{Group: coordinationv1.GroupName, Version: "v1", Kind: "Lease"}:                       whole[coordinationv1.Lease],
	{Group: "policy", Version: "v1", Kind: "Eviction"}:                                    whole[policyv1.Eviction],
	{Group: "policy", Version: "v1beta1", Kind: "Eviction"}:                               whole[policyv1beta1.Eviction],
	{Group: resourcev1.GroupName, Version: "v1", Kind: "ResourceSlice"}:                   whole[resourcev1.ResourceSlice],
	{Group: resourcev1.GroupName, Version: "v1beta2", Kind: "ResourceSlice"}:              whole[resourcev1beta2.ResourceSlice],
	{Group: resourcev1.GroupName, Version: "v1beta1", Kind: "ResourceSlice"}:              whole[resourcev1beta1.ResourceSlice],
	{Group: resourcev1.GroupName, Version: "v1alpha3", Kind: "ResourceSlice"}:             whole[unstructured.Unstructured],
	{Group: resourcev1.GroupName, Version: "v1alpha2", Kind: "ResourceSlice"}:             whole[unstructured.Unstructured],
	{Group: storagev1.GroupName, Version: "v1", Kind: "CSINode"}:                          whole[storagev1.CSINode],
}

// wholeLayout decodes everything.
type wholeLayout[T any, P interface {
	*T
	runtime.Object
}] struct{ value T }

func whole[T any, P interface {
	*T
	runtime.Object
}]() layout {
	return &wholeLayout[T, P]{}
}

func (l *wholeLayout[T, P]) target() any            { return &l.value }
func (l *wholeLayout[T, P]) object() runtime.Object { return P(&l.value) }

// nodeLayout omits the status, which is most of the text: no rule reads it.
type nodeLayout struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            corev1.NodeSpec   `json:"spec"`
}

func (l *nodeLayout) target() any { return l }

func (l *nodeLayout) object() runtime.Object {
	return &corev1.Node{TypeMeta: l.TypeMeta, ObjectMeta: l.Metadata, Spec: l.Spec}
}

// DecodeObject decodes a JSON object of the given kind as kube-apiserver does.
// NodeRestriction must read this kind. Fields that no rule reads may be omitted.
func DecodeObject(text []byte, kind schema.GroupVersionKind) (runtime.Object, error) {
	newLayout, known := layouts[kind]
	if !known {
		return nil, unknownKind(kind)
	}
	l := newLayout()
	if err := decodeInto(text, l, kind); err != nil {
		return nil, err
	}
	return l.object(), nil
}

// decodeInto decodes an object of the given kind.
func decodeInto(text []byte, into layout, kind schema.GroupVersionKind) error {
	decodeErr := json.Unmarshal(text, into.target(), asKubernetes())
	if into.object().GetObjectKind().GroupVersionKind() != kind {
		if header, ok := readHeader(text); ok {
			return fmt.Errorf("kind %q of apiVersion %q: want %s of %s", header.Kind, header.APIVersion, kind.Kind, kind.GroupVersion())
		}
	}
	if decodeErr != nil {
		return newObjectError(decodeErr)
	}
	return nil
}

func unknownKind(kind schema.GroupVersionKind) error {
	var known []string
	for k := range layouts {
		if k.GroupKind() == kind.GroupKind() {
			known = append(known, k.GroupVersion().String())
		}
	}
	if len(known) == 0 {
		return fmt.Errorf("kind %q of apiVersion %q: no rule is about this kind", kind.Kind, kind.GroupVersion())
	}
	slices.Sort(known)
	return fmt.Errorf("kind %q of apiVersion %q: want %s of %s", kind.Kind, kind.GroupVersion(), kind.Kind, strings.Join(known, " or "))
}

// objectError is an error in the JSON of an object, with the field.
type objectError struct {
	field string
	err   error
}

func newObjectError(err error) *objectError {
	broken := &objectError{err: badjson.What(err)}
	if semantic := new(json.SemanticError); errors.As(err, &semantic) {
		broken.field = badjson.FieldPath(semantic.JSONPointer)
	}
	return broken
}

func (e *objectError) Error() string {
	if e.field == "" {
		return e.err.Error()
	}
	return e.field + ": " + e.err.Error()
}

func (e *objectError) Unwrap() error { return e.err }
