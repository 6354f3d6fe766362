package fakeapiserver_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

func client(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func secret(name string, owners ...metav1.OwnerReference) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, OwnerReferences: owners}}
}

// Clients over HTTP and in memory see the same objects, in JSON and in protobuf.
func TestClientsOverHTTPAndInMemorySeeOneServer(t *testing.T) {
	s := fakeapiserver.New(fakeapiserver.Options{})
	t.Cleanup(s.Close)
	protobuf := s.Config()
	protobuf.ContentType = "application/vnd.kubernetes.protobuf"
	for i, c := range []kubernetes.Interface{client(t, s.InMemory(nil)), client(t, s.Config()), client(t, protobuf)} {
		name := string(rune('a' + i))
		if _, err := c.CoreV1().Secrets("shop").Create(t.Context(), secret(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := c.CoreV1().Secrets("shop").Create(t.Context(), secret(name), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
			t.Errorf("a second %s: %v", name, err)
		}
		list, err := c.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != i+1 || list.Items[i].Name != name {
			t.Errorf("the list is %v, %v", list, err)
		}
	}
}

func TestOldVersionsAreConflicts(t *testing.T) {
	s := fakeapiserver.New(fakeapiserver.Options{})
	secrets := client(t, s.InMemory(nil)).CoreV1().Secrets("shop")
	made, err := secrets.Create(t.Context(), secret("a"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed := made.DeepCopy()
	changed.Data = map[string][]byte{"a": []byte("b")}
	if _, err := secrets.Update(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Update(t.Context(), made, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v", err)
	}
}

func TestOwnedObjectsGoWithTheirOwner(t *testing.T) {
	s := fakeapiserver.New(fakeapiserver.Options{})
	secrets := client(t, s.InMemory(nil)).CoreV1().Secrets("shop")
	var owners []metav1.OwnerReference
	for _, name := range []string{"a", "b", "c"} { // each owned by the one before
		made, err := secrets.Create(t.Context(), secret(name, owners...), metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		owners = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: name, UID: made.UID}}
	}
	if _, err := secrets.Create(t.Context(), secret("d"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := secrets.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := secrets.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != "d" {
		t.Errorf("%d secrets are left, %v", len(list.Items), err)
	}
}

func TestCallsAreCutBeforeAndAfterTheyTakeEffect(t *testing.T) {
	cut := errors.New("cut")
	for rule, done := range map[string]bool{"before": false, "after": true} {
		t.Run(rule, func(t *testing.T) {
			s := fakeapiserver.New(fakeapiserver.Options{})
			secrets := client(t, s.InMemory(nil)).CoreV1().Secrets("shop")
			s.Intercept(func(_ context.Context, c fakeapiserver.Call, do func() *http.Response) (*http.Response, error) {
				if c.String() != "create secrets" || c.Namespace != "shop" {
					t.Errorf("the call is %+v", c)
				}
				if done {
					do()
				}
				return nil, cut
			})
			if _, err := secrets.Create(t.Context(), secret("a"), metav1.CreateOptions{}); !errors.Is(err, cut) {
				t.Errorf("error is %v", err)
			}
			s.Intercept(nil)
			if _, err := secrets.Get(t.Context(), "a", metav1.GetOptions{}); apierrors.IsNotFound(err) == done {
				t.Errorf("the secret: %v", err)
			}
			if calls := s.Calls(); !slices.Equal(calls, []string{"create secrets", "get secrets a"}) {
				t.Errorf("calls are %q", calls)
			}
		})
	}
}

func TestClientsInMemoryMayDoWhatIsAllowed(t *testing.T) {
	s := fakeapiserver.New(fakeapiserver.Options{})
	secrets := client(t, s.InMemory(func(c fakeapiserver.Call) bool { return c.Verb == "list" })).CoreV1().Secrets("shop")
	if _, err := secrets.List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := secrets.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("error is %v, want that it is forbidden", err)
	}
}

func TestFaults(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		fault  fakeapiserver.Fault
		is     func(error) bool
		effect bool
	}{
		{"no fault", fakeapiserver.NoFault, func(err error) bool { return err == nil }, true},
		{"unavailable", fakeapiserver.Unavailable, apierrors.IsServiceUnavailable, false},
		{"broken", fakeapiserver.Internal, apierrors.IsInternalError, false},
		{"forbidden", fakeapiserver.Forbidden, apierrors.IsForbidden, false},
		{"cut", fakeapiserver.Cut, func(err error) bool { return err != nil }, false},
		{"the answer lost", fakeapiserver.AnswerLost, func(err error) bool { return err != nil }, true},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			s := fakeapiserver.New(fakeapiserver.Options{Fault: func(*http.Request) fakeapiserver.Fault { return tc.fault }})
			t.Cleanup(s.Close)
			_, err := client(t, s.Config()).CoreV1().Secrets("shop").Create(t.Context(), secret("a"), metav1.CreateOptions{})
			if !tc.is(err) {
				t.Errorf("error is %v", err)
			}
			found, err := s.Get("/api/v1/namespaces/shop/secrets/a", &corev1.Secret{})
			if err != nil || found != tc.effect {
				t.Errorf("the secret is there: %t, %v; want %t", found, err, tc.effect)
			}
		})
	}
}

func TestWatches(t *testing.T) {
	s := fakeapiserver.New(fakeapiserver.Options{WatchList: true})
	t.Cleanup(s.Close)
	for name, config := range map[string]*rest.Config{"over HTTP": s.Config(), "in memory": s.InMemory(nil)} {
		t.Run(name, func(t *testing.T) {
			secrets := client(t, config).CoreV1().Secrets("shop")
			s.Remove("/api/v1/namespaces/shop/secrets/b")
			if err := s.Put("/api/v1/namespaces/shop/secrets/a", secret("a")); err != nil {
				t.Fatal(err)
			}
			yes := true
			w, err := secrets.Watch(t.Context(), metav1.ListOptions{
				SendInitialEvents: &yes, AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			if _, err := secrets.Create(t.Context(), secret("b"), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for len(got) < 3 {
				event, more := <-w.ResultChan()
				if !more || event.Type == watch.Error {
					t.Fatalf("after %q: %+v", got, event)
				}
				o := event.Object.(*corev1.Secret)
				got = append(got, string(event.Type)+" "+o.Name+o.Annotations[metav1.InitialEventsAnnotationKey])
			}
			if want := []string{"ADDED a", "BOOKMARK true", "ADDED b"}; !slices.Equal(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestDiscovery(t *testing.T) {
	s := fakeapiserver.New(fakeapiserver.Options{
		Resources: map[string]map[string]string{"v1": {"secrets": "Secret"}, "storage.k8s.io/v1": {"csidrivers": "CSIDriver"}},
		Version:   func() string { return "v1.31.4" },
	})
	t.Cleanup(s.Close)
	d := discovery.NewDiscoveryClientForConfigOrDie(s.Config())
	if v, err := d.ServerVersion(); err != nil || v.GitVersion != "v1.31.4" || v.Minor != "31" {
		t.Errorf("the version is %v, %v", v, err)
	}
	_, lists, err := d.ServerGroupsAndResources()
	var got []string
	for _, list := range lists {
		for _, r := range list.APIResources {
			got = append(got, list.GroupVersion+" "+r.Name+" "+r.Kind)
		}
	}
	slices.Sort(got)
	if want := []string{"storage.k8s.io/v1 csidrivers CSIDriver", "v1 secrets Secret"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if _, err := client(t, s.Config()).CoreV1().Pods("").List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a resource that is not served: %v", err)
	}
}
