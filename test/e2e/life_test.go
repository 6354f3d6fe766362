package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"
)

// TestNodesLive shows that nodes work with node-authorizer: they have bootstrapped their
// certificates and registered, and the shop runs.
func TestNodesLive(t *testing.T) {
	admin := client(t, ours.Plane)
	t.Run("neither of the in-tree parts is on", func(t *testing.T) { inTreePartsAreOff(t) })
	t.Run("five nodes are ready and renew their leases", func(t *testing.T) { allRenewLeases(t, admin) })
	t.Run("kubelets have read what their pods name", func(t *testing.T) { kubeletsHaveRead(t) })
	t.Run("a static pod comes and goes with its file", func(t *testing.T) { staticPodLives(t, admin) })
	t.Run("an evicted pod ends", func(t *testing.T) {
		endsWhen(t, admin, "evicted", func(ctx context.Context, namespace, name string) error {
			return admin.CoreV1().Pods(namespace).EvictV1(ctx,
				&policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		})
	})
	t.Run("a deleted pod ends, and its node loses its secret", func(t *testing.T) {
		endsWhen(t, admin, "deleted", func(ctx context.Context, namespace, name string) error {
			return admin.CoreV1().Pods(namespace).Delete(ctx, name, metav1.DeleteOptions{})
		})
	})
	t.Run("a pod with an extended resource tolerates its taint", func(t *testing.T) { extendedResourcesAreTolerated(t) })
	t.Run("kubectl asks for a node", func(t *testing.T) { kubectlAnswers(t) })
}

// inTreePartsAreOff checks the configuration in the log of kube-apiserver.
func inTreePartsAreOff(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(ours.LogDir, "kube-apiserver.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "admission controller(s) successfully") && strings.Contains(line, "NodeRestriction") {
			t.Errorf("NodeRestriction is on: %s", line)
		}
	}
	// This is the refusal of an authorizer chain without the in-tree Node authorizer.
	_, err = ours.as(t, "web-1").CoreV1().Secrets("stock").Get(t.Context(), "foreign-secret", metav1.GetOptions{})
	if err == nil || !strings.Contains(err.Error(), "NoPathToObject") {
		t.Errorf("the refusal is not node-authorizer's: %v", err)
	}
}

// allRenewLeases waits until every node is ready and has renewed its lease since
// the call.
func allRenewLeases(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	renewLeasesSince(t, admin, time.Now())
}

// renewLeasesSince waits until every node has renewed its lease since a time.
func renewLeasesSince(t *testing.T, admin kubernetes.Interface, began time.Time) {
	t.Helper()
	eventually(t, "every node renews its lease", func(ctx context.Context) error {
		nodes, err := admin.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if got, want := len(nodes.Items), len(nodePools); got != want {
			return fmt.Errorf("there are %d nodes, not %d", got, want)
		}
		for _, node := range nodes.Items {
			if !isReady(&node) {
				return fmt.Errorf("node %s is not ready", node.Name)
			}
			lease, err := admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if renewed := lease.Spec.RenewTime; renewed == nil || renewed.Time.Before(began) {
				return fmt.Errorf("node %s has not renewed its lease since %s", node.Name, began.Format(time.TimeOnly))
			}
		}
		return nil
	})
}

func isReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// kubeletsHaveRead checks that the audit log has one request of each kind that kubelets
// send for the shop.
func kubeletsHaveRead(t *testing.T) {
	want := []string{
		"read secrets payments/card-processor",  // in the environment
		"read secrets payments/receipt-signing", // a volume
		"read secrets shop/events-queue",        // a projected volume
		"read secrets shop/image-disk",          // the disk behind a claim
		"read secrets shop/registry-login",      // to pull images
		"read configmaps shop/theme",            // a projected volume
		"read persistentvolumeclaims shop/catalog-images",
		"read persistentvolumes /catalog-images",
		"create serviceaccounts/token payments/payments", // of two audiences
		"create nodes /web-1",
		"update leases kube-node-lease/web-1",
		"create pods stock/clock-web-1", // a mirror pod
	}
	eventually(t, "the audit log has what kubelets ask", func(context.Context) error {
		events, err := ours.audit.Events(0)
		if err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, event := range events {
			if event.ResponseStatus.Code < http.StatusBadRequest && event.ObjectRef != nil {
				seen[action(&event)] = true
			}
		}
		for _, line := range want {
			if !seen[line] {
				return fmt.Errorf("no kubelet did %q", line)
			}
		}
		return nil
	})
}

