package review

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/badjson"
)

// AccessReview is the request of a valid SubjectAccessReview, with the version of the review.
type AccessReview struct {
	Request access.Request
	// Ignored are the parts of the selectors that were dropped.
	Ignored Ignored

	apiVersion string
}

const (
	accessReviewBeta  = "authorization.k8s.io/v1beta1"
	wantAccessReviews = wantAccessReview + " or v1beta1"
)

// MaxAccessReview is the maximum size in bytes of a SubjectAccessReview from an API server.
// Its content comes from a URL and headers of at most 1 MiB. A requirement of a label selector
// of two characters becomes 32. Reviews that users write may be larger.
const MaxAccessReview = 20 << 20

// AccessDecoder decodes SubjectAccessReviews as [DecodeAccessReview] does, and keeps extra values of users, so that
// requests may share them. It is safe for concurrent use.
type AccessDecoder struct {
	// extra is nil if none are kept.
	extra *extraCache
}

// NewAccessDecoder returns a decoder that keeps extra values.
func NewAccessDecoder() *AccessDecoder { return &AccessDecoder{newExtraCache()} }

// DecodeAccessReview decodes a SubjectAccessReview of authorization.k8s.io/v1 or v1beta1, as
// [Decode] does. It refuses documents larger than [MaxAccessReview] or nested deeper than
// [MaxDepth].
//
// Whoever sends a request chooses its selectors, so that these are never an error: an API server
// may let other authorizers decide instead. An invalid selector is dropped, and so are
// requirements beyond a limit, which only makes the request broader.
func DecodeAccessReview(document []byte) (*AccessReview, error) {
	return new(AccessDecoder).Decode(document)
}

// Decode decodes a review. The extra values of its request must not be changed.
func (d *AccessDecoder) Decode(document []byte) (*AccessReview, error) {
	if r := decodePlain(document, d.extra); r != nil {
		return checkedAccessReview(r.APIVersion, &r.Spec.SubjectAccessReviewSpec, r.Spec.Extra)
	}
	return decodeAny(document)
}

// decodeAny decodes a review that may be written in any way.
func decodeAny(document []byte) (*AccessReview, error) {
	if len(document) > MaxAccessReview {
		return nil, fmt.Errorf("larger than %d bytes", MaxAccessReview)
	}
	if err := checkLimits(document); err != nil {
		return nil, err
	}
	var review accessReview
	decodeErr := json.Unmarshal(document, &review, accessOptions)
	if review.Kind != accessReviewKind || review.APIVersion != accessReviewVersion {
		switch header, ok := readHeader(document); {
		case ok && header.Kind == accessReviewKind && header.APIVersion == accessReviewBeta:
			return decodeBeta(document)
		case ok:
			return nil, &kindError{header, wantAccessReviews}
		}
	}
	if decodeErr != nil {
		return nil, badjson.Explain(decodeErr)
	}
	return checkedAccessReview(accessReviewVersion, &review.Spec.SubjectAccessReviewSpec, review.Spec.Extra)
}

// maxRequirements is the maximum number of requirements of a selector that are read.
const maxRequirements = 10_000

// accessOptions are made once, because they note how each type is decoded.
var accessOptions = json.JoinOptions(asKubernetes(), boundedRequirements())

func boundedRequirements() json.Options {
	return json.WithUnmarshalers(json.JoinUnmarshalers(
		json.UnmarshalFromFunc(readRequirements[metav1.FieldSelectorRequirement]),
		json.UnmarshalFromFunc(readRequirements[metav1.LabelSelectorRequirement]),
	))
}

func readRequirements[R any](d *jsontext.Decoder, into *[]R) error {
	*into = nil
	return eachEntry(d, func(r *R) {
		if len(*into) < maxRequirements {
			*into = append(*into, *r)
		}
	})
}

// accessReview omits the fields that do not affect the answer.
type accessReview struct {
	metav1.TypeMeta `json:",inline"`
	Spec            accessSpec `json:"spec"`
}

type accessSpec struct {
	authorizationv1.SubjectAccessReviewSpec `json:",inline"`
	// Extra replaces the field of the same name.
	Extra map[string][]string `json:"extra"`
}

// betaAccessReview differs in one field: groups are called "group".
type betaAccessReview struct {
	Spec struct {
		ResourceAttributes    *authorizationv1.ResourceAttributes    `json:"resourceAttributes"`
		NonResourceAttributes *authorizationv1.NonResourceAttributes `json:"nonResourceAttributes"`
		User                  string                                 `json:"user"`
		Groups                []string                               `json:"group"`
		Extra                 map[string][]string                    `json:"extra"`
		UID                   string                                 `json:"uid"`
	} `json:"spec"`
}

func decodeBeta(document []byte) (*AccessReview, error) {
	var review betaAccessReview
	if err := json.Unmarshal(document, &review, accessOptions); err != nil {
		return nil, badjson.Explain(err)
	}
	in := &review.Spec
	return checkedAccessReview(accessReviewBeta, &authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: in.ResourceAttributes, NonResourceAttributes: in.NonResourceAttributes,
		User: in.User, Groups: in.Groups, UID: in.UID,
	}, in.Extra)
}

func checkedAccessReview(
	apiVersion string, spec *authorizationv1.SubjectAccessReviewSpec, extra map[string][]string,
) (*AccessReview, error) {
	dropInvalidSelectors(spec.ResourceAttributes)
	if errs := Validate(spec); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	r := &AccessReview{apiVersion: apiVersion}
	r.Request, r.Ignored = Attributes(spec)
	r.Request.Extra = extra
	return r, nil
}

// Answer asks an authorizer and returns the response document: a SubjectAccessReview with
// only a status, in the version of the request.
func (r *AccessReview) Answer(ctx context.Context, authorize Authorize) []byte {
	return encode(&accessAnswer{accessReviewKind, r.apiVersion, accessStatus(status(ctx, authorize, &r.Request, r.Ignored))})
}

// The answer is the same in both versions.
type (
	accessAnswer struct {
		Kind       string       `json:"kind"`
		APIVersion string       `json:"apiVersion"`
		Status     accessStatus `json:"status"`
	}
	accessStatus struct {
		Allowed         bool   `json:"allowed"`
		Denied          bool   `json:"denied,omitzero"`
		Reason          string `json:"reason,omitzero"`
		EvaluationError string `json:"evaluationError,omitzero"`
	}
)
