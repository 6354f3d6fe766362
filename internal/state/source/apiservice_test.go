package source

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func service(version, group string, aggregated bool) *apiService {
	s := &apiService{ObjectMeta: metav1.ObjectMeta{Name: version + "." + group}, Spec: apiServiceSpec{Group: group, Version: version}}
	if aggregated {
		s.Spec.Service = &struct{}{}
	}
	return s
}

const apiServices = `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.x.io}
spec: {group: x.io, version: v1, service: {namespace: x, name: server, port: 8443}, caBundle: AAAA}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v2.x.io}
spec: {group: x.io, version: v2, service: null}
`

// says compares a state's facts about versions: "x.io/v1 aggregated".
func says(t *testing.T, s *State, want ...string) {
	t.Helper()
	for _, line := range want {
		version, status, _ := strings.Cut(line, " ")
		group, version, _ := strings.Cut(version, "/")
		aggregated, known := s.Aggregation().Of(group, version)
		got := "local"
		switch {
		case !known:
			got = "unknown"
		case aggregated:
			got = "aggregated"
		}
		if got != status {
			t.Errorf("%s/%s is %s, want %s", group, version, got, status)
		}
	}
}

func TestAggregationOfFiles(t *testing.T) {
	s := mustLoad(t, "a.yaml", apiServices)
	says(t, s, "x.io/v1 aggregated", "x.io/v2 local", "x.io/v3 unknown", "other.io/v1 unknown", "/v1 local", "apps/v1 local",
		"apps/v9 unknown", "metrics.k8s.io/v1beta1 unknown")
	if gap := s.APIServiceGap("other.io", "v1").String(); gap !=
		"the APIService v1.other.io, which says whether another API server serves it" {
		t.Error(gap)
	}
}

// A version of Kubernetes itself can be passed on too, if an APIService says so.
func TestAggregationOfBuiltInVersions(t *testing.T) {
	says(t, mustLoad(t, "a.yaml", strings.ReplaceAll(apiServices, "x.io", "apps")), "apps/v1 aggregated", "apps/v2 local", "batch/v1 local")
}

func TestAggregationOfSnapshots(t *testing.T) {
	s := newStub(t)
	s.set("apiservices", service("v1", "x.io", true))
	s.set("apiservices", service("v2", "x.io", false))
	taken := list(t, s, LiveOptions{Retain: true})
	for _, parts := range []bool{false, true} {
		read := loadSnapshot(t, taken, FileOptions{Parts: parts})
		says(t, read, "x.io/v1 aggregated", "x.io/v2 local", "x.io/v3 local", "other.io/v1 local")
	}
}

func TestAggregationOfACluster(t *testing.T) {
	s := newStub(t)
	s.set("apiservices", service("v1", "x.io", true))
	says(t, list(t, s, LiveOptions{}), "x.io/v1 aggregated", "x.io/v2 local")
	opened, err := Open(t.Context(), s.config(), LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	says(t, opened, "x.io/v1 unknown", "apps/v1 local")
	if err := opened.Read(Part{Kinds: APIServices}); err != nil {
		t.Fatal(err)
	}
	says(t, opened, "x.io/v1 aggregated", "x.io/v2 local")
}

func TestAggregationThatCannotBeRead(t *testing.T) {
	s := newStub(t)
	s.set("apiservices", service("v1", "x.io", true))
	s.setAllowed("list apiservices", false)
	read := list(t, s, LiveOptions{})
	says(t, read, "x.io/v1 unknown", "apps/v1 local")
	if missing := read.Missing(); len(missing) != 1 || missing[0].Kind != APIServices {
		t.Errorf("missing is %v", missing)
	}
	none := newStub(t)
	none.unserve("apiregistration.k8s.io/v1", "apiservices")
	says(t, list(t, none, LiveOptions{}), "x.io/v1 local")
}

// A watch follows them if it is asked to, and each change counts.
func TestWatchedAggregation(t *testing.T) {
	s := newStub(t)
	s.set("apiservices", service("v1", "x.io", true))
	live := startWatch(t, s, LiveOptions{APIServices: true})
	waitSynced(t, live)
	says(t, live.State(), "x.io/v1 aggregated", "y.io/v1 local")
	known := func(group string) func() bool {
		return func() bool { aggregated, _ := live.State().Aggregation().Of(group, "v1"); return aggregated }
	}
	s.set("apiservices", service("v1", "y.io", true))
	eventually(t, "one more", known("y.io"))
	s.delete("apiservices", "v1.x.io")
	eventually(t, "one less", func() bool { return !known("x.io")() })
	if w := statusOf(t, live, "apiservices"); w.Following != Followed {
		t.Errorf("it is %v", w.Following)
	}

	other := newStub(t)
	waitSynced(t, startWatch(t, other, LiveOptions{}))
	if n := other.count("GET /apis/apiregistration.k8s.io/v1/apiservices"); n > 0 {
		t.Errorf("%d requests were sent", n)
	}
}

// API servers before 1.22 served them as v1beta1, which manifests still have.
func TestOldAPIServices(t *testing.T) {
	old := strings.ReplaceAll(apiServices, "apiregistration.k8s.io/v1", "apiregistration.k8s.io/v1beta1")
	says(t, mustLoad(t, "a.yaml", old), "x.io/v1 aggregated", "x.io/v2 local")
}
