package source

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	stdjson "encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// benchPods is the number of pods of a benchmark.
const benchPods = 3000

// typicalPod is a pod as an API server returns it: most fields are not kept.
func typicalPod(i int) *corev1.Pod {
	app := fmt.Sprintf("app-%d", i%300)
	probe := &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080), Scheme: "HTTP"}},
		PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
	toleration := corev1.Toleration{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute"}
	projected := &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
		{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}}},
	}}
	condition := corev1.PodCondition{Type: "Ready", Status: "True"}
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("team-%d", i%100), Name: fmt.Sprintf("%s-6d4cf56db6-%05d", app, i),
			UID: types.UID(fmt.Sprintf("01234567-89ab-4cde-8f01-%012d", i)),
			Labels: map[string]string{
				"app.kubernetes.io/name": app, "app.kubernetes.io/version": "1.2.3", "pod-template-hash": "6d4cf56db6",
			},
			Annotations: map[string]string{
				"checksum/config": "9d2b0bd5b7ed9d3a2d8d5d8ff8f52b0bd5b7ed9d3a2d8d5d8ff8f5", "prometheus.io/scrape": "true",
			},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-6d4cf56db6", UID: "01234567-89ab-4cde-8f01-000000000000"},
			},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("worker-%d", i%(benchPods/30)), ServiceAccountName: app,
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
			Tolerations:      []corev1.Toleration{toleration, toleration},
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.example.com/team/" + app + ":1.2.3", ImagePullPolicy: "IfNotPresent",
				Env: []corev1.EnvVar{
					{Name: "MODE", Value: "production"},
					{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
						LocalObjectReference: corev1.LocalObjectReference{Name: app + "-db"}, Key: "password",
					}}},
				},
				EnvFrom: []corev1.EnvFromSource{
					{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: app}}},
				},
				LivenessProbe: probe, ReadinessProbe: probe,
				Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: "TCP"}},
				Resources: corev1.ResourceRequirements{
					Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("256Mi")},
				},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "tls", MountPath: "/etc/tls"},
					{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
				},
			}},
			Volumes: []corev1.Volume{
				{Name: "tls", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: app + "-tls"}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: fmt.Sprintf("kube-api-access-%05d", i), VolumeSource: corev1.VolumeSource{Projected: projected}},
			},
		},
		Status: corev1.PodStatus{
			Phase: "Running", HostIP: "10.0.0.1", PodIP: "10.1.0.1", QOSClass: "Burstable",
			Conditions: []corev1.PodCondition{condition, condition, condition},
			ContainerStatuses: []corev1.ContainerStatus{
				{
					Name: "app", Ready: true, Image: "registry.example.com/team/" + app,
					ContainerID: "containerd://9d2b0bd5b7ed9d3a2d8d5d8ff8f5",
				},
			},
		},
	}
}

// kubectlPods is the output of kubectl get pods -A -o json, or -o yaml.
func kubectlPods(b *testing.B, asYAML bool) []byte {
	var text bytes.Buffer
	if asYAML {
		text.WriteString("apiVersion: v1\nitems:\n")
	} else {
		text.WriteString("{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n")
	}
	for i := range benchPods {
		switch {
		case asYAML:
			text.WriteString("- " + strings.ReplaceAll(strings.TrimSpace(toYAML(typicalPod(i))), "\n", "\n  ") + "\n")
			continue
		case i > 0:
			text.WriteString(",\n        ")
		}
		item, err := stdjson.MarshalIndent(typicalPod(i), "        ", "    ")
		if err != nil {
			b.Fatal(err)
		}
		text.Write(item)
	}
	if asYAML {
		text.WriteString("kind: List\nmetadata:\n  resourceVersion: \"\"\n")
	} else {
		text.WriteString("\n    ],\n    \"kind\": \"List\"\n}\n")
	}
	return text.Bytes()
}

// BenchmarkLoad reads the pods of a cluster in each supported form.
func BenchmarkLoad(b *testing.B) {
	json := kubectlPods(b, false)
	state, err := LoadFiles(b.Context(), []string{"-"}, FileOptions{Stdin: bytes.NewReader(json), Retain: true})
	if err != nil {
		b.Fatal(err)
	}
	var snapshot bytes.Buffer
	if err := WriteSnapshot(&snapshot, state); err != nil {
		b.Fatal(err)
	}
	for _, form := range []struct {
		name string
		text []byte
	}{{"json", json}, {"yaml", kubectlPods(b, true)}, {"snapshot", snapshot.Bytes()}} {
		b.Run(form.name, func(b *testing.B) {
			b.SetBytes(int64(len(form.text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := LoadFiles(b.Context(), []string{"-"}, FileOptions{Stdin: bytes.NewReader(form.text)}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*benchPods/b.Elapsed().Seconds(), "pods/s")
			b.ReportMetric(float64(len(form.text))/benchPods, "B/pod")
		})
	}
}

// BenchmarkWriteSnapshot writes the pods of a cluster.
func BenchmarkWriteSnapshot(b *testing.B) {
	state, err := LoadFiles(b.Context(), []string{"-"}, FileOptions{Stdin: bytes.NewReader(kubectlPods(b, false)), Retain: true})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := WriteSnapshot(io.Discard, state); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*benchPods/b.Elapsed().Seconds(), "pods/s")
}
