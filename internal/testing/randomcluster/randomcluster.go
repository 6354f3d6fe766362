// Package randomcluster makes small random clusters for tests of attack paths: the same seed
// makes the same cluster.
package randomcluster

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// Cluster has few names, so that objects often refer to each other. It is also the source of
// random changes to it.
type Cluster struct {
	*rand.Rand
	// Features are the features of a random minor version.
	Features kubeversion.Features
	// EKS is true for a cluster that reads aws-auth.
	EKS bool
	// Impersonating is true if half of the rules are for constrained impersonation.
	Impersonating bool
	// Objects are unique by kind, namespace and name.
	Objects []runtime.Object
	// apart gives more rights to users and groups, and rights that count together to several roles.
	apart bool
	// runs decides about what runs, and how. It is another source, so that it changes nothing else.
	runs *Cluster
}

const (
	rbacGroup         = "rbac.authorization.k8s.io"
	certificatesGroup = "certificates.k8s.io"
	admissionGroup    = "admissionregistration.k8s.io"
	identityGroup     = "authentication.k8s.io"
	operatorGroup     = "operator.example.com"
)

var (
	randomNamespaces = []string{"a", "b", "kube-system"}
	randomNodes      = []string{"n1", "n2", "n3"}
	randomAccounts   = []string{"x", "y"}
	randomPods       = []string{"p1", "p2", "p3"}
	randomSecrets    = []string{"s1", "s2", "bootstrap-token-abcdef"}
	randomWorkloads  = []string{"web", "db"}
	randomRoles      = []string{"r1", "r2", "r3", "r4"}
	randomBindings   = []string{"b1", "b2", "b3"}
	randomObjects    = []string{"w1", "w2"}
	randomRequests   = []string{"q1", "q2"}
	randomSigners    = []string{
		"kubernetes.io/kube-apiserver-client", "kubernetes.io/*", "kubernetes.io/kube-apiserver-client-kubelet", "example.com/*",
	}
	randomUsers = []string{
		"alice", "bob", "system:node:n1", "system:kube-scheduler", "system:serviceaccount:a:x", "system:serviceaccount:b:z",
		"system:bootstrap:abcdef", "system:anonymous",
	}
	randomGroups = []string{
		"g1", "system:serviceaccounts", "system:serviceaccounts:a", "system:nodes", "system:bootstrappers",
		"system:bootstrappers:more", "system:authenticated", "system:masters", "system:unauthenticated",
	}
)

func pick[T any](rc *Cluster, from []T) T { return from[rc.IntN(len(from))] }

// chance is true with a probability of 1/of.
func (rc *Cluster) chance(of int) bool { return rc.IntN(of) == 0 }

// some picks one or two.
func (rc *Cluster) some(from []string) []string {
	list := []string{pick(rc, from)}
	if other := pick(rc, from); rc.chance(2) && other != list[0] {
		list = append(list, other)
	}
	return list
}

// New makes the cluster of a seed.
func New(seed uint64) *Cluster {
	rc := &Cluster{Rand: rand.New(rand.NewPCG(seed, 1)), runs: &Cluster{Rand: rand.New(rand.NewPCG(seed, 2))}}
	rc.Features = kubeversion.For(pick(rc, kubeversion.Minors()))
	rc.EKS = rc.chance(3)
	if rc.Impersonating = rc.chance(3); rc.Impersonating {
		rc.Features = kubeversion.For(kubeversion.Latest)
	}
	rc.apart = rc.chance(3)
	for i, ns := range randomNamespaces {
		if i == 0 || !rc.chance(3) {
			rc.add(rc.namespace(ns))
		}
		for _, name := range randomAccounts {
			if !rc.chance(3) {
				rc.add(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}})
			}
		}
	}
	for i, name := range randomNodes {
		if i == 0 || !rc.chance(3) {
			rc.add(rc.node(name))
		}
	}
	if rc.chance(2) {
		rc.add(rc.persistentVolume())
	}
	rc.addHostVolumes()
	for range 1 + rc.IntN(5) {
		rc.add(rc.pod())
	}
	for range rc.IntN(4) {
		rc.add(rc.secret())
	}
	if rc.chance(4) {
		rc.add(rc.webhooks())
	}
	if rc.chance(3) {
		rc.addPolicies()
	}
	for range 2 + rc.IntN(7) {
		rc.add(rc.role())
	}
	for range 2 + rc.IntN(pick(rc, []int{8, 16})) {
		rc.add(rc.Binding())
	}
	if rc.apart {
		rc.addImpersonator()
	}
	return rc
}

// addImpersonator adds an account that may impersonate users together with groups.
func (rc *Cluster) addImpersonator() {
	rules := []rbacv1.PolicyRule{{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"groups"}}}
	rules = append(rules, rules[0])
	rules[1].Resources = []string{pick(rc, []string{"users", "serviceaccounts"})}
	meta := metav1.ObjectMeta{Name: "impersonator"}
	rc.add(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules})
	rc.add(&rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "a", Name: "x"}},
	})
}

