package localplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ready checks the state of the node's current process, not an earlier one: it runs, the
// Node is Ready, and the storage driver is registered.
func (n *Node) ready(ctx context.Context) error {
	started, storageErr := n.storage.state()
	object, err := n.plane.client.CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := n.alive(ctx, object, started); err != nil {
		return err
	}
	if err := conditionReady(object); err != nil {
		return err
	}
	if storageErr != nil {
		return fmt.Errorf("its storage driver: %w", storageErr)
	}
	csiNode, err := n.plane.client.StorageV1().CSINodes().Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("its storage driver: %w", err)
	}
	for _, driver := range csiNode.Spec.Drivers {
		if driver.Name == CSIDriver {
			return nil
		}
	}
	return fmt.Errorf("the CSINode %s does not name the storage driver %s", n.name, CSIDriver)
}

// alive checks that the current process has registered the node, or, for a node that had
// registered before, has renewed its lease. A kubelet renews an existing lease at once
// but creates a new one only ten seconds after it has registered.
func (n *Node) alive(ctx context.Context, object *corev1.Node, started time.Time) error {
	if !object.CreationTimestamp.Time.Before(started.Truncate(time.Second)) {
		return nil
	}
	lease, err := n.plane.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, n.name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("its lease: %w", err)
	}
	if renewed := lease.Spec.RenewTime; renewed == nil || renewed.Time.Before(started) {
		return errors.New("it has not renewed its lease")
	}
	return nil
}

func conditionReady(object *corev1.Node) error {
	for _, condition := range object.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status == corev1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("its condition Ready is %s: %s", condition.Status, condition.Message)
	}
	return errors.New("it has no condition Ready yet")
}
