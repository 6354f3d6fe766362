package graph_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/graph"
)

// A graph is filled with objects in any order, and answers at any time.
func Example() {
	g := graph.New()
	for _, node := range []string{"worker-1", "worker-2"} {
		g.SetPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api-" + node},
			Spec: corev1.PodSpec{
				NodeName: node,
				Volumes: []corev1.Volume{{Name: "credentials", VolumeSource: corev1.VolumeSource{
					Secret: &corev1.SecretVolumeSource{SecretName: "db"},
				}}},
			},
		})
	}
	fmt.Println(g.HasPath("worker-1", graph.Secret, "shop", "db"))
	fmt.Println(g.Path("worker-1", graph.Secret, "shop", "db"))

	// Which nodes are affected by a leak of the secret?
	fmt.Println(g.NodesReaching(graph.Secret, "shop", "db"))

	g.DeletePod("shop", "api-worker-1")
	fmt.Println(g.NodesReaching(graph.Secret, "shop", "db"))
	// Output:
	// true
	// secret shop/db <- pod shop/api-worker-1 (spec.volumes[name=credentials].secret) <- node worker-1
	// [worker-1 worker-2]
	// [worker-2]
}
