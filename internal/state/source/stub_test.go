package source

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// stubServer is an API server that serves the kept kinds from memory: discovery,
// lists with pages, and watches from any resource version that is not compacted.
type stubServer struct {
	*httptest.Server
	t *testing.T
	// transport connects clients to a server without a socket.
	transport *transport

	mu        sync.Mutex
	changed   *sync.Cond
	version   string
	resources map[string]map[string]metav1.APIResource // group/version, resource
	objects   map[string]map[string]runtime.Object     // resource, namespace/name
	log       []stubEvent
	forbidden map[string]bool // "list pods"
	watchList bool
	oldest    int // events before this version are compacted
	expire    int // how many continue tokens are rejected
	closed    bool
	// failure, if set, returns the error of each request to a resource. The verb is
	// list, watch, or stream for a watch with initial events.
	delay   func(*http.Request) time.Duration // before a request is answered
	failure func(verb, resource string) *apierrors.StatusError
	// bookmarks is how often watches get one; 0 for never.
	bookmarks  time.Duration
	endless    bool // watches do not end by themselves
	generation int  // of the store: watches end when it changes
	// missing are objects that the store does not have, although the API server lists them: its cache is of another
	// history. With behind the store does not even have its resource version.
	missing  map[string]bool
	behind   bool
	cluster  string // the UID of the namespace kube-system; empty for none
	encoder  *client
	requests []string
	accepted map[string]bool // media types that clients asked for
}

type stubEvent struct {
	version  int
	resource string
	kind     string // ADDED, MODIFIED, DELETED
	object   runtime.Object
}

func newStub(t *testing.T) *stubServer {
	s := newStubStore(t)
	s.Server = httptest.NewServer(http.HandlerFunc(s.handle))
	t.Cleanup(func() {
		s.close()
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// newStubInMemory returns a stub whose clients need no socket, for bubbles of
// testing/synctest.
func newStubInMemory(t *testing.T) *stubServer {
	s := newStubStore(t)
	s.transport = newTransport(http.HandlerFunc(s.handle))
	t.Cleanup(s.close)
	return s
}

func newStubStore(t *testing.T) *stubServer {
	s := &stubServer{
		t: t, version: "v1.36.3", resources: map[string]map[string]metav1.APIResource{},
		objects: map[string]map[string]runtime.Object{}, forbidden: map[string]bool{}, accepted: map[string]bool{},
	}
	s.changed = sync.NewCond(&s.mu)
	for k := range kindCount {
		info := k.describe()
		s.serve(schema.GroupVersion{Group: info.group, Version: info.versions[0]}, k)
	}
	s.serveResource("v1", metav1.APIResource{Name: "secrets", Kind: "Secret", Namespaced: true})
	return s
}

// close ends all watches.
func (s *stubServer) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.changed.Broadcast()
}

func (s *stubServer) config() *rest.Config {
	if s.transport != nil {
		return &rest.Config{Host: "http://cluster", Transport: s.transport}
	}
	return &rest.Config{Host: s.URL}
}

// failWith sets the failure of requests to resources; nil for none.
func (s *stubServer) failWith(failure func(verb, resource string) *apierrors.StatusError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure = failure
}

// restore replaces the store by one with other objects at another version, and ends
// all watches.
func (s *stubServer) restore(version int, pods ...*corev1.Pod) {
	s.mu.Lock()
	s.objects, s.log, s.oldest = map[string]map[string]runtime.Object{}, []stubEvent{{version: version}}, 0
	s.generation++
	s.mu.Unlock()
	s.changed.Broadcast()
	for _, pod := range pods {
		s.set("pods", pod)
	}
}

// setCluster sets the UID of the namespace kube-system.
func (s *stubServer) setCluster(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cluster = uid
}

// endWatches ends all watches.
func (s *stubServer) endWatches() {
	s.mu.Lock()
	s.generation++
	s.mu.Unlock()
	s.changed.Broadcast()
}

// deleteSilently deletes an object without an event.
func (s *stubServer) deleteSilently(resource, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects[resource], name)
}

// count returns how many requests start with a prefix.
func (s *stubServer) count(request string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, r := range s.requests {
		if strings.HasPrefix(r, request) {
			n++
		}
	}
	return n
}

func (s *stubServer) serve(gv schema.GroupVersion, k kind) {
	info := k.describe()
	s.serveResource(gv.String(), metav1.APIResource{
		Name: info.resource, SingularName: strings.ToLower(info.name), Kind: info.name, Namespaced: info.namespaced,
	})
}

func (s *stubServer) serveResource(gv string, r metav1.APIResource) {
	if s.resources[gv] == nil {
		s.resources[gv] = map[string]metav1.APIResource{}
	}
	s.resources[gv][r.Name] = r
	s.resources[gv][r.Name+"/status"] = metav1.APIResource{Name: r.Name + "/status", Kind: r.Kind, Namespaced: r.Namespaced}
}

func (s *stubServer) unserve(gv, resource string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.resources[gv], resource)
	delete(s.resources[gv], resource+"/status")
	if len(s.resources[gv]) == 0 {
		delete(s.resources, gv)
	}
}

