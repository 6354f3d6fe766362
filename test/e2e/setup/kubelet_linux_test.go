package setup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// interval is how often the kubelet reads its manifests.
const interval = 50 * time.Millisecond

// grace is how long a container may take to end. kube-apiserver takes a minute while somebody watches, and a kubelet gives it 30 s.
const grace = time.Second

// node is a control plane node: the folder of kubeadm, and a kubelet that runs the static pods in it.
type node struct {
	name, dir string
	// ports are where the server of the node listens, instead of the ports that all nodes use.
	ports [2]int
	// apiServer is the URL of its kube-apiserver.
	apiServer string

	mu sync.Mutex
	// pods are the static pods that run, by the names of their manifests.
	pods map[string]*pod
	// held are manifests that the kubelet does not read again, as if it were slow; broken are those whose container ends at once.
	held, broken map[string]bool
	// generation counts the starts and stops of kube-apiserver.
	generation int
	problems   []string
}

// pod is a static pod that runs.
type pod struct {
	corev1.Pod
	hash    [sha256.Size]byte
	process *exec.Cmd
	ended   chan struct{}
	ready   bool
}

const (
	apiServerPod = "kube-apiserver.yaml"
	serverPod    = "node-authorizer.yaml"
)

// run runs static pods until the context ends.
func (n *node) run(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		for _, name := range []string{serverPod, apiServerPod} {
			if err := n.sync(ctx, name); err != nil {
				n.problem(fmt.Errorf("%s: %s: %w", n.name, name, err))
			}
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	for _, name := range []string{apiServerPod, serverPod} {
		n.stop(name)
	}
}

func (n *node) problem(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.problems = append(n.problems, err.Error())
}

// set changes the maps of the node.
func (n *node) set(of map[string]bool, name string, value bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of[name] = value
}

// sync makes the process of a static pod what the manifest says.
func (n *node) sync(ctx context.Context, name string) error {
	n.mu.Lock()
	running, held := n.pods[name], n.held[name]
	n.mu.Unlock()
	if held {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(n.dir, "manifests", name))
	if errors.Is(err, fs.ErrNotExist) {
		n.stop(name)
		return nil
	}
	if err != nil {
		return err
	}
	hash := sha256.Sum256(text)
	if running != nil && running.hash == hash && running.runs() {
		return n.probe(ctx, name, running)
	}
	n.stop(name)
	p := &pod{hash: hash}
	if err := yaml.UnmarshalStrict(text, &p.Pod); err != nil {
		return err
	}
	return n.start(name, p)
}

func (p *pod) runs() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// start starts the container of a static pod. The container would see the host's files at the paths where they are
// mounted: these must be the paths of the host, because it runs without a file system of its own.
func (n *node) start(name string, p *pod) error {
	container := p.Spec.Containers[0]
	for _, mount := range container.VolumeMounts {
		if err := mounted(p, &mount); err != nil {
			return err
		}
	}
	command := append([]string{programs[name]}, container.Args...)
	if name == apiServerPod {
		command = append([]string{programs[name]}, container.Command[1:]...)
	}
	n.mu.Lock()
	broken := n.broken[name]
	n.mu.Unlock()
	if broken {
		command = append(command, "--no-such-flag")
	}
	for i, argument := range command[1:] {
		_, path, _ := strings.Cut(argument, "=")
		if filepath.IsAbs(path) && !isMounted(&container, path) {
			return fmt.Errorf("%s is not in a volume of the container", path)
		}
		if name == serverPod && strings.HasPrefix(argument, "--config=") {
			copied, err := n.withPorts(path)
			if err != nil {
				return err
			}
			command[i+1] = "--config=" + copied
		}
	}
	log, err := os.OpenFile(filepath.Join(plane.LogDir, n.name+"-"+strings.TrimSuffix(name, ".yaml")+".log"),
		os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	p.process = exec.Command(command[0], command[1:]...)
	p.process.Stdout, p.process.Stderr = log, log
	p.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.ended = make(chan struct{})
	if err := p.process.Start(); err != nil {
		return err
	}
	loopback.add(p.process.Process.Pid, n)
	go func() {
		_ = p.process.Wait()
		close(p.ended)
	}()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods[name] = p
	return nil
}

// mounted checks a volume as a kubelet does.
func mounted(p *pod, mount *corev1.VolumeMount) error {
	for _, volume := range p.Spec.Volumes {
		if volume.Name != mount.Name {
			continue
		}
		if volume.HostPath.Path != mount.MountPath {
			return fmt.Errorf("%s is mounted to %s", volume.HostPath.Path, mount.MountPath)
		}
		info, err := os.Stat(volume.HostPath.Path)
		if err == nil && *volume.HostPath.Type == corev1.HostPathDirectory && !info.IsDir() {
			err = errors.New("it is no folder")
		}
		return err
	}
	return fmt.Errorf("there is no volume %s", mount.Name)
}

func isMounted(container *corev1.Container, path string) bool {
	for _, mount := range container.VolumeMounts {
		if strings.HasPrefix(path, mount.MountPath+"/") {
			return true
		}
	}
	return false
}

// withPorts copies the config file of the server, with the ports of this node.
func (n *node) withPorts(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	replaced := string(text)
	for i, port := range n.ports {
		replaced = strings.ReplaceAll(replaced, fmt.Sprintf("127.0.0.1:%d\n", shared+i), fmt.Sprintf("127.0.0.1:%d\n", port))
	}
	copied := filepath.Join(filepath.Dir(n.dir), n.name+"-config.yaml")
	return copied, os.WriteFile(copied, []byte(replaced), 0o600)
}

// stop ends a static pod gracefully.
func (n *node) stop(name string) {
	n.mu.Lock()
	p := n.pods[name]
	delete(n.pods, name)
	if name == apiServerPod && p != nil {
		n.generation++
	}
	n.mu.Unlock()
	if p == nil || p.process == nil {
		return
	}
	_ = p.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(grace):
		_ = p.process.Process.Kill()
		<-p.ended
	}
	if p.ready {
		_ = n.mirror(context.Background(), p, corev1.ConditionFalse) // without a kube-apiserver nobody reads it
	}
}

// probe sets the readiness of a pod, and shows it in the mirror pod.
func (n *node) probe(ctx context.Context, name string, p *pod) error {
	ready := n.answers(ctx, name)
	if ready == p.ready {
		return nil
	}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	if err := n.mirror(ctx, p, status); err != nil {
		return nil //nolint:nilerr // no kube-apiserver answers: it is shown later
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p.ready = ready
	if name == apiServerPod {
		n.generation++
	}
	return nil
}

// answers reports whether the readiness probe of a pod succeeds.
func (n *node) answers(ctx context.Context, name string) bool {
	url, client := n.apiServer+"/readyz", adminHTTP
	if name == serverPod {
		url, client = fmt.Sprintf("http://127.0.0.1:%d/readyz", n.ports[1]), http.DefaultClient
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// mirror writes the mirror pod of a static pod, with any kube-apiserver that answers.
func (n *node) mirror(ctx context.Context, p *pod, ready corev1.ConditionStatus) error {
	shown := p.DeepCopy()
	shown.Name, shown.Namespace = p.Name+"-"+n.name, metav1.NamespaceSystem
	shown.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "static"}
	shown.Spec.NodeName = n.name
	var err error
	for _, admin := range admins() {
		pods := admin.CoreV1().Pods(metav1.NamespaceSystem)
		if _, err = pods.Create(ctx, shown, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			continue
		}
		var live *corev1.Pod
		if live, err = pods.Get(ctx, shown.Name, metav1.GetOptions{}); err != nil {
			continue
		}
		live.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		if _, err = pods.UpdateStatus(ctx, live, metav1.UpdateOptions{}); err == nil {
			return nil
		}
	}
	return err
}

// serving returns the generation of kube-apiserver, and whether it is ready.
func (n *node) serving() (generation int, ready bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pods[apiServerPod]
	return n.generation, p != nil && p.ready
}

// pid returns the process of a static pod; 0 if it does not run.
func (n *node) pid(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := n.pods[name]; p != nil {
		return p.process.Process.Pid
	}
	return 0
}
