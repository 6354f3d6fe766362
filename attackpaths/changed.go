package attackpaths

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// changeKey identifies a change. Rule is the place of a rule in its role or of a subject in its binding, from
// zero, and zero for others.
type changeKey struct {
	kind   ChangeKind
	object verdict.Object
	rule   int
	secret string
	// right is what takeRight takes.
	right wantedRight
}

// The kinds of changes that only remedies of steps make. Their objects are roles, bindings, the objects with the
// templates of pods, namespaces, secrets, claims and volumes.
const (
	takeRight    ChangeKind = "right"
	takeSubject  ChangeKind = "subject"
	takeHost     ChangeKind = "rights over the host"
	takeMention  ChangeKind = "each mention of a secret"
	otherAccount ChangeKind = "another account"
	keepPods     ChangeKind = "nodes of a workload"
	removePods   ChangeKind = "pods without a template"
	limitPods    ChangeKind = "baseline"
	removeSecret ChangeKind = "secret"
	removeClaim  ChangeKind = "claim"
	removeVolume ChangeKind = "volume"
)

func objectOf(r rbac.Ref) verdict.Object {
	return verdict.Object{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// mountIn is the change that no longer mounts a secret, or a token for the empty name, into a pod.
func mountIn(p *inventory.Pod, secret string) changeKey {
	return changeKey{kind: RemoveMount, object: templateObject(p), secret: secret}
}

// templateObject is the object whose pod template a pod is made from, or the pod.
func templateObject(p *inventory.Pod) verdict.Object {
	kind := map[string]string{
		"deployments": "Deployment", "daemonsets": "DaemonSet", "statefulsets": "StatefulSet", "replicasets": "ReplicaSet",
		"jobs": "Job", "replicationcontrollers": "ReplicationController",
	}[p.Workload.Resource]
	if kind == "" {
		return verdict.Object{Kind: Pod, Namespace: p.Namespace, Name: p.Name.Name}
	}
	return verdict.Object{Kind: kind, Namespace: p.Namespace, Name: p.Workload.Name}
}

// without are the objects after changes. Roles keep their places.
func (o *objects) without(c *Cluster, changes []changeKey) *objects {
	left := *o
	rules, labeled := map[verdict.Object][]int{}, map[string]psa.Level{}
	subjects, gone := map[verdict.Object][]int{}, map[verdict.Object]bool{}
	m := mounts{gone: map[verdict.Object][]changeKey{}, templates: map[*inventory.Template]*inventory.Template{}}
	for _, change := range changes {
		switch change.kind {
		case RemoveBinding:
			subjects[change.object] = append(subjects[change.object], allSubjects)
		case RemoveRule:
			rules[change.object] = append(rules[change.object], change.rule)
		case RemoveMount, takeHost, takeMention, otherAccount, keepPods, removePods:
			m.gone[change.object] = append(m.gone[change.object], change)
		case RestrictPods:
			labeled[change.object.Name] = psa.LevelRestricted
		case limitPods:
			labeled[change.object.Name] = psa.LevelBaseline
		case takeSubject:
			subjects[change.object] = append(subjects[change.object], change.rule)
		case takeRight: // all of them together, below
		case removeSecret, removeClaim, removeVolume:
			gone[change.object] = true
		}
	}
	left.takeRights(changes)
	if len(subjects) > 0 {
		left.bindings = withoutSubjectsOf(left.bindings, subjects)
	}
	if len(gone) > 0 {
		left.remove(gone)
	}
	if len(rules) > 0 {
		left.removeRules(rules)
	}
	if len(labeled) > 0 {
		left.namespaces = labeledNamespaces(o.namespaces, labeled)
	}
	if len(m.gone) > 0 {
		m.apply(c, &left)
	}
	return &left
}

func (o *objects) removeRules(rules map[verdict.Object][]int) {
	o.roles, o.places = slices.Clone(o.roles), maps.Clone(o.places)
	if o.places == nil {
		o.places = map[int32][]int{}
	}
	for i := range o.roles {
		gone := rules[objectOf(o.roles[i].Role)]
		if gone == nil {
			continue
		}
		var kept []rbacv1.PolicyRule
		places := []int{}
		for j, rule := range o.roles[i].Rules {
			place := o.placeOf(int32(i), j)
			if !slices.Contains(gone, place) {
				kept, places = append(kept, rule), append(places, place)
			}
		}
		o.roles[i].Rules, o.places[int32(i)] = kept, places
	}
}

// placeOf is the place that a rule of a role had before others were removed.
func (o *objects) placeOf(role int32, rule int) int {
	if places, ok := o.places[role]; ok {
		return places[rule]
	}
	return rule
}

func labeledNamespaces(namespaces []inventory.Namespace, levels map[string]psa.Level) []inventory.Namespace {
	namespaces = slices.Clone(namespaces)
	known := map[string]bool{}
	for i := range namespaces {
		n := &namespaces[i]
		known[n.Name] = true
		if level := levels[n.Name]; level != "" {
			labels := map[string]string{}
			maps.Copy(labels, n.Labels)
			labels[psa.EnforceLevelLabel] = string(level)
			n.Labels = labels
		}
	}
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		if !known[name] { // only other objects name it
			namespaces = append(namespaces, inventory.Namespace{
				Name: name, Labels: map[string]string{psa.EnforceLevelLabel: string(levels[name])},
			})
		}
	}
	return namespaces
}

// allSubjects stands for the place of each subject of a binding.
const allSubjects = -1

// withoutSubjectsOf takes subjects from bindings, which keep their places.
func withoutSubjectsOf(bindings []rbac.BoundRole, places map[verdict.Object][]int) []rbac.BoundRole {
	bindings = slices.Clone(bindings)
	for i := range bindings {
		bound := &bindings[i]
		gone := places[objectOf(bound.Binding)]
		if gone == nil {
			continue
		}
		var kept []rbacv1.Subject
		for j, subject := range bound.Subjects {
			if !slices.Contains(gone, j) && !slices.Contains(gone, allSubjects) {
				kept = append(kept, subject)
			}
		}
		bound.Subjects = kept
	}
	return bindings
}

// remove takes secrets, claims and volumes away.
func (o *objects) remove(gone map[verdict.Object]bool) {
	isGone := func(name inventory.Name) bool {
		return gone[verdict.Object{Kind: Secret, Namespace: name.Namespace, Name: name.Name}]
	}
	o.secrets = slices.DeleteFunc(slices.Clone(o.secrets), func(s inventory.Secret) bool { return isGone(s.Name) })
	o.noVolumes = gone
}