// action returns the verb and the object of an event. A watch of one object by name
// counts as reading it.
func action(event *auditv1.Event) string {
	verb, resource := event.Verb, event.ObjectRef.Resource
	if verb == "get" || verb == "list" || verb == "watch" {
		verb = "read"
	}
	if event.ObjectRef.Subresource != "" {
		resource += "/" + event.ObjectRef.Subresource
	}
	return fmt.Sprintf("%s %s %s/%s", verb, resource, event.ObjectRef.Namespace, event.ObjectRef.Name)
}

// staticPodLives writes a manifest of a static pod, for which the kubelet creates a
// mirror pod, and removes it.
func staticPodLives(t *testing.T, admin kubernetes.Interface) {
	folder, err := ours.node(t, "spare-1").StaticPods()
	if err != nil {
		t.Fatal(err)
	}
	manifest := filepath.Join(folder, "watchman.yaml")
	const pod = `
apiVersion: v1
kind: Pod
metadata: {name: watchman, namespace: shop}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: app, image: registry.example.com/watchman:1.0}]
`
	if err := os.WriteFile(manifest, []byte(pod), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the mirror pod runs", func(ctx context.Context) error { return running(ctx, admin, "shop", "watchman-spare-1") })
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the mirror pod is gone", func(ctx context.Context) error { return gone(ctx, admin, "shop", "watchman-spare-1") })
}

// endsWhen runs a pod with a secret, and ends the pod.
func endsWhen(t *testing.T, admin kubernetes.Interface, name string, end func(ctx context.Context, namespace, name string) error) {
	namespace(t, admin, name)
	if err := createSecretPod(t.Context(), admin, name, name, "web-2"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod runs", func(ctx context.Context) error { return running(ctx, admin, name, name) })
	node := ours.as(t, "web-2")
	if _, err := node.CoreV1().Secrets(name).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Errorf("its node may not read its secret: %v", err)
	}
	if err := end(t.Context(), name, name); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the pod is gone", func(ctx context.Context) error { return gone(ctx, admin, name, name) })
	eventually(t, "its node may not read its secret any more", func(ctx context.Context) error {
		_, err := node.CoreV1().Secrets(name).Get(ctx, name, metav1.GetOptions{})
		return refusal(err)
	})
}

// extendedResourcesAreTolerated compares with the plugin in the in-tree plane.
func extendedResourcesAreTolerated(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "cards", Namespace: "shop"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "app", Image: "registry.example.com/app:1.0",
			Resources: corev1.ResourceRequirements{
				Limits: corev1.ResourceList{"example.com/card": resource.MustParse("1"), "cpu": resource.MustParse("1")},
			},
		}}},
	}
	tolerations := func(c cluster) string {
		created, err := client(t, c.Plane).CoreV1().Pods("shop").Create(t.Context(), pod,
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(created.Spec.Tolerations)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	got, want := tolerations(ours), tolerations(shop)
	if got != want || !strings.Contains(got, "example.com/card") {
		t.Errorf("got %s, in-tree %s", got, want)
	}
}

// kubectlAnswers runs kubectl auth can-i.
func kubectlAnswers(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl on this machine")
	}
	for _, test := range []struct{ node, what, namespace, want string }{
		{"web-1", "secret/session-key", "shop", "yes"},
		{"web-1", "secret/card-processor", "payments", "no - node-authorizer: NoPathToObject: "},
		{"pay-1", "secret/session-key", "shop", "no - node-authorizer: NoPathToObject: "},
	} {
		t.Run(test.node+" "+test.what, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", ours.AdminKubeconfig(), "auth", "can-i", "get",
				test.what, "-n", test.namespace, "--as", "system:node:"+test.node, "--as-group", "system:nodes")
			// The exit status 1 means no.
			output, err := command.CombinedOutput()
			if !strings.HasPrefix(string(output), test.want) || (err == nil) != (test.want == "yes") {
				t.Errorf("kubectl says %q (%v), want %q", output, err, test.want)
			}
		})
	}
}
