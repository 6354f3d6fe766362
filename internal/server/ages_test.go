package server

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/mappings"
	"github.com/node-authorizer/node-authorizer/internal/staleness"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

func TestACopyThatIsTooOldIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &testListeners{t: t, log: &logLines{}}
		old := staleness.New("ConfigMap kube-system/aws-auth", 2*time.Minute, nil)
		young := staleness.New("nodes", time.Hour, nil)
		old.MarkCurrent()
		young.MarkCurrent()
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { logAges(ctx, s.log.logger(), []staleness.Aged{old, young}) })
		old.Failed(errors.New("the API server answers 401"))
		count := func(wantOld, wantOver int) {
			t.Helper()
			synctest.Wait()
			log := s.log.String()
			if got := strings.Count(log, "a copy is too old"); got != wantOld {
				t.Errorf("logged %d times that it is too old, want %d:\n%s", got, wantOld, log)
			}
			if got := strings.Count(log, "a copy is current again"); got != wantOver {
				t.Errorf("logged %d times that it is current, want %d:\n%s", got, wantOver, log)
			}
			if wantOld > 0 &&
				(!strings.Contains(log, "ConfigMap kube-system/aws-auth") || !strings.Contains(log, "the API server answers 401")) {
				t.Errorf("the log does not name the source and the cause:\n%s", log)
			}
		}
		time.Sleep(2 * time.Minute)
		count(0, 0)
		time.Sleep(20 * time.Minute)
		count(1, 0)
		old.MarkCurrent()
		time.Sleep(time.Minute)
		count(1, 1)
		stop()
		running.Wait()
	})
}

func TestMappingsThatAreTooOldAreNotReady(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mappings.yaml")
	write(t, path, []byte("mapRoles: []\n"))
	var elapsed atomic.Int64
	began := time.Now()
	live, err := mappings.New(mappings.Options{
		Sources: []v1alpha1.MappingSource{v1alpha1.FileSource}, File: path, Interval: time.Millisecond, MaxStaleness: 2 * time.Minute,
		Now: func() time.Time { return began.Add(time.Duration(elapsed.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { live.Run(ctx) })
	defer running.Wait()
	defer stop()
	r := &authentication{mappings: live}
	eventually(t, "the file is read", func() bool { _, err := r.mappingsRead(); return err == nil })
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the missing file is noticed", func() bool {
		note, err := r.mappingsRead()
		return err == nil && strings.Contains(note, "cannot be followed")
	})
	elapsed.Store(int64(2*time.Minute + time.Second))
	_, err = r.mappingsRead()
	if err == nil || !strings.Contains(err.Error(), "the copy of file "+path+" is 2m1s old, and cluster.maxStaleness is 2m0s: ") {
		t.Errorf("got %v", err)
	}
}

// The API server fails, and then answers again.
func TestMachinesAreNotServedFromAnOldLedger(t *testing.T) {
	t.Parallel()
	var failing atomic.Bool
	cluster := fakeapiserver.New(fakeapiserver.Options{Fault: func(*http.Request) fakeapiserver.Fault {
		if failing.Load() {
			return fakeapiserver.Unavailable
		}
		return fakeapiserver.NoFault
	}})
	t.Cleanup(cluster.Close)
	s := &joinServer{cluster: cluster, asked: &requests{}}
	s.testServer = startTestServer(t, cluster.URL(), func(c *v1alpha1.ServerConfiguration) {
		onlyMachines(c)
		c.Bootstrap.Attestor, c.Bootstrap.AcceptAlwaysAllow = v1alpha1.AlwaysAllowAttestor, true
		c.Approver.Enabled = true
		c.Cluster.MaxStaleness = metav1.Duration{Duration: 12 * time.Second} // lists take seconds under load
	})
	eventually(t, "it is ready", func() bool { return s.probe().status == 200 })
	failing.Store(true)
	cluster.Disconnect()
	eventually(t, "it is not ready", func() bool {
		got := s.probe()
		return got.status == 503 &&
			strings.Contains(got.body, "[-]ledger-sync failed: the copy of nodeattestations.node-authorizer.io is ") &&
			strings.Contains(got.body, "[-]approver failed: the copy of ")
	})
	status, answer := s.ask(nil, "worker-1", "{}")
	if status != 503 || answer.Status.Token != "" || !strings.HasPrefix(answer.Status.Reason, "BootstrapUnavailable: ") {
		t.Errorf("a machine meanwhile: got %d %+v", status, answer)
	}
	if got := s.metric(`node_authorizer_stale_answers_total{endpoint="bootstrap"}`); got != "1" {
		t.Errorf("counted %q times", got)
	}
	eventually(t, "it is logged", func() bool { return strings.Count(s.log.String(), "a copy is too old") == 3 })
	failing.Store(false)
	eventually(t, "it is ready when the API server answers", func() bool { return s.probe().status == 200 })
}
