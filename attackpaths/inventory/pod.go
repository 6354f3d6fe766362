package inventory

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Pod is what a pod gives to whoever controls its processes.
type Pod struct {
	Name
	// Node that the pod is bound to; empty while it is not scheduled.
	Node string
	// Planned is true for a pod that no scheduler has bound yet and that was not read from a cluster.
	Planned bool
	// Ended is true for a pod whose containers have ended for good: no processes are in it, and none start.
	Ended bool
	// Pending is true for a pod of the phase Pending: its containers may not have started. Running is true for one of the phase
	// Running: its init containers have ended. Both are false if no phase is known.
	Pending, Running bool
	// Placement says to which nodes the scheduler may bind the pod.
	Placement Placement
	*Template
}

// Template is what pods of a namespace that are made from one template have in common. They
// share it. It must not be changed.
type Template struct {
	ServiceAccount string
	// Mirror is true for the image in the API of a pod that a node runs by itself.
	Mirror bool
	// Audiences are the audiences of the tokens that are mounted into the containers, sorted and
	// each once. The empty audience is the API server's own.
	Audiences []string
	// Secrets are the secrets of the pod's namespace whose content the containers see,
	// sorted, each once. PullSecrets are used by the kubelet for the pod.
	Secrets, PullSecrets []string
	// VolumeSecrets are the secrets of Secrets that lie in volumes, and so on the disk of the node.
	VolumeSecrets []string
	// Escapes are the ways from the containers to the node, the certain ones first. See also [Pod.WaysOut].
	Escapes []Escape
	// HostPath is true for pods with a folder of the host, whatever it gives: levels of Pod Security refuse each.
	HostPath bool
	// HostPathsNotFollowed are the mounted folders of the host of which it is not known what they give.
	HostPathsNotFollowed []string
	// RuntimeClass is the name of the pod's runtime class; empty for none.
	RuntimeClass string
	// Workload is the controller that replaces the pod; zero if there is none.
	Workload Workload
	// ControlPlane is the component of the control plane that the pod runs:
	// kube-apiserver, etcd, kube-controller-manager, kube-scheduler. Empty for others.
	ControlPlane string
	// ControlPlaneDependsOn is what else decides whether the node has the control plane's credentials because of the pod.
	ControlPlaneDependsOn string
	// Ephemeral is true for pods to which containers were added.
	Ephemeral bool
	// Fields are where the spec gives Audiences, Secrets, PullSecrets and Escapes, and how to take
	// these away. They can be changed one after the other.
	Fields []Field
	// Requests are the resources that the pod requests.
	Requests Resources
	// Controller is the owner of a pod that is not made by a workload of Kubernetes, as "KIND NAME";
	// empty if there is none.
	Controller string

	// mounts are the mounts of claims.
	mounts []mount
}

// Workload is an object with a pod template.
type Workload struct {
	// Group is the API group, and Resource the plural name of the resource.
	Group, Resource string
	Name            string
}

// String returns "deployments.apps web".
func (w Workload) String() string {
	return schema.GroupResource{Group: w.Group, Resource: w.Resource}.String() + " " + w.Name
}

// newPod reads a pod.
func newPod(pod *corev1.Pod) *Pod {
	return &Pod{
		Name: Name{intern(pod.Namespace), pod.Name}, Node: intern(pod.Spec.NodeName),
		Ended: Ended(pod), Pending: pod.Status.Phase == corev1.PodPending, Running: pod.Status.Phase == corev1.PodRunning,
		Placement: placementOf(&pod.Spec, nil), Template: newTemplate(pod),
	}
}

// Ended reports whether the containers of a pod have ended for good.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func newTemplate(pod *corev1.Pod) *Template {
	t := &Template{
		ServiceAccount: intern(cmp.Or(pod.Spec.ServiceAccountName, pod.Spec.DeprecatedServiceAccount)),
		Workload:       workloadOf(&pod.ObjectMeta),
		Ephemeral:      len(pod.Spec.EphemeralContainers) > 0, Requests: ResourcesOf(RequestsOf(&pod.Spec)),
	}
	_, t.Mirror = pod.Annotations[corev1.MirrorPodAnnotationKey]
	t.read(pod)
	if owner := metav1.GetControllerOfNoCopy(&pod.ObjectMeta); owner != nil && t.Workload == (Workload{}) {
		t.Controller = intern(owner.Kind + " " + owner.Name)
	}
	if t.ControlPlane = ComponentOf(pod); t.ControlPlane != "" {
		t.ControlPlaneDependsOn = ""
		// Control planes of other clusters run as pods of this one, and add-ons have an etcd of their own in kube-system.
		isOwn := pod.Namespace == metav1.NamespaceSystem && t.ControlPlane != "etcd"
		if !t.Mirror && !isOwn && !pod.Spec.HostNetwork {
			t.ControlPlaneDependsOn = dependsOnCluster
		}
	}
	if class := pod.Spec.RuntimeClassName; class != nil {
		t.RuntimeClass = intern(*class)
	}
	return t
}

// controllers make pods from a template of their own.
var controllers = []schema.GroupKind{
	{Group: appsv1.GroupName, Kind: "ReplicaSet"},
	{Group: appsv1.GroupName, Kind: "DaemonSet"},
	{Group: appsv1.GroupName, Kind: "StatefulSet"},
	{Group: batchv1.GroupName, Kind: "Job"},
	{Kind: "ReplicationController"},
}

// workloadOf finds the object whose template the pod is made from. A ReplicaSet of which the
// name ends with the pod's template hash belongs to a Deployment of the name before it.
func workloadOf(meta *metav1.ObjectMeta) Workload {
	owner := value(metav1.GetControllerOfNoCopy(meta))
	of := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind)
	hash := meta.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	deployment, hasHash := strings.CutSuffix(owner.Name, "-"+hash)
	switch {
	case !slices.Contains(controllers, of.GroupKind()):
		return Workload{}
	case of.Kind == "ReplicaSet" && hasHash && hash != "":
		return Workload{of.Group, "deployments", intern(deployment)}
	}
	return Workload{of.Group, intern(strings.ToLower(of.Kind) + "s"), intern(owner.Name)}
}

// MayRunControlPlane reports whether the node has the control plane's credentials because of the pod, at least possibly.
func (t *Template) MayRunControlPlane() bool {
	return t.ControlPlane != "" || t.ControlPlaneDependsOn != ""
}
