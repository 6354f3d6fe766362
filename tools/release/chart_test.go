package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	memory "github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/registry"
)

// pushed pushes the release to a registry in memory, and returns its address.
func pushed(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(memory.New(memory.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://") + "/node-authorizer"
	// The credentials of the user who runs the tests are not read.
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	t.Setenv("HELM_REGISTRY_CONFIG", t.TempDir()+"/config.json")
	if err := run(t.Context(), []string{"push", "-out", built.out, "-registry", address}, t.Output()); err != nil {
		t.Fatal(err)
	}
	return address
}

// Clients get the built files from a registry.
func TestPush(t *testing.T) {
	address := pushed(t)
	for tag, index := range indexes(t) {
		ref, err := name.NewTag(address + "/node-authorizer:" + tag)
		if err != nil {
			t.Fatal(err)
		}
		got, err := remote.Head(ref)
		if err != nil {
			t.Fatal(err)
		}
		want, err := index.Digest()
		if err != nil {
			t.Fatal(err)
		}
		if got.Digest != want {
			t.Errorf("%s is %s, want %s", ref, got.Digest, want)
		}
	}

	client, err := registry.NewClient(registry.ClientOptPlainHTTP(), registry.ClientOptWriter(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(address + "/charts/node-authorizer:" + built.number())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pulled.Chart.Data, read(t, built.out, built.chartName())) {
		t.Error("Helm pulls another chart")
	}
}

// The image and the chart are pushed with the credentials of `docker login`.
func TestPushAuthenticates(t *testing.T) {
	images := memory.New(memory.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "releaser" || password != "secret" {
			w.Header().Set("WWW-Authenticate", "Basic realm=registry")
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	push := func() error {
		return run(t.Context(), []string{"push", "-out", built.out, "-registry", host + "/node-authorizer"}, t.Output())
	}
	if err := push(); err == nil || !strings.Contains(err.Error(), "pushing the image") {
		t.Errorf("without credentials: error is %v", err)
	}
	auth := base64.StdEncoding.EncodeToString([]byte("releaser:secret"))
	config := fmt.Sprintf(`{"auths": {%q: {"auth": %q}}}`, host, auth)
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := push(); err != nil {
		t.Error(err)
	}
}

func TestPushIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"of what was not built": {[]string{"push", "-out", t.TempDir()}, "checksums.txt"},
		"with an argument":      {[]string{"push", "v0.1.0"}, `unexpected argument "v0.1.0"`},
		"without a command":     {nil, "a command is missing: build or push"},
		"by another name":       {[]string{"publish"}, `unknown command "publish": want build or push`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := run(t.Context(), c.args, t.Output()); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q", err, c.want)
			}
		})
	}
}

// The chart of a release installs the image of the release, and differs in nothing else from the chart
// of the repository.
func TestChart(t *testing.T) {
	packed, err := loader.LoadArchive(bytes.NewReader(read(t, built.out, built.chartName())))
	if err != nil {
		t.Fatal(err)
	}
	if m := packed.Metadata; m.Name != programName || m.Version != built.number() || m.AppVersion != built.version {
		t.Errorf("the chart is %s %s for %s", m.Name, m.Version, m.AppVersion)
	}
	release := chartutil.ReleaseOptions{Name: "shop", Namespace: "guards", Revision: 1, IsInstall: true}
	values, err := chartutil.ToRenderValues(packed, map[string]any{}, release, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(packed, values)
	if err != nil {
		t.Fatal(err)
	}
	want := `image: "ghcr.io/node-authorizer/node-authorizer:` + built.version + `"`
	if !strings.Contains(rendered["node-authorizer/templates/deployment.yaml"], want) {
		t.Errorf("the Deployment has no %s", want)
	}
	kept, err := loader.LoadDir("../../charts/node-authorizer")
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.Raw) != len(packed.Raw) {
		t.Errorf("the chart has %d files, want %d", len(packed.Raw), len(kept.Raw))
	}
	for _, f := range kept.Raw {
		if content := rawFile(packed, f.Name); f.Name != "Chart.yaml" && f.Name != "values.yaml" && !bytes.Equal(content, f.Data) {
			t.Errorf("%s differs", f.Name)
		}
	}
}

func rawFile(c *chart.Chart, name string) []byte {
	for _, f := range c.Raw {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// A line that is to be replaced must be there once.
func TestReplaceLines(t *testing.T) {
	for text, want := range map[string]string{
		"a: 1\nb: 2\n":   "a: 3\nb: 2\n",
		"b: 2\n":         "",
		"a: 1\na: 2\n":   "",
		"  a: 1\nb: 2\n": "",
	} {
		got, err := replaceLines(&chart.File{Name: "f", Data: []byte(text)}, map[string]string{"a: .*": "a: 3"})
		if (err != nil) != (want == "") || err == nil && string(got) != want {
			t.Errorf("%q becomes %q, %v; want %q", text, got, err, want)
		}
	}
}
