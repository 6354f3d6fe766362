package nodeauthz_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// apiPod runs on worker-1 and reads the secret shop/db.
var apiPod = &corev1.Pod{
	ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
	Spec: corev1.PodSpec{
		NodeName: "worker-1",
		Volumes: []corev1.Volume{{Name: "credentials", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: "db"},
		}}},
	},
}

// Informers keep a graph up to date. This example watches pods; persistent volumes,
// volume attachments, resource slices and pod certificate requests work in the same
// way. An Authorizer is an authorizer.Authorizer of k8s.io/apiserver.
func Example_informers() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	g := graph.New()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(apiPod), 0)
	pods, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { g.SetPod(object.(*corev1.Pod)) },
		UpdateFunc: func(_, object any) { g.SetPod(object.(*corev1.Pod)) },
		DeleteFunc: func(object any) {
			// For an object that was deleted during a gap of the watch, only the key
			// is known.
			if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
				g.DeletePod(key.Namespace, key.Name)
			}
		},
	})
	if err != nil {
		panic(err)
	}
	nodes := nodeauthz.New(g, kubeversion.For(kubeversion.Latest), nodeauthz.WithSynced(pods.HasSynced))
	factory.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), pods.HasSynced)

	name, groups := nodeidentity.User("worker-1")
	decision, reason, err := nodes.Authorize(ctx, authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: name, Groups: groups},
		Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db", ResourceRequest: true,
	})
	fmt.Printf("allowed: %v, reason: %q, error: %v\n", decision == authorizer.DecisionAllow, reason, err)
	// Output:
	// allowed: true, reason: "", error: <nil>
}
