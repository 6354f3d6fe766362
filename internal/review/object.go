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

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

// kinds are the kinds of objects that NodeRestriction reads, in the versions that API
// servers of the supported minors serve.
var kinds = map[schema.GroupVersionKind]func() decodable{
	{Version: "v1", Kind: "Pod"}:                                                          typed[corev1.Pod],
	{Version: "v1", Kind: "Node"}:                                                         typed[corev1.Node],
	{Version: "v1", Kind: "PersistentVolumeClaim"}:                                        typed[corev1.PersistentVolumeClaim],
	{Group: authenticationv1.GroupName, Version: "v1", Kind: "TokenRequest"}:              typed[authenticationv1.TokenRequest],
	{Group: certificatesv1.GroupName, Version: "v1", Kind: "CertificateSigningRequest"}:   typed[certificatesv1.CertificateSigningRequest],
	{Group: certificatesv1.GroupName, Version: "v1", Kind: "PodCertificateRequest"}:       typed[certificatesv1.PodCertificateRequest],
	{Group: certificatesv1.GroupName, Version: "v1beta1", Kind: "PodCertificateRequest"}:  typed[certificatesv1beta1.PodCertificateRequest],
	{Group: certificatesv1.GroupName, Version: "v1alpha1", Kind: "PodCertificateRequest"}: typed[certificatesv1beta1.PodCertificateRequest],
	{Group: coordinationv1.GroupName, Version: "v1", Kind: "Lease"}:                       typed[coordinationv1.Lease],
	{Group: "policy", Version: "v1", Kind: "Eviction"}:                                    typed[policyv1.Eviction],
	{Group: "policy", Version: "v1beta1", Kind: "Eviction"}:                               typed[policyv1beta1.Eviction],
	{Group: resourcev1.GroupName, Version: "v1", Kind: "ResourceSlice"}:                   typed[resourcev1.ResourceSlice],
	{Group: resourcev1.GroupName, Version: "v1beta2", Kind: "ResourceSlice"}:              typed[resourcev1beta2.ResourceSlice],
	{Group: resourcev1.GroupName, Version: "v1beta1", Kind: "ResourceSlice"}:              typed[resourcev1beta1.ResourceSlice],
	{Group: resourcev1.GroupName, Version: "v1alpha3", Kind: "ResourceSlice"}:             untyped,
	{Group: resourcev1.GroupName, Version: "v1alpha2", Kind: "ResourceSlice"}:             untyped,
	{Group: storagev1.GroupName, Version: "v1", Kind: "CSINode"}:                          typed[storagev1.CSINode],
}

// decodable is an object with the value that its JSON is decoded into.
type decodable interface {
	target() any
	object() runtime.Object
}

func typed[T any, P interface {
	*T
	runtime.Object
}]() decodable {
	return ofType[T, P]{new(T)}
}

type ofType[T any, P interface {
	*T
	runtime.Object
}] struct{ value *T }

func (o ofType[T, P]) target() any            { return o.value }
func (o ofType[T, P]) object() runtime.Object { return P(o.value) }

func untyped() decodable { return &oldSlice{} }

// oldSlice has the fields that are read of a ResourceSlice in a version that k8s.io/api no longer has. The node is in
// spec since v1alpha3.
type oldSlice struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        struct {
		Name string `json:"name"`
	} `json:"metadata"`
	NodeName *string `json:"nodeName"`
	Spec     struct {
		NodeName *string `json:"nodeName"`
	} `json:"spec"`
}

func (s *oldSlice) target() any { return s }

func (s *oldSlice) object() runtime.Object {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(s.GroupVersionKind())
	object.SetName(s.Metadata.Name)
	if s.NodeName != nil {
		object.Object["nodeName"] = *s.NodeName
	}
	if s.Spec.NodeName != nil {
		object.Object["spec"] = map[string]any{"nodeName": *s.Spec.NodeName}
	}
	return object
}

// DecodeObject decodes a JSON object of the given kind. NodeRestriction must read this kind. Fields that no rule reads may be
// omitted.
func DecodeObject(text []byte, kind schema.GroupVersionKind) (runtime.Object, error) {
	return decodeObject(text, kind, readWhole)
}

// decodeObject decodes an object of the given kind.
func decodeObject(text []byte, kind schema.GroupVersionKind, options json.Options) (runtime.Object, error) {
	newObject, known := kinds[kind]
	if !known {
		return nil, unknownKind(kind)
	}
	o := newObject()
	if err := decodeInto(text, o.target(), kind, options); err != nil {
		return nil, err
	}
	return o.object(), nil
}

// decodeInto decodes an object of the given kind into a value.
func decodeInto(text []byte, into any, kind schema.GroupVersionKind, options json.Options) error {
	header, err := readHeader(text)
	switch {
	case err != nil:
		return newObjectError(err)
	case header.GroupVersionKind() != kind:
		return fmt.Errorf("kind %q of apiVersion %q: want %s of %s", header.Kind, header.APIVersion, kind.Kind, kind.GroupVersion())
	}
	if err := json.Unmarshal(text, into, options); err != nil {
		return newObjectError(err)
	}
	return nil
}

func unknownKind(kind schema.GroupVersionKind) error {
	var known []string
	for k := range kinds {
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
	broken := &objectError{err: strictjson.ExplainWithoutPlace(err)}
	if semantic := new(json.SemanticError); errors.As(err, &semantic) {
		broken.field = strictjson.FieldPath(semantic.JSONPointer)
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
