package source

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// ObjectRef names an object of any kind.
type ObjectRef struct {
	// Kind is the Kubernetes kind, and Group its API group.
	Kind, Group, Namespace, Name string
}

func (o ObjectRef) String() string { return o.object().String() }

func (o ObjectRef) object() verdict.Object {
	return verdict.Object{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
}

// The actions of applied changes.
const (
	Added    = "Added"
	Replaced = "Replaced"
	Removed  = "Removed"
)

// Applied is one object that a change touched.
type Applied struct {
	Action string
	ObjectRef
	// File and Line are the place of an added object.
	File string
	Line int
	// Because says why an object changes that was not named: ", which Deployment shop/web owns".
	Because string
	// Objects is how many objects there are, if more than one: the pods of a workload.
	Objects int
}

// overlay is what a state has only because of changes.
type overlay struct {
	// bindings are the added bindings. If a role of one of them does not exist, this is a gap, also in
	// a complete state.
	bindings map[rbac.Ref]bool
	// withoutRBAC is true if the state had no roles and bindings before.
	withoutRBAC bool
	// hadPods says of nodes of which pods were added or removed whether there were any before.
	hadPods map[string]bool
	// claims are the claims that controllers will make for pods, by pod. Only the inventory has them.
	claims map[inventory.Name][]string
	// pending are pods that no node has yet, and relations what they would relate their nodes to: the
	// node of each is its place.
	pending   []pendingPod
	relations *graph.Graph
}

type pendingPod struct {
	pod *inventory.Pod
	of  verdict.Object
}

// NotFoundError says that an object to remove does not exist.
type NotFoundError struct {
	Object ObjectRef
	// Known are names of the kind in the namespace, for suggestions.
	Known []string
	// Hint says more; empty if there is nothing.
	Hint string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("there is no %s%s", e.Object, e.Hint)
}

// changer applies changes to a state.
type changer struct {
	*State
	applied []Applied
	notes   []string
	// roles are cluster roles that changed, as they were and as they are.
	roles []*rbacv1.ClusterRole
	// index has the places of applied changes.
	index map[ObjectRef]int
}

// Change removes objects from the state, then adds the objects of the changes, which replace objects of the
// same kind, namespace and name. It does what the cluster's controllers then do: the rules of aggregated
// cluster roles, the pods of workloads, and what a namespace, a node or a workload takes with it.
//
// The state must have an inventory. It must not be in use. Notes are facts that the user should know.
func (s *State) Change(c *Changes, without []ObjectRef) (applied []Applied, notes []string, err error) {
	ch := &changer{State: s, index: map[ObjectRef]int{}}
	if s.overlay == nil {
		s.overlay = &overlay{
			bindings: map[rbac.Ref]bool{}, withoutRBAC: !s.RBACLoaded(), hadPods: map[string]bool{}, relations: graph.New(),
			claims: map[inventory.Name][]string{},
		}
	}
	for _, o := range without {
		if err := ch.exists(o); err != nil {
			return nil, nil, err
		}
	}
	for _, o := range without {
		ch.removeNamed(o)
	}
	if c != nil {
		if err := ch.add(c); err != nil {
			return nil, nil, err
		}
	}
	ch.aggregate()
	return ch.applied, ch.notes, nil
}

// AddPlanned adds the pods that the templates in the files of the state make and that are not in them, as [State.Change]
// does. A workload keeps its pods if they are as its template has them.
func (s *State) AddPlanned() (notes []string, err error) {
	if len(s.templates) == 0 {
		return nil, nil
	}
	_, notes, err = s.Change(&Changes{added: s.templates}, nil)
	s.templates = nil
	return notes, err
}

// note records what happened to an object. A later change of the same object is the one that counts.
func (c *changer) note(a Applied) {
	if at, ok := c.index[a.ObjectRef]; ok {
		if known := c.applied[at]; known.Action == Removed && a.Action == Added {
			a.Action = Replaced
		}
		c.applied[at] = a
		return
	}
	c.index[a.ObjectRef] = len(c.applied)
	c.applied = append(c.applied, a)
}

func (c *changer) notef(format string, args ...any) {
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

// add adds all objects: workloads and pods last, because they depend on service accounts.
func (c *changer) add(changes *Changes) error {
	seen := map[ObjectRef]bool{}
	for _, pods := range [...]bool{false, true} {
		for i := range changes.added {
			a := &changes.added[i]
			if isPod := a.workload != nil || a.object.kind == kindPod; isPod != pods {
				continue
			}
			ref := a.ref()
			if seen[ref] {
				c.notef("%s: %s is given twice; the last one counts", a.place(), ref)
			}
			seen[ref] = true
			if err := c.addOne(a); err != nil {
				return err
			}
		}
	}
	c.unknownNamespaces(changes)
	return nil
}

func (a *addition) ref() ObjectRef {
	if w := a.workload; w != nil {
		return ObjectRef{Kind: w.kind, Group: w.group, Namespace: w.pod.Namespace, Name: w.identity().Name}
	}
	o := a.object
	return ObjectRef{Kind: o.kind.String(), Group: o.kind.describe().group, Namespace: o.api.GetNamespace(), Name: o.api.GetName()}
}

func (c *changer) addOne(a *addition) error {
	switch {
	case a.workload != nil:
		return c.addWorkload(a)
	case a.object.kind == kindPod:
		return c.addPod(a)
	}
	o := a.object.api
	done := Applied{Action: Added, ObjectRef: a.ref(), File: a.file, Line: a.line}
	switch o := o.(type) {
	case *rbacv1.ClusterRole:
		if was, ok := c.RBAC.ClusterRole(o.Name); ok {
			c.roles = append(c.roles, was)
		}
		c.roles = append(c.roles, o)
	case *rbacv1.RoleBinding:
		c.addBinding(a, rbac.Ref{Kind: "RoleBinding", Namespace: o.Namespace, Name: o.Name}, roleOf(o.RoleRef, o.Namespace))
	case *rbacv1.ClusterRoleBinding:
		c.addBinding(a, rbac.Ref{Kind: "ClusterRoleBinding", Name: o.Name}, roleOf(o.RoleRef, ""))
	case *corev1.ServiceAccount:
		if was, ok := c.ServiceAccount(o.Namespace, o.Name); ok && o.UID == "" {
			o.UID = was.UID
		}
	case *corev1.Node:
		if was, ok := c.NodeInfo(o.Name); ok && o.UID == "" {
			o.UID = was.UID
		}
	}
	replaced, err := c.set(a.object.kind, o, 0)
	if replaced {
		done.Action = Replaced
	}
	c.note(done)
	return err
}

func roleOf(ref rbacv1.RoleRef, namespace string) rbac.Ref {
	if ref.Kind != "Role" {
		namespace = ""
	}
	return rbac.Ref{Kind: ref.Kind, Namespace: namespace, Name: ref.Name}
}

// addBinding notes a binding. The API server does not change the role of a binding.
func (c *changer) addBinding(a *addition, ref, role rbac.Ref) {
	c.overlay.bindings[ref] = true
	for _, b := range c.RBAC.Bindings() {
		if b.Binding == ref && b.Role != role {
			c.notef("%s: %s refers to %s, and in the state to %s: the API server refuses the change unless the binding is deleted first",
				a.place(), ref, role, b.Role)
		}
	}
}

// addPod adds a pod that is bound to a node only if it names one.
func (c *changer) addPod(a *addition) error {
	pod := a.object.api.(*corev1.Pod)
	done := Applied{Action: Added, ObjectRef: a.ref(), File: a.file, Line: a.line}
	if c.holds(kindPod, pod.Namespace, pod.Name) || c.Inventory.Has(kindPod.String(), pod.Namespace, pod.Name) {
		done.Action = Replaced
		if was, ok := c.Pod(pod.Namespace, pod.Name); ok {
			pod.UID, pod.Spec.NodeName = was.UID, orDefault(pod.Spec.NodeName, was.Spec.NodeName)
		}
		c.removePod(pod.Namespace, pod.Name)
	}
	c.admit(pod)
	c.note(done)
	return c.place(pod, inventory.Workload{}, nil, done.object())
}

// place adds a pod: to its node, or to the pods that wait for one. Claims are made by the controller of its workload.
func (c *changer) place(pod *corev1.Pod, w inventory.Workload, claims []*corev1.PersistentVolumeClaim, of verdict.Object) error {
	c.addClaims(pod, append(ephemeralClaims(pod), claims...))
	if node := pod.Spec.NodeName; node != "" {
		c.noteNode(node)
		_, err := c.set(kindPod, pod, 0)
		return err
	}
	planned := c.Inventory.SetPlanned(pod, w)
	pending := pod.DeepCopy()
	pending.Spec.NodeName = fmt.Sprint(len(c.overlay.pending))
	c.overlay.relations.SetPod(pending)
	c.overlay.pending = append(c.overlay.pending, pendingPod{planned, of})
	return nil
}

// addClaims adds the claims that controllers make for a pod. They are no objects of the state: which volumes they are bound to is
// not known before.
func (c *changer) addClaims(pod *corev1.Pod, claims []*corev1.PersistentVolumeClaim) {
	of := inventory.Name{Namespace: pod.Namespace, Name: pod.Name}
	for _, claim := range claims {
		if !c.Inventory.Has(kindPersistentVolumeClaim.String(), of.Namespace, claim.Name) {
			claim.Namespace = of.Namespace
			c.Inventory.Set(claim)
			c.overlay.claims[of] = append(c.overlay.claims[of], claim.Name)
		}
	}
}

// addWorkload adds one pod for those that the controller will make. A workload whose pods are as its
// template has them keeps them.
func (c *changer) addWorkload(a *addition) error {
	w := a.workload
	done := Applied{Action: Added, ObjectRef: a.ref(), File: a.file, Line: a.line}
	pod := w.pod.DeepCopy()
	pod.Annotations = nil
	c.admit(pod)
	known := c.podsOfWorkload(done.ObjectRef)
	if len(known) > 0 {
		done.Action = Replaced
		planned := inventory.NewPlanned(pod, w.identity())
		if !slices.ContainsFunc(known, func(p *inventory.Pod) bool { return !p.Like(planned) || p.Planned }) {
			done.Because = ", whose pods stay as they are"
			c.note(done)
			return nil
		}
		c.removePods(known)
	}
	c.note(done)
	for c.Inventory.Has(kindPod.String(), pod.Namespace, pod.Name) {
		pod.Name += "*" // of a workload of another kind
	}
	return c.place(pod, w.identity(), w.claims, done.object())
}

// unknownNamespaces notes namespaces that do not exist.
func (c *changer) unknownNamespaces(changes *Changes) {
	if c.Counts()[kindNamespace.String()] == 0 {
		return
	}
	missing := map[string]bool{}
	for i := range changes.added {
		if ns := changes.added[i].ref().Namespace; ns != "" && !c.holds(kindNamespace, "", ns) {
			missing[ns] = true
		}
	}
	for _, ns := range slices.Sorted(maps.Keys(missing)) {
		c.notef("namespace %s is in neither the state nor the manifests: the API server refuses its objects, and its labels are unknown",
			ns)
	}
}

// aggregate sets the rules of aggregated cluster roles as the cluster's controller does.
func (c *changer) aggregate() {
	if len(c.roles) == 0 {
		return
	}
	for _, name := range c.RBAC.Aggregate(c.roles) {
		ref := ObjectRef{Kind: "ClusterRole", Group: rbacv1.GroupName, Name: name}
		if at, ok := c.index[ref]; ok {
			c.applied[at].Because = ", whose rules come from the roles that it selects"
			continue
		}
		role, _ := c.RBAC.ClusterRole(name)
		done := Applied{Action: Replaced, ObjectRef: ref, Because: ", which aggregates other cluster roles that changed"}
		if from := c.selected(role); from != nil {
			done.File, done.Line, done.Because = from.File, from.Line, ", which aggregates "+from.ObjectRef.String()
		}
		c.note(done)
	}
}

// selected is a change of a role that an aggregated role selects, one with a place if there is one.
func (c *changer) selected(role *rbacv1.ClusterRole) *Applied {
	var found *Applied
	for i := range c.applied {
		a := &c.applied[i]
		if a.Kind != "ClusterRole" || !slices.ContainsFunc(c.roles, func(r *rbacv1.ClusterRole) bool {
			return r.Name == a.Name && rbac.Selects(role, r)
		}) {
			continue
		}
		if found == nil || found.File == "" && a.File != "" {
			found = a
		}
	}
	return found
}
