package review

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authenticationv1beta1 "k8s.io/api/authentication/v1beta1"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// The same request in both versions, as kube-apiserver sends it.
const (
	tokenV1 = `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{"creationTimestamp":null},` +
		`"spec":{"token":"k8s-aws-v1.c2VjcmV0","audiences":["https://kubernetes.default.svc","api"]},` +
		`"status":{"authenticated":true,"user":{}}}`
	tokenBeta = `{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1","metadata":{"creationTimestamp":null},` +
		`"spec":{"token":"k8s-aws-v1.c2VjcmV0","audiences":["https://kubernetes.default.svc","api"]},"status":{"user":{}}}`
)

func aNode() *iam.User {
	return &iam.User{
		Username: "system:node:worker-1", UID: "aws-iam-authenticator:111122223333:AROA",
		Groups: []string{"system:bootstrappers", "system:nodes"},
		Extra: map[string][]string{
			"arn": {"arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0"}, "sessionName": {"i-0123456789abcdef0"},
		},
	}
}

func TestTokenReviewOfBothVersions(t *testing.T) {
	for version, document := range map[string]string{"v1": tokenV1, "v1beta1": tokenBeta} {
		r, err := DecodeTokenReview([]byte(document))
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		if r.Token != "k8s-aws-v1.c2VjcmV0" || !slices.Equal(r.Audiences, []string{"https://kubernetes.default.svc", "api"}) {
			t.Errorf("%s: got %+v", version, r)
		}
	}
}

func TestTokenReviewIsAnsweredInItsVersion(t *testing.T) {
	const user = `{"username":"system:node:worker-1","uid":"aws-iam-authenticator:111122223333:AROA",` +
		`"groups":["system:bootstrappers","system:nodes"],` +
		`"extra":{"arn":["arn:aws:sts::111122223333:assumed-role/node/i-0123456789abcdef0"],"sessionName":["i-0123456789abcdef0"]}}`
	for _, tc := range []struct {
		rule     string
		document string
		answer   Authentication
		want     string
	}{
		{
			"a user and audiences", tokenV1,
			Authentication{User: aNode(), Audiences: []string{"api"}},
			`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,"user":` + user +
				`,"audiences":["api"]}}`,
		},
		{
			"a user without audiences", tokenBeta,
			Authentication{User: aNode()},
			`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1","status":{"authenticated":true,"user":` + user + `}}`,
		},
		{
			"a user with only a name", tokenV1,
			Authentication{User: &iam.User{Username: "jane"}},
			`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":true,"user":{"username":"jane"}}}`,
		},
		{
			"a refusal takes precedence over a user", tokenBeta,
			Authentication{User: aNode(), Audiences: []string{"api"}, Refusal: iam.Refuse("NotMapped", "nobody maps <%s>", "role")},
			`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1beta1","status":{"authenticated":false,` +
				`"error":"NotMapped: nobody maps <role>"}}`,
		},
		{
			"an empty answer has no user", tokenV1,
			Authentication{},
			`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":false,` +
				`"error":"the token has no user"}}`,
		},
		{
			"a user without a name is no user", tokenV1,
			Authentication{User: &iam.User{Groups: []string{"system:masters"}}},
			`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","status":{"authenticated":false,` +
				`"error":"the token has no user"}}`,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			r, err := DecodeTokenReview([]byte(tc.document))
			if err != nil {
				t.Fatal(err)
			}
			got := r.Answer(tc.answer)
			if string(got) != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
			if _, err := kubernetesDecodes(got); err != nil {
				t.Errorf("kube-apiserver rejects the answer: %v", err)
			}
		})
	}
}

func TestTokenReviewAudiences(t *testing.T) {
	for _, tc := range []struct {
		rule        string
		asked, ours []string
		want        []string
		refused     string
	}{
		{"the common audiences", []string{"a", "b", "c"}, []string{"c", "a", "x"}, []string{"a", "c"}, ""},
		{"each once", []string{"a", "a"}, []string{"a"}, []string{"a"}, ""},
		{"none if we have none", []string{"a"}, nil, nil, ""},
		{"none if the review has none", nil, []string{"a"}, nil, ""},
		{
			"nothing in common",
			[]string{"a", "b"},
			[]string{"A", "c"},
			nil,
			`AudienceMismatch: the token is wanted for the audiences ["a" "b"], and these authenticate for ["A" "c"]`,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got, refusal := (&TokenReview{Token: "t", Audiences: tc.asked}).For(tc.ours)
			text := ""
			if refusal != nil {
				text = refusal.Error()
			}
			if !slices.Equal(got, tc.want) || text != tc.refused {
				t.Errorf("got %v, %s", got, text)
			}
		})
	}
	if _, refusal := new(TokenReview).For(nil); refusal == nil || refusal.Code != TokenMissing {
		t.Errorf("no token: %v", refusal)
	}
}

