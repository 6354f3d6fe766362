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

// reports are what a live state tells of itself.
type reports struct {
	mu    sync.Mutex
	lines []string
}

func (r *reports) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

func (r *reports) about(prefix string) []string {
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

// aging follows an API server in memory that has one pod, which uses a secret,
// and sends bookmarks each minute.
func aging(t *testing.T) (*stubServer, *reports) {
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
		r.add(fmt.Sprintf("%s stale %v: %s", w.Resource.Resource, stale, w.OldBecause()))
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

// bubble runs a test of a state that ages, in the time of a bubble.
func bubble(t *testing.T, test func(t *testing.T, s *stubServer, live *Live, r *reports)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, r := aging(t)
		test(t, s, r.follow(t, s), r)
	})
}

// usable fails unless the state of pods may be used.
func usable(t *testing.T, live *Live, when string) {
	t.Helper()
	synctest.Wait()
	if err := live.TooOld(Pods); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}

// unusable fails if the state of pods may be used.
func unusable(t *testing.T, live *Live, when, cause string) {
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

// Nothing changes but for bookmarks: the state stays good, for as long as the
// API server is there, and it is not listed more often than now and then.
func TestAQuietClusterStaysFresh(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		before := s.count("GET /api/v1/pods?limit=500")
		for range 60 {
			time.Sleep(time.Minute)
			usable(t, live, "quiet")
		}
		if w := followed(t, live, "pods"); w.Age > 65*time.Second || w.Stale {
			t.Errorf("pods are %+v", w)
		}
		if lists := s.count("GET /api/v1/pods?limit=500") - before; lists < 4 || lists > 12 {
			t.Errorf("pods were listed %d times in an hour", lists)
		}
		if lines := r.about(""); len(lines) != 0 {
			t.Errorf("reported: %q", lines)
		}
	})
}

// An API server without bookmarks is asked for a list instead.
func TestWithoutBookmarksListsKeepTheStateFresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := aging(t)
		s.bookmarks = 0
		live := r.follow(t, s)
		for range 600 {
			time.Sleep(3 * time.Second)
			usable(t, live, "without bookmarks")
		}
		if lines := r.about(""); len(lines) != 0 {
			t.Errorf("reported: %q", lines)
		}
	})
}

// Whatever keeps news away, the state is good for as long as it may be old, and
// no longer; that is told once, with the cause, and once when it is over.
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
			func(s *stubServer) { s.wire.silence(true) }, func(s *stubServer) { s.wire.silence(false) },
		},
		"an API server that is gone": {
			"connection refused",
			func(s *stubServer) { s.wire.refuse(syscall.ECONNREFUSED); s.cut() }, func(s *stubServer) { s.wire.refuse(nil) },
		},
		"credentials that stopped working, with watches that go on": {
			"list pods: the certificate has expired",
			func(s *stubServer) { s.refuse(unauthorized) }, func(s *stubServer) { s.refuse(nil) },
		},
		"credentials that stopped working": {
			"list pods: the certificate has expired",
			func(s *stubServer) { s.refuse(unauthorized); s.cut() }, func(s *stubServer) { s.refuse(nil) },
		},
		"rights that were taken away, with watches that go on": {
			"forbidden",
			func(s *stubServer) { s.refuse(forbidden) }, func(s *stubServer) { s.refuse(nil) },
		},
		"rights that were taken away": {
			"forbidden",
			func(s *stubServer) { s.refuse(forbidden); s.cut() }, func(s *stubServer) { s.refuse(nil) },
		},
		"a watch that expired, and a list that fails": {
			"etcd is gone",
			func(s *stubServer) {
				s.refuse(func(verb, _ string) *apierrors.StatusError {
					if verb == "watch" {
						return apierrors.NewResourceExpired("too old resource version")
					}
					return apierrors.NewInternalError(errors.New("etcd is gone"))
				})
				s.cut()
			},
			func(s *stubServer) { s.refuse(nil) },
		},
		"an API server without its store, which goes on to send bookmarks": {
			"etcd is gone",
			func(s *stubServer) {
				s.refuse(func(verb, _ string) *apierrors.StatusError {
					if verb == "list" {
						return apierrors.NewInternalError(errors.New("etcd is gone"))
					}
					return nil
				})
			},
			func(s *stubServer) { s.refuse(nil) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
				usable(t, live, "at first")
				time.Sleep(5 * time.Minute)
				usable(t, live, "after a while")
				tc.breaks(s)
				time.Sleep(maxAge - 65*time.Second)
				usable(t, live, "before the age is reached")
				time.Sleep(66 * time.Second)
				unusable(t, live, "after the age", tc.cause)
				if w := followed(t, live, "pods"); !w.Stale || w.Age < maxAge {
					t.Errorf("pods are %+v", w)
				}
				if !live.State().Graph.HasPath("worker", graph.Secret, "shop", "db") {
					t.Error("the state forgot what it knew")
				}
				time.Sleep(10 * time.Minute)
				unusable(t, live, "much later", tc.cause)
				tc.repairs(s)
				time.Sleep(5 * time.Minute)
				usable(t, live, "when it is over")
				told := r.about("pods stale")
				if len(told) != 2 || !strings.HasPrefix(told[0], "pods stale true: 2m") || !strings.Contains(told[0], tc.cause) || !strings.HasPrefix(told[1], "pods stale false") {
					t.Errorf("told:\n%s", strings.Join(told, "\n"))
				}
				if resets := r.about("reset"); len(resets) != 0 {
					t.Errorf("%q", resets)
				}
			})
		})
	}
}

