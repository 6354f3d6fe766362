package attackpaths_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// withDetail adds to a random cluster what remedies have to know: objects that Kubernetes restores,
// several containers, and volumes that the API server adds. Pods of a workload are alike.
func (rc *randomCluster) withDetail() []runtime.Object {
	objects := slices.Clone(rc.Objects)
	specs := map[string]*corev1.PodSpec{}
	for i, o := range objects {
		o = o.DeepCopyObject()
		objects[i] = o
		switch o := o.(type) {
		case *corev1.Pod:
			if o.Annotations == nil {
				rc.detailPod(o)
				if w := templateOwner(o); w.Kind != "" {
					node := o.Spec.NodeName
					if known := specs[w.String()]; known != nil && o.Spec.EphemeralContainers == nil {
						o.Spec = *known.DeepCopy()
					}
					o.Spec.NodeName = node
					specs[w.String()] = &o.Spec
				}
			}
		case *rbacv1.ClusterRole:
			if rc.chance(6) {
				o.Labels = map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}
			}
			if rc.chance(6) {
				o.Labels = map[string]string{"aggregate": "yes"}
			} else if rc.chance(6) {
				selector := metav1.LabelSelector{MatchLabels: map[string]string{"aggregate": "yes"}}
				o.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{selector}}
			}
		case *rbacv1.ClusterRoleBinding:
			if rc.chance(5) {
				o.Labels = map[string]string{"kubernetes.io/bootstrapping": "rbac-defaults"}
			}
		}
	}
	return aggregate(objects)
}

func (rc *randomCluster) detailPod(p *corev1.Pod) {
	if len(p.OwnerReferences) > 0 && p.OwnerReferences[0].Kind == "Job" && rc.chance(2) {
		p.OwnerReferences[0].Name += "-29384756"
	}
	if rc.chance(2) {
		p.Spec.Containers = append([]corev1.Container{{Name: "first"}}, p.Spec.Containers...)
	}
	c := &p.Spec.Containers[rc.IntN(len(p.Spec.Containers))]
	if rc.chance(3) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "A"}, corev1.EnvVar{Name: "B", ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "s1"}},
		}})
	}
	if rc.chance(4) {
		c.EnvFrom = append(c.EnvFrom, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: pick(rc, []string{"s1", "s2"})},
		}})
	}
	if rc.chance(5) {
		c.SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"CHOWN", "CAP_SYS_ADMIN"}}}
	}
	if rc.chance(5) {
		host := corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}
		p.Spec.Volumes = append([]corev1.Volume{{Name: "host", VolumeSource: host}}, p.Spec.Volumes...)
	}
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		if v.Projected != nil && rc.chance(2) {
			v.Projected.Sources = append(v.Projected.Sources, corev1.VolumeProjection{Secret: &corev1.SecretProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "s2"},
			}})
		}
		c := &p.Spec.Containers[rc.IntN(len(p.Spec.Containers))]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: v.Name, MountPath: "/" + v.Name})
	}
	if rc.chance(3) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
			Name: fmt.Sprint("kube-api-access-", p.Name), VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
				Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}},
			}},
		})
	}
	if len(p.OwnerReferences) > 0 && p.OwnerReferences[0].Kind == "StatefulSet" {
		claim := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + p.Name}}
		p.Spec.Volumes = append([]corev1.Volume{{Name: "data", VolumeSource: claim}}, p.Spec.Volumes...)
	}
	if rc.chance(8) {
		yes := true
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", SecurityContext: &corev1.SecurityContext{Privileged: &yes},
		}}}
	}
}

// stepAt is a step of a path from a start.
type stepAt struct {
	start attackpaths.Holding
	attackpaths.Step
}

// same reports whether a step is the same: by the same binding, or because of the same pod.
func (s stepAt) same(other attackpaths.Step) bool {
	return s.Technique == other.Technique && s.From == other.From && s.To == other.To && s.Because == other.Because &&
		reflect.DeepEqual(s.Impersonates, other.Impersonates) && reflect.DeepEqual(s.GrantedBy, other.GrantedBy)
}

// in finds the step in what is reached from its start, or from the holding that makes it.
func (s stepAt) in(g *attackpaths.Graph) (attackpaths.Step, bool) {
	for _, start := range []attackpaths.Holding{s.start, s.From} {
		result, err := g.From(start)
		if err != nil {
			continue // it is no longer there
		}
		for _, r := range result.Reached {
			for _, step := range r.Path {
				if s.same(step) {
					return step, true
				}
			}
		}
	}
	return attackpaths.Step{}, false
}

