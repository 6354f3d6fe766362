package attackpaths

import (
	"maps"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/rbac"
)

// candidateName is the name of objects whose name the attacker chooses.
const candidateName = "web"

// serverFields are what the API server puts into each object.
var serverFields = fields("metadata.uid", "metadata.creationTimestamp", "metadata.managedFields", "metadata.generation",
	"metadata.resourceVersion", "metadata.selfLink", "status")

// request is the request that a right allows, with an object of which nothing is known yet.
func (b *builder) request(r right, namespace, kind string) *Request {
	w := writeOf(r)
	return &Request{
		Shape: strings.ToLower(string(w.Operation)) + " " + r.String(), Operation: w.Operation,
		Kind:     schema.GroupVersionKind{Group: w.Group, Version: "v1", Kind: kind},
		Resource: schema.GroupVersionResource{Group: w.Group, Version: "v1", Resource: w.Resource}, Subresource: w.Subresource,
		Namespace: namespace, NamespaceLabels: b.namedLabels(namespace),
		Unknown: serverFields,
		Objects: func() (runtime.Object, runtime.Object) { return nil, nil },
	}
}

// namedLabels are the labels of a namespace that is known.
func (b *builder) namedLabels(namespace string) map[string]string {
	labels, known := b.labels[namespace]
	if !known {
		return nil
	}
	return withName(labels, namespace)
}

// creates sets the object of a request that creates one.
func (r *Request) creates(object func() runtime.Object) *Request {
	r.Name = candidateName
	r.Objects = func() (runtime.Object, runtime.Object) {
		o := object()
		o.GetObjectKind().SetGroupVersionKind(r.Kind)
		return o, nil
	}
	return r
}

// changes sets the objects of a request that changes one, and the fields of them that are
// known.
func (r *Request) changes(name string, known []Field, object, old func() runtime.Object) *Request {
	r.Name, r.AnyName, r.Known, r.OldKnown = name, name == "", known, known
	r.Objects = func() (runtime.Object, runtime.Object) {
		o, before := object(), old()
		o.GetObjectKind().SetGroupVersionKind(r.Kind)
		before.GetObjectKind().SetGroupVersionKind(r.Kind)
		return o, before
	}
	return r
}

func (r *Request) shaped(shape string) *Request {
	r.Shape += " " + shape
	return r
}

// one is the only attempt, of one request.
func one(r *Request) []attempt { return []attempt{{requests: []*Request{r}}} }

// attemptsOf are the ways to use a right that needs nothing else.
func (b *builder) attemptsOf(r right, namespace string) []attempt {
	object := (&metav1.PartialObjectMetadata{ObjectMeta: meta(namespace)}).DeepCopyObject
	switch r {
	case execPods, attachPods, proxyNodes:
		return b.connects(r, namespace)
	case createToken:
		request := b.request(r, namespace, "TokenRequest").creates(object)
		request.Kind.Group, request.AnyName = authenticationv1.GroupName, true
		request.Known = fields("metadata.namespace")
		return one(request)
	case createSecrets:
		return b.secretOf(namespace, corev1.SecretTypeServiceAccountToken)
	case createVolumes:
		return b.hostVolume()
	case createClaims:
		request := b.request(r, namespace, "PersistentVolumeClaim").creates(claim(namespace).DeepCopyObject)
		request.Unknown = append(fields("metadata.finalizers"), serverFields...)
		return one(request)
	case labelNamespaces, labelByStatus, finalizeNamespaces:
		return b.relabels(r, namespace)
	case createSigningRequests:
		// The signer and the name are not known.
		object := certificatesv1.CertificateSigningRequest{ObjectMeta: meta("")}
		request := b.request(r, "", "CertificateSigningRequest").creates(object.DeepCopyObject).shaped("create")
		request.Unknown = append(fields("spec.username", "spec.uid", "spec.groups", "spec.extra", "spec.usages"), serverFields...)
		request.Filled = fields("spec.request", "spec.signerName")
		return one(request)
	case updateApprovals, updateSigningStatus, patchSigningStatus:
		return one(b.request(r, "", "CertificateSigningRequest").changes("", []Field{}, object, object))
	case patchPods:
		return one(b.request(r, namespace, "Pod").changes("", fields("metadata.namespace"), object, object))
	}
	request := b.request(r, namespace, "") // nothing is known of what is sent
	request.Known, request.OldKnown, request.AnyName = []Field{}, []Field{}, true
	return one(request)
}