// A kind that cannot be read any more does not take others with it.
func TestKindsAgeApart(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		s.permit("list resourceslices", false)
		s.permit("watch resourceslices", false)
		time.Sleep(10 * time.Minute)
		usable(t, live, "pods")
		if live.TooOld(KindsAbout(graph.ResourceSlice)) == nil {
			t.Error("resource slices count as known")
		}
		if err := live.TooOld(KindsAbout(graph.Secret) | KindsAbout(graph.ServiceAccount) | RBACKinds()); err != nil {
			t.Error(err)
		}
		if told := r.about(""); len(told) != 1 || !strings.HasPrefix(told[0], "resourceslices stale true") {
			t.Errorf("told: %q", told)
		}
	})
}

// What comes after a long silence may have been on its way for as long: it takes
// a list for the state to count as known.
func TestNewsAfterALongSilenceProvesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		s.wire.silence(true)
		time.Sleep(10 * time.Minute)
		unusable(t, live, "silent", "")
		s.refuse(func(verb, _ string) *apierrors.StatusError {
			if verb == "list" {
				return apierrors.NewServiceUnavailable("try later")
			}
			return nil
		})
		s.wire.silence(false)
		s.set("pods", boundPod("shop", "new", "worker", "other"))
		time.Sleep(2 * time.Minute)
		if !live.State().Graph.HasPath("worker", graph.Secret, "shop", "other") {
			t.Fatal("the watch brings nothing")
		}
		unusable(t, live, "events without a list", "try later")
		s.refuse(nil)
		time.Sleep(time.Minute)
		usable(t, live, "after a list")
	})
}

// The store is restored from a snapshot while nothing else happens: the API
// server's resource versions go backwards.
func TestStoreIsRestored(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		for i := range 500 {
			s.set("pods", boundPod("shop", fmt.Sprintf("pod-%03d", i%5), "worker", "db"))
		}
		time.Sleep(time.Minute)
		s.restore(200, boundPod("shop", "old", "worker", "past"))
		time.Sleep(maxAge)
		synctest.Wait()
		resets := r.about("reset")
		if len(resets) != 1 || !strings.Contains(resets[0], "the API server's store was restored or exchanged") || live.Resets() != 1 {
			t.Errorf("resets: %q", resets)
		}
		usable(t, live, "read anew")
		g := live.State().Graph
		if g.HasPath("worker", graph.Secret, "shop", "db") || !g.HasPath("worker", graph.Secret, "shop", "past") {
			t.Error("the state is not that of the snapshot")
		}
		s.set("pods", boundPod("shop", "new", "worker", "new"))
		synctest.Wait()
		if !g.HasPath("worker", graph.Secret, "shop", "new") {
			t.Error("what happens then is not followed")
		}
	})
}

// While the state is read anew, nothing of it may be used.
func TestADroppedStateIsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		fail := func(string, string) *apierrors.StatusError { return apierrors.NewServiceUnavailable("try later") }
		s.refuse(fail)
		live.reset(live.currentEpoch(), "the store was exchanged")
		for range 10 {
			time.Sleep(time.Minute)
			unusable(t, live, "dropped", "being read anew")
		}
		if w := followed(t, live, "pods"); w.Following != Reading || w.Age != 0 {
			t.Errorf("pods are %+v", w)
		}
		s.refuse(nil)
		time.Sleep(5 * time.Minute)
		usable(t, live, "read")
		if w := followed(t, live, "pods"); w.Following != Followed {
			t.Errorf("pods are %+v", w)
		}
	})
}

