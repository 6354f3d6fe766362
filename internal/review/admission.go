package review

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// Admit evaluates a write by NodeRestriction. It must be safe for concurrent use and must
// not keep the request.
type Admit func(ctx context.Context, req *noderestriction.Request) noderestriction.Answer

// Reads reports which objects of a request have to be decoded. They are not set yet.
type Reads func(req *noderestriction.Request) (object, oldObject bool)

// AdmissionReview is an admission request of an API server.
type AdmissionReview struct {
	uid     string
	request noderestriction.Request
}

const (
	admissionKind    = "AdmissionReview"
	admissionVersion = "admission.k8s.io/v1"
	wantAdmission    = admissionKind + " of " + admissionVersion
)

// DecodeAdmission decodes an AdmissionReview of admission.k8s.io/v1 with its request. It decodes the objects that reads
// names into types of k8s.io/api, in the version of the request's kind. It only checks that the others are JSON.
//
// A decoded object has the fields that NodeRestriction reads for the operation. Entries of lists that cannot change the
// decision may be missing. The memory is at most a small multiple of the document, for any content: lists of entries
// that are shorter than an API server writes them are an error.
//
// If an API server converted the request for a webhook that matches equivalent versions, the
// objects, kind, resource and subresource are the converted ones. Those are used; requestKind,
// requestResource and requestSubResource are not.
//
// DecodeAdmission refuses documents larger than [MaxDocument].
func DecodeAdmission(document []byte, reads Reads) (*AdmissionReview, error) {
	in, review, err := decodeRequest(document)
	if err != nil {
		return nil, err
	}
	object, oldObject := reads(&review.request)
	if object {
		if review.request.Object, err = in.decode(document, "object", in.Object); err != nil {
			return nil, err
		}
	}
	if oldObject {
		if review.request.OldObject, err = in.decode(document, "oldObject", in.OldObject); err != nil {
			return nil, err
		}
	}
	return review, nil
}

// decodeRequest decodes everything except the objects.
func decodeRequest(document []byte) (*admissionRequest, *AdmissionReview, error) {
	_, err := check(document, MaxDocument, wantAdmission, metav1.TypeMeta{Kind: admissionKind, APIVersion: admissionVersion})
	if err != nil {
		return nil, nil, err
	}
	var in admissionReview
	if err := json.Unmarshal(document, &in, syntax()); err != nil {
		return nil, nil, strictjson.Explain(err)
	}
	if errs := in.validate(); len(errs) > 0 {
		return nil, nil, errs.ToAggregate()
	}
	return in.Request, &AdmissionReview{uid: in.Request.UID, request: in.Request.attributes()}, nil
}

// admissionReview has the fields of a document that are used.
type admissionReview struct {
	Request *admissionRequest `json:"request"`
}

type admissionRequest struct {
	UID         string                      `json:"uid"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	Name        string                      `json:"name"`
	Namespace   string                      `json:"namespace"`
	Operation   noderestriction.Operation   `json:"operation"`
	UserInfo    userInfo                    `json:"userInfo"`
	Object      part                        `json:"object"`
	OldObject   part                        `json:"oldObject"`
}

type userInfo struct {
	Username string              `json:"username"`
	UID      string              `json:"uid,omitempty"`
	Groups   []string            `json:"groups,omitempty"`
	Extra    map[string][]string `json:"extra,omitempty"`
}

func (r *admissionReview) validate() field.ErrorList {
	path := field.NewPath("request")
	if r.Request == nil {
		return field.ErrorList{field.Required(path, "an AdmissionReview must have a request")}
	}
	var errs field.ErrorList
	if r.Request.UID == "" {
		errs = append(errs, field.Required(path.Child("uid"), "the response refers to it"))
	}
	if r.Request.Kind.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind", "kind"), "it is the kind of the objects"))
	}
	if r.Request.Resource.Resource == "" {
		errs = append(errs, field.Required(path.Child("resource", "resource"), "it is the resource that is written"))
	}
	switch r.Request.Operation {
	case noderestriction.Create, noderestriction.Update, noderestriction.Delete, noderestriction.Connect:
	default:
		errs = append(errs, field.NotSupported(path.Child("operation"), r.Request.Operation, []noderestriction.Operation{
			noderestriction.Create, noderestriction.Update, noderestriction.Delete, noderestriction.Connect,
		}))
	}
	if r.Request.UserInfo.Username == "" && len(r.Request.UserInfo.Groups) == 0 {
		errs = append(errs, field.Required(path.Child("userInfo", "username"), "set username, groups or both"))
	}
	return errs
}

func (r *admissionRequest) attributes() noderestriction.Request {
	return noderestriction.Request{
		User: r.UserInfo.Username, UID: r.UserInfo.UID, Groups: r.UserInfo.Groups, Extra: r.UserInfo.Extra,
		Operation: r.Operation,
		Group:     r.Resource.Group, Version: r.Resource.Version, Resource: r.Resource.Resource, Subresource: r.SubResource,
		Namespace: r.Namespace, Name: r.Name,
	}
}

// decode decodes one of the objects. It returns nil for one that does not exist.
func (r *admissionRequest) decode(document []byte, name string, at part) (runtime.Object, error) {
	if at == (part{}) {
		return nil, nil
	}
	kind := schema.GroupVersionKind(r.Kind)
	object, err := decodeObject(at.of(document), kind, readOnly(kind, r.SubResource))
	if err != nil {
		return nil, within(name, err)
	}
	return object, nil
}

// within adds the name of the object to an error.
func within(name string, err error) error {
	at := "request." + name
	if broken := new(objectError); errors.As(err, &broken) && broken.field != "" {
		return fmt.Errorf("%s.%s: %w", at, broken.field, broken.err)
	}
	return fmt.Errorf("%s: %w", at, err)
}

// UID identifies the review.
func (r *AdmissionReview) UID() string { return r.uid }

// Request returns the write, with the objects that were read.
func (r *AdmissionReview) Request() *noderestriction.Request { return &r.request }
