package noderestriction_test

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodestate"
)

// A node gets tokens only for the audiences that its pods use. The state comes from informers of client-go.
func Example() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api", UID: "uid-of-api"},
		Spec: corev1.PodSpec{NodeName: "worker-1", ServiceAccountName: "api", Volumes: []corev1.Volume{{
			Name: "token", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault"}},
				}},
			},
		}}},
	}), 0)
	features := kubeversion.For(kubeversion.Latest)
	state, err := nodestate.New(factory, features)
	if err != nil {
		panic(err)
	}
	restriction := noderestriction.New(state, nil, features)
	factory.Start(ctx.Done())
	cache.WaitForCacheSync(ctx.Done(), state.HasSynced)

	user, groups := nodeidentity.User("worker-1")
	for _, audience := range []string{"vault", "bank"} {
		answer := restriction.Decide(ctx, &noderestriction.Request{
			User: user, Groups: groups, Operation: noderestriction.Create,
			Version: "v1", Resource: "serviceaccounts", Subresource: "token", Namespace: "shop", Name: "api",
			Object: &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				Audiences:      []string{audience},
				BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "api", UID: "uid-of-api"},
			}},
		})
		fmt.Println(answer.Decision, answer.Status, answer.Code)
		if answer.Status != 200 {
			fmt.Println(answer.Reason.Message)
		}
	}
	// Output:
	// Allow 200 RestrictionsMet
	// Deny 403 AudienceNotAllowed
	// no volume of pod shop/api uses tokens for audience "bank", and no authorizer lets node worker-1 request them
}

// Checks lists the checks of a request before it is made.
func ExampleRestriction_Checks() {
	restriction := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	user, groups := nodeidentity.User("worker-1")
	for _, line := range restriction.Checks(&noderestriction.Request{
		User: user, Groups: groups, Operation: noderestriction.Update, Resource: "nodes", Subresource: "status", Name: "worker-1",
	}) {
		fmt.Println(line)
	}
	// Output:
	// the name is the node's own
	// spec.configSource is not newly set
	// taints do not change
	// owner references do not change
	// no label changes that nodes may not write
}
