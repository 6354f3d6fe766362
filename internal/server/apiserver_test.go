package server

import (
	"encoding/json"
	"net/http"
	"path"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// apiServer is a fake API server with the resources that the webhooks read. It can be down, and
// forbid to read resources.
type apiServer struct {
	*fakeapiserver.Server
	URL string
	t   *testing.T

	mu        sync.Mutex
	down      bool
	version   string
	forbidden map[string]bool // by resource
	reviews   []authorizationv1.SubjectAccessReviewSpec
	// answer answers access reviews.
	answer func(authorizationv1.SubjectAccessReviewSpec) (allowed bool, status int)
}

// apiKinds are the resources of an apiServer.
func apiKinds() map[string]map[string]string {
	return map[string]map[string]string{
		"v1": {
			"pods": "Pod", "nodes": "Node", "persistentvolumes": "PersistentVolume",
			"persistentvolumeclaims": "PersistentVolumeClaim", "serviceaccounts": "ServiceAccount", "events": "Event",
		},
		"policy.node-authorizer.io/v1alpha1": {"nodescopes": "NodeScope", "quarantines": "Quarantine"},
		"storage.k8s.io/v1":                  {"volumeattachments": "VolumeAttachment", "csidrivers": "CSIDriver"},
		"resource.k8s.io/v1":                 {"resourceslices": "ResourceSlice"},
		"rbac.authorization.k8s.io/v1": {
			"roles": "Role", "rolebindings": "RoleBinding",
			"clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding",
		},
	}
}

func newAPIServer(t *testing.T) *apiServer {
	a := &apiServer{
		t: t, version: "v1.36.2", forbidden: map[string]bool{},
		answer: func(authorizationv1.SubjectAccessReviewSpec) (bool, int) { return false, http.StatusCreated },
	}
	a.Server = fakeapiserver.New(fakeapiserver.Options{
		Resources: apiKinds(), Fault: a.fault, Review: a.review,
		Version: func() string {
			a.mu.Lock()
			defer a.mu.Unlock()
			return a.version
		},
	})
	a.URL = a.Server.URL()
	t.Cleanup(a.Close)
	return a
}

func (a *apiServer) fault(r *http.Request) fakeapiserver.Fault {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.down:
		return fakeapiserver.Unavailable
	case a.forbidden[path.Base(r.URL.Path)]:
		return fakeapiserver.Forbidden
	}
	return fakeapiserver.NoFault
}

// change changes the behavior of the server.
func (a *apiServer) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

// stop ends all watches and answers no request until start.
func (a *apiServer) stop() {
	a.change(func() { a.down = true })
	a.Disconnect()
}

func (a *apiServer) start() { a.change(func() { a.down = false }) }

// set stores an object, given as JSON without kind.
func (a *apiServer) set(resource, object string) {
	a.t.Helper()
	var o struct {
		Metadata struct{ Namespace, Name string }
	}
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		a.t.Fatalf("%v in %s", err, object)
	}
	at := "/apis/"
	for version, kinds := range apiKinds() {
		if kinds[resource] == "" {
			continue
		}
		if version == "v1" {
			at = "/api/"
		}
		at += version
	}
	if o.Metadata.Namespace != "" {
		at += "/namespaces/" + o.Metadata.Namespace
	}
	if err := a.Put(at+"/"+resource+"/"+o.Metadata.Name, json.RawMessage(object)); err != nil {
		a.t.Fatal(err)
	}
}

func (a *apiServer) review(sent map[string]any) (allowed bool, status int) {
	text, err := json.Marshal(sent)
	var spec authorizationv1.SubjectAccessReviewSpec
	if err == nil {
		err = json.Unmarshal(text, &spec)
	}
	if err != nil {
		a.t.Error(err)
	}
	a.mu.Lock()
	a.reviews = append(a.reviews, spec)
	answer := a.answer
	a.mu.Unlock()
	return answer(spec)
}

func (a *apiServer) asked() []authorizationv1.SubjectAccessReviewSpec {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reviews[:len(a.reviews):len(a.reviews)]
}
