package cli

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// TestWatch runs the commands that have --watch. The cluster gets another node, then refuses, then answers as before; each
// change waits until the one before is printed. An interrupt ends the run.
func TestWatch(t *testing.T) {
	one := `[{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "web-1"}}]`
	two := strings.Replace(one, "}}]", `}}, {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "web-2"}}]`, 1)
	pod := `[{"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"nodeName": "web-1",
		"serviceAccountName": "web", "containers": [{"name": "c", "image": "i"}]}}]`
	for _, tc := range []struct {
		name, down string
		args       []string
		answer     string
	}{
		{"attack-paths", "unknown: ", []string{"attack-paths", "--all-nodes", "--context", "a"}, "20"},
		{"reach", "unknown: ", []string{"reach", "web-1", "--context", "a"}, "20"},
		{"doctor", "unknown: ", []string{"doctor", "--context", "a"}, "20"},
		{"several clusters", "b: no answer", []string{"attack-paths", "--all-nodes", "--context", "a,b"}, "20"},
		{"a stream of JSON", `  "kind": "NoAnswer"`, []string{"reach", "web-1", "--context", "a", "-o", "json"}, `  "kind": "Reach"`},
		{
			"a stream of YAML", "kind: NoAnswer",
			[]string{"attack-paths", "--all-nodes", "--context", "a", "-o", "yaml"},
			"kind: AttackPathsOfNodes",
		},
		{
			"a stream about several clusters", `      "error": `,
			[]string{"doctor", "--context", "a,b", "-o", "json"},
			`  "kind": "ClusterAnswers"`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			write := func(nodes, pods string) {
				for file, text := range map[string]string{"nodes.json": nodes, "pods.json": pods} {
					next := filepath.Join(folder, "next")
					err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, filepath.Join(folder, file)))
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			write(one, "[]")
			var down atomic.Bool
			files := &fileServer{version: "v1.36.3", dir: folder}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if down.Load() {
					http.Error(w, "down", http.StatusServiceUnavailable)
					return
				}
				files.ServeHTTP(w, r)
			}))
			defer server.Close()

			config := clientcmdapi.NewConfig()
			config.Clusters["c"] = &clientcmdapi.Cluster{Server: server.URL}
			config.Contexts["a"], config.Contexts["b"] = &clientcmdapi.Context{Cluster: "c"}, &clientcmdapi.Context{Cluster: "c"}
			kubeconfig := filepath.Join(folder, "kubeconfig")
			if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
				t.Fatal(err)
			}
			run := exec.Command("node-authorizer", append(tc.args, "--watch", "--watch-interval", "1s", "--kubeconfig", kubeconfig)...)
			var errOut bytes.Buffer
			run.Stderr = &errOut
			out, err := run.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := run.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(out)
			next := func(begin string) {
				t.Helper()
				for lines.Scan() {
					if strings.HasPrefix(lines.Text(), begin) {
						return
					}
				}
				t.Fatalf("the output ended without %q; stderr: %s", begin, &errOut)
			}
			next(tc.answer)
			write(two, pod)
			next(tc.answer)
			down.Store(true)
			next(tc.down)
			down.Store(false)
			next(tc.answer)
			if err := run.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			for lines.Scan() { // to the end, as Wait wants
			}
			exit := new(exec.ExitError)
			if err := run.Wait(); !errors.As(err, &exit) || exit.ExitCode() != command.StatusInterrupted {
				t.Errorf("exit status %v, want %d", err, command.StatusInterrupted)
			}
		})
	}
}
