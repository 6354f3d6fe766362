package review

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// reviewOf returns a review with a spec.
func reviewOf(spec string) string {
	return `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{` + spec + `},` +
		`"status":{"allowed":false}}`
}

const (
	// tokenExtra are the extra values of a service account with a token of a pod.
	tokenExtra = `"extra":{"authentication.kubernetes.io/credential-id":["JTI=8b7c2a4e-1f35-4d9b-8a77-60d6c1f0a911"],` +
		`"authentication.kubernetes.io/node-name":["worker-1"],` +
		`"authentication.kubernetes.io/node-uid":["b9b0c6d0-77a5-4c8a-9a0f-3f0c5a1b2c3d"],` +
		`"authentication.kubernetes.io/pod-name":["agent-x7k2p"],` +
		`"authentication.kubernetes.io/pod-uid":["0d9e8f7a-6b5c-4d3e-8f2a-1b0c9d8e7f6a"]}`
	getSecret   = `"resourceAttributes":{"namespace":"shop","verb":"get","version":"v1","resource":"secrets","name":"db"},`
	nodeSpec    = getSecret + `"user":"system:node:worker-1","groups":["system:nodes","system:authenticated"]`
	accountSpec = getSecret + `"user":"system:serviceaccount:kube-system:agent","groups":["system:serviceaccounts",` +
		`"system:serviceaccounts:kube-system","system:authenticated"],` + tokenExtra + `,"uid":"1c7b8c3a-2f0e-4c55-9d6f-1a2b3c4d5e6f"`
)

// plainReviews are reviews as API servers write them.
func plainReviews() map[string]string {
	return map[string]string{
		"a node":                 reviewOf(nodeSpec),
		"a service account":      reviewOf(accountSpec),
		"a time that is not set": accessV1[:strings.Index(accessV1, `,"status"`)] + "}\n",
		"v1beta1": accessBeta[:strings.Index(accessBeta, `,"groups"`)] +
			accessBeta[strings.Index(accessBeta, `,"extra"`):strings.Index(accessBeta, `,"status"`)] + "}",
		"a path": reviewOf(`"nonResourceAttributes":{"path":"/healthz","verb":"get"},"user":"u","groups":["g"]`),
		"a field selector": reviewOf(`"resourceAttributes":{"verb":"list","version":"v1","resource":"pods","fieldSelector":` +
			`{"requirements":[{"key":"spec.nodeName","operator":"In","values":["worker-1"]}]}},"user":"u","groups":["g"]`),
		"a subresource": reviewOf(`"resourceAttributes":{"namespace":"n","verb":"create","group":"g","version":"v1","resource":"r",` +
			`"subresource":"s","name":"x"},"user":"u","groups":["1","2","3","4","5"]`),
		"an invalid field selector":   reviewOf(`"resourceAttributes":{"verb":"list","fieldSelector":{"requirements":[]}},"user":"u"`),
		"extra values without values": reviewOf(`"resourceAttributes":{"verb":"get"},"user":"u","extra":{"a":[],"b":["1","2"]}`),
		"no user":                     reviewOf(`"resourceAttributes":{"verb":"get"}`),
	}
}

// otherReviews are reviews that the default decoder decodes.
func otherReviews() map[string]string {
	plain := reviewOf(accountSpec)
	replaced := func(from, to string) string { return strings.Replace(plain, from, to, 1) }
	return map[string]string{
		"an escape":                     replaced("worker-1", `worker\u002d1`),
		"a backslash at the end":        replaced("worker-1", `worker-1\\`),
		"not ASCII":                     replaced("worker-1", "wörker-1"),
		"invalid UTF-8":                 replaced("worker-1", "worker-\xff"),
		"a control character":           replaced("worker-1", "worker-\x01"),
		"a line break":                  replaced("worker-1", "worker-\n1"),
		"a space":                       replaced(`"spec":`, `"spec": `),
		"null":                          replaced(`["worker-1"]`, "null"),
		"a number":                      replaced(`["worker-1"]`, "[1]"),
		"extra values that end objects": replaced("worker-1", "]}"),
		"extra values twice":            replaced(`"extra":`, `"extra":{"a":["b"]},"extra":`),
		"no extra values":               replaced(tokenExtra, `"extra":{}`),
		"an unknown field":              replaced(`"spec":`, `"other":{},"spec":`),
		"an unknown field of spec":      replaced(`"user":`, `"other":"a","user":`),
		"metadata":                      replaced(`"metadata":{}`, `"metadata":{"name":"a"}`),
		"a label selector":              replaced(`"verb"`, `"labelSelector":{"requirements":[{"key":"a","operator":"Exists"}]},"verb"`),
		"a raw selector":                replaced(`"verb":"get"`, `"verb":"get","fieldSelector":{"rawSelector":"a=b"}`),
		"the version at the end":        `{"kind":"SubjectAccessReview","spec":{` + nodeSpec + `},"apiVersion":"authorization.k8s.io/v1"}`,
		"two versions":                  replaced(`"status":`, `"apiVersion":"authorization.k8s.io/v1beta1","status":`),
		"another version":               replaced("k8s.io/v1", "k8s.io/v2"),
		"another kind":                  replaced("SubjectAccessReview", "Pod"),
		"large":                         replaced("worker-1", strings.Repeat("a", maxPlainReview)),
		"two documents":                 plain + plain,
		"a comma too much":              replaced(`},"status"`, `},,"status"`),
		"no comma":                      replaced(`},"status"`, `}"status"`),
		"no object":                     `["` + plain[2:],
		"nothing":                       "",
	}
}

func TestReviewsOfAPIServersAreDecodedAsPlainText(t *testing.T) {
	for what, document := range plainReviews() {
		if decodePlain([]byte(document), nil) == nil {
			t.Errorf("%s is not decoded", what)
		}
	}
	for what, document := range otherReviews() {
		if r := decodePlain([]byte(document), nil); r != nil {
			t.Errorf("%s is decoded as %+v", what, r)
		}
	}
	whole := reviewOf(accountSpec)
	for i := range whole {
		if r := decodePlain([]byte(whole[:i]), nil); r != nil {
			t.Fatalf("%s is decoded as %+v", whole[:i], r)
		}
	}
}

// FuzzPlainReview compares with the default decoder, once without extra values that are known, and once with them.
func FuzzPlainReview(f *testing.F) {
	for _, documents := range []map[string]string{plainReviews(), otherReviews()} {
		for _, document := range documents {
			f.Add([]byte(document))
		}
	}
	for _, extra := range []string{
		`{"a":["x","y"],"b":["[]{},:"],"":[""]}`, `{"a":["x"],"a":["y"],"b":["1","2","3","4","5","6","7"]}`, `{"a":["x"]}}`, `{"a":["x"],}`,
		`[]`, `{"a":[["x"]]}`, `{"a":["]}"]}`, `{"]}":["a"]}`,
	} {
		f.Add([]byte(reviewOf(getSecret + `"user":"u","extra":` + extra)))
	}
	decoder := NewAccessDecoder()
	f.Fuzz(func(t *testing.T, document []byte) {
		want, wantErr := decodeAny(document)
		for range 2 {
			got, err := decoder.Decode(document)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
				t.Fatalf("got %+v, %v, want %+v, %v", got, err, want, wantErr)
			}
		}
	})
}
