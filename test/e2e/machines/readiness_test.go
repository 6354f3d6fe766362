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

// readinessWatch lists the nodes of a cluster twice a second, and records each that is not
// ready.
type readinessWatch struct {
	end func()

	mu       sync.Mutex
	looks    int
	notReady []string
}

// watchNodes starts a readinessWatch. All nodes must be ready.
func watchNodes(c *Cluster) *readinessWatch {
	ctx, cancel := context.WithCancel(context.Background())
	w := &readinessWatch{}
	var running sync.WaitGroup
	w.end = func() { cancel(); running.Wait() }
	running.Go(func() {
		ticker := time.NewTicker(500 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				w.look(ctx, c)
			}
		}
	})
	return w
}

func (w *readinessWatch) look(ctx context.Context, c *Cluster) {
	nodes, err := c.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	for _, node := range nodes.Items {
		if !isReady(&node) {
			w.notReady = append(w.notReady, fmt.Sprintf("%s at %s", node.Name, time.Now().Format(time.TimeOnly)))
		}
	}
}

// seen returns how often it listed the nodes, and which were not ready.
func (w *readinessWatch) seen() (looks int, notReady []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.looks, slices.Clone(w.notReady)
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
