package command

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/internal/resources"
	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// completing is a cluster whose names are completed. It records the media types that clients accept.
type completing struct {
	*Connection
	server *fakeapiserver.Server

	mu      sync.Mutex
	accepts []string
	paths   []string
}

func newCompleting(t *testing.T, served map[string]map[string]string) *completing {
	t.Helper()
	c := &completing{}
	c.server = fakeapiserver.New(fakeapiserver.Options{Resources: served, Fault: func(r *http.Request) fakeapiserver.Fault {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.accepts, c.paths = append(c.accepts, r.Header.Get("Accept")), append(c.paths, r.URL.Path)
		return fakeapiserver.NoFault
	}})
	t.Cleanup(c.server.Close)
	c.Connection = connectionTo(t, c.server.URL(), "")
	return c
}

// connectionTo returns a connection of a kubeconfig.
func connectionTo(t *testing.T, server, user string) *Connection {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],
		"users":[{"name":"u","user":{%s}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}],
		"current-context":"x"}`, server, user)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := AddConnection(&cobra.Command{})
	c.rules.ExplicitPath = file
	return c
}

func (c *completing) put(t *testing.T, path string, object any) {
	t.Helper()
	if err := c.server.Put(path, object); err != nil {
		t.Fatal(err)
	}
}

func TestCompletionOfSecretsAsksForTheirMetadataOnly(t *testing.T) {
	c := newCompleting(t, nil)
	c.put(t, "/api/v1/namespaces/shop/secrets/db", map[string]any{"metadata": metav1.ObjectMeta{Name: "db", Namespace: "shop"}})
	got := c.objectNames(t.Context(), builtIn("secrets", true, "Secret"), "shop", "")
	if !slices.Equal(got, []string{"db"}) {
		t.Errorf("names are %v", got)
	}
	for _, accept := range c.accepts {
		if first, _, _ := strings.Cut(accept, ","); !strings.Contains(first, "as=PartialObjectMetadataList") {
			t.Errorf("asked for %s", accept)
		}
	}
}

func TestCompletionIsBounded(t *testing.T) {
	c := newCompleting(t, nil)
	for i := range 3 * completionNames {
		name := fmt.Sprintf("node-%04d", i)
		c.put(t, "/api/v1/nodes/"+name, map[string]any{"metadata": metav1.ObjectMeta{Name: name}})
	}
	nodes := builtIn("nodes", false, "Node")
	t.Run("a limited number of names is offered", func(t *testing.T) {
		if n := len(c.objectNames(t.Context(), nodes, "", "")); n != completionNames {
			t.Errorf("%d names", n)
		}
	})
	t.Run("names on later pages are found", func(t *testing.T) {
		if got := c.objectNames(t.Context(), nodes, "", "node-1499"); !slices.Equal(got, []string{"node-1499"}) {
			t.Errorf("names are %v", got)
		}
	})
	t.Run("an answer that is too large is not read", func(t *testing.T) {
		endless := answering(func(*http.Request) io.ReadCloser { return io.NopCloser(zeros{}) })
		answer, err := boundedAnswers{endless}.RoundTrip(&http.Request{})
		if err != nil {
			t.Fatal(err)
		}
		n, err := io.Copy(io.Discard, answer.Body)
		if err == nil || n > completionBytes {
			t.Errorf("%d bytes were read, %v", n, err)
		}
	})
	t.Run("the shell waits for a limited time", func(t *testing.T) {
		config, err := c.forCompletion()
		if err != nil || config.Timeout != completionTime {
			t.Errorf("timeout is %v, %v", config, err)
		}
	})
}

type answering func(*http.Request) io.ReadCloser

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: a(r)}, nil
}

type zeros struct{}

func (zeros) Read(into []byte) (int, error) { return len(into), nil }

func TestCompletionTriesTheVersionsThatAreKnown(t *testing.T) {
	c := newCompleting(t, map[string]map[string]string{"example.com/v1beta1": {"things": "Thing"}})
	c.put(t, "/apis/example.com/v1beta1/things/a", map[string]any{"metadata": metav1.ObjectMeta{Name: "a"}})
	things := resources.Resource{Group: "example.com", Name: "things", Versions: []string{"v1", "v1beta1"}}
	if got := c.objectNames(t.Context(), things, "", ""); !slices.Equal(got, []string{"a"}) {
		t.Errorf("names are %v", got)
	}
	if want := []string{"/apis/example.com/v1/things", "/apis/example.com/v1beta1/things"}; !slices.Equal(c.paths, want) {
		t.Errorf("requests are %v, want %v", c.paths, want)
	}
}

func TestCompletionDoesNotLetACredentialPluginAsk(t *testing.T) {
	c := connectionTo(t, "https://127.0.0.1:1",
		`"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"ask","interactiveMode":"IfAvailable"}`)
	config, err := c.forCompletion()
	if err != nil {
		t.Fatal(err)
	}
	if mode := config.ExecProvider.InteractiveMode; mode != api.NeverExecInteractiveMode {
		t.Errorf("mode is %s", mode)
	}
}