func meta(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: candidateName}
}

// connects are the options of a connection to an object of any name.
func (b *builder) connects(r right, namespace string) []attempt {
	kind, options := "NodeProxyOptions", []runtime.Object{&corev1.NodeProxyOptions{}}
	switch r {
	case execPods:
		kind, options = "PodExecOptions", []runtime.Object{
			&corev1.PodExecOptions{Stdin: true, Stdout: true, TTY: true, Command: []string{"sh"}},
			&corev1.PodExecOptions{Stdout: true, Command: []string{"cat"}},
		}
	case attachPods:
		kind, options = "PodAttachOptions", []runtime.Object{&corev1.PodAttachOptions{Stdin: true, Stdout: true}}
	}
	var all []attempt
	for i, o := range options {
		request := b.request(r, namespace, kind).creates(o.DeepCopyObject).shaped(string(rune('a' + i)))
		request.Kind.Group, request.AnyName = "", true
		request.Unknown = fields("container", "path")
		all = append(all, one(request)...)
	}
	return all
}

// secretOf is a secret whose account or groups are not known.
func (b *builder) secretOf(namespace string, kind corev1.SecretType) []attempt {
	secret := corev1.Secret{ObjectMeta: meta(namespace), Type: kind}
	request := b.request(createSecrets, namespace, "Secret").shaped(string(kind)).creates(secret.DeepCopyObject)
	request.Known = fields("metadata.namespace", "metadata.labels", "type")
	if kind == corev1.SecretTypeBootstrapToken {
		request.AnyName = true // it is the token's
	} else {
		request.Known = append(request.Known, Field{"metadata", "name"}, Field{"data"}, Field{"stringData"}, Field{"immutable"})
	}
	return one(request)
}

// hostVolume is a volume that is a folder of the host.
func (b *builder) hostVolume() []attempt {
	volume := &corev1.PersistentVolume{ObjectMeta: meta(""), Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/", Type: new(corev1.HostPathUnset)},
		},
		Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, VolumeMode: new(corev1.PersistentVolumeFilesystem),
	}}
	request := b.request(createVolumes, "", "PersistentVolume").creates(volume.DeepCopyObject)
	request.Unknown = append(fields("metadata.finalizers"), serverFields...)
	return one(request)
}

func claim(namespace string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: meta(namespace), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: candidateName, StorageClassName: new(""),
		VolumeMode: new(corev1.PersistentVolumeFilesystem),
		Resources:  corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

// relabels turn the Pod Security of a namespace off.
func (b *builder) relabels(r right, namespace string) []attempt {
	const prefix = "pod-security.kubernetes.io/"
	before := b.namedLabels(namespace)
	known := fields("metadata.name", "metadata.labels")
	if before == nil {
		known = fields("metadata.name")
	}
	without := maps.Clone(before)
	maps.DeleteFunc(without, func(k, _ string) bool { return strings.HasPrefix(k, prefix) })
	off := maps.Clone(without)
	if off != nil {
		off[prefix+"enforce"] = "privileged"
	}
	object := func(labels map[string]string) func() runtime.Object {
		return (&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}).DeepCopyObject
	}
	var all []attempt
	for _, after := range [...]map[string]string{without, off} {
		request := b.request(r, namespace, "Namespace").changes(namespace, known, object(after), object(before))
		request.Shape = "" // it has the labels of one namespace
		all = append(all, one(request)...)
	}
	return all
}

// everybody is a subject that each identity is.
var everybody = rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: authenticated}

