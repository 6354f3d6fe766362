package setup

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// machine is a control plane node with a fake kubelet: kube-apiserver and the server start again as soon as their manifests change.
type machine struct {
	t       *testing.T
	dir     string
	port    int
	objects *fakeapiserver.Server
	node    *Node
	// steps are the steps of the commands, and step is called with each.
	steps []string
	step  func(text string)
	// down: kube-apiserver does not answer.
	down atomic.Bool
}

// newMachine returns a node with the files of kubeadm.
func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, dir: t.TempDir(), objects: fakeapiserver.New(fakeapiserver.Options{}), step: func(string) {}}
	for name, text := range kubeadm(t) {
		write(t, m.path(name), text, 0o640)
	}
	put := func(path string, object any) {
		if err := m.objects.Put(path, object); err != nil {
			t.Fatal(err)
		}
	}
	put("/api/v1/nodes/a", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{controlPlaneLabel: ""}}})
	ready := corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	for _, name := range []string{"kube-apiserver-a", "node-authorizer-a"} {
		put("/api/v1/namespaces/kube-system/pods/"+name, &corev1.Pod{Status: ready})
	}
	apiServer := httptest.NewTLSServer(http.HandlerFunc(m.serveAPI))
	t.Cleanup(apiServer.Close)
	m.serve()
	cluster, err := Connect(&rest.Config{TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, apiServer.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	m.node = &Node{Name: "a", Dir: m.dir, Cluster: cluster, Timeout: time.Minute, Step: func(text string) {
		m.steps = append(m.steps, text)
		m.step(text)
	}}
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

// serveAPI serves kube-apiserver.
func (m *machine) serveAPI(w http.ResponseWriter, r *http.Request) {
	switch {
	case m.down.Load():
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == "/readyz":
	case r.URL.Path == "/metrics":
		m.startTime(w, apiServerManifest)
	case r.Method == http.MethodPatch:
		m.apply(w, r)
	default:
		sent := r.Clone(r.Context())
		sent.URL.Scheme, sent.URL.Host, sent.RequestURI = "http", "memory.example", ""
		response, err := m.objects.InMemory(nil).Transport.RoundTrip(sent)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer response.Body.Close()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(response.StatusCode)
		_, _ = io.Copy(w, response.Body)
	}
}

// startTime writes the metric of a process that started when its manifest got its content.
func (m *machine) startTime(w http.ResponseWriter, manifest string) {
	text, err := os.ReadFile(m.path(manifest))
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	hash := fnv.New32()
	hash.Write(text)
	fmt.Fprintf(w, "process_start_time_seconds %d\n", hash.Sum32())
}

// apply stores an object.
func (m *machine) apply(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	var object map[string]any
	if err = errors.Join(err, yaml.Unmarshal(text, &object)); err == nil && r.URL.Query().Get("dryRun") == "" {
		err = m.objects.Put(r.URL.Path, object)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}

// serve serves the server on two ports that follow each other, with the certificate that its folder has.
func (m *machine) serve() {
	m.t.Helper()
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(m.path(folder+"/server/tls.crt"), m.path(folder+"/server/tls.key"))
		return &pair, err
	}
	var ready, metrics net.Listener
	for range 50 {
		var err error
		if ready, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			m.t.Fatal(err)
		}
		m.port = ready.Addr().(*net.TCPAddr).Port
		if metrics, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", m.port+1)); err == nil {
			break
		}
		ready.Close()
	}
	if metrics == nil {
		m.t.Fatal("there are no two free ports")
	}
	handler := func(w http.ResponseWriter, _ *http.Request) { m.startTime(w, serverManifest) }
	for _, l := range []net.Listener{tls.NewListener(ready, &tls.Config{GetCertificate: certificate}), metrics} {
		server := &http.Server{Handler: http.HandlerFunc(handler), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(l) }()
		m.t.Cleanup(func() { server.Close() })
	}
}

