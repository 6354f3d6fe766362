package mappings_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/aws/mappings"
)

// clock is a clock that the test controls.
type clock struct{ elapsed atomic.Int64 }

func (c *clock) now() time.Time {
	return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(time.Duration(c.elapsed.Load()))
}

func (c *clock) pass(d time.Duration) { c.elapsed.Add(int64(d)) }

const limit = 2 * time.Minute

// tooOld expects that a look-up is an error that contains a text.
func tooOld(t *testing.T, live *mappings.Live, arn, says string) {
	t.Helper()
	mapping, found, err := live.Find(arn, account)
	if err == nil || found || mapping.Username != "" || !strings.Contains(err.Error(), "not decided: the copy of ") ||
		!strings.Contains(err.Error(), says) {
		t.Errorf("got %+v, %v, %v; want an error with %q", mapping, found, err, says)
	}
	if err := live.TooOld(); err == nil {
		t.Error("nothing is too old")
	}
}

func TestSilentSourceIsAnError(t *testing.T) {
	c := newCluster(t)
	c.set(map[string]string{"mapRoles": nodes})
	c.identity("ops", opsRole, "ops")
	clock := &clock{}
	opts := ofConfigMap(c)
	opts.Sources = append(opts.Sources, v1alpha1.IdentityMappingSource)
	opts.MaxStaleness, opts.Now = limit, clock.now
	live, _ := follow(t, opts)
	mapped(t, live, nodeRole, nodeName)
	mapped(t, live, opsRole, "ops")

	// The watches stay open, and no event arrives: the network or the API server hangs.
	clock.pass(limit)
	mapped(t, live, nodeRole, nodeName)
	clock.pass(1)
	tooOld(t, live, nodeRole, "ConfigMap kube-system/aws-auth is 2m0s old")
	tooOld(t, live, opsRole, "ConfigMap kube-system/aws-auth is 2m0s old")
	tooOld(t, live, ada, "nothing was received from it")
	for _, s := range live.Sources() {
		if s.TooOld == nil || s.Healthy() || s.Age != limit+1 {
			t.Errorf("%s: too old %v, healthy %v, age %v", s.Name, s.TooOld, s.Healthy(), s.Age)
		}
	}

	// A match in an earlier source does not depend on later sources.
	c.set(map[string]string{"mapRoles": nodes, "mapUsers": "- userarn: " + ada + "\n  username: ada\n"})
	eventually(t, "the ConfigMap is up to date", func() bool { return live.Sources()[0].Age < limit })
	clock.pass(2 * time.Second)
	mapped(t, live, nodeRole, nodeName)
	mapped(t, live, ada, "ada")
	tooOld(t, live, opsRole, "IAMIdentityMappings is 2m2s old")

	c.identity("ops", opsRole, "other")
	eventually(t, "the custom resource is up to date", func() bool { return live.Sources()[1].Age < limit })
	clock.pass(2 * time.Second)
	mapped(t, live, opsRole, "other")
	if err := live.TooOld(); err != nil {
		t.Error(err)
	}
}

func TestErrorHasTheAnswerOfTheAPIServer(t *testing.T) {
	c := newCluster(t)
	c.set(map[string]string{"mapRoles": nodes})
	clock := &clock{}
	opts := ofConfigMap(c)
	opts.MaxStaleness, opts.Now = limit, clock.now
	live, observer := follow(t, opts)
	mapped(t, live, nodeRole, nodeName)
	c.outage("configmaps")
	c.Disconnect()
	eventually(t, "the outage is noticed", func() bool { return live.Sources()[0].Err != nil })
	mapped(t, live, nodeRole, nodeName)
	clock.pass(limit + 1)
	tooOld(t, live, nodeRole, "unavailable for the test")
	c.outage("")
	eventually(t, "it can be read again", func() bool { return live.Sources()[0].Err == nil })
	c.set(map[string]string{"mapRoles": nodes, "more": ""})
	eventually(t, "it is up to date", func() bool { return live.Sources()[0].Age < limit })
	clock.pass(2 * time.Second)
	mapped(t, live, nodeRole, nodeName)
	observer.expect(t, "ConfigMap kube-system/aws-auth true", "ConfigMap kube-system/aws-auth false")
}

func TestUnreadableFileIsAnErrorWhenItIsTooOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mappings.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text := "mapRoles:\n" + nodes
	write(text)
	clock := &clock{}
	live, _ := follow(t, mappings.Options{Sources: kinds{v1alpha1.FileSource}, File: path, MaxStaleness: limit, Now: clock.now})
	mapped(t, live, nodeRole, nodeName)

	// A file that can be read is not old, even if its content is broken: its last valid
	// content is in use.
	clock.pass(10 * limit)
	eventually(t, "the file is read again", func() bool { return live.Sources()[0].Age == 0 })
	clock.pass(2 * time.Second)
	write("mapRoles: 12\n")
	eventually(t, "the content is broken", func() bool { return len(live.Sources()[0].Stale) > 0 })
	clock.pass(10 * limit)
	eventually(t, "the broken file is read again", func() bool { return live.Sources()[0].Age == 0 })
	clock.pass(2 * time.Second)
	mapped(t, live, nodeRole, nodeName)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the missing file is noticed", func() bool { return live.Sources()[0].Err != nil })
	mapped(t, live, nodeRole, nodeName)
	clock.pass(limit + time.Second)
	tooOld(t, live, nodeRole, "no such file")
	write(text)
	eventually(t, "the file is read", func() bool { return live.Sources()[0].Age == 0 })
	clock.pass(2 * time.Second)
	mapped(t, live, nodeRole, nodeName)
}

// An API server that has lost its store may answer lists with a resource version from its
// cache, however old. Lists of mappings have no resource version, or an exact one, at which the store is read.
func TestListsAreReadFromTheStore(t *testing.T) {
	c := newCluster(t)
	var mu sync.Mutex
	var versions []string
	c.mu.Lock()
	c.seen = func(r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if query := r.URL.Query(); query.Get("watch") == "" && r.Method == http.MethodGet || query.Get("sendInitialEvents") != "" {
			versions = append(versions, query.Get("resourceVersion")+query.Get("resourceVersionMatch"))
		}
	}
	c.mu.Unlock()
	c.set(map[string]string{"mapRoles": nodes})
	opts := ofConfigMap(c)
	opts.MaxStaleness = limit
	live, _ := follow(t, opts)
	mapped(t, live, nodeRole, nodeName)
	lists := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(versions)
	}
	before := lists()
	eventually(t, "another list", func() bool {
		c.Disconnect() // the watch may not be open yet
		return lists() > before
	})
	mu.Lock()
	defer mu.Unlock()
	for _, version := range versions {
		if version != "" && version != "NotOlderThan" && !strings.HasSuffix(version, "Exact") {
			t.Errorf("lists asked for the versions %q", versions)
		}
	}
}
