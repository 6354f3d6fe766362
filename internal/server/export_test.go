package server

import (
	"path/filepath"
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
		withoutWaits(c)
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
	path := authorizePath
	if strings.Contains(document, `"AdmissionReview"`) {
		path = admitPath
	}
	got, err := s.post(s.caller, path, document)
	if err != nil || got.status != 200 {
		s.t.Fatalf("%s: %+v, %v", path, got, err)
	}
	return got.body
}