func (m *machine) options(mode Mode) Options {
	return Options{Mode: mode, Image: "registry.example.com/node-authorizer:v1", Dir: m.dir, Port: m.port, Now: time.Now()}
}

func (m *machine) journal() *Journal {
	m.t.Helper()
	j, err := ReadJournal(m.dir)
	if err != nil {
		m.t.Fatal(err)
	}
	return j
}

// setup runs setup kubeadm.
func (m *machine) setup(ctx context.Context, mode Mode) error {
	m.t.Helper()
	j := m.journal()
	p, err := Kubeadm(m.options(mode), ReadFrom(m.dir, m.dir), j)
	if err != nil {
		return err
	}
	return m.node.Apply(ctx, p, j)
}

// installed runs setup kubeadm, which succeeds.
func (m *machine) installed(mode Mode) {
	m.t.Helper()
	if err := m.setup(m.t.Context(), mode); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) undo(force bool) error {
	j := m.journal()
	o := m.options(j.Mode)
	o.Image = ""
	return m.node.Undo(m.t.Context(), o, ReadFrom(m.dir, m.dir), j, force)
}

func (m *machine) read(name string) string {
	m.t.Helper()
	text, err := os.ReadFile(m.path(name))
	if err != nil {
		m.t.Fatal(err)
	}
	return string(text)
}

// left returns the objects of setup that the cluster has.
func (m *machine) left() []string {
	m.t.Helper()
	var left []string
	for _, path := range []string{
		"/api/v1/namespaces/kube-system/configmaps/" + registry,
		"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/node-authorizer",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/node-authorizer",
	} {
		if found, err := m.objects.Get(path, &map[string]any{}); err != nil {
			m.t.Fatal(err)
		} else if found {
			left = append(left, path)
		}
	}
	return left
}

// unchanged checks that the files are as before.
func (m *machine) unchanged(before map[string]string) {
	m.t.Helper()
	now := tree(m.t, m.dir)
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if want, ok := before[name]; !ok || want != now[name] {
			m.t.Errorf("%s was changed or added", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := now[name]; !ok {
			m.t.Errorf("%s was removed", name)
		}
	}
}

func (m *machine) refuses(err error, want string) {
	m.t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		m.t.Errorf("the error is %v, want %q", err, want)
	}
}

// TestUndoRestoresContentOwnerAndMode goes through all modes before.
func TestUndoRestoresContentOwnerAndMode(t *testing.T) {
	m := newMachine(t)
	manifest := m.path(apiServerManifest)
	if os.Geteuid() == 0 {
		if err := os.Chown(manifest, 1234, 4321); err != nil {
			t.Fatal(err)
		}
	}
	owner, err := stateOf(manifest)
	if err != nil {
		t.Fatal(err)
	}
	before := tree(t, m.dir)
	for _, mode := range []Mode{Observe, Beside, Replace, Replace} {
		m.installed(mode)
		if now, err := stateOf(manifest); err != nil || now.User != owner.User || now.Group != owner.Group || now.Mode != owner.Mode {
			t.Errorf("in the mode %s the manifest has the owner %d:%d and mode %v: %v", mode, now.User, now.Group, now.Mode, err)
		}
	}
	if len(m.left()) != 3 {
		t.Errorf("of the objects, the cluster has only %v", m.left())
	}
	if err := m.undo(false); err != nil {
		t.Fatal(err)
	}
	m.unchanged(before)
	if now, err := stateOf(manifest); err != nil || now.User != owner.User || now.Group != owner.Group {
		t.Errorf("the manifest has the owner %d:%d: %v", now.User, now.Group, err)
	}
	if left := m.left(); len(left) > 0 {
		t.Errorf("the cluster still has %v", left)
	}
}

