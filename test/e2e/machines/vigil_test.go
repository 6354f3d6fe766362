package machines

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// vigil watches the nodes of a cluster, and notes each that is not ready.
type vigil struct {
	end func()

	mu       sync.Mutex
	looks    int
	notReady []string
}

// watchNodes begins a vigil over nodes that are ready.
func watchNodes(c *Cluster) *vigil {
	ctx, cancel := context.WithCancel(context.Background())
	v := &vigil{}
	var running sync.WaitGroup
	v.end = func() { cancel(); running.Wait() }
	running.Go(func() {
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				v.look(ctx, c)
			}
		}
	})
	return v
}

func (v *vigil) look(ctx context.Context, c *Cluster) {
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.looks++
	for _, node := range nodes.Items {
		if !isReady(&node) {
			v.notReady = append(v.notReady, fmt.Sprintf("%s at %s", node.Name, time.Now().Format(time.TimeOnly)))
		}
	}
}

// seen returns how often it looked, and the nodes that were not ready.
func (v *vigil) seen() (looks int, notReady []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.looks, slices.Clone(v.notReady)
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
