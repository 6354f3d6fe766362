package attackpaths_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// patched is a cluster's objects to which changes are made as JSON patches, and what Kubernetes'
// own controllers do then.
type patched struct {
	t       *testing.T
	objects map[verdict.Object]runtime.Object
	// templates are the workloads, each with the spec of its pods.
	templates map[verdict.Object][]byte
	replaced  map[verdict.Object]bool // workloads whose pods are made again
	deleted   map[verdict.Object]bool
}

func newPatched(t *testing.T, objects []runtime.Object) *patched {
	p := &patched{
		t: t, objects: map[verdict.Object]runtime.Object{}, templates: map[verdict.Object][]byte{},
		replaced: map[verdict.Object]bool{}, deleted: map[verdict.Object]bool{},
	}
	for _, o := range objects {
		p.objects[objectName(o)] = o
		if pod, ok := o.(*corev1.Pod); ok {
			if w := templateOwner(pod); w.Kind != "" {
				p.templates[w] = templateText(t, w.Kind, pod)
			}
		}
	}
	return p
}

func objectName(o runtime.Object) verdict.Object {
	meta := o.(metav1.Object)
	return verdict.Object{Kind: reflect.TypeOf(o).Elem().Name(), Namespace: meta.GetNamespace(), Name: meta.GetName()}
}

var cronJobs = regexp.MustCompile(`^(.*)-\d{8}$`)

// templateOwner is the object in which the template of a pod can be changed; empty if there is none.
func templateOwner(pod *corev1.Pod) verdict.Object {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return verdict.Object{}
	}
	w := verdict.Object{Kind: owner.Kind, Namespace: pod.Namespace, Name: owner.Name}
	if name, ok := strings.CutSuffix(owner.Name, "-"+pod.Labels["pod-template-hash"]); ok && owner.Kind == "ReplicaSet" {
		w.Kind, w.Name = "Deployment", name
	}
	if match := cronJobs.FindStringSubmatch(owner.Name); match != nil && owner.Kind == "Job" {
		w.Kind, w.Name = "CronJob", match[1]
	}
	return w
}

func generated(v string) bool { return strings.HasPrefix(v, "kube-api-access-") }

// templateText is a workload with the template that a pod was made from.
func templateText(t *testing.T, kind string, pod *corev1.Pod) []byte {
	t.Helper()
	spec := pod.Spec.DeepCopy()
	spec.NodeName, spec.EphemeralContainers = "", nil
	claimed := func(v corev1.Volume) bool {
		return kind == "StatefulSet" && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == v.Name+"-"+pod.Name
	}
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return generated(v.Name) || claimed(v) })
	for i := range spec.Containers {
		c := &spec.Containers[i]
		c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return generated(m.Name) })
	}
	template := map[string]any{"spec": map[string]any{"template": map[string]any{"spec": spec}}}
	if kind == "CronJob" {
		template = map[string]any{"spec": map[string]any{"jobTemplate": template}}
	}
	return text(t, template)
}

func text(t *testing.T, value any) []byte {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply makes changes, and reports whether they could be made.
func (p *patched) apply(changes []verdict.Change) error {
	for len(changes) > 0 {
		n := slices.IndexFunc(changes, func(c verdict.Change) bool { return c.Object != changes[0].Object || c.Path == "" })
		if n <= 0 {
			n = 1
			for changes[0].Path != "" && n < len(changes) && changes[n].Object == changes[0].Object && changes[n].Path != "" {
				n++
			}
		}
		if err := p.patch(changes[:n]); err != nil {
			return fmt.Errorf("%v: %w", changes[0].Object, err)
		}
		changes = changes[n:]
	}
	return nil
}

func (p *patched) patch(changes []verdict.Change) error {
	name := changes[0].Object
	if changes[0].Path == "" && changes[0].Op == verdict.Remove {
		p.deleted[name] = true
		delete(p.objects, name)
		return nil
	}
	patch, err := jsonpatch.DecodePatch(text(p.t, changes))
	if err != nil {
		return err
	}
	if template, ok := p.templates[name]; ok {
		p.replaced[name] = true
		p.templates[name], err = patch.Apply(template)
		return err
	}
	o := p.objects[name]
	switch {
	case o == nil && name.Kind == "Namespace":
		o = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name.Name}}
	case o == nil && name.Kind == "Node":
		o = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name.Name}}
	case o == nil:
		return fmt.Errorf("there is no such object")
	}
	if name.Kind == "Pod" {
		return fmt.Errorf("the spec of a pod cannot be changed")
	}
	after, err := patch.Apply(text(p.t, served(o)))
	if err != nil {
		return err
	}
	changed := reflect.New(reflect.TypeOf(o).Elem()).Interface().(runtime.Object)
	if err := json.Unmarshal(after, changed); err != nil {
		return err
	}
	p.objects[name] = changed
	return nil
}

