package inventory

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"unique"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Name is the name of an object, with its namespace if it has one.
type Name struct{ Namespace, Name string }

// compare orders names by namespace, then name.
func (n Name) compare(o Name) int {
	return cmp.Or(cmp.Compare(n.Namespace, o.Namespace), cmp.Compare(n.Name, o.Name))
}

// String returns "namespace/name", or the name alone.
func (n Name) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}

// Node is a Node object.
type Node struct {
	Name   string
	Labels map[string]string
	Taints []corev1.Taint
	// Allocatable is what pods on the node may use together; nil if it is not known.
	Allocatable corev1.ResourceList
	// KubeletVersion is the version of the node's kubelet, as "v1.37.1".
	KubeletVersion string
}

// Namespace is a Namespace object.
type Namespace struct {
	Name   string
	Labels map[string]string
	// Terminating is true for a namespace that is being deleted: the API server creates nothing in it.
	Terminating bool
}

// Secret is a secret without its data.
type Secret struct {
	Name
	Type corev1.SecretType
	// ServiceAccount is the account that a secret of type service-account-token is of.
	ServiceAccount string
}

// Inventory is the objects of one cluster. It is not safe for concurrent changes.
type Inventory struct {
	// records are what is kept of objects, by kind and name: *Pod, and the results of recordOf.
	records   map[string]map[Name]any
	templates map[templateKey][]*Template // the first ones of each key, at most maxAlike
	mappings  bool                        // the ConfigMap aws-auth exists
}

// New returns an inventory without objects.
func New() *Inventory {
	return &Inventory{records: map[string]map[Name]any{}, templates: map[templateKey][]*Template{}}
}

// put adds a record, or replaces the one of the same name.
func (i *Inventory) put(kind string, name Name, record any) {
	if i.records[kind] == nil {
		i.records[kind] = map[Name]any{}
	}
	i.records[kind][name] = record
}

// nameOf shares the memory of namespaces.
func nameOf(o metav1.Object) Name { return Name{intern(o.GetNamespace()), o.GetName()} }

// record finds the record of an object.
func record[T any](i *Inventory, kind string, name Name) (T, bool) {
	r, ok := i.records[kind][name].(T)
	return r, ok
}

// list lists the records of a kind by namespace and name.
func list[T any](i *Inventory, kind string) []T {
	var all []T
	for _, name := range i.Names(kind) {
		all = append(all, i.records[kind][name].(T))
	}
	return all
}

// Names lists the objects of a Kubernetes kind, sorted.
func (i *Inventory) Names(kind string) []Name {
	return slices.SortedFunc(maps.Keys(i.records[kind]), Name.compare)
}

// Has reports whether there is an object of a Kubernetes kind.
func (i *Inventory) Has(kind, namespace, name string) bool {
	_, ok := i.records[kind][Name{namespace, name}]
	return ok
}

// Delete removes an object by its Kubernetes kind.
func (i *Inventory) Delete(kind, namespace, name string) {
	delete(i.records[kind], Name{namespace, name})
}

// templateKey is what tells most templates apart.
type templateKey struct {
	namespace, account, controller string
	workload                       Workload
}

// maxAlike is how many templates with one key are compared with a pod's: the pods of a workload have few.
const maxAlike = 16

// setPod adds a pod, or replaces the one of the same name, and gives it the template that equal pods have.
func (i *Inventory) setPod(p *Pod) {
	i.put("Pod", p.Name, p)
	k := templateKey{p.Namespace, p.ServiceAccount, p.Controller, p.Workload}
	same := slices.IndexFunc(i.templates[k], func(t *Template) bool { return reflect.DeepEqual(t, p.Template) })
	switch {
	case same >= 0:
		p.Template = i.templates[k][same]
	case len(i.templates[k]) < maxAlike:
		i.templates[k] = append(i.templates[k], p.Template)
	}
}

// Terminating reports whether a namespace is being deleted.
func Terminating(namespace *corev1.Namespace) bool {
	return !namespace.DeletionTimestamp.IsZero() || namespace.Status.Phase == corev1.NamespaceTerminating
}

