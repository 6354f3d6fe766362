package review

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	authorizationv1beta1 "k8s.io/api/authorization/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// The same request in both versions.
const (
	accessV1 = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{"creationTimestamp":null},` +
		`"spec":{"resourceAttributes":{"namespace":"shop","verb":"get","version":"v1","resource":"secrets","name":"db"},` +
		`"user":"system:node:worker-1","groups":["system:nodes"],"extra":{"a":["b"]},"uid":"42"},"status":{"allowed":true}}`
	accessBeta = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","metadata":{"creationTimestamp":null},` +
		`"spec":{"resourceAttributes":{"namespace":"shop","verb":"get","version":"v1","resource":"secrets","name":"db"},` +
		`"user":"system:node:worker-1","group":["system:nodes"],"groups":"no such field","extra":{"a":["b"]},"uid":"42"},` +
		`"status":{"allowed":true}}`
)

func TestAccessReviewOfBothVersions(t *testing.T) {
	want := access.Request{
		User: "system:node:worker-1", Groups: []string{"system:nodes"}, UID: "42", Extra: map[string][]string{"a": {"b"}},
		ResourceRequest: true, Verb: "get", Version: "v1", Resource: "secrets", Namespace: "shop", Name: "db",
	}
	for version, document := range map[string]string{"v1": accessV1, "v1beta1": accessBeta} {
		r, err := DecodeAccessReview([]byte(document))
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		if !reflect.DeepEqual(r.Request, want) {
			t.Errorf("%s: got %+v", version, r.Request)
		}
	}
}

