package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/node-authorizer/node-authorizer/test/localplane"
)

// TestFaults breaks one part after the other under a load of requests that must be
// refused. All of them must be refused, no node may be lost, and everything must recover
// by itself: after each fault pods start, for which kubelets read secrets.
func TestFaults(t *testing.T) {
	const space = "faults"
	admin := client(t, ours.Plane)
	namespace(t, admin, space)
	load := startAttackLoad(t)
	node := ours.as(t, "web-1")
	ownSecret := func(ctx context.Context) error {
		_, err := node.CoreV1().Secrets("stock").Get(ctx, "own-secret", metav1.GetOptions{})
		return err
	}

	for i, fault := range []struct {
		name string
		// happen causes the fault, checks the answers, and repairs it.
		happen func(t *testing.T)
	}{
		{"the servers are killed and come back", func(t *testing.T) {
			for _, replica := range oursReplicas.Replicas {
				orFatal(t, replica.Kill())
			}
			if err := ownSecret(t.Context()); err == nil {
				t.Error("a node is allowed something while no server runs")
			}
			load.attacksGoOn(t, 100)
			for _, replica := range oursReplicas.Replicas {
				orFatal(t, replica.Start(t.Context()))
			}
		}},
		{"one of two servers is killed", func(t *testing.T) {
			orFatal(t, oursReplicas.Replicas[0].Kill())
			eventually(t, "the other answers", ownSecret)
			allRenewLeases(t, admin)
			orFatal(t, oursReplicas.Replicas[0].Start(t.Context()))
		}},
		{"the other is stopped gracefully", func(t *testing.T) {
			orFatal(t, oursReplicas.Replicas[1].Stop())
			eventually(t, "the first answers", ownSecret)
			allRenewLeases(t, admin)
			orFatal(t, oursReplicas.Replicas[1].Start(t.Context()))
		}},
		{"kube-apiserver is killed and comes back", func(t *testing.T) {
			orFatal(t, ours.Kill(localplane.APIServer))
			orFatal(t, ours.StartComponent(t.Context(), localplane.APIServer))
		}},
		{"etcd is stopped for 20 seconds", func(t *testing.T) {
			orFatal(t, ours.StopComponent(localplane.Etcd))
			select {
			case <-time.After(20 * time.Second):
			case <-t.Context().Done():
			}
			orFatal(t, ours.StartComponent(t.Context(), localplane.Etcd))
		}},
		{"the servers are cut off from kube-apiserver", func(t *testing.T) { cutWatches(t, admin, space) }},
		{"the servers answer after the webhook timeout", func(t *testing.T) {
			oursReplicas.Webhooks.Slow(4 * time.Second)
			if err := ownSecret(t.Context()); err == nil {
				t.Error("a node is allowed something without an answer")
			}
			load.attacksGoOn(t, 2)
			oursReplicas.Webhooks.Slow(0)
		}},
		{"the serving certificates are replaced", func(t *testing.T) { rotate(t) }},
	} {
		t.Run(fault.name, func(t *testing.T) {
			fault.happen(t)
			eventually(t, "the node may read its pod's secret", ownSecret)
			for _, node := range []string{"web-1", "pay-1"} {
				name := fmt.Sprintf("after-%d-%s", i, node)
				eventually(t, "a pod can be created", func(ctx context.Context) error { return createOnce(ctx, admin, space, name, node) })
				eventually(t, "it runs", func(ctx context.Context) error { return running(ctx, admin, space, name) })
			}
			load.attacksGoOn(t, 100)
			load.check(t)
		})
	}
	t.Run("at the end every node is ready", func(t *testing.T) {
		allRenewLeases(t, admin)
		load.stop()
		load.check(t)
	})
}

func orFatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// createOnce is an idempotent createSecretPod.
func createOnce(ctx context.Context, c kubernetes.Interface, namespace, name, node string) error {
	if err := running(ctx, c, namespace, name); err == nil {
		return nil
	}
	pod, secret, config := newSecretPod(namespace, name, node)
	_, secretErr := c.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
	_, configErr := c.CoreV1().ConfigMaps(namespace).Create(ctx, config, metav1.CreateOptions{})
	_, podErr := c.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return errors.Join(existing(secretErr), existing(configErr), existing(podErr))
}

// cutWatches creates a pod and deletes one while the servers are disconnected. The
// servers allow nothing for the new pod until they are connected again, and then apply
// both changes.
func cutWatches(t *testing.T, admin kubernetes.Interface, space string) {
	const before, during = "before-the-cut", "during-the-cut"
	node := ours.as(t, "web-2")
	read := func(ctx context.Context, name string) error {
		_, err := node.CoreV1().Secrets(space).Get(ctx, name, metav1.GetOptions{})
		return err
	}
	orFatal(t, createSecretPod(t.Context(), admin, space, before, "web-2"))
	eventually(t, "the pod before the cut runs", func(ctx context.Context) error { return running(ctx, admin, space, before) })

	for _, replica := range oursReplicas.Replicas {
		replica.Watches.Cut()
	}
	orFatal(t, createSecretPod(t.Context(), admin, space, during, "web-2"))
	orFatal(t, admin.CoreV1().Pods(space).Delete(t.Context(), before, metav1.DeleteOptions{}))
	for range 3 {
		if err := read(t.Context(), during); err == nil {
			t.Error("a node is allowed a secret of a pod that the servers have not received")
		}
	}
	for _, replica := range oursReplicas.Replicas {
		replica.Watches.Restore()
	}
	eventually(t, "the pod of the time of the cut runs", func(ctx context.Context) error { return running(ctx, admin, space, during) })
	eventually(t, "the pod before the cut is gone", func(ctx context.Context) error { return gone(ctx, admin, space, before) })
	eventually(t, "its secret is refused", func(ctx context.Context) error { return refusal(read(ctx, before)) })
}

// rotate replaces the certificates and makes kube-apiserver connect again.
func rotate(t *testing.T) {
	for _, replica := range oursReplicas.Replicas {
		serial := func(ctx context.Context) (*big.Int, error) {
			certificate, err := replica.ServingCertificate(ctx)
			if err != nil {
				return nil, err
			}
			return certificate.SerialNumber, nil
		}
		old, err := serial(t.Context())
		orFatal(t, err)
		orFatal(t, replica.RotateCertificate())
		eventually(t, "the new certificate is shown", func(ctx context.Context) error {
			now, err := serial(ctx)
			if err == nil && now.Cmp(old) == 0 {
				err = errors.New("it is the old one")
			}
			return err
		})
	}
	oursReplicas.Webhooks.Reset()
}
