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
	left, of := *o, map[verdict.Object][]changeKey{}
	for _, change := range changes {
		of[change.object] = append(of[change.object], change)
	}
	left.takeRights(changes)
	if hasKind(changes, RemoveBinding, takeSubject) {
		left.removeSubjects(of)
	}
	if hasKind(changes, RemoveRule) {
		left.removeRules(of)
	}
	if hasKind(changes, RestrictPods, limitPods) {
		left.labelNamespaces(of)
	}
	if hasKind(changes, removeSecret, removeClaim, removeVolume) {
		left.secrets = slices.DeleteFunc(slices.Clone(o.secrets), func(s inventory.Secret) bool {
			return hasKind(of[verdict.Object{Kind: Secret, Namespace: s.Namespace, Name: s.Name.Name}], removeSecret)
		})
		left.noVolumes = map[verdict.Object]bool{}
		for _, change := range changes {
			left.noVolumes[change.object] = change.kind == removeClaim || change.kind == removeVolume
		}
	}
	if hasKind(changes, RemoveMount, takeHost, takeMention, otherAccount, keepPods, removePods) {
		(&mounts{changes: of}).apply(c, &left)
	}
	return &left
}

func hasKind(changes []changeKey, kinds ...ChangeKind) bool {
	return slices.ContainsFunc(changes, func(c changeKey) bool { return slices.Contains(kinds, c.kind) })
}

func (o *objects) removeRules(of map[verdict.Object][]changeKey) {
	places := map[int32][]int{}
	maps.Copy(places, o.places)
	roles := slices.Clone(o.roles)
	for i := range roles {
		role, changes := &roles[i], of[objectOf(roles[i].Role)]
		if !hasKind(changes, RemoveRule) {
			continue
		}
		var kept []rbacv1.PolicyRule
		left := []int{}
		for j, rule := range role.Rules {
			place := o.placeOf(int32(i), j)
			if !slices.ContainsFunc(changes, func(c changeKey) bool { return c.kind == RemoveRule && c.rule == place }) {
				kept, left = append(kept, rule), append(left, place)
			}
		}
		role.Rules, places[int32(i)] = kept, left
	}
	o.roles, o.places = roles, places
}

// placeOf is the place that a rule of a role had before others were removed.
func (o *objects) placeOf(role int32, rule int) int {
	if places, ok := o.places[role]; ok {
		return places[rule]
	}
	return rule
}

// labelNamespaces has Pod Security enforced, also in namespaces that only other objects name.
func (o *objects) labelNamespaces(of map[verdict.Object][]changeKey) {
	levels := map[string]psa.Level{}
	for object, changes := range of {
		if hasKind(changes, RestrictPods) {
			levels[object.Name] = psa.LevelRestricted
		} else if hasKind(changes, limitPods) {
			levels[object.Name] = psa.LevelBaseline
		}
	}
	o.namespaces = slices.Clone(o.namespaces)
	for _, name := range slices.Sorted(maps.Keys(levels)) {
		i := slices.IndexFunc(o.namespaces, func(n inventory.Namespace) bool { return n.Name == name })
		if i < 0 {
			i = len(o.namespaces)
			o.namespaces = append(o.namespaces, inventory.Namespace{Name: name})
		}
		labels := map[string]string{}
		maps.Copy(labels, o.namespaces[i].Labels)
		labels[psa.EnforceLevelLabel] = string(levels[name])
		o.namespaces[i].Labels = labels
	}
}

// removeSubjects takes subjects from bindings, which keep their places.
func (o *objects) removeSubjects(of map[verdict.Object][]changeKey) {
	o.bindings = slices.Clone(o.bindings)
	for i := range o.bindings {
		bound := &o.bindings[i]
		changes := of[objectOf(bound.Binding)]
		if len(changes) == 0 {
			continue
		}
		var kept []rbacv1.Subject
		for j, subject := range bound.Subjects {
			isGone := func(c changeKey) bool { return c.kind == RemoveBinding || c.kind == takeSubject && c.rule == j }
			if !slices.ContainsFunc(changes, isGone) {
				kept = append(kept, subject)
			}
		}
		bound.Subjects = kept
	}
}
