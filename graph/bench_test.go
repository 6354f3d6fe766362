package graph_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/graph"
)

func benchmarkPod(i, nodes int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("namespace-%d", i%200), Name: fmt.Sprintf("pod-%d", i)}}
	pod.Spec.NodeName = fmt.Sprintf("node-%d", i%nodes)
	pod.Spec.ServiceAccountName = "default"
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: fmt.Sprintf("secret-%d", i)}}},
		{
			Name: "config",
			VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{
					LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprintf("config-%d", i)},
				},
			},
		},
		{
			Name: "claim",
			VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprintf("claim-%d", i)},
			},
		},
	}
	return pod
}

func BenchmarkHasPath(b *testing.B) {
	for _, pods := range []int{1_000, 100_000} {
		g := graph.New()
		type question struct{ node, namespace, secret string }
		questions := make([]question, pods)
		for i := range pods {
			pod := benchmarkPod(i, 500)
			g.SetPod(pod)
			questions[i] = question{pod.Spec.NodeName, pod.Namespace, fmt.Sprintf("secret-%d", i)}
		}
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				q := &questions[i*7919%pods]
				if !g.HasPath(q.node, graph.Secret, q.namespace, q.secret) {
					b.Fatal("no path")
				}
			}
		})
	}
}

func BenchmarkSetPod(b *testing.B) {
	const pods = 20_000
	objects := make([]*corev1.Pod, pods)
	for i := range objects {
		objects[i] = benchmarkPod(i, 500)
	}
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); {
			g := graph.New()
			for ; i < pods; i++ {
				g.SetPod(objects[i])
			}
			i = 0
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/pods, "ns/pod")
	})
	b.Run("unchanged", func(b *testing.B) {
		g := graph.New()
		g.SetPod(objects[0])
		b.ReportAllocs()
		for b.Loop() {
			g.SetPod(objects[0])
		}
	})
}
