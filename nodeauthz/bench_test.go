package nodeauthz_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/node-authorizer/node-authorizer/access"
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

// BenchmarkMessage says why a node may not read a secret that pods of other nodes refer to.
func BenchmarkMessage(b *testing.B) {
	g := graph.New()
	const pods, replicas, nodes = 12_000, 12, 100
	for i := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("pod-%d-%d", i/replicas, i)}}
		pod.Spec.NodeName = fmt.Sprint("node-", i%nodes)
		secret := &corev1.SecretVolumeSource{SecretName: fmt.Sprint("secret-", i/replicas)}
		pod.Spec.Volumes = []corev1.Volume{{Name: "credentials", VolumeSource: corev1.VolumeSource{Secret: secret}}}
		g.SetPod(pod)
	}
	a := nodeauthz.New(g, kubeversion.For(kubeversion.Latest))
	req := access.Request{
		User: "system:node:node-100", Groups: []string{"system:nodes"},
		Verb: "get", Resource: "secrets", Namespace: "shop", ResourceRequest: true,
	}
	names := make([]string, pods/replicas)
	for i := range names {
		names[i] = fmt.Sprint("secret-", i*7919%len(names))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		req.Name = names[i%len(names)]
		if a.Message(&req, a.Decide(&req)) == "" {
			b.Fatal("no message")
		}
	}
}
