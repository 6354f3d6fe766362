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
	"github.com/node-authorizer/node-authorizer/verdict"
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
					node, ephemeral := o.Spec.NodeName, o.Spec.EphemeralContainers
					if known := specs[w.String()]; known != nil {
						o.Spec = *known.DeepCopy()
					}
					o.Spec.NodeName, o.Spec.EphemeralContainers = node, ephemeral
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

// same reports whether a step is the same, whichever right gives it. Steps that lead to no other holding are about
// what they say.
func (s stepAt) same(other attackpaths.Step) bool {
	return s.Technique == other.Technique && s.From == other.From && s.To == other.To &&
		(s.From != s.To || s.Because == other.Because) && reflect.DeepEqual(s.Impersonates, other.Impersonates)
}

// in finds the step in what is reached from its start, or from the holding that makes it, in a graph of the cluster
// after a change.
func (s stepAt) in(of, g *attackpaths.Graph) (attackpaths.Step, bool) {
	if attackpaths.HasStep(of, g, s.Step) {
		return s.Step, true
	}
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

// withRemedy is a step of a graph with its remedy.
func withRemedy(g *attackpaths.Graph, step attackpaths.Step) attackpaths.Step {
	path := []attackpaths.Step{step}
	g.AddRemedies(path)
	return path[0]
}

// stepsOfEachCluster is how many steps of a cluster are tried.
const stepsOfEachCluster = 12

func TestRemediesOfStepsEndThem(t *testing.T) {
	changed, unchanged, lost := map[attackpaths.Code]int{}, map[attackpaths.Code]int{}, map[attackpaths.Code]int{}
	sections, least := techniqueSections(), 0
	eachCluster(t, 500, func(t *testing.T, rc *randomCluster) {
		rc.Objects = rc.withDetail()
		c := rc.cluster(t, rc.Objects)
		g := graphOf(t, c)
		steps := rc.stepsOf(t, c, g)
		slices.SortStableFunc(steps, func(a, b stepAt) int { // rare ones first
			return changed[a.Technique] + unchanged[a.Technique] - changed[b.Technique] - unchanged[b.Technique]
		})
		compared := false
		var ready []stepAt
		for _, step := range steps[:min(stepsOfEachCluster, len(steps))] {
			step.Step = withRemedy(g, step.Step)
			if step.Remedy == nil {
				t.Errorf("%s has no remedy", pathText([]attackpaths.Step{step.Step}))
				continue
			}
			checkRemedyIsDocumented(t, sections, step.Step)
			if len(step.Remedy.Changes) > 0 {
				changed[step.Technique]++
				lost[step.Technique] += step.Remedy.OtherRights
				rc.endsStep(t, g, step)
				if step.Remedy.Disrupts == "" {
					ready = append(ready, step)
				}
				if step.Remedy.Disrupts == "" && step.Remedy.Warning == "" && !compared && attackpaths.MadeAlone(g, step.Step) {
					compared, least = true, least+1
					rc.takesLeast(t, g, step)
				}
				continue
			}
			unchanged[step.Technique]++
			rc.refute(t, step)
		}
		rc.endTogether(t, g, ready)
	})
	total := 0
	for _, technique := range attackpaths.Techniques() {
		code := technique.Code
		total += changed[code] + unchanged[code]
		t.Logf("%6d changed %6d not %6d other rights lost %s", changed[code], unchanged[code], lost[code], code)
		if changed[code]+unchanged[code] == 0 && os.Getenv(modeVariable) == "full" && os.Getenv(clustersVariable) == "" {
			t.Errorf("no step by %s was tried", code)
		}
	}
	t.Logf("%6d steps, %d compared with each other change of a binding or rule", total, least)
}

// A claim that is deleted must not leave its volume to a claim of the same name. The cluster has such a volume.
func TestRemedyOfAClaimDeletesItsVolume(t *testing.T) {
	rc := newRandomCluster(245)
	rc.Objects = rc.withDetail()
	c := rc.cluster(t, rc.Objects)
	g := graphOf(t, c)
	volumes := 0
	for _, step := range rc.stepsOf(t, c, g) {
		if step.Technique != attackpaths.VolumeControl {
			continue
		}
		if step.Step = withRemedy(g, step.Step); len(step.Remedy.Changes) > 1 {
			volumes++
			rc.endsStep(t, g, step)
		}
	}
	if volumes == 0 {
		t.Error("no remedy deletes a claim and its volume")
	}
}

// A right that leads to more of itself, as one to add any rule to a role does, must not keep the search for remedies
// from ending. The cluster has such a step by two rights that different identities have.
func TestRemediesOfWaysThatLeadBack(t *testing.T) {
	rc := newRandomCluster(173)
	rc.addPaths()
	rc.addSizes()
	rc.Objects = rc.withDetail()
	g := graphOf(t, rc.cluster(t, rc.Objects))
	start := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "a", Name: "x"}
	escalates := 0
	for _, r := range from(t, g, start).Reached {
		for _, step := range r.Path {
			if step.Technique == attackpaths.EscalateRole {
				escalates++
				rc.endsStep(t, g, stepAt{start, withRemedy(g, step)})
			}
		}
	}
	if escalates == 0 {
		t.Error("no step escalates a role")
	}
}

