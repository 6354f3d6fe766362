package nodeauthz_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// A graph holds the relations of a cluster's objects, and an Authorizer decides with
// it: a node may read the secrets of its own pods.
func Example() {
	g := graph.New()
	g.SetPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
		Spec: corev1.PodSpec{
			NodeName: "worker-1",
			Volumes: []corev1.Volume{{Name: "credentials", VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: "db"},
			}}},
		},
	})
	authorizer := nodeauthz.New(g, kubeversion.For(kubeversion.Latest))

	for _, node := range []string{"worker-1", "worker-2"} {
		user, groups := nodeidentity.User(node)
		answer := authorizer.Decide(&access.Request{
			User: user, Groups: groups,
			Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db", ResourceRequest: true,
		})
		fmt.Println(node, answer.Decision, answer.Code)
	}
	// Output:
	// worker-1 Allow PathToObject
	// worker-2 NoOpinion NoPathToObject
}

// Explain decides like Decide, and explains why.
func ExampleAuthorizer_Explain() {
	g := graph.New()
	g.SetPod(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
		Spec: corev1.PodSpec{
			NodeName: "worker-1",
			Volumes: []corev1.Volume{{Name: "credentials", VolumeSource: corev1.VolumeSource{
				Secret: &corev1.SecretVolumeSource{SecretName: "db"},
			}}},
		},
	})
	authorizer := nodeauthz.New(g, kubeversion.For(kubeversion.Latest))

	user, groups := nodeidentity.User("worker-2")
	refusal := authorizer.Explain(&access.Request{
		User: user, Groups: groups,
		Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db", ResourceRequest: true,
	})
	fmt.Println(refusal.Decision, refusal.Reason.Code)
	fmt.Println(refusal.Reason.Message)
	fmt.Println(refusal.Reason.Path)
	// Output:
	// NoOpinion NoPathToObject
	// secret shop/db is referenced by pod shop/api (spec.volumes[name=credentials].secret) on node worker-1, not on node worker-2
	// secret shop/db <- pod shop/api (spec.volumes[name=credentials].secret) <- node worker-1
}
