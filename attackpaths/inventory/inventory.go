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
	pods       map[Name]*Pod
	templates  map[templateKey][]*Template // the first ones of each key, at most maxAlike
	nodes      map[string]Node
	namespaces map[string]Namespace
	accounts   map[Name]bool // true for those whose token is not mounted
	secrets    map[Name]Secret
	webhooks   map[configuration][]Admission
	// policies are ValidatingAdmissionPolicies and policyBindings their bindings, by name.
	policies       map[string]*admissionv1.ValidatingAdmissionPolicySpec
	policyBindings map[string]*admissionv1.ValidatingAdmissionPolicyBindingSpec
	volumes        map[string]Volume
	otherVolumes   map[string]bool // that are no folder of a node
	claims         map[Name]claim
	handlers       map[string]string // of runtime classes
	mappings       bool              // the ConfigMap aws-auth exists
	quotas         map[Name]Quota
}

// New returns an inventory without objects.
func New() *Inventory {
	return &Inventory{
		pods: map[Name]*Pod{}, templates: map[templateKey][]*Template{}, nodes: map[string]Node{}, namespaces: map[string]Namespace{},
		accounts: map[Name]bool{}, secrets: map[Name]Secret{}, webhooks: map[configuration][]Admission{},
		policies:       map[string]*admissionv1.ValidatingAdmissionPolicySpec{},
		policyBindings: map[string]*admissionv1.ValidatingAdmissionPolicyBindingSpec{},
		volumes:        map[string]Volume{}, otherVolumes: map[string]bool{}, claims: map[Name]claim{},
		handlers: map[string]string{}, quotas: map[Name]Quota{},
	}
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
	i.pods[p.Name] = p
	k := templateKey{p.Namespace, p.ServiceAccount, p.Controller, p.Workload}
	for _, t := range i.templates[k] {
		if reflect.DeepEqual(t, p.Template) {
			p.Template = t
			return
		}
	}
	if len(i.templates[k]) < maxAlike {
		i.templates[k] = append(i.templates[k], p.Template)
	}
}

// Terminating reports whether a namespace is being deleted.
func Terminating(namespace *corev1.Namespace) bool {
	return !namespace.DeletionTimestamp.IsZero() || namespace.Status.Phase == corev1.NamespaceTerminating
}

// Pods lists the pods by namespace and name.
func (i *Inventory) Pods() []*Pod {
	return slices.SortedFunc(maps.Values(i.pods), func(a, b *Pod) int { return a.Name.compare(b.Name) })
}

// PodsWhere lists the pods for which a condition is true, in any order.
func (i *Inventory) PodsWhere(is func(*Pod) bool) []*Pod {
	var all []*Pod
	for _, p := range i.pods {
		if is(p) {
			all = append(all, p)
		}
	}
	return all
}

// HasPod reports whether there is a pod.
func (i *Inventory) HasPod(namespace, name string) bool { return i.pods[Name{namespace, name}] != nil }

// Node returns a node by its name.
func (i *Inventory) Node(name string) (Node, bool) {
	n, ok := i.nodes[name]
	return n, ok
}

// Nodes lists the nodes by name.
func (i *Inventory) Nodes() []Node {
	return slices.SortedFunc(maps.Values(i.nodes), func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
}

// Namespaces lists the namespaces by name.
func (i *Inventory) Namespaces() []Namespace {
	return slices.SortedFunc(maps.Values(i.namespaces), func(a, b Namespace) int { return cmp.Compare(a.Name, b.Name) })
}

// ServiceAccounts lists the names of the service accounts, sorted.
func (i *Inventory) ServiceAccounts() []Name {
	return slices.SortedFunc(maps.Keys(i.accounts), Name.compare)
}

// Secrets lists the secrets by namespace and name.
func (i *Inventory) Secrets() []Secret {
	return slices.SortedFunc(maps.Values(i.secrets), func(a, b Secret) int { return a.Name.compare(b.Name) })
}

// intern makes equal strings share their memory: pods repeat the names of namespaces,
// nodes, accounts and secrets.
func intern(s string) string { return unique.Make(s).Value() }

// Set adds an object of a kind that is recorded, or replaces the one of the same name. Other
// kinds are ignored. The data of a secret is not read.
func (i *Inventory) Set(object any) {
	switch o := object.(type) {
	case *corev1.Pod:
		i.setPod(newPod(o))
	case *corev1.Node:
		i.nodes[o.Name] = Node{
			Name: o.Name, Labels: o.Labels, Taints: o.Spec.Taints, Allocatable: o.Status.Allocatable,
			KubeletVersion: o.Status.NodeInfo.KubeletVersion,
		}
	case *corev1.Namespace:
		i.namespaces[o.Name] = Namespace{Name: o.Name, Labels: o.Labels, Terminating: Terminating(o)}
	case *corev1.ServiceAccount:
		mounts := o.AutomountServiceAccountToken
		i.accounts[Name{intern(o.Namespace), o.Name}] = mounts != nil && !*mounts
	case *corev1.Secret:
		s := Secret{Name: Name{intern(o.Namespace), o.Name}, Type: corev1.SecretType(intern(string(o.Type)))}
		if o.Type == corev1.SecretTypeServiceAccountToken {
			s.ServiceAccount = o.Annotations[corev1.ServiceAccountNameKey]
		}
		i.secrets[s.Name] = s
	case *corev1.PersistentVolume:
		i.setVolume(o)
	case *corev1.PersistentVolumeClaim:
		i.claims[Name{intern(o.Namespace), o.Name}] = claim{o.Spec.VolumeName, o.Spec.StorageClassName}
	case *nodev1.RuntimeClass:
		i.handlers[o.Name] = o.Handler
	case *corev1.ResourceQuota:
		i.setQuota(o)
	case *admissionv1.ValidatingWebhookConfiguration:
		c := configuration{"ValidatingWebhookConfiguration", o.Name}
		i.webhooks[c] = nil
		for _, w := range o.Webhooks {
			i.webhooks[c] = append(i.webhooks[c], c.webhook(w.Name, w.Rules, w.NamespaceSelector))
		}
	case *admissionv1.MutatingWebhookConfiguration:
		c := configuration{"MutatingWebhookConfiguration", o.Name}
		i.webhooks[c] = nil
		for _, w := range o.Webhooks {
			i.webhooks[c] = append(i.webhooks[c], c.webhook(w.Name, w.Rules, w.NamespaceSelector))
		}
	case *admissionv1.ValidatingAdmissionPolicy:
		i.policies[o.Name] = &o.Spec
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		i.policyBindings[o.Name] = &o.Spec
	}
}

// Delete removes an object by its Kubernetes kind.
func (i *Inventory) Delete(kind, namespace, name string) {
	key := Name{namespace, name}
	switch kind {
	case "Pod":
		delete(i.pods, key)
	case "Node":
		delete(i.nodes, name)
	case "Namespace":
		delete(i.namespaces, name)
	case "ServiceAccount":
		delete(i.accounts, key)
	case "Secret":
		delete(i.secrets, key)
	case "PersistentVolume":
		delete(i.volumes, name)
		delete(i.otherVolumes, name)
	case "PersistentVolumeClaim":
		delete(i.claims, key)
	case "RuntimeClass":
		delete(i.handlers, name)
	case "ResourceQuota":
		delete(i.quotas, key)
	case "ValidatingAdmissionPolicy":
		delete(i.policies, name)
	case "ValidatingAdmissionPolicyBinding":
		delete(i.policyBindings, name)
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		delete(i.webhooks, configuration{kind, name})
	}
}
