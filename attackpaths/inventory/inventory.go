package inventory

import (
	"cmp"
	"maps"
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
	if n.Namespace != o.Namespace {
		return cmp.Compare(n.Namespace, o.Namespace)
	}
	return cmp.Compare(n.Name, o.Name)
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
	templates  map[string]*Template // by their ids
	id         []byte               // that is being made
	nodes      map[string]Node
	namespaces map[string]Namespace
	accounts   map[Name]bool // true for those whose token is not mounted
	secrets    map[Name]Secret
	admission  map[Name]Admission
	policies   map[string]*policy
	// configurations are the configurations of webhooks, by kind.
	configurations map[string]map[string]bool
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
		pods: map[Name]*Pod{}, templates: map[string]*Template{}, nodes: map[string]Node{}, namespaces: map[string]Namespace{},
		accounts: map[Name]bool{}, secrets: map[Name]Secret{}, admission: map[Name]Admission{},
		policies: map[string]*policy{}, configurations: map[string]map[string]bool{}, volumes: map[string]Volume{},
		otherVolumes: map[string]bool{}, claims: map[Name]claim{},
		handlers: map[string]string{}, quotas: map[Name]Quota{},
	}
}

// SetPod adds a pod, or replaces the one of the same name.
func (i *Inventory) SetPod(pod *corev1.Pod) {
	p := newPod(pod)
	i.share(p)
	i.deletePod(p.Name)
	i.pods[p.Name] = p
}

// share gives a pod the template that equal pods have.
func (i *Inventory) share(p *Pod) {
	i.id = p.appendID(i.id[:0], p.Namespace)
	known, ok := i.templates[string(i.id)]
	if !ok {
		known = p.Template
		known.id = string(i.id)
		i.templates[known.id] = known
	}
	p.Template = known
	known.pods++
}

// deletePod deletes a pod, and its template with the last one that has it.
func (i *Inventory) deletePod(name Name) {
	p := i.pods[name]
	if p == nil {
		return
	}
	delete(i.pods, name)
	if p.pods--; p.pods == 0 {
		delete(i.templates, p.id)
	}
}

// SetNode adds a node, or replaces the one of the same name.
func (i *Inventory) SetNode(node *corev1.Node) {
	i.nodes[node.Name] = Node{
		Name: node.Name, Labels: node.Labels, Taints: node.Spec.Taints, Allocatable: node.Status.Allocatable,
		KubeletVersion: node.Status.NodeInfo.KubeletVersion,
	}
}

// SetNamespace adds a namespace, or replaces the one of the same name.
func (i *Inventory) SetNamespace(namespace *corev1.Namespace) {
	i.namespaces[namespace.Name] = Namespace{Name: namespace.Name, Labels: namespace.Labels, Terminating: Terminating(namespace)}
}

// Terminating reports whether a namespace is being deleted.
func Terminating(namespace *corev1.Namespace) bool {
	return !namespace.DeletionTimestamp.IsZero() || namespace.Status.Phase == corev1.NamespaceTerminating
}

// SetServiceAccount adds a service account.
func (i *Inventory) SetServiceAccount(account *corev1.ServiceAccount) {
	mounts := account.AutomountServiceAccountToken
	i.accounts[Name{intern(account.Namespace), account.Name}] = mounts != nil && !*mounts
}

// SetSecret adds a secret, or replaces the one of the same name. Its data is not read.
func (i *Inventory) SetSecret(secret *corev1.Secret) {
	s := Secret{Name: Name{intern(secret.Namespace), secret.Name}, Type: corev1.SecretType(intern(string(secret.Type)))}
	if secret.Type == corev1.SecretTypeServiceAccountToken {
		s.ServiceAccount = secret.Annotations[corev1.ServiceAccountNameKey]
	}
	i.secrets[s.Name] = s
}

// Pods lists the pods by namespace and name.
func (i *Inventory) Pods() []*Pod {
	// Sorting each namespace alone compares less, and what it compares is close together.
	byNamespace := map[string][]*Pod{}
	for _, p := range i.pods {
		byNamespace[p.Namespace] = append(byNamespace[p.Namespace], p)
	}
	all := make([]*Pod, 0, len(i.pods))
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		pods := byNamespace[namespace]
		slices.SortFunc(pods, func(a, b *Pod) int { return cmp.Compare(a.Name.Name, b.Name.Name) })
		all = append(all, pods...)
	}
	return all
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
// kinds are ignored.
func (i *Inventory) Set(object any) {
	switch o := object.(type) {
	case *corev1.Pod:
		i.SetPod(o)
	case *corev1.Node:
		i.SetNode(o)
	case *corev1.Namespace:
		i.SetNamespace(o)
	case *corev1.ServiceAccount:
		i.SetServiceAccount(o)
	case *corev1.Secret:
		i.SetSecret(o)
	case *corev1.PersistentVolume:
		i.SetPersistentVolume(o)
	case *corev1.PersistentVolumeClaim:
		i.SetPersistentVolumeClaim(o)
	case *nodev1.RuntimeClass:
		i.handlers[o.Name] = o.Handler
	case *corev1.ResourceQuota:
		i.SetResourceQuota(o)
	case *admissionv1.ValidatingWebhookConfiguration:
		i.SetValidatingWebhooks(o)
	case *admissionv1.MutatingWebhookConfiguration:
		i.SetMutatingWebhooks(o)
	case *admissionv1.ValidatingAdmissionPolicy:
		i.SetAdmissionPolicy(o)
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		i.SetAdmissionPolicyBinding(o)
	}
}

// Delete removes an object by its Kubernetes kind.
func (i *Inventory) Delete(kind, namespace, name string) {
	key := Name{namespace, name}
	switch kind {
	case "Pod":
		i.deletePod(key)
	case "Node":
		delete(i.nodes, name)
	case "Namespace":
		delete(i.namespaces, name)
	case "ServiceAccount":
		delete(i.accounts, key)
	case "Secret":
		delete(i.secrets, key)
	case "PersistentVolume":
		i.deleteVolume(name)
	case "PersistentVolumeClaim":
		delete(i.claims, key)
	case "RuntimeClass":
		delete(i.handlers, name)
	case "ResourceQuota":
		delete(i.quotas, key)
	case "ValidatingAdmissionPolicy":
		if p := i.policies[name]; p != nil {
			p.spec = nil
			i.updatePolicy(name)
		}
	case "ValidatingAdmissionPolicyBinding":
		i.deletePolicyBinding(name)
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		delete(i.configurations[kind], name)
		maps.DeleteFunc(i.admission, func(_ Name, a Admission) bool { return a.Kind == kind && a.Name == name })
	}
}
