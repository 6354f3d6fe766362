package attackpaths

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// workload is a kind of object from which controllers make pods.
type workload struct {
	// patch is create for jobs, whose templates cannot be changed.
	create, patch right
	kind          string
	// template is where the template's spec is.
	template []string
	restart  corev1.RestartPolicy
	// between is the kind that a controller makes of it before the pods.
	between right
}

// workloads is a table and never changes.
var workloads = []workload{
	{createDeployments, patchDeployments, "Deployment", podTemplate, corev1.RestartPolicyAlways, createReplicaSets},
	{createDaemonSets, patchDaemonSets, "DaemonSet", podTemplate, corev1.RestartPolicyAlways, createPods},
	{createStatefulSets, patchStatefulSets, "StatefulSet", podTemplate, corev1.RestartPolicyAlways, createPods},
	{createReplicaSets, patchReplicaSets, "ReplicaSet", podTemplate, corev1.RestartPolicyAlways, createPods},
	{
		createReplicationControllers, patchReplicationControllers, "ReplicationController", podTemplate,
		corev1.RestartPolicyAlways, createPods,
	},
	{createJobs, createJobs, "Job", podTemplate, corev1.RestartPolicyNever, createPods},
	{createCronJobs, patchCronJobs, "CronJob", jobTemplate, corev1.RestartPolicyNever, createJobs},
}

var (
	podTemplate = []string{"spec", "template", "spec"}
	jobTemplate = []string{"spec", "jobTemplate", "spec", "template", "spec"}
)

// workloadOf finds the kind of workload that a right to create or change one is about.
func workloadOf(r right) (w *workload, patches, ok bool) {
	for i := range workloads {
		w := &workloads[i]
		if w.create == r || w.patch == r {
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
		spec := c.spec(w.restart)
		if use.namesNode() && w.kind != "DaemonSet" {
			spec.NodeName = "node"
		}
		return w.object(namespace, &spec)
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

// object is a workload with a template, and with nothing else that is known.
func (w *workload) object(namespace string, template *corev1.PodSpec) runtime.Object {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetNamespace(namespace)
	o.SetName(candidateName)
	o.SetLabels(map[string]string{"app": candidateName})
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	if err == nil {
		err = unstructured.SetNestedMap(o.Object, spec, w.template...)
	}
	if err != nil {
		panic("the template of a pod does not convert: " + err.Error())
	}
	return o
}
