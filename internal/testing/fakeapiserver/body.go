package fakeapiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/kubernetes/scheme"
)

// read returns the object in a request, in JSON or, as clients of Kubernetes' own
// kinds send it, in protobuf; nil if there is none.
func read(r *http.Request) (Object, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		return nil, err
	}
	if bytes.HasPrefix(body, []byte("k8s\x00")) {
		decoded, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("read protobuf: %w", err)
		}
		if body, err = json.Marshal(decoded); err != nil {
			return nil, err
		}
	}
	var sent Object
	err = json.Unmarshal(body, &sent)
	return sent, err
}
