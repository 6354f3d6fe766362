package attackpaths

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// What else decides about pods with rights over their host.
const (
	dependsOnRuntime = "the container runtime's confinement (seccomp, AppArmor, SELinux)"
	dependsOnNoRoot  = "what a user other than root can do there"
)

// podUse is what a pod is created for.
type podUse uint8

const (
	// anyPod is any pod, usesAccount one with a service account, and usesSecret one with a
	// secret.
	anyPod podUse = iota
	usesAccount
	usesSecret
	// takesHost is a pod with rights over its host, mountsClaim one with a volume, and mountsEphemeral
	// one with a volume whose claim a controller makes.
	takesHost
	mountsClaim
	mountsEphemeral
)

// podCandidate is a pod that an attacker may create.
type podCandidate struct {
	shape     string
	account   string
	detail    string
	detailIn  []Field // of the spec
	dependsOn string
	change    func(*corev1.PodSpec)
}

// tokenPath is where a token of the pod's account is mounted.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

// podsFor lists the pods that are tried for a use. Name is the account or secret.
func podsFor(use podUse, name string) []podCandidate {
	switch use {
	case usesAccount:
		return []podCandidate{{
			shape: "account", account: name, detail: name, detailIn: fields("serviceAccountName", "serviceAccount"), change: mountToken,
		}}
	case usesSecret:
		in := fields("volumes", "containers")
		return []podCandidate{
			{shape: "secret volume", detail: name, detailIn: in, change: func(s *corev1.PodSpec) {
				mount(s, s.Containers, corev1.VolumeSource{
					Secret: &corev1.SecretVolumeSource{SecretName: name, DefaultMode: new(int32(0o644))},
				})
			}},
			{shape: "secret environment", detail: name, detailIn: in, change: func(s *corev1.PodSpec) {
				s.Containers[0].EnvFrom = []corev1.EnvFromSource{{
					SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}},
				}}
			}},
		}
	case takesHost:
		return hostPods()
	case mountsClaim:
		return volumePods("claim", corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: candidateName},
		})
	case mountsEphemeral:
		template := &corev1.PersistentVolumeClaimTemplate{Spec: claim("").Spec}
		return volumePods("ephemeral volume", corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: template}})
	}
	return []podCandidate{{shape: "any", change: func(*corev1.PodSpec) {}}}
}

// volumePods are pods that mount a volume.
func volumePods(shape string, source corev1.VolumeSource) []podCandidate {
	return []podCandidate{
		{shape: shape + " as root", change: func(s *corev1.PodSpec) { asRoot(s.Containers); mount(s, s.Containers, source) }},
		{shape: shape, dependsOn: dependsOnNoRoot, change: func(s *corev1.PodSpec) { mount(s, s.Containers, source) }},
	}
}

// namesNode reports whether pods for a use name the node on which they run.
func (u podUse) namesNode() bool { return u >= takesHost }

// hostPods are pods with rights over their host: in the containers, and in the init containers.
func hostPods() []podCandidate {
	privileged := func(_ *corev1.PodSpec, containers []corev1.Container) {
		containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0))}
	}
	folder := func(s *corev1.PodSpec, containers []corev1.Container) {
		asRoot(containers)
		mount(s, containers, corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/", Type: new(corev1.HostPathUnset)}})
	}
	processes := func(s *corev1.PodSpec, containers []corev1.Container) {
		s.HostPID = true
		asRoot(containers)
		containers[0].SecurityContext.Capabilities = &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN", "SYS_PTRACE"}}
	}
	var all []podCandidate
	for _, way := range []struct {
		shape, dependsOn string
		change           func(*corev1.PodSpec, []corev1.Container)
	}{{"privileged", "", privileged}, {"host path", "", folder}, {"host PID", dependsOnRuntime, processes}} {
		all = append(all, podCandidate{shape: way.shape, dependsOn: way.dependsOn, change: func(s *corev1.PodSpec) {
			way.change(s, s.Containers)
		}}, podCandidate{shape: way.shape + " in an init container", dependsOn: way.dependsOn, change: func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{container("init")}
			way.change(s, s.InitContainers)
		}})
	}
	return all
}

func asRoot(containers []corev1.Container) {
	containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(0))}
}

// mount adds a volume to the first of the containers.
func mount(s *corev1.PodSpec, containers []corev1.Container, source corev1.VolumeSource) {
	s.Volumes = append(s.Volumes, corev1.Volume{Name: "data", VolumeSource: source})
	containers[0].VolumeMounts = append(containers[0].VolumeMounts, corev1.VolumeMount{Name: "data", MountPath: "/data"})
}

