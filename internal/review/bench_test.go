package review

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// writes returns typical AdmissionReviews of kubelets, the smallest first.
func writes(b *testing.B) []struct{ name, document string } {
	b.Helper()
	lease := `{"kind":"Lease","apiVersion":"coordination.k8s.io/v1",` +
		`"metadata":{"name":"worker-1","namespace":"kube-node-lease","uid":"1",` +
		`"managedFields":[{"manager":"kubelet","operation":"Update","fieldsV1":{"f:spec":{"f:holderIdentity":{},"f:renewTime":{}}}}]},` +
		`"spec":{"holderIdentity":"worker-1","renewTime":"2026-01-02T03:04:05.000000Z"}}`
	node := encodedNode(b)
	return []struct{ name, document string }{
		{"lease", write("coordination.k8s.io", "Lease", "leases", "", lease)},
		{"pod status", podStatus(aPod, aPod)},
		{"node status", write("", "Node", "nodes", "status", node)},
	}
}

func write(group, kind, resource, subresource, object string) string {
	return fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",`+
		`"request":{"uid":"705ab4f5-6393-11e8-b7cc-42010a800002",`+
		`"kind":{"group":%[1]q,"version":"v1","kind":%[2]q},"resource":{"group":%[1]q,"version":"v1","resource":%[3]q},`+
		`"subResource":%[4]q,"name":"worker-1","operation":"UPDATE",`+
		`"userInfo":{"username":"system:node:worker-1","groups":["system:nodes","system:authenticated"]},`+
		`"object":%[5]s,"oldObject":%[5]s,"dryRun":false,"options":{"kind":"UpdateOptions","apiVersion":"meta.k8s.io/v1"}}}`,
		group, kind, resource, subresource, object)
}

// encodedNode returns a node with as many images as a kubelet reports.
func encodedNode(b *testing.B) string {
	node := corev1.Node{
		TypeMeta:   metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "worker-1", Labels: map[string]string{}},
	}
	for i := range 20 {
		node.Labels[fmt.Sprintf("example.com/label-%d", i)] = "value"
	}
	for i := range 50 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{
				fmt.Sprintf("registry.example.com/image-%d@sha256:%s", i, strings.Repeat("0123456789abcdef", 4)),
				fmt.Sprintf("registry.example.com/image-%d:v1", i),
			},
			SizeBytes: 1 << 30,
		})
	}
	text, err := json.Marshal(node)
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// BenchmarkDecodeAdmission decodes the objects that NodeRestriction reads: none for a lease,
// both for the others.
func BenchmarkDecodeAdmission(b *testing.B) {
	for _, w := range writes(b) {
		document := []byte(w.document)
		b.Run(w.name, func(b *testing.B) {
			b.SetBytes(int64(len(document)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := DecodeAdmission(document, readsOfNode); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(w.name+", as kube-apiserver decodes", func(b *testing.B) {
			b.SetBytes(int64(len(document)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := kubernetesDecodes(document); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func readsOfNode(req *noderestriction.Request) (object, oldObject bool) {
	return req.Resource != "leases", req.Resource != "leases"
}

// BenchmarkStreamAdmission is BenchmarkStream with AdmissionReviews.
func BenchmarkStreamAdmission(b *testing.B) {
	const n = 1000
	evaluators := named()
	evaluators.Reads = readsOfNode
	for _, w := range writes(b) {
		input := []byte(strings.Repeat(w.document+"\n", n))
		b.Run(w.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Stream(b.Context(), evaluators, bytes.NewReader(input), io.Discard); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "documents/s")
		})
	}
}

// BenchmarkAccessReview answers reviews as API servers write them: of a node, and of a service account with a token
// of a pod, whose extra values make it twice as long.
func BenchmarkAccessReview(b *testing.B) {
	const about = `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{` +
		`"resourceAttributes":{"namespace":"shop","verb":"get","version":"v1","resource":"secrets","name":"db"},` +
		`"user":%s},"status":{"allowed":false}}` + "\n"
	for name, user := range map[string]string{
		"node": `"system:node:worker-1","groups":["system:nodes","system:authenticated"]`,
		"account": `"system:serviceaccount:kube-system:agent","groups":["system:serviceaccounts",` +
			`"system:serviceaccounts:kube-system","system:authenticated"],` +
			`"extra":{"authentication.kubernetes.io/credential-id":["JTI=8b7c2a4e-1f35-4d9b-8a77-60d6c1f0a911"],` +
			`"authentication.kubernetes.io/node-name":["worker-1"],` +
			`"authentication.kubernetes.io/node-uid":["b9b0c6d0-77a5-4c8a-9a0f-3f0c5a1b2c3d"],` +
			`"authentication.kubernetes.io/pod-name":["agent-x7k2p"],` +
			`"authentication.kubernetes.io/pod-uid":["0d9e8f7a-6b5c-4d3e-8f2a-1b0c9d8e7f6a"]},` +
			`"uid":"1c7b8c3a-2f0e-4c55-9d6f-1a2b3c4d5e6f"`,
	} {
		document := fmt.Appendf(nil, about, user)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r, err := DecodeAccessReview(document)
				if err != nil {
					b.Fatal(err)
				}
				r.Answer(b.Context(), byName)
			}
		})
	}
}