// newBinding is a new binding of a role to an identity of the attacker.
func (b *builder) newBinding(r right, namespace string, role rbac.Ref) []attempt {
	kind := "ClusterRoleBinding"
	if namespace != "" {
		kind = "RoleBinding"
	}
	binding := rbac.BoundRole{Binding: rbac.Ref{Namespace: namespace, Name: candidateName}, Role: role}
	request := b.request(r, namespace, kind).creates(bindingOf(binding, everybody))
	request.Detail, request.DetailIn = role.Kind+" "+role.Name, fields("roleRef")
	return one(request)
}

// bindingOf makes a binding with more subjects. The kinds of bindings have the same fields.
func bindingOf(bound rbac.BoundRole, more ...rbacv1.Subject) func() runtime.Object {
	return (&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: bound.Binding.Namespace, Name: bound.Binding.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: bound.Role.Kind, Name: bound.Role.Name},
		Subjects:   slices.Concat(bound.Subjects, more),
	}).DeepCopyObject
}

// changedBinding adds a subject to a binding.
func (b *builder) changedBinding(r right, bound rbac.BoundRole) []attempt {
	known := fields("metadata.name", "metadata.namespace", "roleRef", "subjects")
	return b.changed(r, bound.Binding, known, bindingOf(bound, everybody), bindingOf(bound))
}

// changedRole adds a rule for everything to a role. The kinds of roles have the same fields that are known.
func (b *builder) changedRole(r right, role rbac.RoleRules) []attempt {
	object := func(more ...rbacv1.PolicyRule) func() runtime.Object {
		rules := append(append([]rbacv1.PolicyRule{}, role.Rules...), more...) // not nil, which is another value
		return (&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: role.Role.Namespace, Name: role.Role.Name}, Rules: rules,
		}).DeepCopyObject
	}
	return b.changed(r, role.Role, fields("metadata.name", "metadata.namespace", "rules"), object(everyRule.Rules...), object())
}

func (b *builder) changed(r right, at rbac.Ref, known []Field, object, old func() runtime.Object) []attempt {
	request := b.request(r, at.Namespace, at.Kind).changes(at.Name, known, object, old)
	return one(request.shaped(at.Namespace + "/" + at.Name))
}

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
	// selector is where the labels of its pods are; nil for jobs, which get theirs.
	selector []string
}

// workloads is a table and never changes.
var workloads = []workload{
	{createDeployments, patchDeployments, "Deployment", podTemplate, corev1.RestartPolicyAlways, createReplicaSets, matchLabels},
	{createDaemonSets, patchDaemonSets, "DaemonSet", podTemplate, corev1.RestartPolicyAlways, createPods, matchLabels},
	{createStatefulSets, patchStatefulSets, "StatefulSet", podTemplate, corev1.RestartPolicyAlways, createPods, matchLabels},
	{createReplicaSets, patchReplicaSets, "ReplicaSet", podTemplate, corev1.RestartPolicyAlways, createPods, matchLabels},
	{
		createReplicationControllers, patchReplicationControllers, "ReplicationController", podTemplate,
		corev1.RestartPolicyAlways, createPods,
		[]string{"spec", "selector"},
	},
	{createJobs, createJobs, "Job", podTemplate, corev1.RestartPolicyNever, createPods, nil},
	{createCronJobs, patchCronJobs, "CronJob", jobTemplate, corev1.RestartPolicyNever, createJobs, nil},
}

var (
	podTemplate = []string{"spec", "template", "spec"}
	matchLabels = []string{"spec", "selector", "matchLabels"}
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

// object is a workload with a template, and else with what the API server requires.
func (w *workload) object(namespace string, template *corev1.PodSpec) runtime.Object {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetNamespace(namespace)
	o.SetName(candidateName)
	o.SetLabels(map[string]string{"app": candidateName})
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(template)
	set := func(value any, path ...string) {
		if err == nil {
			err = unstructured.SetNestedField(o.Object, value, path...)
		}
	}
	set(spec, w.template...)
	switch w.kind {
	case "Job":
	case "CronJob":
		set("* * * * *", "spec", "schedule")
	default:
		set(map[string]any{"app": candidateName}, "spec", "template", "metadata", "labels")
		set(map[string]any{"app": candidateName}, w.selector...)
	}
	if err != nil {
		panic("a workload is not made: " + err.Error())
	}
	return o
}
