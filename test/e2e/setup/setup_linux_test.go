package setup

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/keyutil"

	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/setup"
	"github.com/node-authorizer/node-authorizer/test/e2e/await"
)

// TestSetup is one story, in which each step begins where the one before ended.
func TestSetup(t *testing.T) {
	if err := createWorker(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, second := nodes[0], nodes[1]
	before := map[*node]map[string]string{first: tree(t, first.dir), second: tree(t, second.dir)}
	l := startLoad(t)
	defer l.stop()
	step := func(name string, run func(t *testing.T)) {
		if t.Failed() {
			return
		}
		t.Run(name, func(t *testing.T) {
			run(t)
			l.check(t, name)
			for _, n := range nodes {
				if err := eventually(t, n.name+" is healthy", n.healthy); err != nil {
					t.Error(err)
				}
			}
		})
	}
	unchanged := func(t *testing.T) {
		t.Helper()
		for n, want := range before {
			if got := tree(t, n.dir); !maps.Equal(got, want) {
				t.Errorf("the files of %s are %v, want %v", n.name, keys(got), keys(want))
			}
		}
		nothingIsLeft(t)
	}

	step("a broken step leaves kube-apiserver as it was", func(t *testing.T) {
		running := first.pid(apiServerPod)
		brokenSteps(t, first, unchanged)
		if first.pid(apiServerPod) != running {
			t.Error("kube-apiserver was restarted")
		}
	})
	step("a crash before the last step leaves kube-apiserver as it was, and is undone", func(t *testing.T) {
		running := first.pid(apiServerPod)
		first.set(first.held, serverPod, true)
		c, _ := first.begin(t, "kubeadm", "--mode=observe")
		if err := eventually(t, "the manifest of the server is written", func() error {
			_, err := os.Stat(filepath.Join(first.dir, "manifests", serverPod))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		first.set(first.held, serverPod, false)
		second.refuses(t, "setup has not finished on the control plane node cp-1", "kubeadm", "--mode=observe")
		first.succeeds(t, "undo")
		if first.pid(apiServerPod) != running {
			t.Error("kube-apiserver was restarted")
		}
		unchanged(t)
	})
	step("kube-apiserver does not start with the new manifest", func(t *testing.T) {
		first.set(first.held, apiServerPod, true)
		c, output := first.begin(t, "kubeadm", "--mode=observe", "--timeout=8s")
		manifest := filepath.Join(first.dir, "manifests", apiServerPod)
		if err := eventually(t, "the manifest is replaced", func() error { return named(manifest) }); err != nil {
			t.Fatal(err)
		}
		first.set(first.broken, apiServerPod, true)
		first.set(first.held, apiServerPod, false)
		if err := eventually(t, "the manifest is put back", func() error {
			if named(manifest) == nil {
				return errors.New("it is not")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		first.set(first.broken, apiServerPod, false)
		_ = c.Wait()
		if c.ProcessState.ExitCode() != 2 || !strings.Contains(output.String(), "is not ready with the new manifest") {
			t.Errorf("status %d: %s", c.ProcessState.ExitCode(), output)
		}
		unchanged(t)
	})
	step("observe after a crash in the last step", func(t *testing.T) {
		first.set(first.held, apiServerPod, true)
		c, _ := first.begin(t, "kubeadm", "--mode=observe")
		manifest := filepath.Join(first.dir, "manifests", apiServerPod)
		if err := eventually(t, "the manifest is replaced", func() error { return named(manifest) }); err != nil {
			t.Fatal(err)
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		first.set(first.held, apiServerPod, false)
		running := func() error { return first.runsWith("--authorization-config=") }
		if err := eventually(t, "kube-apiserver runs with it", running); err != nil {
			t.Fatal(err)
		}
		first.succeeds(t, "kubeadm", "--mode=observe")
		first.refuses(t, "the mode replace needs a server on each control plane node", "kubeadm", "--mode=replace")
		first.refuses(t, "this cannot be applied now: the mode replace needs", "kubeadm", "--mode=replace", "--dry-run")
	})
	step("the next node is refused while the last one is not healthy", func(t *testing.T) {
		first.set(first.broken, serverPod, true)
		first.stop(serverPod)
		if err := eventually(t, "cp-2 is refused", func() error {
			status, output := second.setup(t, "kubeadm", "--mode=observe")
			if status != 2 || !strings.Contains(output, "node-authorizer-cp-1 of the control plane node cp-1 is not ready") {
				return fmt.Errorf("status %d: %s", status, output)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		first.set(first.broken, serverPod, false)
	})
	step("observe on the second node", func(t *testing.T) {
		if err := eventually(t, "cp-1 is healthy", func() error {
			status, output := second.setup(t, "kubeadm", "--mode=observe")
			if status != 0 {
				return errors.New(output)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		verified(t, first, "agreement/authorize")
		if output := first.succeeds(t, "kubeadm"); !strings.HasPrefix(output, "Nothing changes.") {
			t.Errorf("the same again changes %s", output)
		}
	})
	step("replace, with NodeScopes and Quarantines", func(t *testing.T) {
		first.refuses(t, "the server of cp-1 has another --containment", "kubeadm", "--mode=replace", "--containment")
		for _, mode := range []string{"observe", "replace"} {
			for _, n := range nodes {
				n.succeeds(t, "kubeadm", "--mode="+mode, "--containment")
			}
		}
		if len(customResources(t)) != 2 {
			t.Errorf("the custom resources are %v", customResources(t))
		}
		for _, n := range nodes {
			verified(t, n, "latency")
			if n.runsWith("NodeRestriction") == nil || n.runsWith("--authorization-mode=") == nil {
				t.Errorf("kube-apiserver of %s still has the in-tree parts", n.name)
			}
		}
	})
	step("undo", func(t *testing.T) {
		second.refuses(t, "the control plane node cp-1 has the mode replace", "undo")
		first.succeeds(t, "kubeadm", "--mode=beside")
		second.succeeds(t, "undo")
		first.succeeds(t, "undo")
		unchanged(t)
	})
}

// brokenSteps runs setup with each thing that it needs broken.
func brokenSteps(t *testing.T, n *node, unchanged func(*testing.T)) {
	t.Helper()
	for _, tc := range []struct{ rule, file, why string }{
		{"the authority is missing", "pki/ca.crt", "pki/ca.crt: no such file"},
		{"the authority's key is missing", "pki/ca.key", "the key of the cluster's authority is not here"},
		{"the key is of another authority", "pki/ca.key", "does not belong to the certificate"},
		{"the kubeconfig is missing", "admin.conf", "admin.conf: no such file"},
	} {
		path := filepath.Join(n.dir, tc.file)
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(tc.rule, "missing") {
			err = os.Remove(path)
		} else if err == nil {
			err = os.WriteFile(path, otherKey(t), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		n.refuses(t, tc.why, "kubeadm", "--mode=observe")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		unchanged(t)
	}
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", n.ports[0]))
	if err != nil {
		t.Fatal(err)
	}
	n.refuses(t, "the server is not ready after 5s", "kubeadm", "--mode=observe", "--timeout=5s")
	taken.Close()
	unchanged(t)
}

func otherKey(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// verified checks that setup verify finds no difference and no unprotected node, and makes a check. A machine that has
// too much to do leaves requests without a decision of the server, which stay counted; what was compared must agree.
func verified(t *testing.T, n *node, check string) {
	t.Helper()
	if err := eventually(t, "verify", func() error {
		_, output := n.setup(t, "verify", "--output=json")
		var answer struct{ Checks []setup.Check }
		if err := json.NewDecoder(strings.NewReader(output)).Decode(&answer); err != nil {
			return fmt.Errorf("%w: %s", err, output)
		}
		made := false
		for _, c := range answer.Checks {
			made = made || c.ID == check
			overloaded := c.Answer == probe.Undetermined && strings.Contains(c.Why, " undecided: the server's log says why")
			if c.Answer != probe.Holds && !overloaded {
				return fmt.Errorf("%+v", c)
			}
		}
		if !made {
			return fmt.Errorf("no check %s: %s", check, output)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// nothingIsLeft checks that the cluster has no object of setup.
func nothingIsLeft(t *testing.T) {
	t.Helper()
	admin, ctx := admins()[1], t.Context()
	of := metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=node-authorizer-setup"}
	webhooks, err := admin.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx, of)
	if err != nil || len(webhooks.Items) > 0 {
		t.Errorf("there are webhooks: %v %v", webhooks, err)
	}
	roles, err := admin.RbacV1().ClusterRoles().List(ctx, of)
	if err != nil || len(roles.Items) > 0 {
		t.Errorf("there are roles: %v %v", roles, err)
	}
	bindings, err := admin.RbacV1().ClusterRoleBindings().List(ctx, of)
	if err != nil || len(bindings.Items) > 0 {
		t.Errorf("there are bindings: %v %v", bindings, err)
	}
	if custom := customResources(t); len(custom) > 0 {
		t.Errorf("there are custom resources: %v", custom)
	}
	maps, err := admin.CoreV1().ConfigMaps("").List(ctx, of)
	if err != nil || len(maps.Items) > 0 {
		t.Errorf("there are config maps: %v %v", maps, err)
	}
}

// customResources returns the resources of policy.node-authorizer.io that can be listed.
func customResources(t *testing.T) []string {
	t.Helper()
	var served []string
	for _, resource := range []string{"nodescopes", "quarantines"} {
		path := "/apis/policy.node-authorizer.io/v1alpha1/" + resource
		if admins()[1].Discovery().RESTClient().Get().AbsPath(path).Do(t.Context()).Error() == nil {
			served = append(served, resource)
		}
	}
	return served
}

// named returns an error unless a manifest names files of the server.
func named(path string) error {
	text, err := os.ReadFile(path)
	if err == nil && !strings.Contains(string(text), "--authorization-config=") {
		err = errors.New("it does not name the configuration")
	}
	return err
}

// runsWith returns an error unless kube-apiserver is ready and has a text in its arguments.
func (n *node) runsWith(text string) error {
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", n.pid(apiServerPod)))
	if err == nil && !strings.Contains(string(arguments), text) {
		err = fmt.Errorf("it runs without %s", text)
	}
	return errors.Join(err, n.healthy())
}

func keys(files map[string]string) []string {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	return names
}

func eventually(t *testing.T, what string, condition func() error) error {
	t.Helper()
	return await.Until(t.Context(), what, func(context.Context) error { return condition() })
}