func (s *stubServer) setAllowed(what string, allowed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forbidden[what] = !allowed
}

// set stores an object and notifies watchers.
func (s *stubServer) set(resource string, o apiObject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.objects[resource] == nil {
		s.objects[resource] = map[string]runtime.Object{}
	}
	event := stubEvent{version: s.revision() + 1, resource: resource, kind: "ADDED", object: o.DeepCopyObject()}
	o = event.object.(apiObject)
	if s.objects[resource][displayName(o)] != nil {
		event.kind = "MODIFIED"
	}
	o.SetResourceVersion(strconv.Itoa(event.version))
	s.objects[resource][displayName(o)] = o
	s.log = append(s.log, event)
	s.changed.Broadcast()
}

func (s *stubServer) delete(resource, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[resource][name].DeepCopyObject()
	delete(s.objects[resource], name)
	version := s.revision() + 1
	o.(apiObject).SetResourceVersion(strconv.Itoa(version))
	s.log = append(s.log, stubEvent{version: version, resource: resource, kind: "DELETED", object: o})
	s.changed.Broadcast()
}

// deleteIfPresent deletes an object if it exists.
func (s *stubServer) deleteIfPresent(resource, name string) {
	s.mu.Lock()
	there := s.objects[resource][name] != nil
	s.mu.Unlock()
	if there {
		s.delete(resource, name)
	}
}

// compact makes watches from old versions impossible and ends the open ones.
func (s *stubServer) compact() {
	s.mu.Lock()
	s.oldest = s.revision() + 1
	s.log = append(s.log, stubEvent{version: s.oldest})
	s.mu.Unlock()
	s.changed.Broadcast()
	s.CloseClientConnections()
}

func (s *stubServer) revision() int {
	if len(s.log) == 0 {
		return 100
	}
	return s.log[len(s.log)-1].version
}

func (s *stubServer) received(request string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.requests, func(r string) bool { return strings.HasPrefix(r, request) })
}

func (s *stubServer) handle(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	s.accepted[r.Header.Get("Accept")] = true
	cluster := s.cluster
	s.mu.Unlock()
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/version":
		s.write(w, http.StatusOK, map[string]string{"major": "1", "minor": "36", "gitVersion": s.version})
	case r.URL.Path == "/api":
		s.write(w, http.StatusOK, &metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case r.URL.Path == "/apis":
		s.write(w, http.StatusOK, s.groups())
	case parts[0] == "api" && len(parts) == 2, parts[0] == "apis" && len(parts) == 3:
		s.discovery(w, strings.Join(parts[1:], "/"))
	case r.URL.Query().Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact):
		s.exact(w, r, parts)
	case parts[0] == "api" && len(parts) == 3, parts[0] == "apis" && len(parts) == 4:
		s.resource(w, r, strings.Join(parts[1:len(parts)-1], "/"), parts[len(parts)-1])
	case r.URL.Path == "/api/v1/namespaces/kube-system" && cluster != "":
		s.write(w, http.StatusOK, &corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: types.UID(cluster)},
		})
	default:
		s.fail(w, apierrors.NewNotFound(schema.GroupResource{}, r.URL.Path))
	}
}

