package nodestate_test

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

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodestate"
)

// The Node authorizer and NodeRestriction decide from one factory of informers. The pod shop/api runs
// on worker-1 and reads the secret shop/db.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
		Spec: corev1.PodSpec{NodeName: "worker-1", Volumes: []corev1.Volume{{
			Name: "credentials", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "db"}},
		}}},
	})
	factory := informers.NewSharedInformerFactory(client, 0)
	features := kubeversion.For(kubeversion.Latest)

	state, err := nodestate.New(factory, features)
	if err != nil {
		panic(err)
	}
	reads := nodeauthz.New(state.Graph(), features, nodeauthz.WithSynced(state.HasSynced))
	writes := noderestriction.New(state, nil, features)
	factory.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), state.HasSynced)

	for _, node := range []string{"worker-1", "worker-2"} {
		name, groups := nodeidentity.User(node)
		decision, _, err := reads.Authorize(ctx, authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: name, Groups: groups},
			Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db", ResourceRequest: true,
		})
		fmt.Printf("%s reads the secret: %v, error: %v\n", node, decision == authorizer.DecisionAllow, err)
		answer := writes.Decide(ctx, &noderestriction.Request{
			User: name, Groups: groups, Operation: noderestriction.Delete,
			Version: "v1", Resource: "pods", Namespace: "shop", Name: "api",
		})
		fmt.Printf("%s deletes the pod: %s, %s\n", node, answer.Decision, answer.Code)
	}
	// Output:
	// worker-1 reads the secret: true, error: <nil>
	// worker-1 deletes the pod: Allow, RestrictionsMet
	// worker-2 reads the secret: false, error: <nil>
	// worker-2 deletes the pod: Deny, PodNotOnNode
}
