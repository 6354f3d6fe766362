package review

import (
	"net/http"

	"github.com/go-json-experiment/json"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

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
