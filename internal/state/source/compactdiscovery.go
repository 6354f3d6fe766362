package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/discovery"
)

// compactDiscovery asks for aggregated discovery in the protobuf encoding, which client-go does not
// know and which has half the bytes, and hands it to client-go as JSON. A server that does not have
// this encoding answers in one that client-go asked for.
type compactDiscovery struct{ next http.RoundTripper }

// compactAccept is client-go's type of aggregated discovery, in the other encoding.
var compactAccept = strings.Replace(discovery.AcceptV2, runtime.ContentTypeJSON, runtime.ContentTypeProtobuf, 1)

// RoundTrip implements http.RoundTripper.
func (c compactDiscovery) RoundTrip(r *http.Request) (*http.Response, error) {
	accepted := r.Header.Get("Accept")
	if !strings.Contains(accepted, discovery.AcceptV2) {
		return c.next.RoundTrip(r)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Accept", compactAccept+","+accepted)
	response, err := c.next.RoundTrip(r)
	if err != nil || !isCompactDiscovery(response) {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the discovery of the server: %w", err)
	}
	if body, err = discoveryAsJSON(body); err != nil {
		return nil, fmt.Errorf("decode the discovery of the server: %w", err)
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	response.Header.Set("Content-Type", discovery.AcceptV2)
	return response, nil
}

func isCompactDiscovery(response *http.Response) bool {
	encoding, params, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	of := apidiscoveryv2.SchemeGroupVersion
	return err == nil && response.StatusCode == http.StatusOK && encoding == runtime.ContentTypeProtobuf &&
		params["g"] == of.Group && params["v"] == of.Version && params["as"] == "APIGroupDiscoveryList"
}

func discoveryAsJSON(body []byte) ([]byte, error) {
	scheme := runtime.NewScheme()
	if err := apidiscoveryv2.AddToScheme(scheme); err != nil {
		return nil, err
	}
	decoded, _, err := protobuf.NewSerializer(scheme, scheme).Decode(body, nil, &apidiscoveryv2.APIGroupDiscoveryList{})
	if err != nil {
		return nil, err
	}
	return json.Marshal(decoded)
}
