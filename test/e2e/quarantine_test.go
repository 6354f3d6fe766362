package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/test/e2e/quarantines"
	"github.com/node-authorizer/node-authorizer/test/e2e/server"
)

// refusedByQuarantine is the reason that kube-apiserver gives.
var refusedByQuarantine = "Quarantine: " + quarantine.Summary(quarantine.NodeQuarantined)

// TestQuarantinedKubelet: while a Quarantine stands, a kubelet cannot renew the lease of its node nor
// write the node's status, and the token of a pod on the node is refused. Other nodes continue to work. After the
// release the node works as before.
func TestQuarantinedKubelet(t *testing.T) {
	const space, held, free = "incident", "spare-1", "web-2"
	admin := client(t, ours.Plane)
	namespace(t, admin, space)
	letReadServices(t, admin, space)
	onHeld, onFree := podToken(t, admin, space, held), podToken(t, admin, space, free)
	eventually(t, "tokens of pods are allowed", func(ctx context.Context) error {
		return errors.Join(readServices(ctx, onHeld, space), readServices(ctx, onFree, space))
	})

	before := ours.audit.Size()
	q, err := quarantines.Create(t.Context(), ours.AdminConfig(), "incident-7", policyv1alpha1.QuarantineSpec{Node: held})
	orFatal(t, err)
	t.Cleanup(func() {
		if err := q.End(context.WithoutCancel(t.Context()), servers()...); err != nil {
			t.Error(err)
		}
	})
	orFatal(t, q.InForce(t.Context(), servers()...))
	since := time.Now()

	t.Run("its kubelet cannot renew its lease", func(t *testing.T) {
		eventually(t, "the kubelet tries", func(context.Context) error { return leaseRefused(held, before) })
	})
	t.Run("the node may neither read nor write its Node", func(t *testing.T) {
		nodes := ours.as(t, held).CoreV1().Nodes()
		_, err := nodes.Get(t.Context(), held, metav1.GetOptions{})
		isQuarantined(t, err)
		phase := []byte(`{"status":{"phase":"Running"}}`)
		_, err = nodes.Patch(t.Context(), held, types.MergePatchType, phase, metav1.PatchOptions{}, "status")
		isQuarantined(t, err)
	})
	t.Run("the token of a pod on it is refused", func(t *testing.T) { isQuarantined(t, readServices(t.Context(), onHeld, space)) })
	t.Run("other nodes go on", func(t *testing.T) {
		eventually(t, "they renew their leases", func(ctx context.Context) error { return renewedSince(ctx, admin, since, held) })
		orFatal(t, readServices(t.Context(), onFree, space))
	})
	lease, err := admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), held, metav1.GetOptions{})
	orFatal(t, err)
	if !lease.Spec.RenewTime.Time.Before(since) {
		t.Errorf("its lease was renewed at %s, and the Quarantine was in force at %s", lease.Spec.RenewTime, since)
	}

	orFatal(t, q.End(t.Context(), servers()...))
	t.Run("after the release the token is allowed", func(t *testing.T) { orFatal(t, readServices(t.Context(), onHeld, space)) })
	t.Run("after the release the node is ready and renews its lease", func(t *testing.T) { allRenewLeases(t, admin) })
	t.Run("after the release a pod starts on the node", func(t *testing.T) {
		orFatal(t, createSecretPod(t.Context(), admin, space, "after", held))
		eventually(t, "it runs", func(ctx context.Context) error { return running(ctx, admin, space, "after") })
	})
}

func servers() (all []*server.Server) {
	for _, replica := range oursReplicas.Replicas {
		all = append(all, replica.Server)
	}
	return all
}

// letReadServices gives the default account of a namespace a right in it.
func letReadServices(t *testing.T, admin kubernetes.Interface, space string) {
	t.Helper()
	_, err := admin.RbacV1().RoleBindings(space).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "view"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: space, Name: "default"}},
	}, metav1.CreateOptions{})
	orFatal(t, err)
}

// podToken creates a pod of the default account on a node, and returns a client with a token that is
// bound to it.
func podToken(t *testing.T, admin kubernetes.Interface, space, node string) kubernetes.Interface {
	t.Helper()
	pod, err := admin.CoreV1().Pods(space).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "on-" + node},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: new(int64),
			Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/app:1.0"}},
		},
	}, metav1.CreateOptions{})
	orFatal(t, err)
	token, err := admin.CoreV1().ServiceAccounts(space).CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}},
	}, metav1.CreateOptions{})
	orFatal(t, err)
	config := rest.AnonymousClientConfig(ours.AdminConfig())
	config.BearerToken = token.Status.Token
	return clientFor(t, config)
}

func readServices(ctx context.Context, c kubernetes.Interface, space string) error {
	_, err := c.CoreV1().Services(space).List(ctx, metav1.ListOptions{})
	return err
}

// leaseRefused returns nil if the audit log, after an offset, has the refused update of a node's lease
// by its kubelet.
func leaseRefused(node string, after int64) error {
	events, err := ours.audit.Events(after)
	if err != nil {
		return err
	}
	for _, event := range events {
		if event.User.Username == "system:node:"+node && event.ObjectRef != nil &&
			action(&event) == "update leases "+corev1.NamespaceNodeLease+"/"+node && event.ResponseStatus.Code == http.StatusForbidden &&
			strings.Contains(event.ResponseStatus.Message, refusedByQuarantine) {
			return nil
		}
	}
	return fmt.Errorf("%d requests in the audit log, and no update of the lease that was refused", len(events))
}

// isQuarantined checks that an error is the refusal of a Quarantine.
func isQuarantined(t *testing.T, err error) {
	t.Helper()
	if refusal(err) != nil || !strings.Contains(err.Error(), refusedByQuarantine) {
		t.Errorf("got %v, want %q", err, refusedByQuarantine)
	}
}

// renewedSince returns nil if all nodes but one have renewed their leases since a time.
func renewedSince(ctx context.Context, admin kubernetes.Interface, since time.Time, except string) error {
	for node := range nodePools {
		if node == except {
			continue
		}
		lease, err := admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Spec.RenewTime == nil || lease.Spec.RenewTime.Time.Before(since) {
			return fmt.Errorf("node %s has not renewed its lease", node)
		}
	}
	return nil
}