// endsStep applies the remedy of a step, which is gone then, whichever right gives it.
func (rc *randomCluster) endsStep(t *testing.T, g *attackpaths.Graph, step stepAt) {
	t.Helper()
	what := pathText([]attackpaths.Step{step.Step}) + string(text(t, step.Remedy))
	p := newPatched(t, rc.Objects)
	if err := p.apply(step.Remedy.Changes); err != nil {
		t.Errorf("the remedy of\n%s\ncannot be applied: %v", what, err)
		return
	}
	seen := map[attackpaths.Holding]bool{}
	for i, c := range step.Remedy.Changes {
		if c.Path != "" && (i == 0 || step.Remedy.Changes[i-1].Object != c.Object) && seen[c.Object] {
			t.Errorf("the remedy of\n%s\nhas several patches of %s", what, c.Object)
		}
		seen[c.Object] = seen[c.Object] || c.Path != ""
	}
	if after, found := step.in(g, graphOf(t, rc.cluster(t, p.result(rc.Objects)))); found {
		t.Errorf("the remedy of\n%s\nleaves the step\n%s", what, pathText([]attackpaths.Step{after}))
	}
}

// endTogether applies the remedies of steps at once, which are gone then: each object has one patch.
func (rc *randomCluster) endTogether(t *testing.T, g *attackpaths.Graph, steps []stepAt) {
	t.Helper()
	var all []*verdict.Remedy
	for _, step := range steps {
		all = append(all, step.Remedy)
	}
	together := g.Together(all...)
	for _, step := range steps {
		step.Remedy = together
		rc.endsStep(t, g, step)
	}
}

// isAbout reports whether what makes the step is still held after a change, and what it leads to is still there: it may
// be that only what was changed named it.
func (s stepAt) isAbout(t *testing.T, g *attackpaths.Graph) bool {
	t.Helper()
	if _, err := g.From(s.start); err != nil || s.start != s.From && !reaches(t, g, s.start, s.From) {
		return false
	}
	_, err := g.From(s.To)
	return err == nil
}

// takesLeast compares a remedy with each removal of a rule or of the subjects of a binding that ends the step too.
func (rc *randomCluster) takesLeast(t *testing.T, g *attackpaths.Graph, step stepAt) {
	t.Helper()
	before := attackpaths.RightsGiven(rc.cluster(t, rc.Objects))
	p := newPatched(t, rc.Objects)
	if err := p.apply(step.Remedy.Changes); err != nil {
		t.Fatal(err)
	}
	what := pathText([]attackpaths.Step{step.Step}) + string(text(t, step.Remedy))
	if lost := before - attackpaths.RightsGiven(rc.cluster(t, p.result(rc.Objects))); lost < step.Remedy.OtherRights-len(rc.Objects) {
		t.Errorf("the remedy of\n%s\ntakes %d rights", what, lost)
	}
	for name, change := range naiveChanges(rc.Objects) {
		restored := func(o runtime.Object) bool {
			return isDefault(o.(metav1.Object)) && strings.HasSuffix(name, fmt.Sprintf("%s %q", objectName(o).Kind, objectName(o).Name))
		}
		if !strings.Contains(name, "Role") || slices.ContainsFunc(rc.Objects, restored) {
			continue
		}
		c := rc.changed(t, change)
		after := graphOf(t, c)
		if !step.isAbout(t, after) {
			continue
		}
		lost := before - attackpaths.RightsGiven(c)
		if lost == 0 {
			continue // it may only name what the step leads to
		}
		if lost < step.Remedy.OtherRights && !attackpaths.HasStep(g, after, step.Step) {
			t.Errorf("the remedy of\n%s\ntakes %d other rights, and to %s ends it with %d rights",
				what, step.Remedy.OtherRights, name, lost)
		}
	}
}

// refute tries each change of one object.
func (rc *randomCluster) refute(t *testing.T, step stepAt) {
	t.Helper()
	if step.Remedy.None == "" {
		t.Errorf("the remedy of %s is empty", pathText([]attackpaths.Step{step.Step}))
	}
	alone, of := stepAt{step.From, step.Step}, graphOf(t, rc.cluster(t, rc.Objects))
	if step.To.Kind == attackpaths.Secret && !rc.hasSecret(step.To) {
		return // which step leads to it depends on the pods and volumes that name it
	}
	for name, change := range naiveChanges(rc.Objects) {
		g := graphOf(t, rc.cluster(t, changeObjects(rc.Objects, change)))
		if !step.isAbout(t, g) {
			continue
		}
		if _, found := alone.in(of, g); !found {
			t.Errorf("%s: without a remedy (%s), but %s ends it", pathText([]attackpaths.Step{step.Step}), step.Remedy.None, name)
		}
	}
}

// hasSecret reports whether there is an object of a secret. Without one, the secret is known only
// from what names it.
func (rc *randomCluster) hasSecret(h attackpaths.Holding) bool {
	return slices.ContainsFunc(rc.Objects, func(o runtime.Object) bool {
		s, ok := o.(*corev1.Secret)
		return ok && s.Namespace == h.Namespace && s.Name == h.Name
	})
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
