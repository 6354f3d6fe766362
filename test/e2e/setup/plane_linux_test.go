package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
	"github.com/node-authorizer/node-authorizer/test/e2e/testmain"
	"github.com/node-authorizer/node-authorizer/test/localplane"
)

const root = "../../.."

var (
	// plane has the store and the certificates. Its own kube-apiserver is stopped when the kube-apiservers of the nodes run.
	plane *localplane.Plane
	// programs are the programs of the static pods, by the names of their manifests.
	programs = map[string]string{}
	// shared is the port of the server on each node.
	shared   int
	loopback *network
	nodes    [2]*node
	// adminHTTP is a client of an administrator.
	adminHTTP *http.Client
	stopNodes = func() {}
)

func TestMain(m *testing.M) { os.Exit(testmain.Run(m, 10*time.Minute, start, stop)) }

func stop() error {
	stopNodes()
	if loopback != nil {
		loopback.close()
	}
	if plane == nil {
		return nil
	}
	return plane.Stop()
}

func start(ctx context.Context, dir string) error {
	programs[serverPod] = filepath.Join(dir, "node-authorizer")
	if err := server.Build(ctx, root, programs[serverPod]); err != nil {
		return err
	}
	binaries, err := localplane.Build(ctx, os.Stderr)
	if err != nil {
		return err
	}
	programs[apiServerPod] = filepath.Join(binaries, string(localplane.APIServer))
	if plane, err = localplane.Start(ctx, localplane.Options{WithoutControllers: true, WithoutBootstrapRBAC: true}); err != nil {
		return err
	}
	client, err := rest.HTTPClientFor(plane.AdminConfig())
	if err != nil {
		return err
	}
	adminHTTP = client
	if shared, err = twoPorts(); err != nil {
		return err
	}
	if loopback, err = listen(shared); err != nil {
		return err
	}
	command, err := apiServerCommand()
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(context.Background())
	var ended []chan struct{}
	stopNodes = func() {
		cancel()
		for _, e := range ended {
			<-e
		}
	}
	for i, name := range []string{"cp-1", "cp-2"} {
		if nodes[i], err = newNode(filepath.Join(dir, name, "kubernetes"), name, command); err != nil {
			return err
		}
		e := make(chan struct{})
		ended = append(ended, e)
		go func() {
			defer close(e)
			nodes[i].run(running)
		}()
	}
	for _, n := range nodes {
		if err := createNode(ctx, n.name); err != nil {
			return err
		}
		if err := await.Until(ctx, n.name+" is ready", func(context.Context) error { return n.healthy() }); err != nil {
			return err
		}
	}
	return plane.StopComponent(localplane.APIServer)
}

// twoPorts returns a port that is free with the next one.
func twoPorts() (int, error) {
	for range 50 {
		port, err := plane.TakePort()
		if err != nil {
			return 0, err
		}
		if n, err := listen(port); err == nil {
			n.close()
			return port, nil
		}
	}
	return 0, errors.New("there are no two free ports")
}

// apiServerCommand returns the arguments of the plane's kube-apiserver, except for its own port and name.
func apiServerCommand() ([]string, error) {
	state, err := localplane.ReadState(plane.Dir)
	if err != nil {
		return nil, err
	}
	for _, p := range state.Processes {
		if p.Name == string(localplane.APIServer) {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.PID))
			return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")[1:], err
		}
	}
	return nil, errors.New("the plane has no kube-apiserver")
}

