package conformance

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubernetes/pkg/apis/authorization"
	authorizationconversion "k8s.io/kubernetes/pkg/apis/authorization/v1"
	"k8s.io/kubernetes/pkg/registry/authorization/util"

	"github.com/node-authorizer/node-authorizer/internal/review"
)

// TestRandomReviews converts random SubjectAccessReview specs to attributes
// with the API server's code and with ours.
func TestRandomReviews(t *testing.T) {
	b := readBudget(t)
	divergences, withSelector, ignored := 0, 0, 0
	for _, seed := range b.seeds(b.clusters) {
		r := rand.New(rand.NewPCG(seed, 2))
		for range b.requests {
			spec := randomReview(r)
			want := inTreeAttributes(t, spec)
			got, left := review.Attributes(spec)
			if len(want.selector) > 0 {
				withSelector++
			}
			if len(left) > 0 {
				ignored++
			}
			switch {
			case got.User != want.user || got.Verb != want.verb || got.Group != want.group || got.Resource != want.resource ||
				got.Subresource != want.subresource || got.Namespace != want.namespace || got.Name != want.name ||
				got.Path != want.path || got.ResourceRequest != want.resourceRequest ||
				!slices.Equal(got.Groups, want.groups) || !slices.Equal(got.FieldSelector, want.selector) ||
				got.UID != want.uid || !reflect.DeepEqual(got.Extra, want.extra) || got.Version != want.version ||
				!slices.Equal(labelTexts(got.LabelSelector), want.labels):
				t.Errorf("seed %d: %s\n  in-tree: %+v\n  ours: %+v", seed, spec, want, got)
				divergences++
			case (len(left) > 0) != want.incomplete:
				t.Errorf("seed %d: %s\n  in-tree reports an error: %t\n  ours leaves out: %q", seed, spec, want.incomplete, left)
				divergences++
			}
			if divergences > maxDivergences {
				t.FailNow()
			}
		}
	}
	t.Logf("reviews: %d, %d with a usable selector, %d with parts left out: %d divergences",
		b.clusters*b.requests, withSelector, ignored, divergences)
	if withSelector == 0 || ignored == 0 {
		t.Error("the reviews exercise one outcome only")
	}
}

// attributes are the attributes that an authorizer sees of a review.
type attributes struct {
	user                                                string
	groups                                              []string
	verb, group, resource, subresource, namespace, name string
	path                                                string
	resourceRequest                                     bool
	selector                                            fields.Requirements
	uid, version                                        string
	extra                                               map[string][]string
	labels                                              []string
	// incomplete is true if a selector did not parse as a whole.
	incomplete bool
}

func inTreeAttributes(t *testing.T, spec *authorizationv1.SubjectAccessReviewSpec) attributes {
	t.Helper()
	var internal authorization.SubjectAccessReviewSpec
	convert := authorizationconversion.Convert_v1_SubjectAccessReviewSpec_To_authorization_SubjectAccessReviewSpec
	if err := convert(spec, &internal, nil); err != nil {
		t.Fatal(err)
	}
	record := util.AuthorizationAttributesFrom(internal)
	return attributes{
		user: record.User.GetName(), groups: record.User.GetGroups(),
		verb: record.Verb, group: record.APIGroup, resource: record.Resource, subresource: record.Subresource,
		namespace: record.Namespace, name: record.Name, path: record.Path, resourceRequest: record.ResourceRequest,
		selector: record.FieldSelectorRequirements,
		uid:      record.User.GetUID(), version: record.APIVersion, extra: record.User.GetExtra(),
		labels:     labelTexts(record.LabelSelectorRequirements),
		incomplete: record.FieldSelectorParsingErr != nil || record.LabelSelectorParsingErr != nil,
	}
}

func labelTexts(requirements labels.Requirements) (texts []string) {
	for _, r := range requirements {
		texts = append(texts, r.String())
	}
	return texts
}

func oneOf[T any](r *rand.Rand, choices ...T) T { return choices[r.IntN(len(choices))] }

// randomReview draws a spec that passes the API server's validation: resource
// or non-resource attributes, a raw selector or requirements.
func randomReview(r *rand.Rand) *authorizationv1.SubjectAccessReviewSpec {
	spec := &authorizationv1.SubjectAccessReviewSpec{
		User:   oneOf(r, "system:node:node-1", "alice", ""),
		Groups: oneOf(r, nil, []string{"system:nodes"}, []string{"a", "system:nodes"}),
		UID:    oneOf(r, "", "7"),
		Extra: oneOf(r, nil, map[string]authorizationv1.ExtraValue{},
			map[string]authorizationv1.ExtraValue{"scope": {"a", "b"}, "empty": nil}),
	}
	if r.IntN(10) == 0 {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Verb: "get", Path: oneOf(r, "/healthz", "/")}
		return spec
	}
	spec.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Verb: oneOf(r, "get", "list", "*"), Group: oneOf(r, "", "apps"), Version: oneOf(r, "", "v1"), Resource: oneOf(r, "pods", "*", ""),
		Subresource: oneOf(r, "", "status"), Namespace: oneOf(r, "", "shop"), Name: oneOf(r, "", "db"),
	}
	if r.IntN(4) > 0 {
		spec.ResourceAttributes.FieldSelector = randomFieldSelector(r)
	}
	if r.IntN(4) == 0 {
		spec.ResourceAttributes.LabelSelector = randomLabelSelector(r)
	}
	return spec
}

func randomFieldSelector(r *rand.Rand) *authorizationv1.FieldSelectorAttributes {
	if r.IntN(3) == 0 {
		return &authorizationv1.FieldSelectorAttributes{RawSelector: oneOf(r,
			"spec.nodeName=node-1", "spec.nodeName==node-1", "spec.nodeName!=node-1", "spec.nodeName=node-1,metadata.name=db",
			"spec.nodeName", "=", ",", "spec.nodeName=", "spec.nodeName=a=b", `spec.nodeName=a\=b`, `a\`,
			" spec.nodeName=node-1 ", "!spec.nodeName")}
	}
	selector := &authorizationv1.FieldSelectorAttributes{}
	for range 1 + r.IntN(3) {
		selector.Requirements = append(selector.Requirements, metav1.FieldSelectorRequirement{
			Key: oneOf(r, "spec.nodeName", "metadata.name"),
			Operator: oneOf(r, metav1.FieldSelectorOpIn, metav1.FieldSelectorOpIn, metav1.FieldSelectorOpNotIn,
				metav1.FieldSelectorOpExists, metav1.FieldSelectorOpDoesNotExist, "=", ""),
			Values: oneOf(r, nil, []string{}, []string{""}, []string{"node-1"}, []string{"node-1"}, []string{"node-1", "node-1"}),
		})
	}
	return selector
}

func randomLabelSelector(r *rand.Rand) *authorizationv1.LabelSelectorAttributes {
	if r.IntN(3) == 0 {
		return &authorizationv1.LabelSelectorAttributes{RawSelector: oneOf(r, "a=b", "a in (b,c)", "!a", "a in", "/", "a>1")}
	}
	selector := &authorizationv1.LabelSelectorAttributes{}
	for range 1 + r.IntN(3) {
		selector.Requirements = append(selector.Requirements, metav1.LabelSelectorRequirement{
			Key: oneOf(r, "a", "a/b", "/", ""),
			Operator: oneOf(r, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists,
				metav1.LabelSelectorOpDoesNotExist, "Gt", ""),
			Values: oneOf(r, nil, []string{}, []string{"b"}, []string{"b", "c"}, []string{"not a value!"}),
		})
	}
	return selector
}