// add replaces an object of the same name.
func (rc *Cluster) add(object runtime.Object) {
	is := func(o runtime.Object) bool { return sameObject(o, object) }
	rc.Objects = append(slices.DeleteFunc(rc.Objects, is), object)
}

func sameObject(a, b runtime.Object) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && a.(metav1.Object).GetName() == b.(metav1.Object).GetName() &&
		a.(metav1.Object).GetNamespace() == b.(metav1.Object).GetNamespace()
}

// YAML returns the objects for people.
func (rc *Cluster) YAML() string {
	var all strings.Builder
	for _, o := range rc.Objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(&all, "# %T\n%s---\n", o, text)
	}
	return all.String()
}

func (rc *Cluster) namespace(name string) *corev1.Namespace {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	ns.Labels = map[string]string{}
	if level := pick(rc, []string{"", "privileged", "baseline", "restricted", "baseline", "restricted", "other"}); level != "" {
		ns.Labels["pod-security.kubernetes.io/enforce"] = level
	}
	if rc.chance(3) {
		ns.Labels["env"] = "prod"
	}
	if rc.runs.chance(12) {
		ns.Status.Phase = corev1.NamespaceTerminating
	}
	return ns
}

func (rc *Cluster) node(name string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if rc.chance(20) {
		n.Labels["node-role.kubernetes.io/control-plane"] = ""
	}
	if rc.chance(3) {
		n.Labels["node-restriction.kubernetes.io/pool"] = "a"
	}
	if rc.chance(3) {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule}}
	}
	return n
}

func (rc *Cluster) secret() *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pick(rc, randomNamespaces), Name: pick(rc, randomSecrets)}}
	switch rc.IntN(3) {
	case 0:
		s.Type = corev1.SecretTypeServiceAccountToken
		s.Annotations = map[string]string{corev1.ServiceAccountNameKey: pick(rc, randomAccounts)}
	case 1:
		s.Type = "bootstrap.kubernetes.io/token"
	}
	if strings.HasPrefix(s.Name, "bootstrap") && !rc.chance(4) {
		s.Type, s.Namespace = "bootstrap.kubernetes.io/token", "kube-system"
	}
	return s
}

func (rc *Cluster) pod() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pick(rc, randomNamespaces), Name: pick(rc, randomPods)}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Image: "i"}}
	if !rc.chance(5) {
		p.Spec.NodeName = pick(rc, randomNodes)
	}
	if rc.runs.chance(4) {
		rc.mountHost(p)
	}
	if rc.runs.chance(6) {
		p.Status.Phase = pick(rc.runs, []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed})
	}
	if rc.chance(4) {
		yes := true
		p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: &yes}
	} else if rc.chance(6) {
		p.Spec.HostPID = true
	}
	if p.Spec.NodeName != "" && rc.chance(6) {
		p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		if rc.chance(2) {
			components := []string{"kube-apiserver", "kube-scheduler", "kube-scheduler", "etcd", "kube-controller-manager"}
			p.Namespace, p.Name = "kube-system", pick(rc, components)+"-"+p.Spec.NodeName
		}
		return p
	}
	p.Spec.ServiceAccountName = pick(rc, []string{"x", "x", "y", "y", "z"})
	for range rc.IntN(3) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", len(p.Spec.Volumes)), VolumeSource: rc.volume()})
	}
	if rc.chance(5) {
		p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: pick(rc, []string{"s1", "pull"})}}
	}
	if rc.chance(3) {
		label := pick(rc, []string{"node-restriction.kubernetes.io/pool", "node.kubernetes.io/pool", "pool"})
		p.Spec.NodeSelector = map[string]string{label: "a"}
	}
	if rc.chance(3) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}
	if rc.chance(2) {
		rc.Own(p)
	}
	return p
}

func (rc *Cluster) webhooks() *admissionv1.ValidatingWebhookConfiguration {
	c := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "checks"}}
	for i := range 1 + rc.IntN(3) {
		hook := admissionv1.ValidatingWebhook{Name: fmt.Sprintf("check%d.example.com", i)}
		if rc.chance(3) {
			hook.NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "a"}}
		}
		rule := admissionv1.RuleWithOperations{Operations: []admissionv1.OperationType{
			pick(rc, []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Connect, admissionv1.OperationAll}),
		}}
		rule.APIGroups, rule.APIVersions = []string{"*"}, []string{"*"}
		rule.Resources = rc.some([]string{
			"pods", "pods", "pods/*", "pods/exec", "deployments", "secrets", "serviceaccounts/token", "namespaces", "nodes/proxy",
			"persistentvolumes", "persistentvolumeclaims", "rolebindings", "clusterrolebindings", "clusterroles", "roles",
			"certificatesigningrequests", "certificatesigningrequests/approval", "*", "*/*", "widgets", "stores",
		})
		if rc.chance(4) {
			scope := pick(rc, []admissionv1.ScopeType{admissionv1.ClusterScope, admissionv1.NamespacedScope, admissionv1.AllScopes})
			rule.Scope = &scope
		}
		hook.Rules = []admissionv1.RuleWithOperations{rule}
		c.Webhooks = append(c.Webhooks, hook)
	}
	return c
}

