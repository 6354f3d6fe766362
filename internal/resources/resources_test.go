package resources

import (
	"slices"
	"strings"
	"testing"
)

func custom() []Resource {
	return append(BuiltIn(),
		namespaced("alpha.example.com", "v1", "gadgets", "Gadget", "g", "po"),
		clusterScoped("beta.example.com", "v1", "gizmos", "Gizmo", "g"),
		clusterScoped("gamma.example.com", "v1", "gadgets", "Gadget"),
	)
}

func TestResolve(t *testing.T) {
	for _, tc := range []struct {
		rule string
		arg  string
		want string
	}{
		{"a plural name", "pods", "pods"},
		{"a singular name", "pod", "pods"},
		{"a kind", "Pod", "pods"},
		{"a kind of two words", "PersistentVolumeClaim", "persistentvolumeclaims"},
		{"a short name", "po", "pods"},
		{"a short name in capitals", "PVC", "persistentvolumeclaims"},
		{"a name with its group", "leases.coordination.k8s.io", "leases.coordination.k8s.io"},
		{"a short name with its group", "deploy.apps", "deployments.apps"},
		{"a prefix of the group", "leases.coord", "leases.coordination.k8s.io"},
		{"an exact group takes precedence over a prefix", "events.events.k8s.io", "events.events.k8s.io"},
		{"a name with version and group", "deployments.v1.apps", "deployments.apps"},
		{"a name with version and the core group", "pods.v1.", "pods"},
		{"a name that two groups serve resolves to the first group", "events", "events"},
		{"a short name that two groups serve resolves to the first group", "ev", "events"},
		{"the wildcard", "*", "*"},
		{"users exist only in RBAC rules", "users", "users"},
		{"a name in an unknown group resolves to itself", "widgets.example.com", "widgets.example.com"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got, err := Offline().Resolve(tc.arg)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != tc.want {
				t.Errorf("Resolve(%q) = %s, want %s", tc.arg, got, tc.want)
			}
		})
	}
}

func TestResolveErrors(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		mapper *Mapper
		arg    string
		want   string
	}{
		{"a misspelt name", Offline(), "secerts", `unknown resource type "secerts"; did you mean secrets?`},
		{"a misspelt short name", Offline(), "pvcs", `unknown resource type "pvcs"; did you mean persistentvolumeclaims?`},
		{
			"a misspelt name in a group", Discovered(custom()), "deploymnts.apps",
			`unknown resource type "deploymnts.apps"; did you mean deployments.apps?`,
		},
		{
			"a known group without the resource", Offline(), "widgets.networking.k8s.io",
			`unknown resource type "widgets.networking.k8s.io"; write a custom resource with its group, for example widgets.example.com`,
		},
		{
			"a group that the cluster does not serve", Discovered(BuiltIn()), "widgets.example.com",
			`unknown resource type "widgets.example.com"; kubectl api-resources lists what the cluster serves`,
		},
		{
			"a short name of two custom resources", Discovered(custom()), "g",
			`resource name "g" is ambiguous: it stands for gadgets.alpha.example.com and gizmos.beta.example.com; ` +
				"write one of them in full",
		},
		{
			"an empty name", Discovered(BuiltIn()), "",
			`unknown resource type ""; kubectl api-resources lists what the cluster serves`,
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			_, err := tc.mapper.Resolve(tc.arg)
			if err == nil {
				t.Fatal("no error")
			}
			if err.Error() != tc.want {
				t.Errorf("\n got %s\nwant %s", err, tc.want)
			}
		})
	}
}

func TestBuiltInResourceWinsAShortName(t *testing.T) {
	got, err := Discovered(custom()).Resolve("po")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != "pods" || len(got.Others) != 1 || got.Others[0].String() != "gadgets.alpha.example.com" {
		t.Errorf("po = %s, others %v", got, got.Others)
	}
}

func TestNameThatTwoCustomGroupsServeResolvesToTheFirstGroup(t *testing.T) {
	got, err := Discovered(custom()).Resolve("gadgets")
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != "gadgets.alpha.example.com" || len(got.Others) != 1 {
		t.Errorf("gadgets = %s, others %v", got, got.Others)
	}
}

func TestBuiltInTableIsWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range BuiltIn() {
		if seen[r.String()] {
			t.Errorf("%s is listed twice", r)
		}
		seen[r.String()] = true
		if r.Name != strings.ToLower(r.Name) || r.Singular == "" || r.Kind == "" || len(r.Versions) == 0 {
			t.Errorf("%s is incomplete: %+v", r, r)
		}
	}
	names := Offline().Names()
	if !slices.IsSorted(names) || !slices.Contains(names, "events.events.k8s.io") {
		t.Errorf("Names() = %v", names)
	}
}

func TestNear(t *testing.T) {
	for _, tc := range []struct {
		rule, name string
		candidates []string
		want       []string
	}{
		{"a swap of adjacent characters is one edit", "wroker-1", []string{"worker-1", "worker-2", "gpu-1"}, []string{"worker-1"}},
		{"a prefix is similar", "worker", []string{"worker-10.example.com"}, []string{"worker-10.example.com"}},
		{"short names need one edit", "pe", []string{"po", "pvc"}, []string{"po"}},
		{"no candidate is similar", "zebra", []string{"worker-1"}, nil},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := Near(tc.name, tc.candidates, 3); !slices.Equal(got, tc.want) {
				t.Errorf("Near(%q) = %v, want %v", tc.name, got, tc.want)
			}
		})
	}
}

func FuzzResolve(f *testing.F) {
	for _, s := range []string{"po", "pods.v1.", "deploy.apps", "*", ".", "..", "a.b.c.d", "Ünïcode"} {
		f.Add(s)
	}
	m := Discovered(custom())
	f.Fuzz(func(t *testing.T, arg string) {
		if len(arg) > 256 {
			return
		}
		got, err := m.Resolve(arg)
		if (err == nil) == (got.Name == "") {
			t.Errorf("Resolve(%q) = %v, %v", arg, got, err)
		}
	})
}
