package review

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

// TestRandomObjects encodes random objects as kube-apiserver does, and decodes them with its
// decoder and with DecodeObject.
func TestRandomObjects(t *testing.T) {
	const objects = 100
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), scheme.Codecs)
	for kind := range kinds {
		t.Run(kind.String(), func(t *testing.T) {
			for range objects {
				object, err := scheme.Scheme.New(kind)
				if err != nil {
					t.Skip("decoded without a type:", err)
				}
				fill.Fill(object)
				object.GetObjectKind().SetGroupVersionKind(kind)
				text, err := json.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				got, err := DecodeObject(text, kind)
				if err != nil {
					t.Fatalf("%v: %s", err, text)
				}
				compareObjects(t, got, text)
			}
		})
	}
}

func TestObjectsWithoutATypeKeepTheirFields(t *testing.T) {
	for apiVersion, spec := range map[string]string{
		"resource.k8s.io/v1alpha2": `"nodeName":"worker-1"`,
		"resource.k8s.io/v1alpha3": `"spec":{"nodeName":"worker-1","pool":{"generation":3}}`,
	} {
		text := `{"kind":"ResourceSlice","apiVersion":"` + apiVersion + `","metadata":{"name":"a"},` + spec + `}`
		object, err := DecodeObject([]byte(text), schema.FromAPIVersionAndKind(apiVersion, "ResourceSlice"))
		if err != nil {
			t.Errorf("%s: %v", apiVersion, err)
			continue
		}
		u := object.(*unstructured.Unstructured)
		top, _, _ := unstructured.NestedString(u.Object, "nodeName")
		below, _, _ := unstructured.NestedString(u.Object, "spec", "nodeName")
		if top+below != "worker-1" || u.GetName() != "a" {
			t.Errorf("%s: got %v", apiVersion, u.Object)
		}
	}
}

func TestNodeStatusIsNotRead(t *testing.T) {
	object, err := DecodeObject([]byte(
		`{"kind":"Node","apiVersion":"v1","metadata":{"name":"a"},"spec":{"podCIDR":"b"},"status":{"images":[{"names":1}]}}`,
	),
		corev1.SchemeGroupVersion.WithKind("Node"))
	if err != nil {
		t.Fatal(err)
	}
	if node := object.(*corev1.Node); node.Name != "a" || node.Spec.PodCIDR != "b" {
		t.Errorf("got %+v", node)
	}
}

func FuzzDecodeObject(f *testing.F) {
	for kind := range kinds {
		header := metav1.TypeMeta{}
		header.SetGroupVersionKind(kind)
		head, err := json.Marshal(header)
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(strings.TrimSuffix(string(head), "}") +
			`,"metadata":{"name":"a","creationTimestamp":null,"labels":{"b":"c"},"ownerReferences":[{"uid":"d"}]},` +
			`"spec":{"nodeName":"e","podUID":"f","configSource":{},"signerName":"g",` +
			`"volumes":[{"projected":{"sources":[null]}}],"request":"aGk="}}`))
	}
	f.Add([]byte(aPod))
	f.Add([]byte(anOther))
	for kind, newObject := range kinds {
		base := fmt.Sprintf(`{"kind":%q,"apiVersion":%q}`, kind.Kind, kind.GroupVersion())
		for document := range oddjson.Seeds(base, oddjson.Places(newObject().target())) {
			f.Add(document)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		header, err := readHeader(text)
		if err != nil {
			return
		}
		kind := header.GroupVersionKind()
		if kind.Kind == "Node" {
			text = without(t, text, "status") // which is not read
		}
		got, err := DecodeObject(text, kind)
		if err != nil {
			return
		}
		compareObjects(t, got, text)
	})
}
