package localplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/node-authorizer/node-authorizer/test/localplane/manifests"
)

// auditPolicy records only reads of Secrets.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources: [{group: "", resources: [secrets]}]
- level: None
`

// TestPlane tests a plane with the in-tree authorizers. Its subtests share the plane and
// depend on each other.
func TestPlane(t *testing.T) {
	dir := t.TempDir()
	policy, audit := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit.log")
	writeFile(t, policy, auditPolicy)
	plane := startPlane(t, Options{
		Dir: dir,
		ExtraArgs: map[Component][]string{
			APIServer: {"--audit-policy-file=" + policy, "--audit-log-path=" + audit},
		},
	})

	t.Run("the programs have their version", func(t *testing.T) {
		version, err := clientFor(t, plane.AdminConfig()).Discovery().ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if version.GitVersion != "v1.37.1" {
			t.Errorf("kube-apiserver says it is %s", version.GitVersion)
		}
	})
	t.Run("a folder has one plane", func(t *testing.T) {
		if _, err := Start(t.Context(), Options{Dir: dir}); !errors.Is(err, ErrRunning) {
			t.Errorf("got %v, want %v", err, ErrRunning)
		}
		if _, err := plane.client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Errorf("the first plane does not run any more: %v", err)
		}
	})

	web := addNode(t, plane, "web-1", NodeOptions{Labels: map[string]string{"pool": "web"}})
	pay := addNode(t, plane, "pay-1", NodeOptions{Labels: map[string]string{"pool": "payments"}})

	t.Run("a node has its own certificate", func(t *testing.T) {
		object, err := nodeClient(t, web).CoreV1().Nodes().Get(t.Context(), "web-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if object.Labels["pool"] != "web" || object.Status.NodeInfo.KubeletVersion != "v1.37.1" {
			t.Errorf("labels %v, kubelet %s", object.Labels, object.Status.NodeInfo.KubeletVersion)
		}
		_, err = nodeClient(t, web).CoreV1().Nodes().Get(t.Context(), "pay-1", metav1.GetOptions{})
		wantForbidden(t, err)
	})
	t.Run("the shop of the examples runs", func(t *testing.T) { runShop(t, plane) })
	t.Run("a node reads the Secrets of its pods only", func(t *testing.T) {
		_, err := nodeClient(t, pay).CoreV1().Secrets("payments").Get(t.Context(), "card-processor", metav1.GetOptions{})
		if err != nil {
			t.Error(err)
		}
		_, err = nodeClient(t, web).CoreV1().Secrets("payments").Get(t.Context(), "card-processor", metav1.GetOptions{})
		wantForbidden(t, err)
	})
	t.Run("a kubelet reads the Secret of a disk", func(t *testing.T) {
		text, err := os.ReadFile(audit)
		if err != nil {
			t.Fatal(err)
		}
		want := secretRead{user: "system:node:web-1", secret: "shop/image-disk", decision: "allow"}
		if !secretReads(t, text)[want] {
			t.Errorf("the audit log has no %+v", want)
		}
	})
	t.Run("a node runs static pods", func(t *testing.T) { runStaticPod(t, plane, web) })
	t.Run("a program belongs to the plane", func(t *testing.T) { runProgram(t, plane) })
	t.Run("a node can be restarted", func(t *testing.T) {
		if err := web.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := web.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("the components can be restarted with their data", func(t *testing.T) { killAndRestart(t, plane) })
	t.Run("a paused component does not answer", func(t *testing.T) {
		if err := plane.Pause(APIServer); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := plane.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
			t.Error("kube-apiserver answers")
		}
		if err := plane.Resume(APIServer); err != nil {
			t.Fatal(err)
		}
		if _, err := plane.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("after Stop nothing is left", func(t *testing.T) { stopLeavesNothing(t, plane) })
}

func runShop(t *testing.T, plane *Plane) {
	objects, err := manifests.Read(filepath.Join("..", "..", "examples", "shop"))
	if err != nil {
		t.Fatal(err)
	}
	if err := manifests.Apply(t.Context(), plane.AdminConfig(), objects, func(*unstructured.Unstructured) {}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pods, err := manifests.WaitForPods(ctx, plane.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]bool{}
	for _, pod := range pods {
		where[fmt.Sprintf("%s/%s on %s", pod.Namespace, pod.Labels["app"], pod.Spec.NodeName)] = true
	}
	for _, want := range []string{
		"shop/storefront on web-1", "shop/catalog on web-1", "shop/log-shipper on web-1", "shop/log-shipper on pay-1",
		"payments/payments on pay-1", "payments/receipts on pay-1",
	} {
		if !where[want] {
			t.Errorf("no pod of %s; there are %v", want, where)
		}
	}
	if len(where) != 6 {
		t.Errorf("pods are elsewhere too: %v", where)
	}
}

func runStaticPod(t *testing.T, plane *Plane, node *Node) {
	folder, err := node.StaticPods()
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(folder, "clock.yaml"), staticPod)
	err = poll(t.Context(), func(ctx context.Context) error {
		_, err := plane.client.CoreV1().Pods("default").Get(ctx, "clock-"+node.Name(), metav1.GetOptions{})
		return err
	})
	if err != nil {
		t.Errorf("there is no mirror pod: %v", err)
	}
}

const staticPod = `
apiVersion: v1
kind: Pod
metadata: {name: clock, namespace: default}
spec:
  containers: [{name: clock, image: registry.example.com/clock:1.0}]
