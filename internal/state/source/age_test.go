package source

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
)

const maxAge = 2 * time.Minute

// reports collects the callbacks of a live state.
type reports struct {
	mu    sync.Mutex
	lines []string
}

func (r *reports) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *reports) withPrefix(prefix string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, l := range r.lines {
		if strings.HasPrefix(l, prefix) {
			found = append(found, l)
		}
	}
	return found
}

// newPodStub returns an in-memory API server with one pod, which uses a secret. It
// sends bookmarks each minute.
func newPodStub(t *testing.T) (*stubServer, *reports) {
	t.Helper()
	s := newStubInMemory(t)
	s.bookmarks = time.Minute
	s.set("pods", boundPod("shop", "api", "worker", "db"))
	return s, &reports{}
}

func (r *reports) follow(t *testing.T, s *stubServer) *Live {
	t.Helper()
	return r.followWith(t, s, LiveOptions{})
}

func (r *reports) followWith(t *testing.T, s *stubServer, opts LiveOptions) *Live {
	t.Helper()
	opts.MaxStaleness = maxAge
	opts.StaleChanged = func(w Watched, stale bool) {
		r.add(fmt.Sprintf("%s stale %v: %s", w.Resource.Resource, stale, w.StaleReason()))
	}
	opts.Reset = func(cause string) { r.add("reset: " + cause) }
	live, err := Watch(t.Context(), s.config(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(live.Stop)
	if err := live.WaitSynced(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return live
}

// bubble runs a test of a live state in a synctest bubble.
func bubble(t *testing.T, test func(t *testing.T, s *stubServer, live *Live, r *reports)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, r := newPodStub(t)
		test(t, s, r.follow(t, s), r)
	})
}

// requireFresh fails the test if the state of pods is too old.
func requireFresh(t *testing.T, live *Live, when string) {
	t.Helper()
	synctest.Wait()
	if err := live.TooOld(Pods); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}

// requireStale fails the test unless the state of pods is too old for the given
// cause.
func requireStale(t *testing.T, live *Live, when, cause string) {
	t.Helper()
	synctest.Wait()
	var old *AgeError
	if err := live.TooOld(Pods); !errors.As(err, &old) || !strings.Contains(err.Error(), cause) {
		t.Errorf("%s: the state of pods may be used, or not because of %q: %v", when, cause, err)
	}
	if live.Fresh() {
		t.Errorf("%s: the state counts as fresh", when)
	}
}

// Bookmarks and lists keep the state fresh as long as the API server is reachable. Each list confirms it for twice
// MaxStaleness, so that one may fail.
func TestAQuietClusterStaysFresh(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		before := s.count("GET /api/v1/pods?limit=500")
		for range 60 {
			time.Sleep(time.Minute)
			requireFresh(t, live, "quiet")
		}
		if w := statusOf(t, live, "pods"); w.Age > 65*time.Second || w.Stale {
			t.Errorf("pods are %+v", w)
		}
		if lists := s.count("GET /api/v1/pods?limit=500") - before; lists < 39 || lists > 48 {
			t.Errorf("pods were listed %d times in an hour", lists)
		}
		if lines := r.withPrefix(""); len(lines) != 0 {
			t.Errorf("reported: %q", lines)
		}
	})
}

// Without bookmarks, lists keep the state fresh.
func TestListsKeepTheStateFreshWithoutBookmarks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newPodStub(t)
		s.bookmarks = 0
		live := r.follow(t, s)
		for range 600 {
			time.Sleep(3 * time.Second)
			requireFresh(t, live, "without bookmarks")
		}
		if lines := r.withPrefix(""); len(lines) != 0 {
			t.Errorf("reported: %q", lines)
		}
	})
}

