package attackpaths_test

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

// naiveChange changes objects: it returns what is left of one, nil if nothing is.
type naiveChange func(o runtime.Object) runtime.Object

// naiveChanges are all changes to objects, by what they say.
func naiveChanges(objects []runtime.Object) map[string]naiveChange {
	all := map[string]naiveChange{}
	for _, o := range objects {
		switch o := o.(type) {
		case *rbacv1.ClusterRoleBinding:
			all[fmt.Sprintf("remove the subjects of ClusterRoleBinding %q", o.Name)] = withoutSubjects(o)
		case *rbacv1.RoleBinding:
			all[fmt.Sprintf("remove the subjects of RoleBinding %q", o.Namespace+"/"+o.Name)] = withoutSubjects(o)
		case *rbacv1.ClusterRole:
			for i := range o.Rules {
				all[fmt.Sprintf("rule %d of ClusterRole %q", i+1, o.Name)] = withoutRule(o, i)
			}
		case *rbacv1.Role:
			for i := range o.Rules {
				all[fmt.Sprintf("rule %d of Role %q", i+1, o.Namespace+"/"+o.Name)] = withoutRule(o, i)
			}
		case *corev1.Namespace:
			all[fmt.Sprintf("enforce the Pod Security level restricted in Namespace %q", o.Name)] = restricts(o)
		case *corev1.Pod:
			into := templateOf(o)
			all["do not mount a service account token into "+into] = withoutMount(into, "")
			for _, name := range []string{"s1", "s2", "bootstrap-token-abcdef", "missing"} {
				all[fmt.Sprintf("do not mount secret %q into %s", name, into)] = withoutMount(into, name)
			}
		}
	}
	return all
}

// nameOfChange is the key of a change in naiveChanges.
func nameOfChange(c attackpaths.Change) string {
	if c.Kind != attackpaths.RemoveRule {
		return c.String()
	}
	name := c.Object.Name
	if c.Object.Namespace != "" {
		name = c.Object.Namespace + "/" + name
	}
	return fmt.Sprintf("rule %d of %s %q", c.RuleNumber, c.Object.Kind, name)
}

// same reports whether a changed object is one of the cluster.
func same(a, b runtime.Object) bool {
	x, y := a.(metav1.Object), b.(metav1.Object)
	return reflect.TypeOf(a) == reflect.TypeOf(b) && x.GetNamespace() == y.GetNamespace() && x.GetName() == y.GetName()
}

func withoutSubjects(of runtime.Object) naiveChange {
	return func(o runtime.Object) runtime.Object {
		if !same(o, of) {
			return o
		}
		switch changed := o.DeepCopyObject().(type) {
		case *rbacv1.ClusterRoleBinding:
			changed.Subjects = nil
			return changed
		case *rbacv1.RoleBinding:
			changed.Subjects = nil
			return changed
		}
		return o
	}
}

// removed is the verb of rules that are to be removed, which keep their places until then.
const removed = "removed"

func withoutRule(role runtime.Object, place int) naiveChange {
	return func(o runtime.Object) runtime.Object {
		if !same(o, role) {
			return o
		}
		o = o.DeepCopyObject()
		(*rulesOf(o))[place].Verbs = []string{removed}
		return o
	}
}

func rulesOf(o runtime.Object) *[]rbacv1.PolicyRule {
	switch o := o.(type) {
	case *rbacv1.ClusterRole:
		return &o.Rules
	case *rbacv1.Role:
		return &o.Rules
	}
	return &[]rbacv1.PolicyRule{}
}

func restricts(namespace runtime.Object) naiveChange {
	return func(o runtime.Object) runtime.Object {
		if !same(o, namespace) {
			return o
		}
		n := o.DeepCopyObject().(*corev1.Namespace)
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
		return n
	}
}

// templateOf names what a pod is made from.
func templateOf(p *corev1.Pod) string {
	i := inventory.New()
	i.Set(p)
	kind := map[string]string{
		"deployments": "Deployment", "daemonsets": "DaemonSet", "statefulsets": "StatefulSet", "replicasets": "ReplicaSet",
		"jobs": "Job", "replicationcontrollers": "ReplicationController",
	}
	if w := i.Pods()[0].Workload; w.Name != "" {
		return fmt.Sprintf("the pods of %s %q", kind[w.Resource], p.Namespace+"/"+w.Name)
	}
	return fmt.Sprintf("Pod %q", p.Namespace+"/"+p.Name)
}

