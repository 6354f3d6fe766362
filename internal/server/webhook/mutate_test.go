package webhook_test

import (
	"encoding/json"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"

	"github.com/node-authorizer/node-authorizer/internal/server/webhook"
)

func TestMutateAddsTolerations(t *testing.T) {
	spec := func(tolerations string) string {
		return strings.Replace(document(t, "pod-create.json"), `"containers"`, `"tolerations": `+tolerations+`, "containers"`, 1)
	}
	const gpu = `{"key":"example.com/gpu","operator":"Exists","effect":"NoSchedule"}`
	for _, tc := range []struct {
		rule  string
		body  string
		patch string // empty: none
		want  string // the pod's tolerations afterwards
	}{
		{
			"a pod without tolerations gets them", document(t, "pod-create.json"),
			`[{"op":"add","path":"/spec/tolerations","value":[` + gpu + `]}]`, `[` + gpu + `]`,
		},
		{
			"so does a pod with an empty list", spec("[]"),
			`[{"op":"add","path":"/spec/tolerations","value":[` + gpu + `]}]`, `[` + gpu + `]`,
		},
		{
			"other tolerations stay, with fields that this version does not know",
			spec(`[{"key":"a","operator":"Exists","new":"field"}]`),
			`[{"op":"add","path":"/spec/tolerations/-","value":` + gpu + `}]`,
			`[{"key":"a","operator":"Exists","new":"field"},` + gpu + `]`,
		},
		{
			"an equivalent toleration is replaced at its index",
			spec(`[{"key":"a","operator":"Exists"},` +
				`{"key":"example.com/gpu","operator":"Exists","effect":"NoSchedule","tolerationSeconds":5},{"key":"b"}]`),
			`[{"op":"replace","path":"/spec/tolerations/1","value":` + gpu + `}]`,
			`[{"key":"a","operator":"Exists"},` + gpu + `,{"key":"b"}]`,
		},
		{"a pod that has the toleration is not changed", spec(`[` + gpu + `]`), "", `[` + gpu + `]`},
		{
			"an updated pod gets them too", strings.Replace(document(t, "pod-create.json"), `"CREATE"`, `"UPDATE"`, 1),
			`[{"op":"add","path":"/spec/tolerations","value":[` + gpu + `]}]`, `[` + gpu + `]`,
		},
		{
			"a pod without extended resources is not changed",
			strings.ReplaceAll(document(t, "pod-create.json"), "example.com/gpu", "memory"), "", ``,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			var mutated []bool
			handler := webhook.Mutate(webhook.Options{Mutated: func(changed bool) { mutated = append(mutated, changed) }})
			response := answered[admissionv1.AdmissionReview](t, post(t, handler, tc.body)).Response
			if !response.Allowed || string(response.Patch) != tc.patch || (response.PatchType != nil) != (tc.patch != "") {
				t.Fatalf("answer is %+v with patch %s, want %s", response, response.Patch, tc.patch)
			}
			if len(mutated) != 1 || mutated[0] != (tc.patch != "") {
				t.Errorf("reported %v", mutated)
			}
			if got := tolerations(t, tc.body, response.Patch); got != tc.want {
				t.Errorf("tolerations are %s, want %s", got, tc.want)
			}
		})
	}
}

// tolerations returns the tolerations of the pod in a review after a patch.
func tolerations(t *testing.T, body string, patch []byte) string {
	t.Helper()
	var asked struct {
		Request struct{ Object json.RawMessage }
	}
	if err := json.Unmarshal([]byte(body), &asked); err != nil {
		t.Fatal(err)
	}
	object := []byte(asked.Request.Object)
	if len(patch) > 0 {
		decoded, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			t.Fatal(err)
		}
		if object, err = decoded.Apply(object); err != nil {
			t.Fatal(err)
		}
	}
	var pod struct {
		Spec struct{ Tolerations json.RawMessage }
	}
	if err := json.Unmarshal(object, &pod); err != nil {
		t.Fatal(err)
	}
	return string(pod.Spec.Tolerations)
}

func TestMutateDoesNotChangeOtherWrites(t *testing.T) {
	for rule, change := range map[string][2]string{
		"a deletion":        {`"CREATE"`, `"DELETE"`},
		"a subresource":     {`"name": "trainer",`, `"name": "trainer", "subResource": "eviction",`},
		"another resource":  {`"resource": "pods"`, `"resource": "podtemplates"`},
		"another API group": {`"resource": {"group": ""`, `"resource": {"group": "metrics.k8s.io"`},
	} {
		t.Run(rule, func(t *testing.T) {
			body := strings.Replace(document(t, "pod-create.json"), change[0], change[1], 1)
			handler := webhook.Mutate(webhook.Options{Mutated: func(bool) { t.Error("reported as mutated") }})
			response := answered[admissionv1.AdmissionReview](t, post(t, handler, body)).Response
			if !response.Allowed || response.Patch != nil || string(response.UID) != "0df28fbd-5f5f-11e8-bc74-36e6bb280816" {
				t.Errorf("answer is %+v", response)
			}
		})
	}
}
