package review

import (
	"fmt"
	"strings"
	"testing"
)

const aboutSelectors = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"user":"u",` +
	`"resourceAttributes":{"verb":"list","resource":"secrets",%s}}}`

// TestSelectorsMakeNoReviewInvalid: whoever sends a request chooses its selectors. If one of them were an error,
// an API server whose failure policy is NoOpinion would not apply the answer.
func TestSelectorsMakeNoReviewInvalid(t *testing.T) {
	many := func(text string, n int) string { return strings.TrimSuffix(strings.Repeat(text+",", n), ",") }
	const inURL = 1 << 20 // the longest URL that an API server reads
	for _, tc := range []struct {
		rule, selector string
		fields, labels int
	}{
		{"a field without a name", `"fieldSelector":{"requirements":[{"key":"","operator":"In","values":["b"]}]}`, 0, 0},
		{"no requirement", `"fieldSelector":{},"labelSelector":{"requirements":[]}`, 0, 0},
		{"an invalid label", `"labelSelector":{"requirements":[{"key":"-","operator":"In","values":["-"]}]}`, 0, 0},
		{
			"one of both is invalid",
			`"fieldSelector":{"requirements":[{"key":"a","operator":"In","values":["b"]}]},"labelSelector":{}`, 1, 0,
		},
		{
			"as many fields as fit into a URL",
			`"fieldSelector":{"requirements":[` + many(`{"key":"a","operator":"In","values":["b"]}`, inURL/len("a=b,")) + `]}`,
			maxRequirements, 0,
		},
		{
			"as many labels as fit into a URL",
			`"labelSelector":{"requirements":[` + many(`{"key":"a","operator":"Exists"}`, inURL/len("a,")) + `]}`, 0, maxRequirements,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			r, err := DecodeAccessReview(fmt.Appendf(nil, aboutSelectors, tc.selector))
			if err != nil {
				t.Fatal(err)
			}
			if req := &r.Request; len(req.FieldSelector) != tc.fields || len(req.LabelSelector) != tc.labels {
				t.Errorf("%d and %d requirements", len(req.FieldSelector), len(req.LabelSelector))
			}
		})
	}
}

// TestRequirementsThatAreNoList: a stack overflow, which these once caused, ends the process.
func TestRequirementsThatAreNoList(t *testing.T) {
	for _, selector := range []string{"fieldSelector", "labelSelector"} {
		for value, want := range map[string]string{
			`{"requirements":null}`: "", `{}`: "", `null`: "", `{"requirements":[null]}`: "",
			`{"requirements":"a"}`: "a string", `{"requirements":5}`: "a number", `{"requirements":{}}`: "an object",
			`{"requirements":true}`: "true or false",
		} {
			_, err := DecodeAccessReview(fmt.Appendf(nil, aboutSelectors, fmt.Sprintf("%q:%s", selector, value)))
			if want != "" {
				want = "spec.resourceAttributes." + selector + ".requirements: want a list, got " + want
			}
			if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
				t.Errorf("%s %s: %s, want %s", selector, value, got, want)
			}
		}
	}
}
