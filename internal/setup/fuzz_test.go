package setup

import (
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/testing/oddjson"
)

// FuzzAPIServerManifest: a manifest is refused, or edited so that it can be read again, and has only the changed flags, the volume and
// its mount in addition. A manifest as kubeadm writes it keeps all other bytes.
func FuzzAPIServerManifest(f *testing.F) {
	text, err := os.ReadFile("testdata/kube-apiserver.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	const large = "hostNetwork: true\n  terminationGracePeriodSeconds: 9007199254740993"
	f.Add([]byte(strings.Replace(string(text), "hostNetwork: true", large, 1)))
	base, err := yaml.YAMLToJSON(text)
	if err != nil {
		f.Fatal(err)
	}
	for odd := range oddjson.Seeds(string(base), oddjson.Places(corev1.Pod{})) {
		f.Add(odd)
	}
	noFile := func(string) ([]byte, error) { return nil, fs.ErrNotExist }
	f.Fuzz(func(t *testing.T, text []byte) {
		pod, err := parsePod("a.yaml", text)
		if err != nil {
			return
		}
		pod.address()
		p := &Plan{Options: options(Replace)}
		edited, err := p.editAPIServer(pod, noFile)
		if err != nil {
			return
		}
		again, err := parsePod("a.yaml", edited)
		if err != nil {
			t.Fatalf("the result cannot be read: %v\n%s", err, edited)
		}
		before := decodedManifest(t, text)
		revert(t, before, again.whole)
		want, err := yaml.Marshal(before)
		if err != nil {
			t.Fatal(err)
		}
		got, err := yaml.Marshal(again.whole)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Errorf("without the change, the result is\n%s\nwant\n%s", got, want)
		}
	})
}

// decodedManifest decodes a manifest with the exact numbers.
func decodedManifest(t *testing.T, text []byte) (whole map[string]any) {
	t.Helper()
	exact, err := yaml.YAMLToJSON(text)
	if err == nil {
		err = utiljson.Unmarshal(exact, &whole)
	}
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// revert undoes the change of a manifest, and checks it.
func revert(t *testing.T, before, after map[string]any) {
	t.Helper()
	specs := [2]map[string]any{before["spec"].(map[string]any), after["spec"].(map[string]any)}
	var containers [2]map[string]any
	for i, spec := range specs {
		containers[i] = spec["containers"].([]any)[0].(map[string]any)
	}
	was, is := containers[0]["command"].([]any), containers[1]["command"].([]any)
	for i, argument := range is {
		name, _, _ := strings.Cut(strings.TrimPrefix(argument.(string), "--"), "=")
		added := i == len(was) && name == admissionConfig
		if !added && argument != was[i] && !slices.Contains([]string{authorizationConfig, admissionConfig, enabledPlugins}, name) {
			t.Errorf("%s is now %s", was[i], argument)
		}
	}
	containers[1]["command"] = was
	for _, list := range []struct {
		name string
		in   [2]map[string]any
	}{{"volumeMounts", containers}, {"volumes", specs}} {
		was, _ := list.in[0][list.name].([]any)
		is := list.in[1][list.name].([]any)
		last := is[len(is)-1].(map[string]any)
		if last["name"] != folder || len(is) != len(was)+1 || len(was) > 0 && !reflect.DeepEqual(is[:len(was)], was) {
			t.Errorf("%s are %v, and were %v", list.name, is, was)
		}
		if list.in[1][list.name] = list.in[0][list.name]; list.in[0][list.name] == nil {
			delete(list.in[1], list.name)
			delete(list.in[0], list.name)
		}
	}
}
