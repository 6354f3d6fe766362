package attackpaths_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// The nodes of the made cluster. Each runs a pod of every DaemonSet that tolerates it. Pods of
// other workloads run on controllersNode.
const (
	controllersNode = "worker-1"
	plainNode       = "worker-2"
	otherNode       = "worker-3"
	controlPlane    = "control-1"
	// dedicatedNode has a taint and a label that only a variant of the cluster uses.
	dedicatedNode = "dedicated-1"
	poolLabel     = "node-restriction.kubernetes.io/pool"
	pool          = "controllers"
)

// made is a cluster in which an agent is installed.
type made struct {
	objects   []runtime.Object
	workloads []workload
	// dedicated puts the pods of all workloads but DaemonSets on dedicatedNode.
	dedicated bool
}

// withAgents returns the cluster with the objects of agents besides.
func (m made) withAgents(agents ...*agent) made {
	m.objects, m.workloads = slices.Clone(m.objects), slices.Clone(m.workloads)
	for _, a := range agents {
		m.objects = append(m.objects, a.objects...)
		m.workloads = append(m.workloads, a.workloads...)
	}
	return m
}

// madeCluster is the cluster without agents: Kubernetes' default roles and bindings,
// testdata/agents.yaml, and the objects of other files.
func madeCluster(t *testing.T, more ...string) made {
	t.Helper()
	var m made
	paths := []string{"../internal/doctor/testdata/default/kubernetes-1.37.yaml", "testdata/agents.yaml"}
	for _, path := range append(paths, more...) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range decode(t, path, text) {
			if w, ok := workloadOf(object); ok {
				m.workloads = append(m.workloads, w)
			} else {
				m.objects = append(m.objects, object)
			}
		}
	}
	return m.withAccounts()
}

// withAccounts adds the service accounts that Kubernetes makes: those of its controllers, which
// the default bindings name, and one in each namespace.
func (m made) withAccounts() made {
	accounts := map[inventory.Name]bool{}
	for _, object := range m.objects {
		switch o := object.(type) {
		case *corev1.Namespace:
			accounts[inventory.Name{Namespace: o.Name, Name: "default"}] = true
		case *rbacv1.ClusterRoleBinding:
			addAccounts(accounts, o.Subjects)
		case *rbacv1.RoleBinding:
			addAccounts(accounts, o.Subjects)
		}
	}
	byName := func(a, b inventory.Name) int { return strings.Compare(a.String(), b.String()) }
	for _, name := range slices.SortedFunc(maps.Keys(accounts), byName) {
		m.objects = append(m.objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}})
	}
	return m
}

func addAccounts(accounts map[inventory.Name]bool, subjects []rbacv1.Subject) {
	for _, s := range subjects {
		if s.Kind == rbacv1.ServiceAccountKind {
			accounts[inventory.Name{Namespace: s.Namespace, Name: s.Name}] = true
		}
	}
}

// cluster is the made cluster as attack paths need it.
func (m made) cluster(t *testing.T) *attackpaths.Cluster {
	t.Helper()
	c := newCluster()
	for _, object := range m.objects {
		add(t, c, object)
	}
	// Whoever may change configurations of webhooks has one: its own, or that of another release.
	add(t, c, &admissionv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "some"}})
	add(t, c, &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "some"}})
	for _, pod := range m.pods() {
		add(t, c, pod)
	}
	return c
}

// pods are those that the controllers make of the workloads.
func (m made) pods() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, w := range m.workloads {
		nodes := m.nodesFor(w)
		if w.kind != "DaemonSet" && len(nodes) > 0 {
			nodes = []string{m.place(nodes)}
		}
		for _, node := range nodes {
			pods = append(pods, m.pod(w, node))
		}
	}
	return pods
}

// place is the node of a pod of which there is only one.
func (m made) place(nodes []string) string {
	for _, wanted := range []string{dedicatedNode, controllersNode} {
		if slices.Contains(nodes, wanted) {
			return wanted
		}
	}
	return nodes[0]
}

// nodesFor are the nodes to which the scheduler may bind a workload's pods.
func (m made) nodesFor(w workload) []string {
	i := inventory.New()
	i.Set(&corev1.Pod{Spec: m.podSpec(w, "")})
	for _, object := range m.objects {
		if node, ok := object.(*corev1.Node); ok {
			i.Set(node)
		}
	}
	var names []string
	for _, node := range i.Nodes() {
		if i.Pods()[0].Placement.Allows(&node, func(string) bool { return false }) {
			names = append(names, node.Name)
		}
	}
	return names
}

// pod is a pod of a workload.
func (m made) pod(w workload, node string) *corev1.Pod {
	name, suffix := w.name, node
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: w.kind, Name: w.name, Controller: new(true)}
	labels := map[string]string{}
	switch w.kind {
	case "Deployment":
		suffix = "5d4b9c7f6d"
		owner.Kind, owner.Name = "ReplicaSet", w.name+"-"+suffix
		labels["pod-template-hash"] = suffix
	case "StatefulSet":
		suffix = "0"
	case "Job", "CronJob":
		suffix = "1"
		owner.APIVersion, owner.Kind = "batch/v1", "Job"
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name + "-" + suffix, Labels: labels, OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: m.podSpec(w, node),
	}
}

// podSpec is a template with what the API server and the controllers add.
func (m made) podSpec(w workload, node string) corev1.PodSpec {
	spec := *w.template.Spec.DeepCopy()
	spec.NodeName = node
	if spec.ServiceAccountName == "" {
		spec.ServiceAccountName = "default"
	}
	if w.kind != "DaemonSet" && m.dedicated {
		spec.NodeSelector = map[string]string{poolLabel: pool}
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: poolLabel, Operator: corev1.TolerationOpExists})
	}
	if m.mountsToken(w) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
			},
		}})
	}
	return spec
}

// mountsToken reports whether the API server adds a token to the pods of a workload.
func (m made) mountsToken(w workload) bool {
	if mounts := w.template.Spec.AutomountServiceAccountToken; mounts != nil {
		return *mounts
	}
	for _, object := range m.objects {
		a, ok := object.(*corev1.ServiceAccount)
		if ok && a.Namespace == w.namespace && a.Name == w.template.Spec.ServiceAccountName && a.AutomountServiceAccountToken != nil {
			return *a.AutomountServiceAccountToken
		}
	}
	return true
}