// exact serves one object as it was at a resource version.
func (s *stubServer) exact(w http.ResponseWriter, r *http.Request, parts []string) {
	gv, rest := strings.Join(parts[1:2], "/"), parts[2:]
	if parts[0] == "apis" {
		gv, rest = strings.Join(parts[1:3], "/"), parts[3:]
	}
	key, named := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	if rest[0] == "namespaces" && len(rest) == 3 {
		key = rest[1] + "/" + key
	}
	resource := rest[len(rest)-1]
	version, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	s.mu.Lock()
	defer s.mu.Unlock()
	info, known := s.resources[gv][resource]
	var failed *apierrors.StatusError
	if s.failure != nil {
		failed = s.failure("list", resource)
	}
	switch {
	case !known || !named || err != nil:
		s.t.Errorf("unexpected request: %s", r.URL)
		fallthrough
	case failed != nil:
		s.fail(w, cmp.Or(failed, apierrors.NewBadRequest("for the test")))
		return
	case version > s.revision() || s.behind:
		tooLarge := apierrors.NewTimeoutError("Too large resource version", 1)
		tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		s.fail(w, tooLarge)
		return
	}
	list := map[string]any{
		"kind": info.Kind + "List", "apiVersion": gv, "metadata": metav1.ListMeta{ResourceVersion: strconv.Itoa(version)}, "items": []any{},
	}
	if o := s.at(resource, key, version); o != nil && !s.missing[key] {
		list["items"] = []any{o}
	}
	if parseGV(gv).Group == policyv1alpha1.Group || !strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		s.write(w, http.StatusOK, list)
		return
	}
	s.writeProtobuf(w, list, parseGV(gv).WithKind(info.Kind+"List"))
}

// at returns an object as it was at a resource version; nil if it did not exist.
func (s *stubServer) at(resource, key string, version int) (found runtime.Object) {
	if o := s.objects[resource][key]; o != nil {
		if is, err := strconv.Atoi(o.(apiObject).GetResourceVersion()); err == nil && is <= version {
			return o
		}
	}
	for _, e := range s.log {
		if e.version > version || e.resource != resource || displayName(e.object.(apiObject)) != key {
			continue
		}
		if found = e.object; e.kind == "DELETED" {
			found = nil
		}
	}
	return found
}