// After a restore, the resource version passes the old one before the watch is
// opened again: the watch goes on as if nothing was, and the pod of the past
// would stay.
func TestStoreIsRestoredAndVersionsPassTheOldOne(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		time.Sleep(65 * time.Second) // a bookmark has just come
		s.wire.refuse(syscall.ECONNREFUSED)
		s.restore(100_000, boundPod("shop", "other", "worker", "past"))
		time.Sleep(20 * time.Second)
		s.wire.refuse(nil)
		time.Sleep(maxAge)
		synctest.Wait()
		g := live.State().Graph
		if g.HasPath("worker", graph.Secret, "shop", "db") {
			t.Error("a pod that never was still relates its secret")
		}
		if !g.HasPath("worker", graph.Secret, "shop", "past") {
			t.Error("a pod that is there is not known")
		}
		resets := r.about("reset")
		if len(resets) != 1 || !strings.Contains(resets[0], "objects of pods are not as the watch has them, such as shop/api") {
			t.Errorf("resets: %q", resets)
		}
		if w := followed(t, live, "pods"); w.Differences != 1 {
			t.Errorf("%d differences, want the pod that never was", w.Differences)
		}
		usable(t, live, "read anew")
	})
}

// A watch that lost a change is found out by the list that is compared now and
// then.
func TestALostChangeIsFound(t *testing.T) {
	for name, lose := range map[string]func(s *stubServer){
		"deleted": func(s *stubServer) { s.lose("pods", "shop/api") },
		"changed": func(s *stubServer) {
			s.mu.Lock()
			defer s.mu.Unlock()
			pod := boundPod("shop", "api", "other", "db")
			pod.ResourceVersion = "100"
			s.objects["pods"]["shop/api"] = pod
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
				lose(s)
				time.Sleep(compareInterval * 13 / 10)
				synctest.Wait()
				if live.State().Graph.HasPath("worker", graph.Secret, "shop", "db") {
					t.Error("the relation is still there")
				}
				if live.Resets() != 1 || followed(t, live, "pods").Differences != 1 {
					t.Errorf("%d resets, pods are %+v", live.Resets(), followed(t, live, "pods"))
				}
			})
		})
	}
}

// The API server is that of another cluster, whose versions are higher.
func TestAnotherCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := aging(t)
		s.setCluster("first")
		live := r.follow(t, s)
		time.Sleep(10 * time.Minute)
		if lines := r.about(""); len(lines) != 0 {
			t.Errorf("reported: %q", lines)
		}
		s.setCluster("second")
		s.restore(100_000)
		time.Sleep(time.Minute)
		if resets := r.about("reset"); len(resets) == 0 || !strings.Contains(resets[0], "the namespace kube-system has another UID: second instead of first") {
			t.Errorf("resets: %q", resets)
		}
		if n := live.State().Counts()["Pod"]; n != 0 {
			t.Errorf("%d pods of the first cluster", n)
		}
	})
}

// Whatever changes while a list is compared is no difference.
func TestChangesDuringAComparison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := aging(t)
		for i := range 2*pageSize + 1 {
			s.set("pods", boundPod("shop", fmt.Sprintf("pod-%04d", i), "worker", "pull"))
		}
		live := r.follow(t, s)
		for i := range 1800 {
			name := fmt.Sprintf("pod-%04d", i*7%(2*pageSize+1))
			if i%3 == 0 {
				s.remove("pods", "shop/"+name)
			} else {
				s.set("pods", boundPod("shop", name, fmt.Sprintf("worker-%d", i%4), "pull"))
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if lines := r.about(""); len(lines) != 0 || live.Resets() != 0 {
			t.Errorf("reported: %q", lines)
		}
		if got, want := live.State().Counts()["Pod"], len(s.objects["pods"]); got != want {
			t.Errorf("%d pods, want %d", got, want)
		}
	})
}

// A kind that the server does not serve any more leaves nothing behind.
func TestAKindThatIsNotServedAnyMore(t *testing.T) {
	bubble(t, func(t *testing.T, s *stubServer, live *Live, r *reports) {
		s.set("roles", &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "reader"}})
		synctest.Wait()
		s.unserve("rbac.authorization.k8s.io/v1", "roles")
		s.cut()
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

// The check of each answer takes no memory.
func TestFreshTakesNoMemory(t *testing.T) {
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
