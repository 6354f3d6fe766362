package nodestate

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/graph"
)

// unstarted is an informer that keeps its handler.
type unstarted struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
}

func (u *unstarted) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	u.handler = h
	return registration{}, nil
}

type registration struct {
	cache.ResourceEventHandlerRegistration
}

func (registration) HasSynced() bool { return true }

// TestAnObjectThatIsGoneAfterAGapIsRemoved: then the informer knows the key, and an old object or none.
func TestAnObjectThatIsGoneAfterAGapIsRemoved(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"}, Spec: corev1.PodSpec{NodeName: "worker-1"}}
	for rule, gone := range map[string]any{
		"the object":    pod,
		"an old object": cache.DeletedFinalStateUnknown{Key: "shop/api", Obj: pod},
		"only its name": cache.DeletedFinalStateUnknown{Key: "shop/api"},
	} {
		g, informer := graph.New(), &unstarted{}
		if err := relate(&State{}, informer, g.SetPod, g.DeletePod); err != nil {
			t.Fatal(err)
		}
		informer.handler.OnAdd(pod, true)
		if !g.HasPath("worker-1", graph.Pod, "shop", "api") {
			t.Errorf("%s: not added", rule)
		}
		informer.handler.OnDelete(gone)
		if g.HasPath("worker-1", graph.Pod, "shop", "api") {
			t.Errorf("%s: not removed", rule)
		}
	}
}
