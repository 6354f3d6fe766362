package review

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/node-authorizer/node-authorizer/internal/badjson"
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

// DecodeAdmission decodes an AdmissionReview of admission.k8s.io/v1 with its request, as
// kube-apiserver does. It decodes the objects that reads names into types of k8s.io/api, in
// the version of the request's kind. It only checks that the others are JSON.
//
// A decoded object has only the fields that NodeRestriction reads for the operation. Entries
// of lists and maps that are equal in both objects may be missing from both. The decision is
// the same as for the whole objects. The memory is at most a small multiple of the document,
// for any content. Fields that are not read may have any type; an API server decodes objects
// before it sends them, so that their types are valid.
//
// If an API server converted the request for a webhook that matches equivalent versions, the
// objects, kind, resource and subresource are the converted ones. Those are used; requestKind,
// requestResource and requestSubResource are not.
//
// DecodeAdmission refuses documents larger than [MaxDocument] or nested deeper than
// [MaxDepth].
func DecodeAdmission(document []byte, reads Reads) (*AdmissionReview, error) {
	if err := checkLimits(document); err != nil {
		return nil, err
	}
	return decodeAdmission(document, reads)
}

// decodeAdmission is DecodeAdmission for a document within the limits.
func decodeAdmission(document []byte, reads Reads) (*AdmissionReview, error) {
	in, review, err := decodeRequest(document)
	if err != nil {
		return nil, err
	}
	object, oldObject := reads(&review.request)
	if err := in.decode(document, review, object, oldObject); err != nil {
		return nil, err
	}
	return review, nil
}

// decodeRequest decodes everything except the objects.
func decodeRequest(document []byte) (*admissionRequest, *AdmissionReview, error) {
	var in admissionReview
	decodeErr := json.Unmarshal(document, &in, asKubernetes())
	if in.Kind != admissionKind || in.APIVersion != admissionVersion {
		if header, ok := readHeader(document); ok {
			return nil, nil, &kindError{header, wantAdmission}
		}
	}
	if decodeErr != nil {
		return nil, nil, badjson.Explain(decodeErr)
	}
	if errs := in.validate(); len(errs) > 0 {
		return nil, nil, errs.ToAggregate()
	}
	return in.Request, &AdmissionReview{uid: in.Request.UID, request: in.Request.attributes()}, nil
}

// admissionReview has the fields of a document that are used.
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
	UserInfo    userInfo                    `json:"userInfo"`
	Object      part                        `json:"object"`
	OldObject   part                        `json:"oldObject"`
}

type userInfo struct {
	Username string              `json:"username"`
	UID      string              `json:"uid"`
	Groups   []string            `json:"groups"`
	Extra    map[string][]string `json:"extra"`
}

// part is the position of a value in the document.
type part span

// UnmarshalJSONFrom skips the value. If a name is repeated, the last value is used.
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

// decode decodes the objects that are to be read and that exist.
func (r *admissionRequest) decode(document []byte, review *AdmissionReview, object, oldObject bool) error {
	to, err := r.read(document, r.Object, object)
	if err != nil {
		return within("object", err)
	}
	from, err := r.read(document, r.OldObject, oldObject)
	if err != nil {
		return within("oldObject", err)
	}
	p := &pairing{object: document[r.Object.start:r.Object.end], old: document[r.OldObject.start:r.OldObject.end]}
	switch {
	case to != nil:
		to.resolve(p, from)
	case from != nil:
		alone := &pairing{object: p.old}
		from.resolve(alone, nil)
		p.err, p.ofOld = alone.err, true
	}
	switch {
	case p.err != nil && p.ofOld:
		return within("oldObject", p.err)
	case p.err != nil:
		return within("object", p.err)
	}
	if to != nil {
		review.request.Object = to.object()
	}
	if from != nil {
		review.request.OldObject = from.object()
	}
	return nil
}

// read returns nil for an object that does not exist or is not to be read.
func (r *admissionRequest) read(document []byte, p part, wanted bool) (reading, error) {
	if !wanted || p == (part{}) {
		return nil, nil
	}
	kind := schema.GroupVersionKind(r.Kind)
	newReading, known := readings[kind]
	if !known {
		return nil, unknownKind(kind)
	}
	into := newReading(r.SubResource)
	return into, decodeInto(document[p.start:p.end], into, kind)
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
