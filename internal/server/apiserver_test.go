package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// apiServer is as much of an API server as a server talks to: version,
// discovery, lists and watches of objects, and access reviews.
type apiServer struct {
	*httptest.Server
	t *testing.T

	mu        sync.Mutex
	changed   *sync.Cond
	down      bool
	version   string
	forbidden map[string]bool           // by resource
	objects   map[string]map[string]any // resource, then namespace/name
	events    []apiEvent
	reviews   []authorizationv1.SubjectAccessReviewSpec
	// answer is for access reviews.
	answer func(authorizationv1.SubjectAccessReviewSpec) (allowed bool, status int)
}

type apiEvent struct {
	resource string
	event    map[string]any
}

// apiKinds is what an apiServer serves.
func apiKinds() map[string]map[string]string {
	return map[string]map[string]string{
		"v1":                           {"pods": "Pod", "nodes": "Node", "persistentvolumes": "PersistentVolume", "persistentvolumeclaims": "PersistentVolumeClaim", "serviceaccounts": "ServiceAccount"},
		"storage.k8s.io/v1":            {"volumeattachments": "VolumeAttachment", "csidrivers": "CSIDriver"},
		"resource.k8s.io/v1":           {"resourceslices": "ResourceSlice"},
		"rbac.authorization.k8s.io/v1": {"roles": "Role", "rolebindings": "RoleBinding", "clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding"},
	}
}

func newAPIServer(t *testing.T) *apiServer {
	a := &apiServer{
		t: t, version: "v1.36.2", forbidden: map[string]bool{}, objects: map[string]map[string]any{},
		answer: func(authorizationv1.SubjectAccessReviewSpec) (bool, int) { return false, http.StatusCreated },
	}
	a.changed = sync.NewCond(&a.mu)
	a.Server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.change(func() { a.down = true })
		a.Server.Close()
	})
	return a
}

// change changes the server and wakes its watches.
func (a *apiServer) change(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
	a.changed.Broadcast()
}

// stop ends all watches and answers nothing until start.
func (a *apiServer) stop() { a.change(func() { a.down = true }) }

func (a *apiServer) start() { a.change(func() { a.down = false }) }

// set stores an object, given as JSON without kind, and tells the watches.
func (a *apiServer) set(resource, object string) {
	a.t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(object), &o); err != nil {
		a.t.Fatalf("%v in %s", err, object)
	}
	a.change(func() {
		gv, kind := find(resource)
		o["apiVersion"], o["kind"] = gv, kind
		m := o["metadata"].(map[string]any)
		m["resourceVersion"] = strconv.Itoa(len(a.events) + 2)
		if a.objects[resource] == nil {
			a.objects[resource] = map[string]any{}
		}
		key := fmt.Sprint(m["namespace"], "/", m["name"])
		change := "ADDED"
		if a.objects[resource][key] != nil {
			change = "MODIFIED"
		}
		a.objects[resource][key] = o
		a.events = append(a.events, apiEvent{resource, map[string]any{"type": change, "object": o}})
	})
}

func find(resource string) (gv, kind string) {
	for gv, kinds := range apiKinds() {
		if kind, ok := kinds[resource]; ok {
			return gv, kind
		}
	}
	return "", ""
}

// ServeHTTP implements http.Handler.
func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	down, version := a.down, a.version
	a.mu.Unlock()
	if down {
		a.refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "starting")
		return
	}
	gv := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")
	switch {
	case r.URL.Path == "/version":
		a.reply(w, http.StatusOK, map[string]string{"gitVersion": version})
	case r.URL.Path == "/api":
		a.reply(w, http.StatusOK, metav1.APIVersions{Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		a.reply(w, http.StatusOK, apiGroups())
	case apiKinds()[gv] != nil:
		a.reply(w, http.StatusOK, apiResources(gv))
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		a.review(w, r)
	default:
		a.read(w, r, filepath.Base(r.URL.Path))
	}
}

func (a *apiServer) reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (a *apiServer) refuse(w http.ResponseWriter, status int, reason metav1.StatusReason, message string) {
	a.reply(w, status, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(status), Reason: reason, Message: message,
	})
}

func apiGroups() metav1.APIGroupList {
	list := metav1.APIGroupList{}
	for gv := range apiKinds() {
		if group, version, ok := strings.Cut(gv, "/"); ok {
			v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
			list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		}
	}
	return list
}

func apiResources(gv string) metav1.APIResourceList {
	list := metav1.APIResourceList{GroupVersion: gv}
	for name, kind := range apiKinds()[gv] {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: kind, Verbs: metav1.Verbs{"list", "watch"}})
	}
	return list
}

// review answers an access review.
func (a *apiServer) review(w http.ResponseWriter, r *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		a.refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	a.mu.Lock()
	a.reviews = append(a.reviews, review.Spec)
	answer := a.answer
	a.mu.Unlock()
	allowed, status := answer(review.Spec)
	if status != http.StatusCreated {
		a.refuse(w, status, metav1.StatusReasonUnknown, "out of order")
		return
	}
	review.Status.Allowed = allowed
	a.reply(w, status, review)
}

func (a *apiServer) asked() []authorizationv1.SubjectAccessReviewSpec {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reviews[:len(a.reviews):len(a.reviews)]
}

// read lists or watches a resource.
func (a *apiServer) read(w http.ResponseWriter, r *http.Request, resource string) {
	a.mu.Lock()
	forbidden := a.forbidden[resource]
	a.mu.Unlock()
	query := r.URL.Query()
	gv, kind := find(resource)
	switch {
	case kind == "":
		a.refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "no such resource")
	case forbidden:
		a.refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, resource+" is forbidden")
	case query.Get("sendInitialEvents") == "true":
		a.refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "sendInitialEvents is forbidden")
	case query.Get("watch") != "":
		from, err := strconv.Atoi(query.Get("resourceVersion"))
		if err != nil {
			a.refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
			return
		}
		a.watch(w, resource, from)
	default:
		a.mu.Lock()
		defer a.mu.Unlock()
		items := []any{}
		for _, o := range a.objects[resource] {
			items = append(items, o)
		}
		a.reply(w, http.StatusOK, map[string]any{
			"kind": kind + "List", "apiVersion": gv, "items": items,
			"metadata": map[string]string{"resourceVersion": strconv.Itoa(len(a.events) + 1)},
		})
	}
}

// watch sends the events after a resource version. The nth event, from 0, makes
// version n+2.
func (a *apiServer) watch(w http.ResponseWriter, resource string, from int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	for next := from - 1; ; next++ {
		w.(http.Flusher).Flush()
		a.mu.Lock()
		for next >= len(a.events) && !a.down {
			a.changed.Wait()
		}
		if a.down {
			a.mu.Unlock()
			return
		}
		e := a.events[next]
		text, err := json.Marshal(e.event)
		a.mu.Unlock()
		if err == nil && e.resource == resource {
			_, err = w.Write(append(text, '\n'))
		}
		if err != nil {
			return
		}
	}
}
