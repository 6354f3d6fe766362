package review

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/node-authorizer/node-authorizer/internal/badjson"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// Admit puts one write to NodeRestriction. It must be safe for concurrent use
// and must not keep the request.
type Admit func(ctx context.Context, req *noderestriction.Request) noderestriction.Answer

// Reads says which objects of a request have to be decoded; they are not yet
// set.
type Reads func(req *noderestriction.Request) (object, oldObject bool)

// AdmissionReview is a write that an API server asks about.
type AdmissionReview struct {
	uid     string
	request noderestriction.Request
}

const (
	admissionKind    = "AdmissionReview"
	admissionVersion = "admission.k8s.io/v1"
	wantAdmission    = admissionKind + " of " + admissionVersion
)

// DecodeAdmission reads one AdmissionReview of admission.k8s.io/v1 with its
// request, as kube-apiserver would decode it. Of the objects in it, those that
// are read are decoded into types of k8s.io/api, in the version of the request's
// kind; the others are only checked to be JSON.
//
// When an API server has converted the request for a webhook that matches
// equivalent versions, its kind, resource and subresource are those converted
// to, and so are the objects: these count, and requestKind, requestResource and
// requestSubResource do not.
//
// What is larger than [MaxDocument] or nested more than [MaxDepth] deep is
// refused.
func DecodeAdmission(document []byte, reads Reads) (*AdmissionReview, error) {
	if err := checkLimits(document); err != nil {
		return nil, err
	}
	return decodeAdmission(document, reads)
}

// decodeAdmission is DecodeAdmission of a document within the limits.
func decodeAdmission(document []byte, reads Reads) (*AdmissionReview, error) {
	var in admissionReview
	decodeErr := json.Unmarshal(document, &in, asKubernetes())
	if in.Kind != admissionKind || in.APIVersion != admissionVersion {
		if header, ok := readHeader(document); ok {
			return nil, &kindError{header, wantAdmission}
		}
	}
	if decodeErr != nil {
		return nil, badjson.Explain(decodeErr)
	}
	if errs := in.validate(); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	review := &AdmissionReview{uid: in.Request.UID, request: in.Request.attributes()}
	object, oldObject := reads(&review.request)
	var err error
	if object {
		review.request.Object, err = in.Request.decode(document, in.Request.Object, "object")
	}
	if oldObject && err == nil {
		review.request.OldObject, err = in.Request.decode(document, in.Request.OldObject, "oldObject")
	}
	return review, err
}

// admissionReview is what counts of a document.
type admissionReview struct {
	metav1.TypeMeta `json:",inline"`
	Request         *admissionRequest `json:"request"`
}

type admissionRequest struct {
	UID         string                      `json:"uid"`
	Kind        metav1.GroupVersionKind     `json:"kind"`
	Resource    metav1.GroupVersionResource `json:"resource"`
	SubResource string                      `json:"subResource"`
	Name        string                      `json:"name"`
	Namespace   string                      `json:"namespace"`
	Operation   noderestriction.Operation   `json:"operation"`
	UserInfo    authenticationv1.UserInfo   `json:"userInfo"`
	Object      part                        `json:"object"`
	OldObject   part                        `json:"oldObject"`
}

// part is where a value stands in the document.
type part span

// UnmarshalJSONFrom skips the value. Of repeated names, the last counts.
func (p *part) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	value, err := d.ReadValue()
	if err != nil {
		return err
	}
	*p = part{}
	if value.Kind() != jsontext.KindNull {
		p.end = int(d.InputOffset())
		p.start = p.end - len(value)
	}
	return nil
}

func (r *admissionReview) validate() field.ErrorList {
	path := field.NewPath("request")
	if r.Request == nil {
		return field.ErrorList{field.Required(path, "an AdmissionReview without a request asks for nothing")}
	}
	var errs field.ErrorList
	if r.Request.UID == "" {
		errs = append(errs, field.Required(path.Child("uid"), "the answer is told by it"))
	}
	if r.Request.Kind.Kind == "" {
		errs = append(errs, field.Required(path.Child("kind", "kind"), "it says what the objects are"))
	}
	if r.Request.Resource.Resource == "" {
		errs = append(errs, field.Required(path.Child("resource", "resource"), "it says what is written"))
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
	req := noderestriction.Request{
		User: r.UserInfo.Username, UID: r.UserInfo.UID, Groups: r.UserInfo.Groups,
		Operation: r.Operation,
		Group:     r.Resource.Group, Version: r.Resource.Version, Resource: r.Resource.Resource, Subresource: r.SubResource,
		Namespace: r.Namespace, Name: r.Name,
	}
	if len(r.UserInfo.Extra) > 0 {
		req.Extra = make(map[string][]string, len(r.UserInfo.Extra))
		for key, values := range r.UserInfo.Extra {
			req.Extra[key] = values
		}
	}
	return req
}

// decode returns nil for an object that is not there.
func (r *admissionRequest) decode(document []byte, p part, name string) (runtime.Object, error) {
	if p == (part{}) {
		return nil, nil
	}
	object, err := DecodeObject(document[p.start:p.end], schema.GroupVersionKind(r.Kind))
	if err == nil {
		return object, nil
	}
	at := "request." + name
	if broken := new(objectError); errors.As(err, &broken) && broken.field != "" {
		return nil, fmt.Errorf("%s.%s: %w", at, broken.field, broken.err)
	}
	return nil, fmt.Errorf("%s: %w", at, err)
}

// UID tells the review apart from others.
func (r *AdmissionReview) UID() string { return r.uid }

// Request is what is asked, with those of its objects that are read.
func (r *AdmissionReview) Request() *noderestriction.Request { return &r.request }
