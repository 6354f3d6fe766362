package attackpaths

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// changeKind is what a change takes away. Those that a [Change] may have come first, in their order.
type changeKind uint8

const (
	// takeSubject takes a subject from a binding, or all subjects.
	takeSubject changeKind = iota
	// removeRule removes a rule of a role, and removeMount what the containers of pods see of a secret, or their token.
	removeRule
	removeMount
	// setLevel sets the Pod Security level of a namespace.
	setLevel
	// takeRight takes a right from the rules of a role.
	takeRight
	// takeHost takes rights over the host from pods, and takeMention each mention of a secret.
	takeHost
	takeMention
	// otherAccount gives pods the account default.
	otherAccount
	// keepPods keeps pods to nodes that run pods of their workload, and placePods to the nodes of a pool.
	keepPods
	placePods
	// removePods removes pods without a template, and removeObject a secret, claim or volume.
	removePods
	removeObject
)

// publicKinds are the kinds of a [Change].
var publicKinds = [...]ChangeKind{
	takeSubject: RemoveBinding, removeRule: RemoveRule, removeMount: RemoveMount, setLevel: RestrictPods,
}

// changeKey identifies a change. Its object is a role, a binding, an object with the template of pods, a namespace, a secret, a
// claim or a volume.
type changeKey struct {
	kind   changeKind
	object verdict.Object
	// rule is the place of a rule in its role or of a subject in its binding, from zero, or allSubjects; zero for others.
	rule   int
	secret string
	// level is what setLevel sets, right what takeRight takes, and placing the pool to which placePods moves pods.
	level   psa.Level
	right   wantedRight
	placing *Placing
}

func (k changeKey) compare(o changeKey) int {
	return cmp.Or(cmp.Compare(k.kind, o.kind), k.object.Compare(o.object), cmp.Compare(k.rule, o.rule),
		strings.Compare(k.secret, o.secret))
}

func objectOf(r rbac.Ref) verdict.Object {
	return verdict.Object{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// mountIn is the change that no longer mounts a secret, or a token for the empty name, into a pod.
func mountIn(p *inventory.Pod, secret string) changeKey {
	return changeKey{kind: removeMount, object: templateObject(p), secret: secret}
}

// templateObject is the object whose pod template a pod is made from, or the pod.
func templateObject(p *inventory.Pod) verdict.Object {
	for i := range workloads {
		if w := &workloads[i]; requestKinds[w.create].resource == p.Workload.Resource && w.create != createCronJobs {
			return verdict.Object{Kind: w.kind, Namespace: p.Namespace, Name: p.Workload.Name}
		}
	}
	return verdict.Object{Kind: Pod, Namespace: p.Namespace, Name: p.Name.Name}
}

// without are the objects after changes. Roles, their rules and bindings keep their places.
func (o *objects) without(c *Cluster, changes []changeKey) *objects {
	left := *o
	ofPods := map[verdict.Object][]changeKey{}
	for _, change := range changes {
		switch change.kind {
		case takeSubject, removeRule, takeRight: // all of them together, below
		case setLevel:
			left.setLevel(change.object.Name, change.level)
		case removeObject:
			left.remove(change.object)
		default:
			ofPods[change.object] = append(ofPods[change.object], change)
		}
	}
	left.takeRights(changes)
	left.takeSubjects(changes)
	if len(ofPods) > 0 {
		left.changePods(c, ofPods)
	}
	return &left
}

// remove removes a secret, claim or volume.
func (o *objects) remove(object verdict.Object) {
	removed := map[verdict.Object]bool{object: true}
	maps.Copy(removed, o.removed)
	o.removed = removed
	o.secrets = slices.DeleteFunc(slices.Clone(o.secrets), func(s inventory.Secret) bool {
		return object == verdict.Object{Kind: Secret, Namespace: s.Namespace, Name: s.Name.Name}
	})
}

// setLevel sets the Pod Security level of a namespace, which perhaps only other objects name.
func (o *objects) setLevel(namespace string, level psa.Level) {
	o.namespaces = slices.Clone(o.namespaces)
	i := slices.IndexFunc(o.namespaces, func(n inventory.Namespace) bool { return n.Name == namespace })
	if i < 0 {
		i = len(o.namespaces)
		o.namespaces = append(o.namespaces, inventory.Namespace{Name: namespace})
	}
	n := &o.namespaces[i]
	n.Labels = withLabels(n.Labels, map[string]string{psa.EnforceLevelLabel: string(level)})
}

func withLabels(labels, more map[string]string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, labels)
	maps.Copy(all, more)
	return all
}

// places are where the subjects are that are taken from a binding.
type places []int

// allSubjects stands for the place of each subject of a binding.
const allSubjects = -1

func (p places) has(place int) bool {
	return slices.Contains(p, place) || slices.Contains(p, allSubjects)
}

// takenSubjects lists the subjects that changes take from bindings.
func takenSubjects(changes []changeKey) map[verdict.Object]places {
	taken := map[verdict.Object]places{}
	for _, c := range changes {
		if c.kind == takeSubject {
			taken[c.object] = append(taken[c.object], c.rule)
		}
	}
	return taken
}

func (o *objects) takeSubjects(changes []changeKey) {
	taken := takenSubjects(changes)
	if len(taken) == 0 {
		return
	}
	o.bindings = slices.Clone(o.bindings)
	for i := range o.bindings {
		bound := &o.bindings[i]
		gone := taken[objectOf(bound.Binding)]
		if gone == nil {
			continue
		}
		var kept []rbacv1.Subject
		for j, subject := range bound.Subjects {
			if !gone.has(j) {
				kept = append(kept, subject)
			}
		}
		bound.Subjects = kept
	}
}