func TestTokenReviewsThatCannotBeRead(t *testing.T) {
	for _, tc := range []struct{ rule, document, want string }{
		{"nothing", "", "not valid JSON"},
		{"no object", "[]", "want an object, got a list"},
		{"truncated", tokenV1[:150], "not valid JSON: text ends in the middle of an object"},
		{"two documents", tokenV1 + tokenV1, "not valid JSON"},
		{
			"another kind", accessV1,
			`kind "SubjectAccessReview" of apiVersion "authorization.k8s.io/v1": want TokenReview of authentication.k8s.io/v1 or v1beta1`,
		},
		{
			"an old version", strings.Replace(tokenBeta, "v1beta1", "v1alpha1", 1),
			`kind "TokenReview" of apiVersion "authentication.k8s.io/v1alpha1": want`,
		},
		{
			"another group", strings.Replace(tokenV1, "authentication", "authorization", 1),
			`kind "TokenReview" of apiVersion "authorization.k8s.io/v1": want`,
		},
		{
			"a token that is not a string", strings.Replace(tokenV1, `"k8s-aws-v1.c2VjcmV0"`, `["k8s-aws-v1.c2VjcmV0"]`, 1),
			"spec.token: want a string, got a list",
		},
		{
			"audiences that are not a list", strings.Replace(tokenV1, `["https://kubernetes.default.svc","api"]`, `"api"`, 1),
			"spec.audiences: want a list, got a string",
		},
		{"too large", `{"a":"` + strings.Repeat("x", MaxTokenReview) + `"}`, "larger than 4194304 bytes"},
		{"too deep", nested(maxDepth + 1), "not valid JSON: exceeded max depth"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			r, err := DecodeTokenReview([]byte(tc.document))
			if err == nil {
				t.Fatalf("read as %+v", r)
			}
			if !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "c2VjcmV0") {
				t.Errorf("\n got %v\nwant %s", err, tc.want)
			}
		})
	}
}

// kubernetesToken has the fields that kube-apiserver reads.
func kubernetesToken(t *testing.T, document []byte) (token string, audiences []string, ok bool) {
	t.Helper()
	object, err := kubernetesDecodesRead(t, document, "metadata", "status")
	if err != nil {
		return "", nil, false
	}
	switch o := object.(type) {
	case *authenticationv1.TokenReview:
		return o.Spec.Token, o.Spec.Audiences, true
	case *authenticationv1beta1.TokenReview:
		return o.Spec.Token, o.Spec.Audiences, true
	}
	return "", nil, false
}

// FuzzDecodeTokenReview checks that Kubernetes decodes the same values, that no answer and no
// error contains the token, and that an answer has the version of the request.
func FuzzDecodeTokenReview(f *testing.F) {
	for _, document := range []string{
		tokenV1, tokenBeta, accessV1, "null",
		`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1"}`,
		`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","spec":{"token":"` + "\xff" + `"}}`,
		`{"apiVersion":"authentication.k8s.io/v1beta1","kind":"TokenReview","spec":{"Token":"a","token":null,"audiences":[null,""]}}`,
	} {
		f.Add([]byte(document))
	}
	oddTokenReviews().seed(func(document []byte) { f.Add(document) })
	f.Fuzz(func(t *testing.T, document []byte) {
		r, err := DecodeTokenReview(document)
		if err != nil {
			return // limits, kinds, and names that occur twice
		}
		token, audiences, ok := kubernetesToken(t, document)
		switch {
		case !ok:
			t.Fatalf("read as %+v, and not by Kubernetes", r)
		case r.Token != token || !slices.Equal(r.Audiences, audiences):
			t.Fatalf("got %+v, Kubernetes reads %q, %q", r, token, audiences)
		}
		for _, a := range []Authentication{{}, {User: aNode(), Audiences: r.Audiences}} {
			answer := r.Answer(a)
			back, err := kubernetesDecodes(answer)
			if err != nil {
				t.Fatalf("Kubernetes cannot read the answer %s: %v", answer, err)
			}
			if got := back.GetObjectKind().GroupVersionKind(); got.GroupVersion().String() != r.apiVersion {
				t.Errorf("a review of %s is answered with %s", r.apiVersion, answer)
			}
		}
		const enough = 100 // a token of this length is not part of an answer by chance
		if bare := r.Answer(Authentication{}); len(r.Token) > enough && bytes.Contains(bare, []byte(r.Token)) {
			t.Errorf("the token is in the answer %s", bare)
		}
	})
}