func (s *stubServer) groups() *metav1.APIGroupList {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for _, gv := range slices.Sorted(maps.Keys(s.resources)) {
		group, version, found := strings.Cut(gv, "/")
		if !found {
			continue
		}
		v := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
		if n := len(list.Groups); n > 0 && list.Groups[n-1].Name == group {
			list.Groups[n-1].Versions = append(list.Groups[n-1].Versions, v)
			continue
		}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return list
}

func (s *stubServer) discovery(w http.ResponseWriter, gv string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.resources[gv] == nil {
		s.fail(w, apierrors.NewNotFound(schema.GroupResource{}, gv))
		return
	}
	list := &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
	for _, name := range slices.Sorted(maps.Keys(s.resources[gv])) {
		list.APIResources = append(list.APIResources, s.resources[gv][name])
	}
	s.write(w, http.StatusOK, list)
}

func (s *stubServer) resource(w http.ResponseWriter, r *http.Request, gv, resource string) {
	query := r.URL.Query()
	verb := "list"
	if query.Get("watch") != "" {
		verb = "watch"
	}
	s.mu.Lock()
	if s.delay != nil {
		delay := s.delay(r)
		s.mu.Unlock()
		sleep(r.Context(), delay)
		s.mu.Lock()
	}
	info, known := s.resources[gv][resource]
	denied := s.forbidden[verb+" "+resource]
	watchList := s.watchList
	var failed *apierrors.StatusError
	if s.failure != nil && query.Get("sendInitialEvents") == "true" {
		failed = s.failure("stream", resource)
	} else if s.failure != nil {
		failed = s.failure(verb, resource)
	}
	s.mu.Unlock()
	switch gr := parseGV(gv).WithResource(resource).GroupResource(); {
	case !known:
		s.fail(w, apierrors.NewNotFound(gr, ""))
	case denied:
		s.fail(w,
			apierrors.NewForbidden(gr, "", fmt.Errorf("User %q cannot %s resource %q at the cluster scope", "reader", verb, resource)))
	case failed != nil:
		s.fail(w, failed)
	case verb == "list":
		s.list(w, r, gv, info)
	case query.Get("sendInitialEvents") == "true" && !watchList:
		s.fail(w, apierrors.NewInvalid(schema.GroupKind{}, "", nil))
	default:
		s.watch(w, r, gv, info, query.Get("resourceVersion"), query.Get("sendInitialEvents") == "true")
	}
}

func (s *stubServer) list(w http.ResponseWriter, r *http.Request, gv string, info metav1.APIResource) {
	limit, token := r.URL.Query().Get("limit"), r.URL.Query().Get("continue")
	s.mu.Lock()
	defer s.mu.Unlock()
	if token != "" && s.expire > 0 {
		s.expire--
		s.fail(w, apierrors.NewResourceExpired("the continue parameter is too old"))
		return
	}
	names := slices.Sorted(maps.Keys(s.objects[info.Name]))
	names = slices.DeleteFunc(names, func(n string) bool { return token != "" && n <= token })
	list := map[string]any{"kind": info.Kind + "List", "apiVersion": gv, "items": []any{}}
	m := metav1.ListMeta{ResourceVersion: strconv.Itoa(s.revision())}
	if n, err := strconv.Atoi(limit); err == nil && n > 0 && len(names) > n {
		rest := int64(len(names) - n)
		names = names[:n]
		m.Continue, m.RemainingItemCount = names[n-1], &rest
	}
	list["metadata"] = m
	for _, n := range names {
		list["items"] = append(list["items"].([]any), s.objects[info.Name][n])
	}
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadataList") {
		list["kind"], list["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			s.t.Error(err)
		}
		return
	}
	if info.Name == "secrets" {
		s.t.Error("the data of secrets was requested")
	}
	// Custom resources have no protobuf.
	if parseGV(gv).Group == policyv1alpha1.Group || !strings.Contains(r.Header.Get("Accept"), runtime.ContentTypeProtobuf) {
		list["kind"], list["apiVersion"] = info.Kind+"List", gv
		s.write(w, http.StatusOK, list)
		return
	}
	s.writeProtobuf(w, list, parseGV(gv).WithKind(info.Kind+"List"))
}

