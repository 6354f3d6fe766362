package nodeauthz_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
)

func BenchmarkAuthorize(b *testing.B) {
	g := graph.New()
	for i := range 1000 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("pod-", i)}}
		pod.Spec.NodeName = fmt.Sprint("node-", i%100)
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: fmt.Sprint("own-", i)}, {Name: "shared"}}
		g.SetPod(pod)
	}
	a := nodeauthz.New(g, kubeversion.For(kubeversion.Latest))
	for name, attrs := range map[string]*authorizer.AttributesRecord{
		"own-lease": {
			Verb: "update", APIGroup: "coordination.k8s.io", Resource: "leases", Namespace: "kube-node-lease", Name: "node-1",
		},
		"secret":         {Verb: "get", Resource: "secrets", Namespace: "shop", Name: "own-1"},
		"shared-secret":  {Verb: "get", Resource: "secrets", Namespace: "shop", Name: "shared"},
		"foreign-secret": {Verb: "get", Resource: "secrets", Namespace: "shop", Name: "own-2"},
		"unknown-secret": {Verb: "get", Resource: "secrets", Namespace: "shop", Name: "unknown"},
	} {
		attrs.ResourceRequest = true
		attrs.User = &user.DefaultInfo{Name: "system:node:node-1", Groups: []string{"system:nodes", "system:authenticated"}}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := a.Authorize(b.Context(), attrs); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