// persistentVolume returns a volume of a driver that needs a secret on the node.
func (rc *Cluster) persistentVolume() *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "volume"}}
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: pick(rc, randomNamespaces), Name: "claim"}
	v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "d", VolumeHandle: "h", NodePublishSecretRef: &corev1.SecretReference{
		Namespace: pick(rc, randomNamespaces), Name: pick(rc, append([]string{"elsewhere"}, randomSecrets...)),
	}}
	return v
}

func (rc *Cluster) volume() corev1.VolumeSource {
	if rc.chance(6) {
		return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}
	}
	if rc.chance(2) {
		return corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: pick(rc, append([]string{"missing"}, randomSecrets...))}}
	}
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
		ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: pick(rc, []string{"", "", "", "vault"}), Path: "token"},
	}}}}
}

// Own adds the controller of a workload to a pod.
func (rc *Cluster) Own(p *corev1.Pod) {
	yes, name := true, pick(rc, randomWorkloads)
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Name: name, Controller: &yes}
	owner.Kind = pick(rc, []string{"Deployment", "StatefulSet", "DaemonSet", "Job", "ReplicaSet", "ReplicationController"})
	switch owner.Kind {
	case "Deployment":
		p.Labels = map[string]string{"pod-template-hash": "1"}
		owner.Kind, owner.Name = "ReplicaSet", name+"-1"
	case "DaemonSet":
		if rc.chance(2) {
			onN1 := corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: "In", Values: []string{"n1"}}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{onN1}}},
				},
			}}
		}
	case "Job":
		owner.APIVersion = "batch/v1"
	case "ReplicationController":
		owner.APIVersion = "v1"
	}
	p.OwnerReferences = []metav1.OwnerReference{owner}
}

func (rc *Cluster) role() runtime.Object {
	if rc.chance(3) {
		meta := metav1.ObjectMeta{Namespace: pick(rc, randomNamespaces), Name: pick(rc, randomRoles)}
		return &rbacv1.Role{ObjectMeta: meta, Rules: rc.withLogs(rc.Rules())}
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: pick(rc, randomRoles)}, Rules: rc.withLogs(rc.Rules())}
	if rc.runs.chance(4) {
		role.Labels = map[string]string{"aggregate-to-" + pick(rc.runs, randomRoles): "true"}
	}
	if rc.chance(10) { // a controller fills it with the rules of the roles that it selects
		role.Rules = nil
		selector := metav1.LabelSelector{MatchLabels: map[string]string{"aggregate-to-" + role.Name: "true"}}
		role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{selector}}
	}
	return role
}

// withLogs adds a right to logs, which matters to pods with the folder of logs.
func (rc *Cluster) withLogs(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	if rc.runs.chance(6) {
		names := append([]string{"n1"}, randomPods...)
		return append(rules, rc.runs.rule(template{"get", "", []string{"pods/log", "nodes/log"}, names}))
	}
	return rules
}

// Binding returns a random binding, with a random name.
func (rc *Cluster) Binding() runtime.Object {
	meta := metav1.ObjectMeta{Name: pick(rc, append([]string{"b4", "b5"}, randomBindings...))}
	ref := rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: pick(rc, randomRoles)}
	subjects := []rbacv1.Subject{rc.Subject()}
	if rc.chance(3) {
		subjects = append(subjects, rc.Subject())
	}
	if rc.chance(2) {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
	}
	meta.Namespace = pick(rc, randomNamespaces)
	if rc.chance(2) {
		ref.Kind = "Role"
	}
	return &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}
}

// Subject returns a random subject of a binding.
func (rc *Cluster) Subject() rbacv1.Subject {
	kinds := 6
	if rc.apart {
		kinds = 3
	}
	switch rc.IntN(kinds) {
	case 0:
		// The last groups are rare, because they give rights to everybody.
		group := min(rc.IntN(len(randomGroups)+4), rc.IntN(len(randomGroups)))
		return rbacv1.Subject{Kind: "Group", APIGroup: rbacGroup, Name: randomGroups[group]}
	case 1:
		user := min(rc.IntN(len(randomUsers)), rc.IntN(len(randomUsers)))
		return rbacv1.Subject{Kind: "User", APIGroup: rbacGroup, Name: randomUsers[user]}
	}
	return rbacv1.Subject{Kind: "ServiceAccount", Namespace: pick(rc, randomNamespaces), Name: pick(rc, []string{"x", "x", "y", "y", "z"})}
}