// Pods lists the pods by namespace and name.
func (i *Inventory) Pods() []*Pod { return list[*Pod](i, "Pod") }

// PodsWhere lists the pods for which a condition is true, in any order.
func (i *Inventory) PodsWhere(is func(*Pod) bool) []*Pod {
	var all []*Pod
	for _, r := range i.records["Pod"] {
		if p := r.(*Pod); is(p) {
			all = append(all, p)
		}
	}
	return all
}

// Node returns a node by its name.
func (i *Inventory) Node(name string) (Node, bool) { return record[Node](i, "Node", Name{"", name}) }

// Nodes lists the nodes by name.
func (i *Inventory) Nodes() []Node { return list[Node](i, "Node") }

// Namespaces lists the namespaces by name.
func (i *Inventory) Namespaces() []Namespace { return list[Namespace](i, "Namespace") }

// ServiceAccounts lists the names of the service accounts, sorted.
func (i *Inventory) ServiceAccounts() []Name { return i.Names("ServiceAccount") }

// Mounts reports whether pods that use an account get its token unless they say otherwise. It is true
// for an account that is not known.
func (i *Inventory) Mounts(name Name) bool {
	mounts, known := record[bool](i, "ServiceAccount", name)
	return mounts || !known
}

// Secrets lists the secrets by namespace and name.
func (i *Inventory) Secrets() []Secret { return list[Secret](i, "Secret") }

// intern makes equal strings share their memory: pods repeat the names of namespaces,
// nodes, accounts and secrets.
func intern(s string) string { return unique.Make(s).Value() }

// Set adds an object of a kind that is recorded, or replaces the one of the same name. Other
// kinds are ignored. The data of a secret is not read.
func (i *Inventory) Set(object any) {
	if pod, ok := object.(*corev1.Pod); ok {
		i.setPod(newPod(pod))
	} else if record := recordOf(object); record != nil {
		i.put(reflect.TypeOf(object).Elem().Name(), nameOf(object.(metav1.Object)), record)
	}
}

// recordOf is what is kept of an object that is not a pod; nil for kinds that are not recorded.
func recordOf(object any) any {
	switch o := object.(type) {
	case *corev1.Node:
		return Node{
			Name: o.Name, Labels: o.Labels, Taints: o.Spec.Taints, Allocatable: o.Status.Allocatable,
			KubeletVersion: o.Status.NodeInfo.KubeletVersion,
		}
	case *corev1.Namespace:
		return Namespace{Name: o.Name, Labels: o.Labels, Terminating: Terminating(o)}
	case *corev1.ServiceAccount:
		return value(cmp.Or(o.AutomountServiceAccountToken, new(true)))
	case *corev1.Secret:
		s := Secret{Name: nameOf(o), Type: corev1.SecretType(intern(string(o.Type)))}
		if o.Type == corev1.SecretTypeServiceAccountToken {
			s.ServiceAccount = o.Annotations[corev1.ServiceAccountNameKey]
		}
		return s
	case *corev1.PersistentVolume:
		return newVolume(o)
	case *corev1.PersistentVolumeClaim:
		return claim{o.Spec.VolumeName, o.Spec.StorageClassName}
	case *nodev1.RuntimeClass:
		return o.Handler
	case *corev1.ResourceQuota:
		return fullResources(o)
	case *admissionv1.ValidatingWebhookConfiguration:
		all := []Admission{}
		for _, w := range o.Webhooks {
			all = append(all, newWebhook("ValidatingWebhookConfiguration", o.Name, w.Name, w.Rules, w.NamespaceSelector))
		}
		return all
	case *admissionv1.MutatingWebhookConfiguration:
		all := []Admission{}
		for _, w := range o.Webhooks {
			all = append(all, newWebhook("MutatingWebhookConfiguration", o.Name, w.Name, w.Rules, w.NamespaceSelector))
		}
		return all
	case *admissionv1.ValidatingAdmissionPolicy:
		return &o.Spec
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return &o.Spec
	}
	return nil
}
