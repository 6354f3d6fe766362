package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pathsCluster is the cluster from which attack paths are computed. Every workload has a service account and a
// secret. A namespace has roles for some of its accounts; one role in sixteen leads further. The
// pods of one DaemonSet read secrets in all namespaces.
type pathsCluster struct{ fileCluster }

func (l pathsCluster) apps() int       { return (l.replicas() + l.stateful()) * l.appsPerPlace() }
func (l pathsCluster) namespaces() int { return (l.apps()+appsPerNamespace-1)/appsPerNamespace + 1 }
func (l pathsCluster) accounts() int   { return l.apps() + l.daemons() }
func (l pathsCluster) roles() int      { return l.nodes * 6 / 5 }

// counted is how many objects the cluster has: each account has a secret, each role a binding.
func (l pathsCluster) counted() int {
	return l.objects() + l.namespaces() + 2*l.accounts() + 2*(l.roles()+1)
}

// snapshot returns a snapshot of the cluster in a folder.
func (l pathsCluster) snapshot(b *bench) (string, error) {
	name := filepath.Join(b.cache, fmt.Sprintf("paths-%d-nodes-%d-pods.snapshot", l.nodes, l.pods()))
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		return name, err
	}
	manifests, err := written(name+".json", l.write)
	if err != nil {
		return "", err
	}
	if _, err := b.program("snapshot", "--from", manifests, "-o", name); err != nil {
		return "", err
	}
	return name, os.Remove(manifests)
}

func (l pathsCluster) write(file *os.File) error {
	s, err := newShapes(withoutStatus)
	if err != nil {
		return err
	}
	w := newListWriter(file)
	for node := range l.nodes {
		w.add(&s.node, [nameCount]string{atName: nodeName(node), atApp: "worker"})
	}
	for i := range l.namespaces() - 1 {
		if err := w.addObject(namespaceObject(namespaceName(i), "baseline")); err != nil {
			return err
		}
	}
	if err := w.addObject(namespaceObject(daemonNamespace, "privileged")); err != nil {
		return err
	}
	for i := range l.apps() {
		if err := addAccount(w, appNamespace(i), appName(i), "-credentials"); err != nil {
			return err
		}
	}
	for i := range l.daemons() {
		if err := addAccount(w, daemonNamespace, daemonName(i), "-token"); err != nil {
			return err
		}
	}
	if err := l.writeRoles(w); err != nil {
		return err
	}
	for node := range l.nodes {
		l.writePods(w, s, node)
	}
	l.writeVolumes(w, s)
	return w.end()
}

// withoutStatus leaves out fields that snapshots leave out too, to make the file smaller.
func withoutStatus(pod *corev1.Pod) {
	pod.Status, pod.Annotations = corev1.PodStatus{}, nil
	c := &pod.Spec.Containers[0]
	c.LivenessProbe, c.ReadinessProbe, c.Ports, c.Resources = nil, nil, nil, corev1.ResourceRequirements{}
}

func namespaceObject(name, level string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level}},
	}
}

// addAccount adds a service account and its secret.
func addAccount(w *listWriter, namespace, name, secretSuffix string) error {
	return errors.Join(
		w.addObject(&corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		}),
		w.addObject(&corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + secretSuffix}, Type: corev1.SecretTypeOpaque,
		}),
	)
}

// writeRoles adds roles and bindings.
func (l pathsCluster) writeRoles(w *listWriter) error {
	usual := []rbacv1.PolicyRule{
		{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{""}, Resources: []string{"configmaps", "services"}},
		{Verbs: []string{"update"}, APIGroups: []string{"apps"}, Resources: []string{"deployments/status"}},
	}
	further := [...]rbacv1.PolicyRule{
		{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods/exec"}},
		{Verbs: []string{"create", "patch"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}},
		{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"secrets"}},
		{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"serviceaccounts/token"}},
	}
	for i := range l.roles() {
		rules := usual
		if i%16 == 0 {
			rules = append(rules[:len(rules):len(rules)], further[i/16%len(further)])
		}
		app := i % l.apps()
		meta := metav1.ObjectMeta{Namespace: appNamespace(app), Name: fmt.Sprintf("%s-%d", appName(app), i/l.apps())}
		err := errors.Join(
			w.addObject(&rbacv1.Role{TypeMeta: rbacType("Role"), ObjectMeta: meta, Rules: rules}),
			w.addObject(&rbacv1.RoleBinding{
				TypeMeta: rbacType("RoleBinding"), ObjectMeta: meta,
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
				Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: meta.Namespace, Name: appName(app)}},
			}),
		)
		if err != nil {
			return err
		}
	}
	meta := metav1.ObjectMeta{Name: "secret-reader"}
	return errors.Join(
		w.addObject(&rbacv1.ClusterRole{TypeMeta: rbacType("ClusterRole"), ObjectMeta: meta, Rules: further[2:3]}),
		w.addObject(&rbacv1.ClusterRoleBinding{
			TypeMeta: rbacType("ClusterRoleBinding"), ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: daemonNamespace, Name: daemonName(0)}},
		}),
	)
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
