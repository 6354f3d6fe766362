package server

import (
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// TestedServer is a server with its API server, for tests that also run the command line, which
// imports this package.
type TestedServer struct {
	*testServer
	t *testing.T
	// API is the URL of the API server.
	API string
	// AuthorizationConfig is the file of the chain; empty in the mode Node.
	AuthorizationConfig string
}

// Serve starts a server for an API server with objects, as JSON by resource, that forbids to read
// some resources, and waits until all others have been read. Without an authorization config, the
// mode is Node.
func Serve(t *testing.T, objects map[string][]string, forbidden []string, authorization string) *TestedServer {
	t.Helper()
	return serve(t, objects, forbidden, authorization, withoutWaits)
}

// ServeContained does the same with NodeScopes and Quarantines.
func ServeContained(t *testing.T, objects map[string][]string, forbidden []string, authorization string) *TestedServer {
	t.Helper()
	s := serve(t, objects, forbidden, authorization, containing)
	for _, resource := range []string{"nodescopes", "quarantines"} {
		if slices.Contains(forbidden, resource) {
			continue
		}
		eventually(t, resource+" are read", func() bool {
			got, err := s.get(s.caller, "/readyz?verbose")
			return err == nil && strings.Contains(got.body, "[+]"+resource+" ok")
		})
	}
	return s
}

func serve(
	t *testing.T, objects map[string][]string, forbidden []string, authorization string, configure func(*v1alpha1.ServerConfiguration),
) *TestedServer {
	t.Helper()
	api := newAPIServer(t)
	for _, resource := range forbidden {
		api.forbidden[resource] = true
	}
	for resource, all := range objects {
		for _, object := range all {
			api.set(resource, object)
		}
	}
	tested := &TestedServer{t: t, API: api.URL}
	if authorization != "" {
		tested.AuthorizationConfig = filepath.Join(t.TempDir(), "authorization.yaml")
		write(t, tested.AuthorizationConfig, []byte(authorization))
	}
	tested.testServer = newTestServer(t, api, func(c *v1alpha1.ServerConfiguration) {
		configure(c)
		if authorization != "" {
			c.Authorization.Mode, c.Authorization.ConfigFile = v1alpha1.ChainMode, tested.AuthorizationConfig
		}
	})
	eventually(t, "all readable resources are read", func() bool {
		got, err := tested.get(tested.caller, "/readyz?verbose")
		return err == nil && strings.Contains(got.body, "[+]graph-sync ok") && strings.Contains(got.body, "[+]authorization ok")
	})
	return tested
}

// Review sends a document to the webhook of its kind and returns the answer.
func (s *TestedServer) Review(document string) string {
	s.t.Helper()
	answer, ok := s.TryReview(document)
	if !ok {
		s.t.Fatal("there is no answer yet")
	}
	return answer
}

// TryReview does the same. It returns false if the server says that it has no answer yet.
func (s *TestedServer) TryReview(document string) (answer string, ok bool) {
	s.t.Helper()
	path := authorizePath
	if strings.Contains(document, `"AdmissionReview"`) {
		path = admitPath
	}
	got, err := s.post(s.caller, path, document)
	switch {
	case err == nil && got.status == http.StatusServiceUnavailable:
		return "", false
	case err != nil || got.status != http.StatusOK:
		s.t.Fatalf("%s: %+v, %v", path, got, err)
	}
	return got.body, true
}
