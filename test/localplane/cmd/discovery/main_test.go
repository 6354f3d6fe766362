package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

func TestMain(m *testing.M) { os.Exit(localplane.KeepLogs(m.Run)) }

func list(version string, resources ...metav1.APIResource) *metav1.APIResourceList {
	return &metav1.APIResourceList{GroupVersion: version, APIResources: resources}
}

func TestRowsJoinVersionsAndMinors(t *testing.T) {
	rows := table{}
	scale := metav1.APIResource{Name: "deployments/scale", Namespaced: true, Verbs: []string{"get"}}
	rows.add(30, []*metav1.APIResourceList{list("apps/v1", scale), list("v1", metav1.APIResource{Name: "nodes", Verbs: []string{"list"}})})
	scale.Verbs = []string{"patch"}
	rows.add(31, []*metav1.APIResourceList{list("apps/v2", scale)})
	rows.add(33, []*metav1.APIResourceList{list("apps/v2", scale)})
	want := []string{"deployments.apps/scale namespaced get,patch 1.30-1.31,1.33", "nodes cluster list 1.30"}
	if got := rows.lines(); !slices.Equal(got, want) {
		t.Errorf("rows\n%q\nwant\n%q", got, want)
	}
}

// The checked-in file has what an API server of the newest minor serves, and says so.
func TestDiscoveryOfTheNewestMinor(t *testing.T) {
	minor, documents, err := published(t.Context(), "../../binaries")
	if err != nil {
		t.Fatal(err)
	}
	served, err := serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if differences := compare(minor, documents, served); len(differences) > 0 {
		t.Errorf("the documents of Kubernetes and its API server differ:\n%s", strings.Join(differences, "\n"))
	}
	text, err := os.ReadFile("../../../../attackpaths/testdata/discovery.txt")
	if err != nil {
		t.Fatal(err)
	}
	now := table{}
	now.add(minor, served)
	for name, row := range now {
		found := slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
			fields := strings.Fields(line)
			return len(fields) == 4 && fields[0] == name && strings.HasSuffix(fields[3], ranges([]int{minor})) && !missing(row, fields[2])
		})
		if !found {
			t.Errorf("discovery.txt does not have %s of 1.%d: run make discovery", name, minor)
		}
	}
}

// missing reports whether a list lacks a verb of a row.
func missing(r *row, verbs string) bool {
	for verb := range r.verbs {
		if !slices.Contains(strings.Split(verbs, ","), verb) {
			return true
		}
	}
	return false
}