`

// runProgram leaves a program running, which ends with the plane.
func runProgram(t *testing.T, plane *Plane) {
	ready := func(context.Context) error { return nil }
	program, err := plane.AddProgram(t.Context(), "sleeper", ProgramOptions{Path: "/bin/sleep", Args: []string{"600"}, Ready: ready})
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := program.Start(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(program.LogFile()); err != nil {
		t.Error(err)
	}
	_, err = plane.AddProgram(t.Context(), "nothing", ProgramOptions{Path: "/bin/no-such-program", Ready: ready})
	if err == nil {
		t.Error("a missing program runs")
	}
}

func killAndRestart(t *testing.T, plane *Plane) {
	for _, component := range Components() {
		if err := plane.Kill(component); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := plane.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("kube-apiserver answers after it was killed")
	}
	for _, component := range Components() {
		if err := plane.StartComponent(t.Context(), component); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := plane.client.CoreV1().Nodes().Get(t.Context(), "web-1", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func stopLeavesNothing(t *testing.T, plane *Plane) {
	state, err := ReadState(plane.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(state.Processes) != 7 {
		t.Errorf("the state names %d processes, not 7: %+v", len(state.Processes), state.Processes)
	}
	if err := plane.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, p := range state.Processes {
		if p.Running() {
			t.Errorf("%s still runs", p.Name)
		}
		for _, path := range p.Scratch {
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("%s left %s", p.Name, path)
			}
		}
	}
	if wasThere, err := Down(plane.Dir); err != nil || wasThere {
		t.Errorf("Down after Stop: %t, %v", wasThere, err)
	}
}

func TestErrorOfFailedComponentHasTheCause(t *testing.T) {
	dir := t.TempDir()
	_, err := Start(t.Context(), Options{Dir: dir, ExtraArgs: map[Component][]string{Etcd: {"--no-such-flag"}}})
	if err == nil {
		t.Fatal("it started")
	}
	for _, want := range []string{"etcd ended with", "no-such-flag", filepath.Join(dir, "logs", "etcd.log")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
	if _, err := ReadState(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a state is left: %v", err)
	}
}

// secretRead is one line of the audit log.
type secretRead struct{ user, secret, decision string }

func secretReads(t *testing.T, log []byte) map[secretRead]bool {
	t.Helper()
	reads := map[secretRead]bool{}
	for line := range strings.Lines(string(log)) {
		var event struct {
			Verb        string
			User        struct{ Username string }
			ObjectRef   corev1.ObjectReference
			Annotations map[string]string
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		reads[secretRead{
			user:     event.User.Username,
			secret:   event.ObjectRef.Namespace + "/" + event.ObjectRef.Name,
			decision: event.Annotations["authorization.k8s.io/decision"],
		}] = true
	}
	return reads
}
