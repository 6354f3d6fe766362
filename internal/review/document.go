package review

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/strictjson"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// MaxDocument is the maximum size of a document in bytes. An AdmissionReview may hold the old
// and the new object, each from a request of at most 3 MiB, the limit of kube-apiserver,
// which encodes each '<', '>' and '&' with six bytes.
const MaxDocument = 40 << 20

// syntax is the JSON of all documents. As in kube-apiserver, names are case-sensitive, unknown fields are
// ignored, invalid UTF-8 is replaced, and objects and lists are nested at most 10,000 deep. A name that an object
// has twice is an error, because decoders differ in which value they use; API servers write none.
func syntax() json.Options { return jsontext.AllowInvalidUTF8(true) }

// checked is the syntax of parts of documents that were decoded before. To find names that occur twice takes memory.
func checked() json.Options { return json.JoinOptions(syntax(), jsontext.AllowDuplicateNames(true)) }

// kindError means that a document is of another kind than expected.
type kindError struct {
	header metav1.TypeMeta
	want   string
}

func (e *kindError) Error() string {
	return fmt.Sprintf("kind %q of apiVersion %q: want %s", e.header.Kind, e.header.APIVersion, e.want)
}

// check returns the header of a document that is not too large. Its kind and version must be among those known; want
// describes these.
func check(document []byte, limit int, want string, known ...metav1.TypeMeta) (metav1.TypeMeta, error) {
	if len(document) > limit {
		return metav1.TypeMeta{}, fmt.Errorf("larger than %d bytes", limit)
	}
	header, err := readHeader(document)
	switch {
	case err != nil:
		return header, strictjson.Explain(err)
	case !slices.Contains(known, header):
		return header, &kindError{header, want}
	}
	return header, nil
}

// readHeader reads kind and apiVersion, at any place of an object. It reads no further. So decoding
// reports a document that is broken, or has one of them twice.
func readHeader(document []byte) (header metav1.TypeMeta, err error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(document), syntax())
	begin, err := d.ReadToken()
	switch {
	case errors.Is(err, io.EOF):
		return header, io.ErrUnexpectedEOF
	case err != nil || begin.Kind() == jsontext.KindNull:
		return header, err
	case begin.Kind() != jsontext.KindBeginObject:
		return header, wrongKind[metav1.TypeMeta](d, begin.Kind())
	}
	for found := 0; found < 2 && d.PeekKind() != jsontext.KindEndObject; {
		name, err := d.ReadToken()
		if err != nil {
			return header, err
		}
		switch name.String() {
		case "kind":
			found++
			header.Kind, err = readText(d)
		case "apiVersion":
			found++
			header.APIVersion, err = readText(d)
		default:
			err = d.SkipValue()
		}
		if err != nil {
			return header, err
		}
	}
	return header, nil
}

// readText reads a string. Null is empty. It costs less than to decode one.
func readText(d *jsontext.Decoder) (string, error) {
	text, err := d.ReadToken()
	switch {
	case err != nil || text.Kind() == jsontext.KindNull:
		return "", err
	case text.Kind() != jsontext.KindString:
		return "", wrongKind[string](d, text.Kind())
	}
	return text.String(), nil
}

// span is the position of a document in a buffer.
type span struct{ start, end int }

// part is the position of a value in the document.
type part span

// UnmarshalJSONFrom skips the value.
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

// of returns the value; nil if it is missing or null.
func (p part) of(document []byte) []byte {
	if p == (part{}) {
		return nil
	}
	return document[p.start:p.end]
}

// Names of audit annotations. API servers prefix them with the name of the webhook.
const (
	// AnnotationCode is the code of the reason.
	AnnotationCode = "code"
	// AnnotationNode is the node that made the request.
	AnnotationNode = "node"
	// AnnotationRule is the rule that decided.
	AnnotationRule = "rule"
)

// Respond returns the response document. It has the code, the node and the rule for the audit
// log. It does not have the hint, which is not for the node.
func (r *AdmissionReview) Respond(answer noderestriction.Answer) []byte {
	response := &admissionResponse{
		UID:              r.uid,
		Allowed:          answer.Decision == verdict.Allow,
		Status:           admissionStatus{Code: answer.Status, Reason: answer.StatusReason, Message: answer.Reason.Message},
		AuditAnnotations: annotations(answer),
	}
	if !response.Allowed && response.Status.Code < http.StatusBadRequest {
		response.Status.Code, response.Status.Reason = http.StatusForbidden, metav1.StatusReasonForbidden
	}
	return encodeResponse(response)
}

// RespondPatch returns a response document that allows the write and, unless patch is empty,
// changes the object by an RFC 6902 patch.
func (r *AdmissionReview) RespondPatch(patch []byte) []byte {
	response := &admissionResponse{UID: r.uid, Allowed: true, Status: admissionStatus{Code: http.StatusOK}}
	if len(patch) > 0 {
		response.Patch, response.PatchType = patch, admissionv1.PatchTypeJSONPatch
	}
	return encodeResponse(response)
}

func annotations(answer noderestriction.Answer) map[string]string {
	all := map[string]string{AnnotationCode: string(answer.Code), AnnotationNode: answer.Node, AnnotationRule: answer.Rule}
	for key, value := range all {
		if value == "" {
			delete(all, key)
		}
	}
	return all
}

// The response, with the fields that are used.
type (
	admissionDocument struct {
		Kind       string             `json:"kind"`
		APIVersion string             `json:"apiVersion"`
		Response   *admissionResponse `json:"response"`
	}
	admissionResponse struct {
		UID              string                `json:"uid"`
		Allowed          bool                  `json:"allowed"`
		Status           admissionStatus       `json:"status"`
		Patch            []byte                `json:"patch,omitempty"`
		PatchType        admissionv1.PatchType `json:"patchType,omitempty"`
		AuditAnnotations map[string]string     `json:"auditAnnotations,omitempty"`
	}
	admissionStatus struct {
		Code    int                 `json:"code"`
		Reason  metav1.StatusReason `json:"reason,omitempty"`
		Message string              `json:"message,omitempty"`
	}
)

func encodeResponse(response *admissionResponse) []byte {
	return encode(&admissionDocument{admissionKind, admissionVersion, response})
}

// statusDocument is a SubjectAccessReview or a TokenReview with only a status.
type statusDocument[S any] struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Status     S      `json:"status"`
}

// encoding is made once: joining options costs as much as encoding a small document.
var encoding = json.JoinOptions(json.Deterministic(true), checked())

// encode encodes a document of strings, numbers, booleans and valid JSON, which cannot fail.
func encode(document any) []byte {
	text, err := json.Marshal(document, encoding)
	if err != nil {
		panic("answer does not encode: " + err.Error())
	}
	return text
}