// stepsOf lists each step that is reached from the starts once.
func (rc *randomCluster) stepsOf(t *testing.T, c *attackpaths.Cluster, g *attackpaths.Graph) []stepAt {
	t.Helper()
	var all []stepAt
	for _, start := range rc.starts(newNaive(c)) {
		for _, r := range from(t, g, start).Reached {
			for _, step := range r.Path {
				if !slices.ContainsFunc(all, func(s stepAt) bool { return s.same(step) }) {
					all = append(all, stepAt{start, step})
				}
			}
		}
	}
	rc.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// stepsOfEachCluster is how many steps of a cluster are tried.
const stepsOfEachCluster = 12

func TestRemediesOfStepsEndThem(t *testing.T) {
	changed, unchanged := map[attackpaths.Code]int{}, map[attackpaths.Code]int{}
	sections := techniqueSections(t)
	eachCluster(t, 500, func(t *testing.T, rc *randomCluster) {
		rc.Objects = rc.withDetail()
		c := rc.cluster(t, rc.Objects)
		g := graphOf(t, c)
		steps := rc.stepsOf(t, c, g)
		for _, step := range steps[:min(stepsOfEachCluster, len(steps))] {
			if step.Remedy == nil {
				t.Errorf("%s has no remedy", pathText([]attackpaths.Step{step.Step}))
				continue
			}
			checkRemedyIsDocumented(t, sections, step.Step)
			if len(step.Remedy.Changes) > 0 {
				changed[step.Technique]++
				rc.endsStep(t, step)
				continue
			}
			unchanged[step.Technique]++
			rc.refute(t, step)
		}
	})
	for _, technique := range attackpaths.Techniques() {
		t.Logf("%6d changed %6d not %s", changed[technique.Code], unchanged[technique.Code], technique.Code)
	}
}

// endsStep applies the remedy of a step. Another binding, which the step does not name, may give a
// right that it needs together with others: then its remedy is another one, until the step is gone.
func (rc *randomCluster) endsStep(t *testing.T, step stepAt) {
	t.Helper()
	objects, remedy := rc.Objects, step.Remedy
	var seen []string
	for {
		p := newPatched(t, objects)
		id := string(text(t, remedy))
		if err := p.apply(remedy.Changes); err != nil {
			t.Errorf("the remedy of\n%s%s\ncannot be applied: %v", pathText([]attackpaths.Step{step.Step}), id, err)
			return
		}
		if slices.Contains(seen, id) {
			t.Errorf("the remedy of\n%s%s\nleaves the step", pathText([]attackpaths.Step{step.Step}), id)
			return
		}
		seen = append(seen, id)
		objects = p.result(objects)
		after, found := step.in(graphOf(t, rc.cluster(t, objects)))
		if !found {
			return
		}
		if len(after.Remedy.Changes) == 0 || step.GrantedBy != nil && len(seen) > 1 {
			t.Errorf("after the remedies of\n%s%s\nthe step is there, with the remedy %+v", pathText([]attackpaths.Step{step.Step}),
				strings.Join(seen, "\n"), *after.Remedy)
			return
		}
		remedy = after.Remedy
	}
}

// refute tries each change of one object.
func (rc *randomCluster) refute(t *testing.T, step stepAt) {
	t.Helper()
	if step.Remedy.None == "" {
		t.Errorf("the remedy of %s is empty", pathText([]attackpaths.Step{step.Step}))
	}
	alone := stepAt{step.From, step.Step}
	if _, found := alone.in(graphOf(t, rc.cluster(t, rc.Objects))); !found {
		return // it needs more than one holding
	}
	for name, change := range naiveChanges(rc.Objects) {
		g := graphOf(t, rc.cluster(t, changeObjects(rc.Objects, change)))
		if _, err := g.From(step.From); err != nil {
			continue // who makes the step is no longer known
		}
		if _, err := g.From(step.To); err != nil {
			continue // only what was changed named it
		}
		if _, found := alone.in(g); !found {
			t.Errorf("%s: without a remedy (%s), but %s ends it", pathText([]attackpaths.Step{step.Step}), step.Remedy.None, name)
		}
	}
}

// changeObjects makes one change.
func changeObjects(objects []runtime.Object, change naiveChange) []runtime.Object {
	var all []runtime.Object
	for _, o := range objects {
		if o = change(o); o != nil {
			all = append(all, o)
		}
	}
	return all
}
