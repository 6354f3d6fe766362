package stale

import (
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRestoredStoreGrantsNothingOfLaterState restores the store to a time before a pod
// was created, and writes until the resource version passes the one that the server has
// seen. Within maxStaleness the server stops allowing requests for that pod.
func TestRestoredStoreGrantsNothingOfLaterState(t *testing.T) {
	t.Parallel()
	p := stopped
	p.alone.Lock()
	defer p.alone.Unlock()
	ctx := t.Context()
	s := newServer(t, p, "restored")
	s.until(t, time.Minute, "it is allowed", func() error { return s.expect(ctx, allowed) })
	saved := filepath.Join(p.dir, "saved")
	if err := p.SaveStore(ctx, saved); err != nil {
		t.Fatal(err)
	}
	s.secret = "later"
	s.until(t, time.Minute, "the pod is created", func() error { return p.pod(ctx, "later", s.name) })
	s.until(t, time.Minute, "it is allowed", func() error { return s.expect(ctx, allowed) })
	seen := p.version(t)

	if err := p.RestoreStore(ctx, saved); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.pass(t, seen)
	s.until(t, time.Until(began.Add(maxStaleness+margin)), "it is not allowed any more", func() error {
		if s.expect(ctx, allowed) == nil {
			return fmt.Errorf("it is still allowed")
		}
		return nil
	})
	ended := time.Since(began)
	s.until(t, time.Until(began.Add(maxStaleness+recovery)), "it is refused", func() error { return s.expect(ctx, refused) })
	t.Logf("etcd restored: allowed no more after %.1f s, refused after %.1f s", ended.Seconds(), time.Since(began).Seconds())
	s.secret = s.name
	s.until(t, recovery, "an existing pod is allowed", func() error { return s.expect(ctx, allowed) })
	s.until(t, recovery, "it is ready", func() error { return s.Ready(ctx) })
}

// pass writes until the resource version of the control plane is higher than the given one.
func (s *testServer) pass(t *testing.T, seen uint64) {
	t.Helper()
	for i := 0; s.plane.version(t) <= seen; i++ {
		s.until(t, time.Minute, "something is written", func() error {
			_, err := s.plane.admin.CoreV1().ConfigMaps(space).Create(t.Context(),
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("write-", i)}}, metav1.CreateOptions{})
			return err
		})
	}
}

// version returns the current resource version of the cluster.
func (p *plane) version(t *testing.T) uint64 {
	t.Helper()
	list, err := p.admin.CoreV1().ConfigMaps(space).List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	version, err := strconv.ParseUint(list.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return version
}