// served adds what each object has that comes from an API server.
func served(o runtime.Object) runtime.Object {
	o = o.DeepCopyObject()
	meta := o.(metav1.Object)
	if _, isNamespace := o.(*corev1.Namespace); isNamespace {
		meta.SetLabels(with(meta.GetLabels(), "kubernetes.io/metadata.name", meta.GetName()))
	}
	if _, isNode := o.(*corev1.Node); isNode {
		meta.SetLabels(with(meta.GetLabels(), "kubernetes.io/hostname", meta.GetName()))
	}
	if isDefault(meta) {
		meta.SetAnnotations(with(meta.GetAnnotations(), "rbac.authorization.kubernetes.io/autoupdate", "true"))
	}
	return o
}

func with(all map[string]string, key, value string) map[string]string {
	all = maps.Clone(all)
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

func isDefault(meta metav1.Object) bool {
	return meta.GetLabels()["kubernetes.io/bootstrapping"] == "rbac-defaults" &&
		meta.GetAnnotations()["rbac.authorization.kubernetes.io/autoupdate"] != "false"
}

// result is the objects after the controllers have run, and the API server has started again.
func (p *patched) result(before []runtime.Object) []runtime.Object {
	var all []runtime.Object
	for _, o := range before {
		name := objectName(o)
		now := p.objects[name]
		pod, isPod := o.(*corev1.Pod)
		switch {
		case isPod:
			now = p.podAfter(pod)
		case now == nil && isDefault(o.(metav1.Object)), now != nil && isDefault(now.(metav1.Object)):
			now = o // restored
		}
		if now != nil && !reflect.ValueOf(now).IsNil() {
			all = append(all, now)
		}
		delete(p.objects, name)
	}
	for _, name := range slices.SortedFunc(maps.Keys(p.objects), verdict.Object.Compare) {
		all = append(all, p.objects[name])
	}
	return aggregate(all)
}

// podAfter is what a pod is after its controller has run.
func (p *patched) podAfter(pod *corev1.Pod) runtime.Object {
	w, name := templateOwner(pod), objectName(pod)
	owner := metav1.GetControllerOf(pod)
	again := p.deleted[name]
	switch w.Kind {
	case "":
		if again {
			return nil
		}
		return pod
	case "Deployment", "StatefulSet", "DaemonSet":
		again = again || p.replaced[w]
	case "Job", "CronJob":
		job := verdict.Object{Kind: "Job", Namespace: pod.Namespace, Name: owner.Name}
		if again = again || p.deleted[job]; again && w.Kind == "Job" {
			return nil
		}
	}
	if !again {
		return pod
	}
	return p.newPod(pod, w)
}

// newPod is a pod made from the template of its workload.
func (p *patched) newPod(old *corev1.Pod, w verdict.Object) runtime.Object {
	var workload struct {
		Spec struct {
			Template    corev1.PodTemplateSpec `json:"template"`
			JobTemplate struct {
				Spec struct {
					Template corev1.PodTemplateSpec `json:"template"`
				} `json:"spec"`
			} `json:"jobTemplate"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(p.templates[w], &workload); err != nil {
		p.t.Fatal(err)
	}
	pod := old.DeepCopy()
	pod.Spec = workload.Spec.Template.Spec
	if w.Kind == "CronJob" {
		pod.Spec = workload.Spec.JobTemplate.Spec.Template.Spec
	}
	pod.Spec.NodeName = old.Spec.NodeName
	for _, v := range old.Spec.Volumes {
		automounts := pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken
		if generated(v.Name) && automounts {
			pod.Spec.Volumes = append(pod.Spec.Volumes, v)
		}
	}
	return pod
}

// aggregate computes the rules of aggregated roles, as the controller does.
func aggregate(objects []runtime.Object) []runtime.Object {
	all := slices.Clone(objects)
	for i, o := range all {
		role, ok := o.(*rbacv1.ClusterRole)
		if !ok || role.AggregationRule == nil {
			continue
		}
		role = role.DeepCopy()
		role.Rules = nil
		for _, other := range objects {
			source, ok := other.(*rbacv1.ClusterRole)
			if !ok || source.AggregationRule != nil {
				continue
			}
			for _, s := range role.AggregationRule.ClusterRoleSelectors {
				if selector, err := metav1.LabelSelectorAsSelector(&s); err == nil && selector.Matches(labels.Set(source.Labels)) {
					role.Rules = append(role.Rules, source.Rules...)
				}
			}
		}
		all[i] = role
	}
	return all
}