// TestUndoKeepsChangesOfOthers: without --force it names the file and changes nothing.
func TestUndoKeepsChangesOfOthers(t *testing.T) {
	for _, tc := range []struct {
		rule, file string
		change     func(text string) string
		refusal    string
		// kept is the content after an undo with force, "" for the one before setup.
		kept string
	}{
		{
			"a flag is added to kube-apiserver's manifest", apiServerManifest,
			func(text string) string {
				return strings.Replace(text, "    - --secure-port", "    - --v=4\n    - --secure-port", 1)
			},
			"kube-apiserver.yaml changed since setup wrote it: remove the change, or overwrite it with --force", "",
		},
		{
			"the manifest is broken", apiServerManifest, func(text string) string { return text + "}" },
			"kube-apiserver.yaml changed since setup wrote it", "",
		},
		{
			"the config of the server is edited", folder + "/server/config.yaml", func(text string) string { return text + "# edited\n" },
			"server/config.yaml changed since setup wrote it", "",
		},
		{
			"kubeadm has written the manifest again, for another version", apiServerManifest,
			func(string) string {
				return "kind: Pod\nspec: {containers: [{name: a, image: 'kube-apiserver:v1.35.0'}]}\n"
			},
			"", "kind: Pod\nspec: {containers: [{name: a, image: 'kube-apiserver:v1.35.0'}]}\n",
		},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			m := newMachine(t)
			original := m.read(apiServerManifest)
			m.installed(Beside)
			write(t, m.path(tc.file), tc.change(m.read(tc.file)), 0o600)
			before := tree(t, m.dir)
			if tc.refusal != "" {
				m.refuses(m.undo(false), tc.refusal)
				m.unchanged(before)
				m.down.Store(true)
				m.refuses(m.undo(false), tc.refusal)
				m.down.Store(false)
				if _, err := m.journal().Address(m.dir); err != nil {
					t.Errorf("the address of kube-apiserver is not known: %v", err)
				}
			}
			if err := m.undo(tc.refusal != ""); err != nil {
				t.Fatal(err)
			}
			want := original
			if tc.kept != "" {
				want = tc.kept
			}
			if got := m.read(apiServerManifest); got != want {
				t.Errorf("the manifest is\n%s\nwant\n%s", got, want)
			}
			if _, err := os.Stat(m.path(folder)); err == nil {
				t.Error("the files of the server are still there")
			}
		})
	}
}

// TestLinksAreRefused: setup could not put them back.
func TestLinksAreRefused(t *testing.T) {
	for _, name := range []string{apiServerManifest, serverManifest, folder + "/server/config.yaml", folder + "/setup/journal.json"} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			target := filepath.Join(t.TempDir(), "target")
			write(t, target, kubeadm(t)[apiServerManifest], 0o600)
			link := m.path(name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o755), os.RemoveAll(link), os.Symlink(target, link)); err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "journal.json") {
				write(t, target, "{}", 0o600)
			}
			m.refuses(m.setup(t.Context(), Observe), name+" is a link or another special file")
			if to, err := os.Readlink(link); err != nil || to != target {
				t.Errorf("the link names %s: %v", to, err)
			}
			if left := m.left(); len(m.steps) > 0 || len(left) > 0 {
				t.Errorf("the steps were %q, and the cluster has %v", m.steps, left)
			}
		})
	}
}

// TestAFailureInTheMiddlePutsBackTheFiles stops setup in each of its steps.
func TestAFailureInTheMiddlePutsBackTheFiles(t *testing.T) {
	for _, step := range []string{"apply the roles", "write the files", "replace kube-apiserver's manifest"} {
		t.Run("an interrupt before it can "+step, func(t *testing.T) {
			m := newMachine(t)
			before := tree(t, m.dir)
			ctx, cancel := context.WithCancel(t.Context())
			m.step = func(text string) {
				if strings.HasPrefix(text, step) {
					cancel()
				}
			}
			if err := m.setup(ctx, Observe); !errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
			m.unchanged(before)
			if left := m.left(); len(left) > 0 {
				t.Errorf("the cluster still has %v", left)
			}
		})
	}
}
