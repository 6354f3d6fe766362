package review

import (
	"encoding/json"
	"fmt"
	"iter"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"
	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"

	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/internal/oddjson"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// Whoever can send a review must get an answer or an error, whatever is in it: what ends the process ends all scopes and
// quarantines, too. So these documents have odd values at each place of each review.

// oddDocuments are sets of documents, by the review that they are made of.
type oddDocuments map[string]iter.Seq2[string, []byte]

// places are those of a type: all, or as seeds for fuzzing only those of which each field is the first.
type places func(any) []oddjson.Place

func oddAccessReviews() oddDocuments {
	base := `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/%s","spec":{"user":"a","resourceAttributes":{"verb":"list",` +
		`"fieldSelector":{"requirements":[{"key":"spec.nodeName","operator":"In","values":["worker-1"]}]},` +
		`"labelSelector":{"requirements":[{"key":"a","operator":"Exists"}]}}}}`
	return oddDocuments{
		"v1":      oddjson.Documents(fmt.Sprintf(base, "v1"), oddjson.Places(authorizationv1.SubjectAccessReview{})),
		"v1beta1": oddjson.Documents(fmt.Sprintf(base, "v1beta1"), oddjson.Places(authorizationv1beta1.SubjectAccessReview{})),
	}
}

func oddTokenReviews() oddDocuments {
	return oddDocuments{
		"v1":      oddjson.Documents(tokenV1, oddjson.Places(authenticationv1.TokenReview{})),
		"v1beta1": oddjson.Documents(tokenBeta, oddjson.Places(authenticationv1beta1.TokenReview{})),
	}
}

// oddWrites are AdmissionReviews of each write that NodeRestriction examines, with each version of its kind.
func oddWrites(t testing.TB, of places) oddDocuments {
	all := oddDocuments{}
	for kind, newObject := range kinds {
		within, writes := of(newObject().target()), len(all)
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
				if w.operation == without {
					continue
				}
				name := fmt.Sprintf("%s %s/%s of %s with %s", w.operation, w.resource, w.subresource, kind.Version, at)
				all[name] = oddjson.Documents(w.review(object, object), oddjson.Below(within, "request", at))
			}
		}
		if len(all) == writes {
			t.Errorf("no write has the kind %s", kind)
		}
	}
	w := restrictedWrites()[0]
	all["any write"] = oddjson.Documents(w.review("null", "null"), oddjson.Places(admissionv1.AdmissionReview{}))
	return all
}

// seed adds each document to the seeds of a fuzz target.
func (all oddDocuments) seed(add func([]byte)) {
	for _, documents := range all {
		for _, document := range documents {
			add(document)
		}
	}
}

// answered checks that a document gets an answer or an error with a text.
func (all oddDocuments) answered(t *testing.T, answer func([]byte) ([]byte, error)) {
	for of, documents := range all {
		t.Run(of, func(t *testing.T) {
			answers, errs := 0, 0
			for name, document := range documents {
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
	oddWrites(t, oddjson.Places).answered(t, func(document []byte) ([]byte, error) {
		asked, err := DecodeAdmission(document, r.Reads)
		if err != nil {
			return nil, err
		}
		return asked.Respond(r.Decide(t.Context(), asked.Request())), nil
	})
}

func TestOddPodsGetTolerationsOrAnError(t *testing.T) {
	const write = "CREATE pods/ of v1 with object"
	oddDocuments{write: oddWrites(t, oddjson.Places)[write]}.answered(t, func(document []byte) ([]byte, error) {
		r, err := DecodeTolerations(document)
		if err != nil {
			return nil, err
		}
		return r.RespondPatch(r.Patch()), nil
	})
}