// For every cause of missing events, the state is usable until MaxStaleness and not
// longer. The change is reported once, with the cause, and once when the state is
// fresh again.
func TestStateIsTooOld(t *testing.T) {
	unauthorized := func(string, string) *apierrors.StatusError {
		return apierrors.NewUnauthorized("the certificate has expired")
	}
	forbidden := func(verb, resource string) *apierrors.StatusError {
		return apierrors.NewForbidden(parseGV("v1").WithResource(resource).GroupResource(), "", errors.New("no right to "+verb))
	}
	for name, tc := range map[string]struct {
		cause           string
		breaks, repairs func(s *stubServer)
	}{
		"a connection that is silent": {
			"context deadline exceeded",
			func(s *stubServer) { s.transport.setSilent(true) }, func(s *stubServer) { s.transport.setSilent(false) },
		},
		"an API server that is gone": {
			"connection refused",
			func(s *stubServer) {
				s.transport.failWith(syscall.ECONNREFUSED)
				s.endWatches()
			},
			func(s *stubServer) { s.transport.failWith(nil) },
		},
		"credentials that stopped working, with open watches": {
			"pods: the certificate has expired", // list or watch: a watch ends after a random time
			func(s *stubServer) { s.failWith(unauthorized) }, func(s *stubServer) { s.failWith(nil) },
		},
		"credentials that stopped working": {
			"pods: the certificate has expired", // list or watch: a watch ends after a random time
			func(s *stubServer) { s.failWith(unauthorized); s.endWatches() }, func(s *stubServer) { s.failWith(nil) },
		},
		"revoked rights, with open watches": {
			"forbidden",
			func(s *stubServer) { s.failWith(forbidden) }, func(s *stubServer) { s.failWith(nil) },
		},
		"revoked rights": {
			"forbidden",
			func(s *stubServer) { s.failWith(forbidden); s.endWatches() }, func(s *stubServer) { s.failWith(nil) },
		},
		"a watch that expired, and a list that fails": {
			"etcd is gone",
			func(s *stubServer) {
				s.failWith(func(verb, _ string) *apierrors.StatusError {
					if verb == "watch" {
						return apierrors.NewResourceExpired("too old resource version")
					}
					return apierrors.NewInternalError(errors.New("etcd is gone"))
				})
				s.endWatches()
			},
			func(s *stubServer) { s.failWith(nil) },
		},
		"an API server without its store that still sends bookmarks": {
			"etcd is gone",
			func(s *stubServer) {
				s.failWith(func(verb, _ string) *apierrors.StatusError {
					if verb == "list" {
						return apierrors.NewInternalError(errors.New("etcd is gone"))
					}
					return nil
				})
			},
			func(s *stubServer) { s.failWith(nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
				requireFresh(t, live, "at first")
				time.Sleep(5 * time.Minute)
				requireFresh(t, live, "after a while")
				tc.breaks(s)
				time.Sleep(maxAge - 65*time.Second)
				requireFresh(t, live, "before the age is reached")
				time.Sleep(66 * time.Second)
				requireStale(t, live, "after the age", tc.cause)
				if w := statusOf(t, live, "pods"); !w.Stale || w.Age < maxAge {
					t.Errorf("pods are %+v", w)
				}
				if !live.State().Graph.HasPath("worker", graph.Secret, "shop", "db") {
					t.Error("the state was dropped")
				}
				time.Sleep(10 * time.Minute)
				requireStale(t, live, "much later", tc.cause)
				tc.repairs(s)
				time.Sleep(5 * time.Minute)
				requireFresh(t, live, "after the repair")
				got := r.withPrefix("pods stale")
				if len(got) != 2 || !strings.HasPrefix(got[0], "pods stale true: 2m") || !strings.Contains(got[0], tc.cause) ||
					!strings.HasPrefix(got[1], "pods stale false") {
					t.Errorf("reported:\n%s", strings.Join(got, "\n"))
				}
				if resets := r.withPrefix("reset"); len(resets) != 0 {
					t.Errorf("%q", resets)
				}
			})
		})
	}
}

// A kind that becomes unreadable does not make other kinds stale.
func TestKindsAgeIndependently(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		s.setAllowed("list resourceslices", false)
		s.setAllowed("watch resourceslices", false)
		time.Sleep(10 * time.Minute)
		requireFresh(t, live, "pods")
		if live.TooOld(KindsAbout(graph.ResourceSlice)) == nil {
			t.Error("resource slices count as fresh")
		}
		if err := live.TooOld(KindsAbout(graph.Secret) | KindsAbout(graph.ServiceAccount) | RBACKinds()); err != nil {
			t.Error(err)
		}
		if got := r.withPrefix(""); len(got) != 1 || !strings.HasPrefix(got[0], "resourceslices stale true") {
			t.Errorf("reported: %q", got)
		}
	})
}