// mountToken mounts the token as the API server does by itself.
func mountToken(s *corev1.PodSpec) {
	s.AutomountServiceAccountToken = nil
	token := corev1.VolumeProjection{
		ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"},
	}
	s.Volumes = append(s.Volumes, corev1.Volume{Name: "kube-api-access-web", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{token}, DefaultMode: new(int32(0o644))},
	}})
	s.Containers[0].VolumeMounts = append(s.Containers[0].VolumeMounts, corev1.VolumeMount{
		Name: "kube-api-access-web", ReadOnly: true, MountPath: tokenPath,
	})
}

// container is one that the restricted Pod Security level allows, with the API server's
// defaults.
func container(name string) corev1.Container {
	resources := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("16Mi")}
	return corev1.Container{
		Name: name, Image: "busybox:1.37.0", ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		Resources: corev1.ResourceRequirements{Limits: resources, Requests: resources},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), RunAsNonRoot: new(true), RunAsUser: new(int64(1000)), ReadOnlyRootFilesystem: new(true),
			Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
	}
}

// spec is the candidate as the template of a workload.
func (c *podCandidate) spec(restart corev1.RestartPolicy) corev1.PodSpec {
	s := corev1.PodSpec{
		Containers: []corev1.Container{container("web")}, RestartPolicy: restart, DNSPolicy: corev1.DNSClusterFirst,
		TerminationGracePeriodSeconds: new(int64(30)), SchedulerName: corev1.DefaultSchedulerName,
		SecurityContext: &corev1.PodSecurityContext{}, AutomountServiceAccountToken: new(false),
		ServiceAccountName: c.account, DeprecatedServiceAccount: c.account,
	}
	c.change(&s)
	return s
}

// podFields are the fields of a pod's spec that Kubernetes' admission plugins fill in.
var podFields = fields("spec.priority", "spec.priorityClassName", "spec.preemptionPolicy", "spec.imagePullSecrets")

// pod is the request that creates the candidate itself. A pod that takes its host names the
// node, so that its name is there.
func (b *builder) podRequest(namespace string, c *podCandidate, use podUse) *Request {
	request := b.request(createPods, namespace, "Pod").shaped(c.shape).creates(func() runtime.Object {
		p := &corev1.Pod{ObjectMeta: meta(namespace), Spec: c.admitted(corev1.RestartPolicyAlways)}
		p.Labels = map[string]string{"app": candidateName}
		if use.namesNode() {
			p.Spec.NodeName = "node"
		}
		return p
	})
	request.Detail, request.DetailIn = c.detail, below(c.detailIn, "spec")
	request.Unknown = append(append([]Field{}, podFields...), serverFields...)
	if use.namesNode() {
		request.Filled = fields("spec.nodeName")
	}
	return request
}

// admitted is the spec of the pod itself, with what admission plugins add.
func (c *podCandidate) admitted(restart corev1.RestartPolicy) corev1.PodSpec {
	s := c.spec(restart)
	if s.ServiceAccountName == "" {
		s.ServiceAccountName, s.DeprecatedServiceAccount = "default", "default"
	}
	s.EnableServiceLinks = new(true)
	for _, taint := range [...]string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		s.Tolerations = append(s.Tolerations, corev1.Toleration{
			Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300)),
		})
	}
	return s
}

// below puts fields into a field.
func below(list []Field, path ...string) []Field {
	var all []Field
	for _, f := range list {
		all = append(all, append(append(Field{}, path...), f...))
	}
	return all
}

// controlledPod is the pod that a controller creates from a template. Controllers set its name,
// labels and owner, and some where it runs.
func (b *builder) controlledPod(namespace string, c *podCandidate, w *workload) *Request {
	request := b.request(createPods, namespace, "Pod").shaped(c.shape + " of " + w.kind).creates(func() runtime.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: candidateName}, Spec: c.admitted(w.restart)}
	})
	request.AnyName = true
	request.Detail, request.DetailIn = c.detail, below(c.detailIn, "spec")
	request.Known = fields("metadata.namespace", "spec")
	request.Unknown = append(fields("spec.nodeName", "spec.affinity", "spec.tolerations", "spec.hostname", "spec.subdomain"), podFields...)
	return request
}

// addedContainer is a container that is added to a pod of which nothing else is known. Others
// is true if the pod has such containers already.
func (b *builder) addedContainer(namespace string, privileged, others bool) []attempt {
	added := corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon(container("debug"))}
	added.Resources = corev1.ResourceRequirements{}
	shape := "plain"
	if privileged {
		added.SecurityContext = &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0))}
		shape = "privileged"
	}
	if others {
		shape += " beside others"
	}
	known := fields("metadata.namespace")
	before := &corev1.Pod{ObjectMeta: meta(namespace)}
	after := before.DeepCopy()
	after.Spec.EphemeralContainers = []corev1.EphemeralContainer{added}
	request := b.request(addContainers, namespace, "Pod").shaped(shape).changes("", known, after.DeepCopyObject, before.DeepCopyObject)
	if !others {
		request.Known = fields("metadata.namespace", "spec.ephemeralContainers")
	}
	return one(request)
}

