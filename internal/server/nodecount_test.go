package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

func countOf(t *testing.T, api *fakeapiserver.Server, wrap func(http.RoundTripper) http.RoundTripper) *nodeCount {
	t.Helper()
	config := &rest.Config{Host: api.URL(), WrapTransport: wrap}
	c, err := newNodeCount(config, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNodesAreCountedWithoutReadingThem(t *testing.T) {
	t.Parallel()
	api := fakeapiserver.New(fakeapiserver.Options{})
	t.Cleanup(api.Close)
	requests := 0
	c := countOf(t, api, func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			requests++
			return next.RoundTrip(r)
		})
	})
	for want := range 4 {
		requests = 0
		if got, err := c.count(t.Context()); err != nil || got != want || requests != 1 {
			t.Errorf("%d nodes are counted with %d requests, %v; want %d with one", got, requests, err, want)
		}
		if err := api.Put(fmt.Sprint("/api/v1/nodes/n-", want), map[string]any{}); err != nil {
			t.Fatal(err)
		}
	}
}

// An API server need not say how many objects remain.
func TestNodesAreCountedPageByPage(t *testing.T) {
	t.Parallel()
	pages := map[string]string{
		"":  `{"metadata": {"continue": "b"}, "items": [{"metadata": {"name": "a"}}]}`,
		"b": `{"metadata": {"continue": "c"}, "items": [{"metadata": {"name": "b"}}, {"metadata": {"name": "c"}}]}`,
		"c": `{"metadata": {}, "items": [{"metadata": {"name": "d"}}]}`,
	}
	api := fakeapiserver.New(fakeapiserver.Options{})
	t.Cleanup(api.Close)
	c := countOf(t, api, func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			body := strings.Replace(pages[r.URL.Query().Get("continue")], "{",
				`{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", `, 1)
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(body)),
			}, nil
		})
	})
	if got, err := c.count(t.Context()); err != nil || got != 4 {
		t.Errorf("%d nodes are counted, %v", got, err)
	}
}

// TestALimitThatIsAShareNeedsTheNumberOfNodes: the server counts the nodes.
func TestALimitThatIsAShareNeedsTheNumberOfNodes(t *testing.T) {
	t.Parallel()
	api := shop(t)
	api.change(func() { api.forbidden["nodes"] = true })
	for _, name := range []string{"a", "b"} {
		api.set("quarantines", fmt.Sprintf(`{"metadata": {"name": "node-%s"}, "spec": {"node": %q}}`, name, name))
	}
	s := newTestServer(t, api, func(c *v1alpha1.ServerConfiguration) {
		containing(c)
		c.Containment.NodeScopes = v1alpha1.Disabled
	})
	eventually(t, "the number of nodes is missing", func() bool {
		_, body := s.readiness()
		return strings.Contains(body, "[-]quarantines failed: the limit of quarantined nodes is not known yet")
	})
	if got := s.askAs("system:node:b", "", "get", "nodes", "b"); got != nil {
		t.Errorf("got %+v", got)
	}
	api.change(func() { api.forbidden["nodes"] = false })
	s.ready()
	// Half of two nodes is one.
	s.expect(false, "system:node:a", "", "get", "nodes", "a", "denied")
	s.expect(false, "system:node:b", "", "get", "nodes", "b", "allowed")
}
