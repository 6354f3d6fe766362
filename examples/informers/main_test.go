package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/kubernetes/fake"
)

func cluster(t *testing.T, minor string) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"}, Spec: corev1.PodSpec{NodeName: "worker-1"},
	})
	client.Discovery().(*fakediscovery.FakeDiscovery).FakedServerVersion = &version.Info{GitVersion: minor}
	return client
}

func TestAsk(t *testing.T) {
	for _, test := range []struct {
		name, node, pod string
		want            string
	}{
		{
			"the pod's node", "worker-1", "shop/api",
			"get: Allow: pod shop/api is on node worker-1\ndelete: Allow: all that is required of a node here holds\n",
		},
		{
			"another node", "worker-2", "shop/api",
			"get: NoOpinion: pod shop/api is on node worker-1, not on node worker-2\n" +
				"delete: Deny: pod shop/api is not on node worker-2\n",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := ask(t.Context(), &out, cluster(t, "v1.37.1"), test.node, test.pod); err != nil || out.String() != test.want {
				t.Errorf("got %v\n%s\nwant\n%s", err, &out, test.want)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, test := range []struct {
		name         string
		ctx          context.Context
		version, pod string
		want         string
	}{
		{"a name without a namespace", t.Context(), "v1.37.1", "api", `"api" is not NAMESPACE/POD`},
		{"a version that is not supported", t.Context(), "v1.29.0", "shop/api", "1.29"},
		{"an interrupt", ended, "v1.37.1", "shop/api", "ended before the cluster was read"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := ask(test.ctx, &bytes.Buffer{}, cluster(t, test.version), "worker-1", test.pod)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