// PolicyEvaluator evaluates admission policies. It need not be safe for concurrent use.
type PolicyEvaluator interface {
	// Review says what a ValidatingAdmissionPolicy with its binding decides about a request.
	Review(policy *inventory.Admission, request *Request) PolicyAnswer
}

// PolicyDecision is what a policy decides about a request.
type PolicyDecision uint8

// The zero PolicyDecision is Undecided.
const (
	Undecided PolicyDecision = iota
	Passed
	Refused
)

// String returns "Undecided", "Passed" or "Refused".
func (d PolicyDecision) String() string { return [...]string{"Undecided", "Passed", "Refused"}[d] }

// PolicyAnswer is a decision, and for Undecided why, after "which": "reads request.userInfo".
type PolicyAnswer struct {
	Decision PolicyDecision
	Why      string
}

// Request is a write as admission policies see it, after defaults and Kubernetes' own admission
// plugins. What the attacker, the state and Kubernetes do not fix is not known.
type Request struct {
	// Shape names the request among all that an evaluator gets. Requests of one shape differ
	// only in the namespace and in Detail.
	Shape string
	// Detail is a value in the fields DetailIn of the object: the name of an account, a secret
	// or a role.
	Detail   string
	DetailIn []Field

	Operation admissionv1.OperationType
	// Kind is the object's kind; empty if nothing is known of what is sent.
	Kind        schema.GroupVersionKind
	Resource    schema.GroupVersionResource
	Subresource string
	// Namespace is the object's; a namespace has its own name.
	Namespace string
	// NamespaceLabels are nil if the namespace is not known.
	NamespaceLabels map[string]string
	// Name is that in the request; AnyName is true if it is not known.
	Name    string
	AnyName bool

	// Objects returns the object and, for an update, the one that it replaces.
	Objects func() (object, old runtime.Object)
	// Known are the only fields of the object that are known; nil stands for all.
	// OldKnown are the same of the old object, if there is one.
	Known, OldKnown []Field
	// Unknown are fields of the object that may or may not be there, and Filled those that
	// are there with a value that is not known.
	Unknown, Filled []Field
}

// Field is a path of names in an object. The empty path is the object.
type Field []string

// Within reports whether a field is another one or a part of it.
func (f Field) Within(other Field) bool {
	return len(f) >= len(other) && slices.Equal(f[:len(other)], other)
}

// fields splits paths at their dots.
func fields(paths ...string) []Field {
	var all []Field
	for _, p := range paths {
		all = append(all, strings.Split(p, "."))
	}
	return all
}

// Updates reports whether there is an old object.
func (r *Request) Updates() bool { return r.Operation == admissionv1.Update }

// Knows reports whether the value of a field of the object is known.
func (r *Request) Knows(f Field) bool {
	hidden := func(u Field) bool { return f.Within(u) || u.Within(f) }
	return within(f, r.Known) && !slices.ContainsFunc(r.Unknown, hidden) && !slices.ContainsFunc(r.Filled, hidden)
}

// KnowsPresence reports whether it is known that a field of the object is there or is not.
func (r *Request) KnowsPresence(f Field) bool {
	hidden := func(u Field) bool { return f.Within(u) }
	below := func(u Field) bool { return f.Within(u) && len(f) > len(u) }
	return (within(f, r.Known) || around(f, r.Known)) &&
		!slices.ContainsFunc(r.Unknown, hidden) && !slices.ContainsFunc(r.Filled, below)
}

// KnowsOld and KnowsOldPresence are the same for the old object. That there is none is known.
func (r *Request) KnowsOld(f Field) bool {
	return !r.Updates() || r.OldKnown != nil && within(f, r.OldKnown)
}

// KnowsOldPresence is KnowsPresence for the old object.
func (r *Request) KnowsOldPresence(f Field) bool {
	return r.KnowsOld(f) || len(f) == 0 || around(f, r.OldKnown)
}

func within(f Field, known []Field) bool {
	return known == nil || slices.ContainsFunc(known, func(k Field) bool { return f.Within(k) })
}

// around reports whether a field contains a known one. Such fields are always there: they are
// metadata, spec and what has required fields.
func around(f Field, known []Field) bool {
	return slices.ContainsFunc(known, func(k Field) bool { return len(f) < len(k) && k.Within(f) })
}