// Events after a long silence may be as old as the silence: only a list makes the
// state fresh.
func TestEventsAfterALongSilenceDoNotMakeTheStateFresh(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		s.transport.setSilent(true)
		time.Sleep(10 * time.Minute)
		requireStale(t, live, "silent", "")
		s.failWith(func(verb, _ string) *apierrors.StatusError {
			if verb == "list" {
				return apierrors.NewServiceUnavailable("try later")
			}
			return nil
		})
		s.transport.setSilent(false)
		s.set("pods", boundPod("shop", "new", "worker", "other"))
		time.Sleep(2 * time.Minute)
		if !live.State().Graph.HasPath("worker", graph.Secret, "shop", "other") {
			t.Fatal("the watch delivers nothing")
		}
		requireStale(t, live, "events without a list", "try later")
		s.failWith(nil)
		time.Sleep(time.Minute)
		requireFresh(t, live, "after a list")
	})
}

// The store is restored from a snapshot without other changes: the API server's
// resource versions go backwards.
func TestRestoredStoreWithLowerResourceVersions(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		for i := range 500 {
			s.set("pods", boundPod("shop", fmt.Sprintf("pod-%03d", i%5), "worker", "db"))
		}
		time.Sleep(time.Minute)
		s.restore(200, boundPod("shop", "old", "worker", "past"))
		time.Sleep(maxAge)
		synctest.Wait()
		resets := r.withPrefix("reset")
		if len(resets) != 1 || !strings.Contains(resets[0], "the API server's store was restored or replaced") || live.Resets() != 1 {
			t.Errorf("resets: %q", resets)
		}
		requireFresh(t, live, "listed again")
		g := live.State().Graph
		if g.HasPath("worker", graph.Secret, "shop", "db") || !g.HasPath("worker", graph.Secret, "shop", "past") {
			t.Error("the state is not that of the snapshot")
		}
		s.set("pods", boundPod("shop", "new", "worker", "new"))
		synctest.Wait()
		if !g.HasPath("worker", graph.Secret, "shop", "new") {
			t.Error("later changes are not applied")
		}
	})
}

// While the state is listed again, it may not be used.
func TestADroppedStateIsStaleUntilRelisted(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		fail := func(string, string) *apierrors.StatusError { return apierrors.NewServiceUnavailable("try later") }
		s.failWith(fail)
		live.reset(live.currentEpoch(), "the store was replaced")
		for range 10 {
			time.Sleep(time.Minute)
			requireStale(t, live, "dropped", "being listed again")
		}
		if w := statusOf(t, live, "pods"); w.Following != Reading || w.Age != 0 {
			t.Errorf("pods are %+v", w)
		}
		s.failWith(nil)
		time.Sleep(5 * time.Minute)
		requireFresh(t, live, "read")
		if w := statusOf(t, live, "pods"); w.Following != Followed {
			t.Errorf("pods are %+v", w)
		}
	})
}

// After a restore, the resource version passes the old one before the watch is opened
// again. The watch resumes without an error, so only a comparison finds the deleted
// pod.
func TestRestoredStoreWithHigherResourceVersions(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		time.Sleep(5 * time.Second) // a list has just come
		s.transport.failWith(syscall.ECONNREFUSED)
		s.restore(100_000, boundPod("shop", "other", "worker", "past"))
		time.Sleep(20 * time.Second)
		s.transport.failWith(nil)
		time.Sleep(maxAge)
		synctest.Wait()
		g := live.State().Graph
		if g.HasPath("worker", graph.Secret, "shop", "db") {
			t.Error("a pod that does not exist still relates its secret")
		}
		if !g.HasPath("worker", graph.Secret, "shop", "past") {
			t.Error("an existing pod is not known")
		}
		resets := r.withPrefix("reset")
		if len(resets) != 1 || !strings.Contains(resets[0], "objects of pods differ from what the watch delivered, such as shop/api") {
			t.Errorf("resets: %q", resets)
		}
		if w := statusOf(t, live, "pods"); w.Differences != 1 {
			t.Errorf("%d differences, want 1: the pod that does not exist", w.Differences)
		}
		requireFresh(t, live, "listed again")
	})
}

// A comparison detects within MaxStaleness changes that the watch does not show: an event that it lost, or a store that was
// replaced while the watch stayed open.
func TestALostEventIsDetected(t *testing.T) {
	for name, change := range map[string]func(s *stubServer){
		"deleted": func(s *stubServer) { s.deleteSilently("pods", "shop/api") },
		"changed": func(s *stubServer) {
			s.mu.Lock()
			defer s.mu.Unlock()
			pod := boundPod("shop", "api", "other", "db")
			pod.ResourceVersion = "100"
			s.objects["pods"]["shop/api"] = pod
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, r := newPodStub(t)
				s.endless = true // a watch that ends meanwhile explains the difference
				live := r.follow(t, s)
				change(s)
				time.Sleep(maxAge)
				synctest.Wait()
				if live.State().Graph.HasPath("worker", graph.Secret, "shop", "db") {
					t.Error("the relation is still there")
				}
				if live.Resets() != 1 || statusOf(t, live, "pods").Differences != 1 {
					t.Errorf("%d resets, pods are %+v", live.Resets(), statusOf(t, live, "pods"))
				}
			})
		})
	}
}

