package localplane

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAuthorizationBecomesFlagsOfTheAPIServer(t *testing.T) {
	config := filepath.Join(t.TempDir(), "authorization.yaml")
	writeFile(t, config, "")
	for name, test := range map[string]struct {
		options Options
		want    []string
	}{
		"as clusters run it": {Options{}, []string{"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"}},
		"in-tree": {
			Options{Authorization: InTree},
			[]string{"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"},
		},
		"without them": {
			Options{Authorization: RBACOnly},
			[]string{"--authorization-mode=RBAC", "--disable-admission-plugins=NodeRestriction"},
		},
		"a config file": {
			Options{AuthorizationConfig: config},
			[]string{"--authorization-config=" + config, "--disable-admission-plugins=NodeRestriction"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := test.options.complete()
			if err != nil {
				t.Fatal(err)
			}
			if got := options.authorizationArgs(); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestInvalidOptions(t *testing.T) {
	for name, test := range map[string]struct {
		options Options
		want    string
	}{
		"an unknown authorization": {Options{Authorization: "none"}, `"none" is not known`},
		"two authorizations":       {Options{Authorization: InTree, AuthorizationConfig: "a.yaml"}, "exclude each other"},
		"a missing config":         {Options{AuthorizationConfig: "no-such.yaml"}, "no-such.yaml"},
		"an unknown component":     {Options{ExtraArgs: map[Component][]string{"kubelet": nil}}, `"kubelet"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := test.options.complete()
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestFeatureGatesAreSorted(t *testing.T) {
	options := Options{FeatureGates: map[string]bool{"B": false, "A": true}}
	if got, want := options.featureGateArgs(), []string{"--feature-gates=A=true,B=false"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
