package review

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
)

// kubernetesDecoder is the decoder of kube-apiserver.
var kubernetesDecoder = sync.OnceValue(func() runtime.Decoder {
	types := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(types), admissionv1.AddToScheme(types)); err != nil {
		panic(err)
	}
	return serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, types, types, serializer.SerializerOptions{})
})

func kubernetesDecodes(document []byte) (runtime.Object, error) {
	object, _, err := kubernetesDecoder().Decode(document, nil, nil)
	return object, err
}

// kubernetesDecodesRead decodes a document without the fields that are not read.
func kubernetesDecodesRead(t *testing.T, document []byte, unread ...string) (runtime.Object, error) {
	t.Helper()
	for _, path := range unread {
		document = without(t, document, strings.Split(path, ".")...)
	}
	return kubernetesDecodes(document)
}

// without returns a document without a field.
func without(t *testing.T, document []byte, path ...string) []byte {
	t.Helper()
	fields := map[string]jsontext.Value{}
	if json.Unmarshal(document, &fields, syntax()) != nil {
		return document
	}
	if inner, ok := fields[path[0]]; ok && len(path) > 1 {
		fields[path[0]] = without(t, inner, path[1:]...)
	} else {
		delete(fields, path[0])
	}
	text, err := json.Marshal(fields, json.Deterministic(true), syntax())
	if err != nil {
		t.Fatal(err)
	}
	return text
}
