package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// emptyCluster serves all resources of Kubernetes, has no objects, and records requests:
// "list pods".
type emptyCluster struct {
	*httptest.Server
	mu    sync.Mutex
	asked map[string]bool
}

func newEmptyCluster(t *testing.T) *emptyCluster {
	t.Helper()
	c := &emptyCluster{asked: map[string]bool{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(func() {
		c.CloseClientConnections()
		c.Close()
	})
	return c
}

func (c *emptyCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); {
	case path[0] == "version":
		answer(w, version.Info{Major: "1", Minor: "37", GitVersion: "v1.37.1"})
	case path[0] == "api" && len(path) == 1:
		answer(w, metav1.APIVersions{Versions: []string{"v1"}})
	case path[0] == "apis" && len(path) == 1:
		answer(w, groups())
	case path[0] == "api" && len(path) == 2:
		answer(w, resources(schema.GroupVersion{Version: path[1]}))
	case path[0] == "apis" && len(path) == 3:
		answer(w, resources(schema.GroupVersion{Group: path[1], Version: path[2]}))
	case strings.Join(path, "/") == "api/v1/namespaces/kube-system":
		c.mu.Lock()
		c.asked[identity] = true
		c.mu.Unlock()
		answer(w,
			&corev1.Namespace{
				TypeMeta:   metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"},
				ObjectMeta: metav1.ObjectMeta{Name: "kube-system", UID: "6a1c"},
			})
	case path[0] == "api" && len(path) == 3:
		c.objects(w, r, schema.GroupVersionResource{Version: path[1], Resource: path[2]})
	case path[0] == "apis" && len(path) == 4:
		c.objects(w, r, schema.GroupVersionResource{Group: path[1], Version: path[2], Resource: path[3]})
	default:
		http.NotFound(w, r)
	}
}

func answer(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func groups() metav1.APIGroupList {
	byName := map[string][]metav1.GroupVersionForDiscovery{}
	for _, gv := range scheme.Scheme.PrioritizedVersionsAllGroups() {
		if gv.Group != "" {
			byName[gv.Group] = append(byName[gv.Group], metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version})
		}
	}
	var list metav1.APIGroupList
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list.Groups = append(list.Groups, metav1.APIGroup{Name: name, Versions: byName[name], PreferredVersion: byName[name][0]})
	}
	return list
}

func resources(gv schema.GroupVersion) metav1.APIResourceList {
	list := metav1.APIResourceList{GroupVersion: gv.String()}
	for kind := range scheme.Scheme.KnownTypes(gv) {
		resource, _ := meta.UnsafeGuessKindToResource(gv.WithKind(kind))
		list.APIResources = append(list.APIResources,
			metav1.APIResource{Name: resource.Resource, Kind: kind, Verbs: metav1.Verbs{"list", "watch"}})
	}
	return list
}

func (c *emptyCluster) objects(w http.ResponseWriter, r *http.Request, resource schema.GroupVersionResource) {
	watch := r.URL.Query().Get("watch") != ""
	if watch && r.URL.Query().Get("sendInitialEvents") != "" {
		status := metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Reason: metav1.StatusReasonInvalid, Code: http.StatusUnprocessableEntity, Message: "lists are not streamed",
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	verb := "list"
	if watch {
		verb = "watch"
	}
	c.mu.Lock()
	c.asked[verb+" "+resource.GroupResource().String()] = true
	c.mu.Unlock()
	if !watch {
		answer(w, map[string]any{
			"apiVersion": resource.GroupVersion().String(), "kind": kindOf(resource) + "List",
			"metadata": map[string]string{"resourceVersion": "1"}, "items": []any{},
		})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func kindOf(resource schema.GroupVersionResource) string {
	for kind := range scheme.Scheme.KnownTypes(resource.GroupVersion()) {
		if guess, _ := meta.UnsafeGuessKindToResource(resource.GroupVersion().WithKind(kind)); guess == resource {
			return kind
		}
	}
	return ""
}

// reads returns the requests of a live state to an empty cluster.
func reads(t *testing.T, options source.LiveOptions) []string {
	t.Helper()
	cluster := newEmptyCluster(t)
	options.MaxStaleness = time.Hour
	live, err := source.Watch(t.Context(),
		&rest.Config{Host: cluster.URL, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeJSON}}, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(live.Stop)
	if err := live.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	asked := func() []string {
		cluster.mu.Lock()
		defer cluster.mu.Unlock()
		return slices.Sorted(maps.Keys(cluster.asked))
	}
	err = wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return len(asked()) == 2*len(live.Resources())+1, nil // each is listed and watched
	})
	if err != nil {
		t.Fatalf("asked for %v of %d resources: %v", asked(), len(live.Resources()), err)
	}
	return asked()
}

// identity is the request that identifies a cluster.
const identity = "get namespaces kube-system"

// granted returns the rights of a role: "list pods".
func granted(role *rbacv1.ClusterRole) []string {
	var all []string
	for _, rule := range role.Rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					right := verb + " " + schema.GroupResource{Group: group, Resource: resource}.String()
					if len(rule.ResourceNames) == 0 {
						all = append(all, right)
					}
					for _, name := range rule.ResourceNames {
						all = append(all, right+" "+name)
					}
				}
			}
		}
		if len(rule.NonResourceURLs) > 0 {
			all = append(all, fmt.Sprintf("something of %v", rule))
		}
	}
	slices.Sort(all)
	return all
}

// The server sends no other requests, and has no other rights.
const accessReviews = "create subjectaccessreviews.authorization.k8s.io"

func TestRightsAreThoseThatTheServerUses(t *testing.T) {
	role := only[*rbacv1.ClusterRole](t, built(t, "rbac"))
	want := append(reads(t, source.LiveOptions{WithoutRBAC: true}), accessReviews)
	slices.Sort(want)
	if got := granted(role); !slices.Equal(got, want) {
		t.Errorf("granted are\n%s\nused are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestRightsOfAChainAreThoseThatItAddsToThem(t *testing.T) {
	base := only[*rbacv1.ClusterRole](t, built(t, "rbac"))
	chain := only[*rbacv1.ClusterRole](t, built(t, "chain"))
	want := append(reads(t, source.LiveOptions{}), accessReviews)
	slices.Sort(want)
	got := append(granted(base), granted(chain)...)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("granted are\n%s\nused are\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
