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
// An object that is read has nothing but what NodeRestriction reads for the
// operation; of lists and maps that it compares, the entries that are the same in
// both objects may be missing from both. The decision is that about the whole
// objects. It takes memory for a small multiple of the document at most, whatever is
// in it. Fields that are not read may be of any type: in an API server, which decodes
// objects before it asks, they are of the right one.
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

// decodeRequest reads all but the objects.
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
	return noderestriction.Request{
		User: r.UserInfo.Username, UID: r.UserInfo.UID, Groups: r.UserInfo.Groups, Extra: r.UserInfo.Extra,
		Operation: r.Operation,
		Group:     r.Resource.Group, Version: r.Resource.Version, Resource: r.Resource.Resource, Subresource: r.SubResource,
		Namespace: r.Namespace, Name: r.Name,
	}
}

// decode reads those objects that are read and there.
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

// read returns nil for an object that is not there, or not read.
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

// within says which object an error is about.
func within(name string, err error) error {
	at := "request." + name
	if broken := new(objectError); errors.As(err, &broken) && broken.field != "" {
		return fmt.Errorf("%s.%s: %w", at, broken.field, broken.err)
	}
	return fmt.Errorf("%s: %w", at, err)
}

// UID tells the review apart from others.
func (r *AdmissionReview) UID() string { return r.uid }

// Request is what is asked, with those of its objects that are read.
func (r *AdmissionReview) Request() *noderestriction.Request { return &r.request }
