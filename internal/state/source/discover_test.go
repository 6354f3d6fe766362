package source

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
)

// Discovery lists the versions of a group in any order; snapshots of the same cluster
// must still be equal.
func TestVersionsOfAResourceAreInAFixedOrder(t *testing.T) {
	list := func(version string) *metav1.APIResourceList {
		return &metav1.APIResourceList{
			GroupVersion: "autoscaling/" + version, APIResources: []metav1.APIResource{{Name: "horizontalpodautoscalers"}},
		}
	}
	want := []string{"v2", "v1", "v2beta1"}
	for _, order := range [][]string{{"v1", "v2", "v2beta1"}, {"v2beta1", "v2", "v1"}, {"v2", "v2beta1", "v1"}} {
		var lists []*metav1.APIResourceList
		for _, version := range order {
			lists = append(lists, list(version))
		}
		if got := mergeResources(lists)[0].Versions; !slices.Equal(got, want) {
			t.Errorf("versions listed as %v become %v, want %v", order, got, want)
		}
	}
}

func TestAServerBehavesAsTheVersionThatItEmulates(t *testing.T) {
	for _, tc := range []struct {
		rule string
		info version.Info
		want string
	}{
		{"before emulation", version.Info{Major: "1", Minor: "32", GitVersion: "v1.32.4"}, "v1.32.4"},
		{
			"its own version",
			version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.1", EmulationMajor: "1", EmulationMinor: "36"},
			"v1.36.1",
		},
		{"an older one", version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.1", EmulationMajor: "1", EmulationMinor: "35"}, "v1.35"},
	} {
		if got := BehavesAs(&tc.info); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.rule, got, tc.want)
		}
	}
}
