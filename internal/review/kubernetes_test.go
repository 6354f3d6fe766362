package review

import (
	"errors"
	"sync"

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

// repeatsNames reports whether an object has a name twice. Decoders merge the values of lists
// and maps differently then.
func repeatsNames(document []byte) bool {
	return !jsontext.Value(document).IsValid(jsontext.AllowInvalidUTF8(true))
}