// The API server is replaced by the API server of another cluster, with higher resource
// versions.
func TestAnotherClusterUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newPodStub(t)
		s.setCluster("first")
		live := r.follow(t, s)
		time.Sleep(10 * time.Minute)
		if lines := r.withPrefix(""); len(lines) != 0 {
			t.Errorf("reported: %q", lines)
		}
		s.setCluster("second")
		s.restore(100_000)
		time.Sleep(time.Minute)
		if resets := r.withPrefix("reset"); len(resets) == 0 ||
			!strings.Contains(resets[0], "the namespace kube-system has another UID: second instead of first") {
			t.Errorf("resets: %q", resets)
		}
		if n := live.State().Counts()["Pod"]; n != 0 {
			t.Errorf("%d pods of the first cluster", n)
		}
	})
}

// Changes during a comparison do not count as differences.
func TestChangesDuringAComparisonAreNoDifferences(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newPodStub(t)
		for i := range 2*pageSize + 1 {
			s.set("pods", boundPod("shop", fmt.Sprintf("pod-%04d", i), "worker", "pull"))
		}
		live := r.follow(t, s)
		for i := range 1800 {
			name := fmt.Sprintf("pod-%04d", i*7%(2*pageSize+1))
			if i%3 == 0 {
				s.deleteIfPresent("pods", "shop/"+name)
			} else {
				s.set("pods", boundPod("shop", name, fmt.Sprintf("worker-%d", i%4), "pull"))
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if lines := r.withPrefix(""); len(lines) != 0 || live.Resets() != 0 {
			t.Errorf("reported: %q", lines)
		}
		if got, want := live.State().Counts()["Pod"], len(s.objects["pods"]); got != want {
			t.Errorf("%d pods, want %d", got, want)
		}
	})
}

// All objects of a kind that is no longer served are removed.
func TestAKindThatIsNoLongerServedIsCleared(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		s.set("roles", &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reader"}})
		synctest.Wait()
		s.unserve("rbac.authorization.k8s.io/v1", "roles")
		s.endWatches()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := live.State().Counts()["Role"]; n != 0 {
			t.Errorf("%d roles", n)
		}
		if err := live.TooOld(RBACKinds()); err != nil {
			t.Error(err)
		}
	})
}

func TestKindsAbout(t *testing.T) {
	for about, want := range map[graph.Kind]Kinds{
		graph.Secret:                Pods | PersistentVolumes,
		graph.ConfigMap:             Pods,
		graph.PersistentVolumeClaim: Pods,
		graph.PersistentVolume:      Pods | PersistentVolumes,
		graph.ServiceAccount:        Pods,
		graph.VolumeAttachment:      1 << kindVolumeAttachment,
		graph.ResourceSlice:         1 << kindResourceSlice,
		graph.PodCertificateRequest: 1 << kindPodCertificateRequest,
	} {
		if got := KindsAbout(about); got != want {
			t.Errorf("%s: %b, want %b", about, got, want)
		}
	}
	var names []string
	for k := range kindCount {
		if RBACKinds()&(1<<k) != 0 {
			names = append(names, k.String())
		}
	}
	if want := []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}; !slices.Equal(names, want) {
		t.Errorf("RBAC depends on %v", names)
	}
}

// The check for each answer does not allocate.
func TestFreshDoesNotAllocate(t *testing.T) {
	live := &Live{ages: staleness.NewDeadlines(int(kindCount), time.Now)}
	if n := testing.AllocsPerRun(1000, func() {
		if live.TooOld(Pods|PersistentVolumes) != nil {
			t.Fatal("old")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTooOld(b *testing.B) {
	live := &Live{ages: staleness.NewDeadlines(int(kindCount), time.Now)}
	live.ages.Extend(int(kindPod), time.Now(), time.Now(), time.Hour)
	for b.Loop() {
		if live.TooOld(Pods|PersistentVolumes) != nil {
			b.Fatal("old")
		}
	}
}
