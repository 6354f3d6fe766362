package review

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// Whoever can send a review must get an answer or an error for any content: a review that ends the process ends all
// scopes and quarantines, too. So these documents have odd values at each place of each review.

// oddReviews are reviews with the places of odd values.
type oddReviews map[string]oddReview

type oddReview struct {
	base   string
	places []oddjson.Place
}

func oddAccessReviews() oddReviews {
	base := `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/%s","spec":{"user":"a","resourceAttributes":{"verb":"list",` +
		`"fieldSelector":{"requirements":[{"key":"spec.nodeName","operator":"In","values":["worker-1"]}]},` +
		`"labelSelector":{"requirements":[{"key":"a","operator":"Exists"}]}}}}`
	return oddReviews{
		"v1":      {fmt.Sprintf(base, "v1"), oddjson.Places(authorizationv1.SubjectAccessReview{})},
		"v1beta1": {fmt.Sprintf(base, "v1beta1"), oddjson.Places(authorizationv1beta1.SubjectAccessReview{})},
	}
}

func oddTokenReviews() oddReviews {
	return oddReviews{
		"v1":      {tokenV1, oddjson.Places(authenticationv1.TokenReview{})},
		"v1beta1": {tokenBeta, oddjson.Places(authenticationv1beta1.TokenReview{})},
	}
}

// oddWrites are AdmissionReviews of each write that NodeRestriction examines, with each version of its kind.
func oddWrites(t testing.TB) oddReviews {
	all := oddReviews{}
	for kind, newObject := range kinds {
		places, writes := oddjson.Places(newObject().target()), len(all)
		for _, w := range restrictedWrites() {
			if w.kind.GroupKind() != kind.GroupKind() {
				continue
			}
			w.kind = kind
			object := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"name":%q},"spec":{"nodeName":%[3]q}}`,
				kind.Kind, kind.GroupVersion(), theNode)
			for at, without := range map[string]noderestriction.Operation{
				"object": noderestriction.Delete, "oldObject": noderestriction.Create,
			} {
				if w.operation != without {
					name := fmt.Sprintf("%s %s/%s of %s with %s", w.operation, w.resource, w.subresource, kind.Version, at)
					all[name] = oddReview{w.review(object, object), oddjson.Below(places, "request", at)}
				}
			}
		}
		if len(all) == writes {
			t.Errorf("no write has the kind %s", kind)
		}
	}
	w := restrictedWrites()[0]
	all["any write"] = oddReview{w.review("null", "null"), oddjson.Places(admissionv1.AdmissionReview{})}
	return all
}

// seed adds seeds to a fuzz target, in the same order each time.
func (all oddReviews) seed(add func([]byte)) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for document := range oddjson.Seeds(all[name].base, all[name].places) {
			add(document)
		}
	}
}

// answered checks that each document gets an answer or an error.
func (all oddReviews) answered(t *testing.T, answer func([]byte) ([]byte, error)) {
	for of, review := range all {
		t.Run(of, func(t *testing.T) {
			answers, errs := 0, 0
			for name, document := range oddjson.Documents(review.base, review.places) {
				text, err := answer(document)
				switch {
				case err != nil:
					errs++
				case json.Valid(text):
					answers++
				default:
					t.Errorf("%s: got %q", name, text)
				}
			}
			if answers == 0 || errs == 0 {
				t.Errorf("%d answers, %d errors: the documents are all valid, or all invalid", answers, errs)
			}
		})
	}
}

func TestOddAccessReviewsAreAnswered(t *testing.T) {
	oddAccessReviews().answered(t, func(document []byte) ([]byte, error) {
		r, err := DecodeAccessReview(document)
		if err != nil {
			return nil, err
		}
		return r.Answer(t.Context(), byName), nil
	})
}

func TestOddTokenReviewsAreAnswered(t *testing.T) {
	oddTokenReviews().answered(t, func(document []byte) ([]byte, error) {
		r, err := DecodeTokenReview(document)
		if err != nil {
			return nil, err
		}
		audiences, refusal := r.For([]string{"api"})
		return r.Answer(Authentication{User: &iam.User{Username: "a"}, Audiences: audiences, Refusal: refusal}), nil
	})
}

func TestOddAdmissionReviewsAreAnswered(t *testing.T) {
	r := restrictions()[kubeversion.Latest]
	oddWrites(t).answered(t, func(document []byte) ([]byte, error) {
		asked, err := DecodeAdmission(document, r.Reads)
		if err != nil {
			return nil, err
		}
		return asked.Respond(r.Decide(t.Context(), asked.Request())), nil
	})
}

func TestOddPodsGetTolerationsOrAnError(t *testing.T) {
	const write = "CREATE pods/ of v1 with object"
	oddReviews{write: oddWrites(t)[write]}.answered(t, func(document []byte) ([]byte, error) {
		r, err := DecodeTolerations(document)
		if err != nil {
			return nil, err
		}
		return r.RespondPatch(r.Patch()), nil
	})
}
