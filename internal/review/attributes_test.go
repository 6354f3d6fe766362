package review

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
)

func specWith(selector *authorizationv1.FieldSelectorAttributes) *authorizationv1.SubjectAccessReviewSpec {
	return &authorizationv1.SubjectAccessReviewSpec{
		User:               "system:node:worker-1",
		Groups:             []string{"system:nodes"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", FieldSelector: selector},
	}
}

func TestFieldSelectorConversion(t *testing.T) {
	in := func(key string, operator metav1.FieldSelectorOperator, values ...string) metav1.FieldSelectorRequirement {
		return metav1.FieldSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	equals := fields.Requirement{Field: "spec.nodeName", Operator: selection.Equals, Value: "worker-1"}
	other := fields.Requirement{Field: "status.phase", Operator: selection.NotEquals, Value: "Failed"}
	for _, tc := range []struct {
		rule         string
		raw          string
		requirements []metav1.FieldSelectorRequirement
		want         fields.Requirements
		ignored      int
	}{
		{
			rule:         "In with one value is Equals",
			requirements: []metav1.FieldSelectorRequirement{in("spec.nodeName", "In", "worker-1")}, want: fields.Requirements{equals},
		},
		{
			rule:         "NotIn with one value is NotEquals",
			requirements: []metav1.FieldSelectorRequirement{in("status.phase", "NotIn", "Failed")}, want: fields.Requirements{other},
		},
		{
			rule:         "In with two values is dropped, even if they are equal",
			requirements: []metav1.FieldSelectorRequirement{in("spec.nodeName", "In", "worker-1", "worker-1")}, ignored: 1,
		},
		{
			rule:         "In without a value is dropped",
			requirements: []metav1.FieldSelectorRequirement{in("spec.nodeName", "In")}, ignored: 1,
		},
		{
			rule:         "Exists and DoesNotExist are dropped, also with a value",
			requirements: []metav1.FieldSelectorRequirement{in("spec.nodeName", "Exists"), in("spec.nodeName", "DoesNotExist", "x")},
			ignored:      2,
		},
		{
			rule:         "an unknown operator is dropped",
			requirements: []metav1.FieldSelectorRequirement{in("spec.nodeName", "Near", "worker-1")}, ignored: 1,
		},
		{
			rule: "the others stay when one is dropped",
			requirements: []metav1.FieldSelectorRequirement{
				in("a", "Exists"), in("spec.nodeName", "In", "worker-1"), in("status.phase", "NotIn", "Failed"),
			},
			want: fields.Requirements{equals, other}, ignored: 1,
		},
		{rule: "a raw selector is parsed", raw: "spec.nodeName=worker-1,status.phase!=Failed", want: fields.Requirements{equals, other}},
		{rule: "a raw selector with == is Equals", raw: "spec.nodeName==worker-1", want: fields.Requirements{
			{Field: "spec.nodeName", Operator: selection.Equals, Value: "worker-1"},
		}},
		{rule: "a raw selector that cannot be parsed is dropped whole", raw: "spec.nodeName", ignored: 1},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			req, ignored := Attributes(specWith(&authorizationv1.FieldSelectorAttributes{
				RawSelector: tc.raw, Requirements: tc.requirements,
			}))
			got := slices.Clone(req.FieldSelector)
			slices.SortFunc(got, func(a, b fields.Requirement) int { return strings.Compare(a.Field, b.Field) })
			if !slices.Equal(got, tc.want) {
				t.Errorf("requirements = %v, want %v", got, tc.want)
			}
			if len(ignored) != tc.ignored {
				t.Errorf("ignored %q, want %d", ignored, tc.ignored)
			}
		})
	}
}

func TestLabelSelectorConversion(t *testing.T) {
	in := func(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: key, Operator: operator, Values: values}
	}
	for _, tc := range []struct {
		rule         string
		raw          string
		requirements []metav1.LabelSelectorRequirement
		want         string // joined by ";"
		ignored      string
	}{
		{rule: "a raw selector is parsed", raw: "app in (b,a),tier!=web,!old", want: "!old;app in (a,b);tier!=web"},
		{rule: "a raw selector that cannot be parsed is dropped whole", raw: "app=a,b in", ignored: "labelSelector.rawSelector ignored"},
		{
			rule: "each operator",
			requirements: []metav1.LabelSelectorRequirement{
				in("a", "In", "x", "y"), in("b", "NotIn", "x"), in("c", "Exists"), in("d", "DoesNotExist"),
			},
			want: "!d;a in (x,y);b notin (x);c",
		},
		{
			rule:         "an unknown operator is dropped, and the others stay",
			requirements: []metav1.LabelSelectorRequirement{in("a", "Near"), in("b", "In", "x")},
			want:         "b in (x)", ignored: `labelSelector.requirements[0] ignored: unknown operator "Near"`,
		},
		{
			rule:         "Exists with values is dropped",
			requirements: []metav1.LabelSelectorRequirement{in("a", "Exists", "x")}, ignored: "labelSelector.requirements[0] ignored",
		},
		{
			rule:         "In without values is dropped",
			requirements: []metav1.LabelSelectorRequirement{in("a", "In")}, ignored: "labelSelector.requirements[0] ignored",
		},
		{
			rule:         "an invalid key is dropped",
			requirements: []metav1.LabelSelectorRequirement{in("-", "Exists")}, ignored: "labelSelector.requirements[0] ignored",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			spec := specWith(nil)
			spec.ResourceAttributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{
				RawSelector: tc.raw, Requirements: tc.requirements,
			}
			req, ignored := Attributes(spec)
			var got []string
			for _, r := range req.LabelSelector {
				got = append(got, r.String())
			}
			slices.Sort(got)
			if strings.Join(got, ";") != tc.want {
				t.Errorf("requirements = %q, want %q", got, tc.want)
			}
			if got := ignored.String(); !strings.HasPrefix(got, tc.ignored) || (got == "") != (tc.ignored == "") {
				t.Errorf("ignored %q, want %q", got, tc.ignored)
			}
		})
	}
}