// withoutMount takes a secret, or the token for the empty name, from all pods of a template.
func withoutMount(into, name string) naiveChange {
	return func(o runtime.Object) runtime.Object {
		p, ok := o.(*corev1.Pod)
		if !ok || templateOf(p) != into {
			return o
		}
		p = p.DeepCopy()
		for i := range p.Spec.Volumes {
			v := &p.Spec.Volumes[i]
			if v.Secret != nil && v.Secret.SecretName == name && name != "" {
				v.Secret = nil
			}
			if v.Projected != nil {
				v.Projected.Sources = slices.DeleteFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool {
					return name == "" && s.ServiceAccountToken != nil || name != "" && s.Secret != nil && s.Secret.Name == name
				})
			}
		}
		containers := func(list []corev1.Container) {
			for i := range list {
				c := &list[i]
				c.EnvFrom = slices.DeleteFunc(c.EnvFrom, func(e corev1.EnvFromSource) bool {
					return name != "" && e.SecretRef != nil && e.SecretRef.Name == name
				})
				c.Env = slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool {
					return name != "" && e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil && e.ValueFrom.SecretKeyRef.Name == name
				})
			}
		}
		containers(p.Spec.InitContainers)
		containers(p.Spec.Containers)
		return p
	}
}

// changed makes the cluster with changes.
func (rc *randomCluster) changed(t *testing.T, changes ...naiveChange) *attackpaths.Cluster {
	t.Helper()
	var left []runtime.Object
	for _, o := range rc.Objects {
		for _, change := range changes {
			if o != nil {
				o = change(o)
			}
		}
		if o == nil {
			continue
		}
		rules := rulesOf(o)
		*rules = slices.DeleteFunc(*rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Verbs, removed) })
		left = append(left, o)
	}
	return rc.cluster(t, aggregate(left))
}

// reachOf is how each node reaches cluster-admin, but for those of the control plane.
func reachOf(t *testing.T, c *attackpaths.Cluster, target attackpaths.Holding) map[string]attackpaths.Certainty {
	t.Helper()
	g, reach := graphOf(t, c), map[string]attackpaths.Certainty{}
	var classes []attackpaths.Class
	var err error
	if target.Kind != "" {
		classes, err = g.AllNodesTo(target)
	}
	if target.Kind == "" || err != nil { // the cluster no longer has the target
		classes = g.AllNodes()
	}
	for _, class := range classes {
		certainty := class.ClusterAdmin
		if class.Target != nil {
			certainty = *class.Target
		}
		for _, node := range class.Nodes {
			if certainty != attackpaths.No && !class.ControlPlane && (target.Kind != attackpaths.Node || target.Name != node) {
				reach[node] = certainty
			}
		}
	}
	return reach
}

// targets are cluster-admin, and an object of each kind that advice may be about.
func (rc *randomCluster) targets() []attackpaths.Holding {
	byKind := map[string][]attackpaths.Holding{}
	for _, o := range rc.Objects {
		kind := strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.")
		meta := o.(metav1.Object)
		byKind[kind] = append(byKind[kind], attackpaths.Holding{Kind: kind, Namespace: meta.GetNamespace(), Name: meta.GetName()})
	}
	all := []attackpaths.Holding{{}}
	for _, kind := range []string{attackpaths.Secret, attackpaths.ServiceAccount, attackpaths.Node, attackpaths.Pod} {
		if len(byKind[kind]) > 0 {
			all = append(all, pick(rc, byKind[kind]))
		}
	}
	return all
}

func TestWhatToChangeAgreesWithChangedObjects(t *testing.T) {
	kinds := map[attackpaths.ChangeKind]int{}
	sets, targets := 0, map[string]int{}
	eachCluster(t, 330, func(t *testing.T, rc *randomCluster) {
		rc.addPaths()
		rc.addAggregated()
		c := rc.cluster(t, rc.Objects)
		changes := naiveChanges(rc.Objects)
		for i, target := range rc.targets() {
			before := reachOf(t, c, target)
			for _, possible := range []bool{false, true} {
				if i > 0 && !rc.chance(4) {
					continue // the budget
				}
				advice, err := attackpaths.WhatToChange(c, attackpaths.AdviceOptions{Target: target, Possible: possible})
				if err != nil {
					t.Fatal(err)
				}
				compareAlone(t, rc, advice, target, before, changes)
				checkSet(t, rc, advice, target, before, changes, possible)
				if t.Failed() {
					t.Errorf("the target is %s", target)
					return
				}
				if len(advice.Set) > 1 {
					sets++
				}
				for _, change := range advice.Alone {
					kinds[change.Kind]++
				}
				targets[target.Kind] += len(advice.Set)
			}
		}
	})
	t.Logf("changes that help alone: %v, sets of more than one: %d, of targets: %v", kinds, sets, targets)
	if (len(kinds) < 4 || sets == 0) && !testing.Short() && os.Getenv(clustersVariable) == "" {
		t.Error("random clusters do not have each kind of change")
	}
}

