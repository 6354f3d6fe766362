package attackpaths

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
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
	// right is what takeRight takes, and placing is the pool to which placePods moves pods.
	right   wantedRight
	placing *Placing
}

// The kinds of changes that only remedies of steps and of placing make. Their objects are roles, bindings, the objects
// with the templates of pods, namespaces, secrets, claims and volumes.
const (
	takeRight    ChangeKind = "right"
	takeSubject  ChangeKind = "subject"
	takeHost     ChangeKind = "rights over the host"
	takeMention  ChangeKind = "each mention of a secret"
	otherAccount ChangeKind = "another account"
	keepPods     ChangeKind = "nodes of a workload"
	placePods    ChangeKind = "nodes of a pool"
	removePods   ChangeKind = "pods without a template"
	limitPods    ChangeKind = "baseline"
	removeSecret ChangeKind = "secret"
	removeClaim  ChangeKind = "claim"
	removeVolume ChangeKind = "volume"
)

// level is the Pod Security level that a change of a namespace sets.
func (k changeKey) level() psa.Level {
	if k.kind == RestrictPods {
		return psa.LevelRestricted
	}
	return psa.LevelBaseline
}

func objectOf(r rbac.Ref) verdict.Object {
	return verdict.Object{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// mountIn is the change that no longer mounts a secret, or a token for the empty name, into a pod.
func mountIn(p *inventory.Pod, secret string) changeKey {
	return changeKey{kind: RemoveMount, object: templateObject(p), secret: secret}
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
	gone, ofPods := map[verdict.Object]bool{}, map[verdict.Object][]changeKey{}
	for _, change := range changes {
		switch change.kind {
		case RemoveBinding, RemoveRule, takeSubject, takeRight: // all of them together, below
		case RestrictPods, limitPods:
			left.setLevel(change.object.Name, change.level())
		case removeSecret, removeClaim, removeVolume:
			gone[change.object] = true
		default:
			ofPods[change.object] = append(ofPods[change.object], change)
		}
	}
	left.takeRights(changes)
	left.takeSubjects(takenSubjects(changes))
	if len(gone) > 0 {
		left.noVolumes = gone
		left.secrets = slices.DeleteFunc(slices.Clone(o.secrets), func(s inventory.Secret) bool {
			return gone[verdict.Object{Kind: Secret, Namespace: s.Namespace, Name: s.Name.Name}]
		})
	}
	if len(ofPods) > 0 {
		left.changePods(c, ofPods)
	}
	return &left
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
		switch c.kind {
		case RemoveBinding:
			taken[c.object] = append(taken[c.object], allSubjects)
		case takeSubject:
			taken[c.object] = append(taken[c.object], c.rule)
		}
	}
	return taken
}

func (o *objects) takeSubjects(taken map[verdict.Object]places) {
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