func TestAttributesAreCopied(t *testing.T) {
	resource, _ := Attributes(&authorizationv1.SubjectAccessReviewSpec{
		User: "u", UID: "1", Groups: []string{"g"}, Extra: map[string]authorizationv1.ExtraValue{"scope": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: "create", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "api",
		},
	})
	if want := (access.Request{
		User: "u", UID: "1", Groups: []string{"g"}, Extra: map[string][]string{"scope": {"a", "b"}},
		Verb: "create", Group: "apps", Version: "v1", Resource: "deployments",
		Subresource: "scale", Namespace: "shop", Name: "api", ResourceRequest: true,
	}); !reflect.DeepEqual(resource, want) {
		t.Errorf("got %+v, want %+v", resource, want)
	}
	if unversioned, _ := Attributes(specWith(nil)); unversioned.Version != "*" {
		t.Errorf("no version is %q, want *", unversioned.Version)
	}
	url, _ := Attributes(&authorizationv1.SubjectAccessReviewSpec{
		User: "u", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/healthz"},
	})
	if want := (access.Request{User: "u", Verb: "get", Path: "/healthz"}); !reflect.DeepEqual(url, want) {
		t.Errorf("got %+v, want %+v", url, want)
	}
}

func TestValidate(t *testing.T) {
	resource := &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods"}
	url := &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/"}
	withField := func(f authorizationv1.FieldSelectorAttributes) authorizationv1.SubjectAccessReviewSpec {
		return authorizationv1.SubjectAccessReviewSpec{
			User: "u", ResourceAttributes: &authorizationv1.ResourceAttributes{FieldSelector: &f},
		}
	}
	withLabel := func(l authorizationv1.LabelSelectorAttributes) authorizationv1.SubjectAccessReviewSpec {
		return authorizationv1.SubjectAccessReviewSpec{
			User: "u", ResourceAttributes: &authorizationv1.ResourceAttributes{LabelSelector: &l},
		}
	}
	field := metav1.FieldSelectorRequirement{Key: "spec.nodeName", Operator: "In", Values: []string{"a"}}
	for _, tc := range []struct {
		rule string
		spec authorizationv1.SubjectAccessReviewSpec
		want string
	}{
		{"a user is enough", authorizationv1.SubjectAccessReviewSpec{User: "u", ResourceAttributes: resource}, ""},
		{"a group is enough", authorizationv1.SubjectAccessReviewSpec{Groups: []string{"g"}, NonResourceAttributes: url}, ""},
		{"neither user nor groups", authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: resource}, "spec.user"},
		{
			"both kinds of attributes",
			authorizationv1.SubjectAccessReviewSpec{User: "u", ResourceAttributes: resource, NonResourceAttributes: url},
			"spec: Invalid",
		},
		{"neither kind of attributes", authorizationv1.SubjectAccessReviewSpec{User: "u"}, "spec: Invalid"},
		{"both forms of a field selector", withField(authorizationv1.FieldSelectorAttributes{
			RawSelector: "a=b", Requirements: []metav1.FieldSelectorRequirement{field},
		}), "spec.resourceAttributes.fieldSelector"},
		{"an empty field selector", withField(authorizationv1.FieldSelectorAttributes{}), "spec.resourceAttributes.fieldSelector"},
		{"a field requirement without a key", withField(authorizationv1.FieldSelectorAttributes{
			Requirements: []metav1.FieldSelectorRequirement{{Operator: "Exists"}},
		}), "spec.resourceAttributes.fieldSelector.requirements[0].key"},
		{"In without values", withField(authorizationv1.FieldSelectorAttributes{
			Requirements: []metav1.FieldSelectorRequirement{{Key: "a", Operator: "In"}},
		}), "spec.resourceAttributes.fieldSelector.requirements[0].values"},
		{"an operator of a newer client is accepted", withField(authorizationv1.FieldSelectorAttributes{
			Requirements: []metav1.FieldSelectorRequirement{{Key: "a", Operator: "Near"}},
		}), ""},
		{"an empty label selector", withLabel(authorizationv1.LabelSelectorAttributes{}), "spec.resourceAttributes.labelSelector"},
		{"a label requirement with a bad key", withLabel(authorizationv1.LabelSelectorAttributes{
			Requirements: []metav1.LabelSelectorRequirement{{Key: "-", Operator: "Exists"}},
		}), "spec.resourceAttributes.labelSelector.requirements[0].key"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			errs := Validate(&tc.spec)
			if tc.want == "" {
				if len(errs) > 0 {
					t.Errorf("got %v", errs)
				}
				return
			}
			if len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want) {
				t.Errorf("got %v, want one about %s", errs, tc.want)
			}
		})
	}
}