// Advice counts a node that possibly owns the cluster, by a pod with a folder of keys, as one that still reaches the target.
func TestWhatToChangeKeepsFoldersOfKeys(t *testing.T) {
	rc := newRandomCluster(73)
	rc.addPaths()
	rc.addAggregated()
	c := rc.cluster(t, rc.Objects)
	target := attackpaths.Holding{Kind: attackpaths.Secret, Namespace: "a", Name: "s1"}
	advice, err := attackpaths.WhatToChange(c, attackpaths.AdviceOptions{Target: target})
	if err != nil || len(advice.Alone) == 0 {
		t.Fatal(advice, err)
	}
	compareAlone(t, rc, advice, target, reachOf(t, c, target), naiveChanges(rc.Objects))
}

// compareAlone compares what changes do alone with what changed objects give.
func compareAlone(
	t *testing.T, rc *randomCluster, advice *attackpaths.Advice, target attackpaths.Holding,
	before map[string]attackpaths.Certainty, changes map[string]naiveChange,
) {
	t.Helper()
	got, want := map[string]string{}, map[string]string{}
	for _, change := range advice.Alone {
		got[nameOfChange(change)] = fmt.Sprint(change.Certain, " ", change.Entirely)
	}
	for name, change := range changes {
		if certain, entirely := helpedNodes(before, reachOf(t, rc.changed(t, change), target)); certain+entirely > 0 {
			want[name] = fmt.Sprint(certain, " ", entirely)
		}
	}
	for name, counts := range want {
		if got[name] != counts {
			t.Errorf("%s helps %q, want %q", name, got[name], counts)
		}
	}
	for name, counts := range got {
		if want[name] == "" {
			t.Errorf("%s helps %q, want none", name, counts)
		}
	}
}

func helpedNodes(before, after map[string]attackpaths.Certainty) (certain, entirely int) {
	for node, reach := range before {
		if reach == attackpaths.Certain && after[node] != attackpaths.Certain {
			certain++
		}
		if after[node] == attackpaths.No {
			entirely++
		}
	}
	return certain, entirely
}

// checkSet checks that the set does what it says and has no change too many. If nodes are left, all
// changes together do not help them.
func checkSet(
	t *testing.T, rc *randomCluster, advice *attackpaths.Advice, target attackpaths.Holding, before map[string]attackpaths.Certainty,
	changes map[string]naiveChange, possible bool,
) {
	t.Helper()
	left := func(changes []naiveChange) (n attackpaths.NodesThatReach, wanted int) {
		for node, reach := range reachOf(t, rc.changed(t, changes...), target) {
			switch {
			case before[node] == attackpaths.No:
			case reach == attackpaths.Certain:
				n.Certain++
			default:
				n.Possible++
			}
		}
		if possible {
			return n, n.Certain + n.Possible
		}
		return n, n.Certain
	}
	var set, all []naiveChange
	for _, change := range advice.Set {
		set = append(set, changes[nameOfChange(change)])
	}
	for _, change := range changes {
		all = append(all, change)
	}
	n, wanted := left(set)
	if n != advice.Left {
		t.Errorf("with the set %v, possible %v, %+v are left, want %+v", advice.Set, possible, advice.Left, n)
	}
	if (wanted > 0) != (len(advice.Remaining) > 0) {
		t.Errorf("%d nodes are left, and the path that remains is %v", wanted, advice.Remaining)
	}
	for i := range set {
		if _, others := left(slices.Delete(slices.Clone(set), i, i+1)); others <= wanted {
			t.Errorf("%s is not needed in the set %v", advice.Set[i], advice.Set)
		}
	}
	if _, always := left(all); always != wanted {
		t.Errorf("the set %v leaves %d nodes, all changes leave %d", advice.Set, wanted, always)
	}
}
