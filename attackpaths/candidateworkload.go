package attackpaths

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// workload is a kind of object from which controllers make pods.
type workload struct {
	create, patch right
	// patchable is false for jobs, whose templates cannot be changed.
	patchable bool
	kind      string
	// template is where the template's spec is.
	template []string
	restart  corev1.RestartPolicy
	// between is the kind that a controller makes of it before the pods.
	between right
	object  func(metav1.ObjectMeta, corev1.PodTemplateSpec) runtime.Object
}

// workloads is a table and never changes.
var workloads = []workload{
	{createDeployments, patchDeployments, true, "Deployment", podTemplate, corev1.RestartPolicyAlways, createReplicaSets, newDeployment},
	{createDaemonSets, patchDaemonSets, true, "DaemonSet", podTemplate, corev1.RestartPolicyAlways, createPods, newDaemonSet},
	{createStatefulSets, patchStatefulSets, true, "StatefulSet", podTemplate, corev1.RestartPolicyAlways, createPods, newStatefulSet},
	{createReplicaSets, patchReplicaSets, true, "ReplicaSet", podTemplate, corev1.RestartPolicyAlways, createPods, newReplicaSet},
	{
		createReplicationControllers, patchReplicationControllers, true, "ReplicationController", podTemplate,
		corev1.RestartPolicyAlways, createPods, newReplicationController,
	},
	{createJobs, createJobs, false, "Job", podTemplate, corev1.RestartPolicyNever, createPods, newJob},
	{createCronJobs, patchCronJobs, true, "CronJob", jobTemplate, corev1.RestartPolicyNever, createJobs, newCronJob},
}

var (
	podTemplate = []string{"spec", "template", "spec"}
	jobTemplate = []string{"spec", "jobTemplate", "spec", "template", "spec"}
	appLabels   = map[string]string{"app": candidateName}
	appSelector = &metav1.LabelSelector{MatchLabels: appLabels}
)

// workloadOf finds the kind of workload that a right to create or change one is about.
func workloadOf(r right) (w *workload, patches, ok bool) {
	for i := range workloads {
		w := &workloads[i]
		if w.create == r || w.patchable && w.patch == r {
			return w, w.create != r, true
		}
	}
	return nil, false, false
}

// attemptsOfPods are the ways to have a pod for a use through a right. Name is the
// account or secret.
func (b *builder) attemptsOfPods(r right, namespace string, use podUse, name string) []attempt {
	var all []attempt
	for _, c := range podsFor(use, name) {
		w, patches, ok := workloadOf(r)
		if !ok {
			all = append(all, attempt{[]*Request{b.podRequest(namespace, &c, use)}, c.dependsOn})
			continue
		}
		requests := []*Request{b.workloadRequest(namespace, w, &c, use, patches)}
		if w.between != createPods {
			between, _, _ := workloadOf(w.between)
			made := b.workloadRequest(namespace, between, &c, use, false).shaped("of " + w.kind)
			made.AnyName = true
			made.Known = append(fields("metadata.namespace"), Field(between.template))
			requests = append(requests, made)
		}
		all = append(all, attempt{append(requests, b.controlledPod(namespace, &c, w)), c.dependsOn})
	}
	return all
}

// workloadRequest creates or changes a workload with the candidate as its template.
func (b *builder) workloadRequest(namespace string, w *workload, c *podCandidate, use podUse, patches bool) *Request {
	object := func() runtime.Object {
		m := metav1.ObjectMeta{Namespace: namespace, Name: candidateName, Labels: appLabels}
		template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: appLabels}, Spec: c.spec(w.restart)}
		if use.namesNode() && w.kind != "DaemonSet" {
			template.Spec.NodeName = "node"
		}
		return w.object(m, template)
	}
	r := w.create
	if patches {
		r = w.patch
	}
	request := b.request(r, namespace, w.kind).shaped(c.shape)
	if patches {
		request.changes("", fields("metadata.namespace"), object, object)
		request.Known = append(fields("metadata.namespace"), Field(w.template))
	} else {
		request.creates(object)
		request.Known = append(fields("metadata.name", "metadata.namespace", "metadata.labels"), Field(w.template))
	}
	request.Detail, request.DetailIn = c.detail, below(c.detailIn, w.template...)
	if use.namesNode() {
		request.Unknown = append(below(fields("tolerations"), w.template...), serverFields...)
		if w.kind != "DaemonSet" {
			request.Filled = below(fields("nodeName"), w.template...)
		}
	}
	return request
}

func newDeployment(m metav1.ObjectMeta, t corev1.PodTemplateSpec) runtime.Object {
	return &appsv1.Deployment{ObjectMeta: m, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: appSelector, Template: t}}
}

func newDaemonSet(m metav1.ObjectMeta, t corev1.PodTemplateSpec) runtime.Object {
	return &appsv1.DaemonSet{ObjectMeta: m, Spec: appsv1.DaemonSetSpec{Selector: appSelector, Template: t}}
}

func newStatefulSet(m metav1.ObjectMeta, t corev1.PodTemplateSpec) runtime.Object {
	return &appsv1.StatefulSet{ObjectMeta: m, Spec: appsv1.StatefulSetSpec{
		Replicas: new(int32(1)), Selector: appSelector, Template: t, ServiceName: candidateName,
	}}
}

func newReplicaSet(m metav1.ObjectMeta, t corev1.PodTemplateSpec) runtime.Object {
	return &appsv1.ReplicaSet{ObjectMeta: m, Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(1)), Selector: appSelector, Template: t}}
}

func newReplicationController(m metav1.ObjectMeta, t corev1.PodTemplateSpec) runtime.Object {
	return &corev1.ReplicationController{ObjectMeta: m, Spec: corev1.ReplicationControllerSpec{
		Replicas: new(int32(1)), Selector: appLabels, Template: &t,
	}}
}

func newJob(m metav1.ObjectMeta, t corev1.PodTemplateSpec) runtime.Object {
	return &batchv1.Job{ObjectMeta: m, Spec: batchv1.JobSpec{Template: t}}
}

func newCronJob(m metav1.ObjectMeta, t corev1.PodTemplateSpec) runtime.Object {
	return &batchv1.CronJob{ObjectMeta: m, Spec: batchv1.CronJobSpec{
		Schedule: "* * * * *", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: t}},
	}}
}
