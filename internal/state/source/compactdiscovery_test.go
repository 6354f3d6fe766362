package source

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// discoveryServer serves aggregated discovery. If compact is set, it also has the protobuf encoding.
func discoveryServer(t *testing.T, compact func(*apidiscoveryv2.APIGroupDiscoveryList) []byte) *rest.Config {
	t.Helper()
	lists := map[string]*apidiscoveryv2.APIGroupDiscoveryList{
		"/api": discoveryOf("", apidiscoveryv2.DiscoveryFreshnessCurrent, "v1", "pods", "nodes", "persistentvolumes"),
		"/apis": {Items: append(
			discoveryOf("rbac.authorization.k8s.io", apidiscoveryv2.DiscoveryFreshnessCurrent, "v1", "roles").Items,
			discoveryOf("metrics.k8s.io", apidiscoveryv2.DiscoveryFreshnessStale, "v1beta1").Items...,
		)},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list := lists[r.URL.Path]
		if list == nil {
			_ = json.NewEncoder(w).Encode(version.Info{GitVersion: "v1.36.0"})
			return
		}
		list.Kind, list.APIVersion = "APIGroupDiscoveryList", "apidiscovery.k8s.io/v2"
		if compact != nil && strings.HasPrefix(r.Header.Get("Accept"), compactAccept) {
			w.Header().Set("Content-Type", compactAccept)
			_, _ = w.Write(compact(list))
			return
		}
		w.Header().Set("Content-Type", discovery.AcceptV2)
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func discoveryOf(group string, fresh apidiscoveryv2.DiscoveryFreshness, version string, resources ...string,
) *apidiscoveryv2.APIGroupDiscoveryList {
	of := apidiscoveryv2.APIVersionDiscovery{Version: version, Freshness: fresh}
	for _, name := range resources {
		of.Resources = append(of.Resources, apidiscoveryv2.APIResourceDiscovery{
			Resource: name, Scope: apidiscoveryv2.ScopeNamespace, SingularResource: strings.TrimSuffix(name, "s"),
			ShortNames: []string{name[:2]}, Verbs: []string{"get", "list"},
			ResponseKind: &metav1.GroupVersionKind{Group: group, Version: version, Kind: strings.ToTitle(name)},
			Subresources: []apidiscoveryv2.APISubresourceDiscovery{{Subresource: "status", Verbs: []string{"get"}}},
		})
	}
	return &apidiscoveryv2.APIGroupDiscoveryList{Items: []apidiscoveryv2.APIGroupDiscovery{
		{ObjectMeta: metav1.ObjectMeta{Name: group}, Versions: []apidiscoveryv2.APIVersionDiscovery{of}},
	}}
}

func discoverFrom(t *testing.T, config *rest.Config) (*discovered, error) {
	t.Helper()
	c, err := newClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return c.discover(t.Context())
}

func inProtobuf(t *testing.T) func(*apidiscoveryv2.APIGroupDiscoveryList) []byte {
	t.Helper()
	return func(list *apidiscoveryv2.APIGroupDiscoveryList) []byte {
		scheme := runtime.NewScheme()
		var text strings.Builder
		if err := protobuf.NewSerializer(scheme, scheme).Encode(list, &text); err != nil {
			t.Error(err)
		}
		return []byte(text.String())
	}
}

func TestDiscoveryInProtobufIsThatInJSON(t *testing.T) {
	asked := 0
	encode := inProtobuf(t)
	compact, err := discoverFrom(t, discoveryServer(t, func(list *apidiscoveryv2.APIGroupDiscoveryList) []byte {
		asked++
		return encode(list)
	}))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := discoverFrom(t, discoveryServer(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(compact, plain) {
		t.Errorf("in protobuf %+v, in JSON %+v", compact, plain)
	}
	if len(plain.resources) != 4 || plain.failed["metrics.k8s.io"] == nil || asked == 0 {
		t.Errorf("%d answers in protobuf, discovered %+v", asked, plain)
	}
}

func TestBrokenDiscoveryInProtobufIsAnError(t *testing.T) {
	_, err := discoverFrom(t, discoveryServer(t, func(list *apidiscoveryv2.APIGroupDiscoveryList) []byte {
		whole := inProtobuf(t)(list)
		return whole[:len(whole)/2]
	}))
	if err == nil || !strings.Contains(err.Error(), "decode the discovery of the server") {
		t.Errorf("got the error %v", err)
	}
}
