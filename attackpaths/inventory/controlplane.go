package inventory

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ComponentLabel is the label by which static pods of kubeadm name their component.
const ComponentLabel = "component"

// ControlPlaneLabels are labels whose value may be a component of the control plane. Sources: kubeadm, kOps, OpenShift, and
// the labels that Kubernetes recommends.
var ControlPlaneLabels = []string{ComponentLabel, "k8s-app", "app.kubernetes.io/component", "app.kubernetes.io/name"}

// components are the components of the control plane.
var components = []string{"kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler"}

// platforms are what names of images may end with: nothing, or an architecture.
var platforms = []string{"", "-386", "-amd64", "-arm", "-arm64", "-ppc64le", "-riscv64", "-s390x"}

// What decides whether a node belongs to the control plane.
const (
	dependsOnCluster = "whether the component is one of this cluster"
	dependsOnKeys    = "whether the keys of the control plane lie in the folder that the pod mounts"
)

// keyFolders are where the keys and the data of control planes lie.
var keyFolders = []string{
	"/etc/kubernetes/pki", "/etc/kubernetes/ssl", "/etc/kubernetes/static-pod-resources", "/srv/kubernetes", "/var/lib/etcd",
	"/var/lib/rancher/*/server", "/var/lib/k0s/pki",
}

// ComponentOf returns the component of the control plane that a pod runs, by a label, by the name of a static pod, or by the
// command or image of a container; empty for others.
func ComponentOf(pod *corev1.Pod) string {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	static, isStatic := strings.CutSuffix(pod.Name, "-"+strings.ToLower(pod.Spec.NodeName)) // the kubelet appends it
	for _, component := range components {
		if mirror && isStatic && names(static, component) {
			return component
		}
		for _, label := range ControlPlaneLabels {
			if names(pod.Labels[label], component) && (mirror || pod.Namespace == metav1.NamespaceSystem || label == ComponentLabel) {
				return component
			}
		}
		for i := range pod.Spec.Containers {
			if c := &pod.Spec.Containers[i]; runs(c, component) || mirror && c.Name == component {
				return component
			}
		}
	}
	return ""
}

// names reports whether the value of a label, or the name of a static pod, is a component. kOps runs etcd by etcd-manager.
func names(value, component string) bool {
	return value == component || component == "etcd" && (value == "etcd-manager-main" || value == "etcd-manager-events")
}

// runs reports whether a container runs a component, by its command or image. The images of etcd have its clients too.
func runs(c *corev1.Container, component string) bool {
	started := programs(slices.Concat(c.Command, c.Args))
	if slices.Contains(started, component) {
		return true
	}
	image, _, _ := strings.Cut(path.Base(c.Image), "@")
	name, _, _ := strings.Cut(image, ":")
	platform, isNamed := strings.CutPrefix(name, component)
	isClient := slices.Contains(started, "etcdctl") || slices.Contains(started, "etcdutl")
	return isNamed && slices.Contains(platforms, platform) && !isClient
}

// hasKeys reports whether a folder of a node is for the keys or the data of a control plane.
func hasKeys(folder string) bool {
	folder = hostFolder(folder)
	return !strings.HasSuffix(folder, ".crt") && slices.ContainsFunc(keyFolders, func(k string) bool { return beneath(folder, k) })
}
