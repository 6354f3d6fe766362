package inventory_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

func Example() {
	yes := true
	i := inventory.New()
	i.Set(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "monitoring", Name: "agent-x"},
		Spec: corev1.PodSpec{
			NodeName:   "web-1",
			Containers: []corev1.Container{{Name: "agent", SecurityContext: &corev1.SecurityContext{Privileged: &yes}}},
		},
	})
	for _, pod := range i.Pods() {
		fmt.Printf("%s on %s: %s\n", pod.Name, pod.Node, pod.Escapes[0].Means)
	}
	// Output:
	// monitoring/agent-x on web-1: container agent is privileged
}