func TestAccessReviewIsAnsweredInItsVersion(t *testing.T) {
	for _, tc := range []struct {
		rule     string
		document string
		access   AccessAnswer
		want     string
	}{
		{
			"allowed", accessV1,
			AccessAnswer{Decision: verdict.Allow},
			`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":true}}`,
		},
		{
			"denied", accessBeta,
			AccessAnswer{Decision: verdict.Deny, Reason: "a <reason>"},
			`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":false,"denied":true,` +
				`"reason":"a <reason>"}}`,
		},
		{
			"no opinion", accessBeta,
			AccessAnswer{Decision: verdict.NoOpinion, Reason: "because"},
			`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","status":{"allowed":false,"reason":"because"}}`,
		},
		{
			"not decided", accessV1,
			AccessAnswer{Decision: verdict.NoOpinion, EvaluationError: "not synced"},
			`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","status":{"allowed":false,` +
				`"evaluationError":"not synced"}}`,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			r, err := DecodeAccessReview([]byte(tc.document))
			if err != nil {
				t.Fatal(err)
			}
			got := r.Answer(t.Context(), func(_ context.Context, req *access.Request) AccessAnswer {
				if req.User != "system:node:worker-1" || req.Name != "db" {
					t.Errorf("asked %+v", req)
				}
				return tc.access
			})
			if string(got) != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestAccessReviewsThatCannotBeRead(t *testing.T) {
	for _, tc := range []struct{ rule, document, want string }{
		{"nothing", "", "not valid JSON"},
		{"no object", "[]", "want an object, got a list"},
		{"truncated", accessV1[:200], "not valid JSON: text ends in the middle of an object"},
		{"two documents", accessV1 + accessV1, "not valid JSON"},
		{
			"another kind", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`,
			`kind "AdmissionReview" of apiVersion "admission.k8s.io/v1": want SubjectAccessReview of authorization.k8s.io/v1 or v1beta1`,
		},
		{
			"another version", `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v2"}`,
			`kind "SubjectAccessReview" of apiVersion "authorization.k8s.io/v2": want`,
		},
		{"another kind whose fields have other types", `{"kind":"Pod","apiVersion":"v1","spec":[]}`, `kind "Pod" of apiVersion "v1": want`},
		{"a wrong type", strings.Replace(accessV1, `["system:nodes"]`, `"system:nodes"`, 1), "spec.groups: want a list, got a string"},
		{
			"a wrong type in v1beta1", strings.Replace(accessBeta, `["system:nodes"]`, `"system:nodes"`, 1),
			"spec.group: want a list, got a string",
		},
		{
			"no attributes", `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"u"}}`,
			"spec: Invalid value: set exactly one of",
		},
		{
			"no user, in v1beta1",
			`{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1beta1","spec":{"groups":["g"],"nonResourceAttributes":{}}}`,
			"spec.user: Required value",
		},
		{"too large", `{"a":"` + strings.Repeat("x", MaxAccessReview) + `"}`, "larger than 20971520 bytes"},
		{"too deep", nested(maxDepth + 1), "not valid JSON: exceeded max depth"},
		{"the maximum depth, but not a review", nested(maxDepth), `kind ""`},
		{"deep and broken", `{"a":` + strings.Repeat("[", 1<<20), "not valid JSON: exceeded max depth"},
		{"a name twice", strings.Replace(accessV1, `"uid"`, `"user":"u","uid"`, 1), "spec.user: a field is given twice"},
		{"a kind twice", strings.Replace(accessV1, `"spec"`, `"kind":"Pod","spec"`, 1), "kind: a field is given twice"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			r, err := DecodeAccessReview([]byte(tc.document))
			if err == nil {
				t.Fatalf("read as %+v", r)
			}
			if !strings.HasPrefix(err.Error(), tc.want) {
				t.Errorf("\n got %v\nwant %s", err, tc.want)
			}
		})
	}
}

// maxDepth is the limit of Kubernetes, too.
const maxDepth = 10_000

// nested returns a document of the given depth.
func nested(depth int) string {
	return `{"a":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + "}"
}

func FuzzDecodeAccessReview(f *testing.F) {
	f.Add([]byte(accessV1))
	f.Add([]byte(accessBeta))
	f.Add([]byte(
		`{"apiVersion":"authorization.k8s.io/v1beta1","kind":"SubjectAccessReview","spec":{"group":["g"],` +
			`"nonResourceAttributes":{"path":"/","verb":"get"}}}`,
	))
	f.Add([]byte(
		`{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","spec":{"user":"u",` +
			`"resourceAttributes":{"fieldSelector":{"requirements":[{"key":"a","operator":"In","values":["b"]}]}}}}`,
	))
	oddAccessReviews().seed(func(document []byte) { f.Add(document) })
	f.Fuzz(func(t *testing.T, document []byte) {
		r, err := DecodeAccessReview(document)
		if err != nil {
			return // limits, kinds, names that occur twice, and reviews that kube-apiserver's validation refuses
		}
		theirs, theirErr := kubernetesDecodesRead(t, document, "metadata", "status")
		if theirErr != nil {
			t.Fatalf("read as %+v, but Kubernetes says %v", r.Request, theirErr)
		}
		spec := specOf(t, theirs)
		dropped := dropInvalidSelectors(spec.ResourceAttributes)
		want, ignored := Attributes(spec)
		// Requirements of labels have no exported fields.
		labels := fmt.Sprint(r.Request.LabelSelector) == fmt.Sprint(want.LabelSelector)
		r.Request.LabelSelector, want.LabelSelector = nil, nil
		if !labels || !equality.Semantic.DeepEqual(r.Request, want) || !slices.Equal(r.Ignored, append(dropped, ignored...)) {
			t.Errorf("got %+v, Kubernetes reads %+v", r.Request, want)
		}
		answer := r.Answer(t.Context(), byName)
		back, err := kubernetesDecodes(answer)
		if err != nil {
			t.Fatalf("Kubernetes cannot read the answer %s: %v", answer, err)
		}
		if want := theirs.GetObjectKind().GroupVersionKind(); back.GetObjectKind().GroupVersionKind() != want {
			t.Errorf("a review of %s is answered with %s", want, answer)
		}
	})
}

func specOf(t *testing.T, object runtime.Object) *authorizationv1.SubjectAccessReviewSpec {
	t.Helper()
	switch o := object.(type) {
	case *authorizationv1.SubjectAccessReview:
		return &o.Spec
	case *authorizationv1beta1.SubjectAccessReview:
		spec := &authorizationv1.SubjectAccessReviewSpec{}
		text, err := json.Marshal(o.Spec)
		if err == nil {
			err = json.Unmarshal(text, spec)
		}
		if err != nil {
			t.Fatal(err)
		}
		spec.Groups = o.Spec.Groups
		return spec
	}
	t.Fatalf("Kubernetes reads %T", object)
	return nil
}
