package attackpaths_test

import (
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addPaths makes it more likely that nodes reach cluster-admin: it adds pods and strong roles.
func (rc *randomCluster) addPaths() {
	const group = "rbac.authorization.k8s.io"
	everything := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
	one := func(verb, group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: resources}
	}
	strong := []rbacv1.PolicyRule{
		everything, one("create", "", "pods"), one("create", "", "pods"), one("create", "apps", "deployments"),
		one("create", "", "serviceaccounts/token"), one("list", "", "secrets"), one("patch", "", "namespaces"),
		one("update", "", "pods/ephemeralcontainers"), one("create", "", "pods/exec"), one("bind", group, "clusterroles"),
		one("*", group, "clusterrolebindings", "rolebindings"), one("create", "", "persistentvolumes", "persistentvolumeclaims"),
		one("impersonate", "", "users", "groups", "serviceaccounts"), one("*", group, "clusterroles", "roles"),
	}
	for _, o := range rc.Objects {
		if n, ok := o.(*corev1.Namespace); ok && rc.chance(2) {
			delete(n.Labels, "pod-security.kubernetes.io/enforce")
		}
	}
	for _, name := range []string{"strong1", "strong2"} {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for range 1 + rc.IntN(3) {
			role.Rules = append(role.Rules, pick(rc, strong))
		}
		rc.Objects = append(rc.Objects, role)
		for _, binding := range rc.some([]string{"1", "2"}) {
			ref := rbacv1.RoleRef{APIGroup: group, Kind: "ClusterRole", Name: name}
			meta, subjects := metav1.ObjectMeta{Name: name + "-" + binding}, []rbacv1.Subject{rc.Subject()}
			if rc.chance(2) {
				rc.Objects = append(rc.Objects, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
				continue
			}
			meta.Namespace = pick(rc, []string{"a", "b"})
			rc.Objects = append(rc.Objects, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		}
	}
	for _, name := range rc.some([]string{"q1", "q2", "q3"}) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pick(rc, []string{"a", "b"}), Name: name}}
		p.Spec.NodeName, p.Spec.ServiceAccountName = pick(rc, []string{"n1", "n2"}), pick(rc, []string{"x", "y"})
		p.Spec.Containers = []corev1.Container{{Name: "c"}}
		p.Spec.Volumes = []corev1.Volume{{Name: "t", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}}},
		}}}}
		rc.Objects = append(rc.Objects, p)
	}
}

// addAggregated adds a role that has the rules of others, of which a controller restores them.
func (rc *randomCluster) addAggregated() {
	if rc.chance(2) {
		return
	}
	for i, o := range rc.Objects {
		if role, ok := o.(*rbacv1.ClusterRole); ok && rc.chance(2) {
			role = role.DeepCopy()
			role.Labels = map[string]string{"aggregate": "yes"}
			rc.Objects[i] = role
		}
	}
	selector := metav1.LabelSelector{MatchLabels: map[string]string{"aggregate": "yes"}}
	meta := metav1.ObjectMeta{Name: "aggregated"}
	rc.Objects = append(rc.Objects,
		&rbacv1.ClusterRole{
			ObjectMeta: meta, AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{selector}},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{rc.Subject()},
		})
	rc.Objects = aggregate(rc.Objects)
}