// newNode writes the folder of kubeadm, with kube-apiserver's manifest as kubeadm writes it.
func newNode(dir, name string, command []string) (*node, error) {
	n := &node{name: name, dir: dir, pods: map[string]*pod{}, held: map[string]bool{}, broken: map[string]bool{}}
	var ports [3]int
	for i := range ports {
		port, err := plane.TakePort()
		if err != nil {
			return nil, err
		}
		ports[i] = port
	}
	n.ports, n.apiServer = [2]int{ports[0], ports[1]}, fmt.Sprintf("https://127.0.0.1:%d", ports[2])
	arguments := []string{"kube-apiserver"}
	for _, argument := range command {
		if strings.HasPrefix(argument, "--secure-port=") {
			argument = fmt.Sprintf("--secure-port=%d", ports[2])
		}
		arguments = append(arguments, argument)
	}
	pki, directory := filepath.Join(plane.Dir, "pki"), corev1.HostPathDirectory
	manifest, err := yaml.Marshal(&corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: "kube-apiserver", Namespace: metav1.NamespaceSystem,
			Labels: map[string]string{"component": "kube-apiserver", "tier": "control-plane"},
		},
		Spec: corev1.PodSpec{
			HostNetwork: true,
			Containers: []corev1.Container{{
				Name: "kube-apiserver", Image: "registry.k8s.io/kube-apiserver:v1.37.1", Command: arguments,
				VolumeMounts: []corev1.VolumeMount{{Name: "k8s-certs", MountPath: pki, ReadOnly: true}},
			}},
			Volumes: []corev1.Volume{{Name: "k8s-certs", VolumeSource: corev1.VolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: pki, Type: &directory},
			}}},
		},
	})
	if err != nil {
		return nil, err
	}
	for file, from := range map[string]string{
		"pki/ca.crt": plane.CAFile(), "pki/ca.key": plane.CAKeyFile(), "admin.conf": plane.AdminKubeconfig(),
	} {
		text, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if err := write(filepath.Join(dir, file), text); err != nil {
			return nil, err
		}
	}
	return n, write(filepath.Join(dir, "manifests", apiServerPod), manifest)
}

func write(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// admins are clients of the kube-apiservers of the nodes, the plane's first.
func admins() []kubernetes.Interface {
	var all []kubernetes.Interface
	for _, host := range []string{plane.Server(), nodes[0].apiServer, nodes[1].apiServer} {
		config := plane.AdminConfig()
		config.Host = host
		if client, err := kubernetes.NewForConfig(config); err == nil {
			all = append(all, client)
		}
	}
	return all
}

// createNode creates the Node of a control plane node.
func createNode(ctx context.Context, name string) error {
	_, err := admins()[0].CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""},
	}}, metav1.CreateOptions{})
	return err
}

func (n *node) healthy() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.problems) > 0 {
		return errors.New(n.problems[len(n.problems)-1])
	}
	if p := n.pods[apiServerPod]; p == nil || !p.ready {
		return errors.New("kube-apiserver is not ready")
	}
	return nil
}

// command returns the command setup of the node.
func (n *node) command(arguments ...string) *exec.Cmd {
	given := []string{"setup", arguments[0], "--kubernetes-dir=" + n.dir, "--node-name=" + n.name, "--timeout=60s"}
	if arguments[0] == "kubeadm" {
		given = append(given, "--image=registry.example.com/node-authorizer:v1", fmt.Sprintf("--port=%d", shared))
	}
	if arguments[0] != "verify" && !slices.Contains(arguments, "--dry-run") {
		given = append(given, "--yes")
	}
	return exec.Command(programs[serverPod], append(given, arguments[1:]...)...)
}

// begin starts the command setup on the node.
func (n *node) begin(t *testing.T, arguments ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	c, output := n.command(arguments...), &bytes.Buffer{}
	c.Stdout, c.Stderr = output, output
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	loopback.add(c.Process.Pid, n)
	return c, output
}

// setup runs the command setup on the node, and returns the exit status and the output.
func (n *node) setup(t *testing.T, arguments ...string) (int, string) {
	t.Helper()
	c, output := n.begin(t, arguments...)
	_ = c.Wait()
	if strings.Contains(output.String(), "PRIVATE KEY") {
		t.Errorf("setup %s shows a key", arguments)
	}
	t.Logf("setup %s on %s: %s", strings.Join(arguments, " "), n.name, c.ProcessState)
	return c.ProcessState.ExitCode(), output.String()
}

// succeeds runs the command setup.
func (n *node) succeeds(t *testing.T, arguments ...string) string {
	t.Helper()
	status, output := n.setup(t, arguments...)
	if status != 0 {
		t.Fatalf("setup %s on %s: status %d\n%s", arguments, n.name, status, output)
	}
	return output
}

// refuses runs the command setup, which must fail and say why.
func (n *node) refuses(t *testing.T, why string, arguments ...string) {
	t.Helper()
	status, output := n.setup(t, arguments...)
	if status != 2 || !strings.Contains(output, why) {
		t.Errorf("setup %s on %s: status %d, and not %q:\n%s", arguments, n.name, status, why, output)
	}
}

// tree returns the files of a folder with their modes.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || entry.IsDir() {
			files[path] = info.Mode().String()
			return err
		}
		text, err := os.ReadFile(path)
		files[path] = info.Mode().String() + " " + string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