// writeProtobuf sends a list as protobuf.
func (s *stubServer) writeProtobuf(w http.ResponseWriter, list map[string]any, gvk schema.GroupVersionKind) {
	if s.encoder == nil {
		var err error
		if s.encoder, err = newClient(s.config()); err != nil {
			s.t.Error(err)
			return
		}
	}
	c := s.encoder
	text, err := json.Marshal(list)
	if err != nil {
		s.t.Error(err)
	}
	typed, _, err := c.codecs.UniversalDeserializer().Decode(text, &gvk, nil)
	if err != nil {
		s.t.Error(err)
		return
	}
	w.Header().Set("Content-Type", runtime.ContentTypeProtobuf)
	info, _ := runtime.SerializerInfoForMediaType(c.codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	if err := info.Serializer.Encode(typed, w); err != nil {
		s.t.Error(err)
	}
}

// watch streams the events after a version, or all objects first.
func (s *stubServer) watch(w http.ResponseWriter, r *http.Request, gv string, info metav1.APIResource, from string, initial bool) {
	version, _ := strconv.Atoi(from)
	ctx := r.Context()
	var last time.Time // API servers send a bookmark shortly before they end a watch
	if seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds")); err == nil && !s.endless {
		var cancel context.CancelFunc
		timeout := time.Duration(seconds) * time.Second
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
		last = time.Now().Add(timeout - 2*time.Second)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	generation, bookmark := s.generation, time.Now().Add(s.bookmarks)
	w.Header().Set("Content-Type", "application/json")
	send := func(kind string, o any) {
		text, err := json.Marshal(map[string]any{"type": kind, "object": o})
		if err != nil {
			s.t.Error(err)
		}
		_, _ = w.Write(append(text, '\n'))
		w.(http.Flusher).Flush()
	}
	if initial {
		for _, n := range slices.Sorted(maps.Keys(s.objects[info.Name])) {
			send("ADDED", s.typed(gv, info.Kind, s.objects[info.Name][n]))
		}
		version = s.revision()
		send("BOOKMARK", map[string]any{"kind": info.Kind, "apiVersion": gv, "metadata": metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}})
	}
	if version < s.oldest {
		send("ERROR", apierrors.NewResourceExpired("too old resource version").Status())
		return
	}
	w.(http.Flusher).Flush()
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		var due, ending <-chan time.Time
		if s.bookmarks > 0 {
			ticker := time.NewTicker(s.bookmarks)
			defer ticker.Stop()
			due = ticker.C
			if !last.IsZero() {
				ending = time.After(time.Until(last))
			}
		}
		for {
			select {
			case <-due:
				s.changed.Broadcast()
			case <-ending:
				s.changed.Broadcast()
			case <-ctx.Done():
				s.changed.Broadcast()
				return
			case <-stop:
				return
			}
		}
	}()
	for !s.closed && ctx.Err() == nil && s.generation == generation {
		for _, e := range s.log {
			if e.version > version && e.resource == info.Name {
				send(e.kind, s.typed(gv, info.Kind, e.object))
			}
		}
		if now := time.Now(); !last.IsZero() && !now.Before(last) && bookmark.After(now) {
			bookmark, last = now, time.Time{}
		}
		if s.bookmarks > 0 && !time.Now().Before(bookmark) && s.revision() >= version {
			bookmark = bookmark.Add(s.bookmarks)
			send("BOOKMARK", map[string]any{
				"kind": info.Kind, "apiVersion": gv, "metadata": metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.revision())},
			})
		}
		version = max(version, s.revision())
		s.changed.Wait()
	}
}

// typed returns the object with its kind, as watches send it.
func (s *stubServer) typed(gv, kind string, o runtime.Object) runtime.Object {
	o = o.DeepCopyObject()
	o.GetObjectKind().SetGroupVersionKind(parseGV(gv).WithKind(kind))
	return o
}

func parseGV(gv string) schema.GroupVersion {
	parsed, err := schema.ParseGroupVersion(gv)
	if err != nil {
		panic(err)
	}
	return parsed
}

func (s *stubServer) fail(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	s.write(w, int(cmp.Or(status.Code, 500)), status)
}

func (s *stubServer) write(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		s.t.Error(err)
	}
}

// boundPod returns a pod on a node that uses a secret.
func boundPod(namespace, name, node, secret string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "0b6a5d60-5f2c-4a7f-9d0e-8f3f6b7f2c11"},
		Spec: corev1.PodSpec{
			NodeName:         node,
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: secret}},
			Containers: []corev1.Container{{
				Name: "c", Image: "example.com/c", Env: []corev1.EnvVar{{Name: "A", Value: "sentinel"}},
			}},
		},
	}
}
