package attackpaths

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Why nothing can be changed.
const (
	noneOfNode = "Root on a node controls what runs on it: keep the pod off the node, or take away what the pod gives."
	noneOfUse  = "A pod may use each service account and secret of its namespace: " +
		"take away the right to make pods there, or move them to another namespace."
	noneOfMasters       = "The API server gives system:masters every right: replace the credential that names the group."
	noneOfControlPlane  = "A node of the control plane has the control plane's credentials on its disk: keep other pods off it."
	noneOfStaticPod     = "The pod is static: its file is on the node, and the API server cannot change it."
	noneOfBefore        = "The step needs nothing that the steps before it do not give: take one of these away."
	noneOfClaimTemplate = "The claim is made from a template of a StatefulSet, which cannot be changed: " +
		"make the StatefulSet again with volumes that are no folder of a node."
	noneOfVolume   = "A volume that is attached to the node needs the secret: move the pods that use the volume."
	noneOfEveryPod = "A node may request a token for the service account of each pod on it: take rights from the account."
	noneOfMany     = "Too many rights and objects give the step to change them one by one: take away what the step starts from."
	noneOfLimit    = "Not looked for, because remedies of other steps took the time of this answer: ask for one target."
)

// world is what explanations and remedies of steps need besides the graph.
type world struct {
	*builder // with what the graph was made with

	// mu guards what follows: remedies are looked for one after the other.
	mu sync.Mutex
	// from is what paths begin with and what that reaches, remedies are those found, and made what they change.
	from     map[vertex]*leading
	remedies map[stepPlace]*verdict.Remedy
	made     map[*verdict.Remedy][]changeKey
	// budget is how many vertices the graphs may still have that are made for one answer.
	budget int
}

// workloadPods are the pods of one workload that may run on the same nodes.
type workloadPods struct {
	namespace string
	workload  inventory.Workload
	placement inventory.Placement
}

func alikeOf(p *inventory.Pod) workloadPods {
	return workloadPods{p.Namespace, p.Workload, p.Placement}
}

// nodesOfWorkloads lists the nodes of each workload in order.
func nodesOfWorkloads(pods []*inventory.Pod) map[workloadPods][]string {
	nodes := map[workloadPods][]string{}
	for _, p := range pods {
		if p.Node != "" {
			nodes[alikeOf(p)] = append(nodes[alikeOf(p)], p.Node)
		}
	}
	for key, names := range nodes {
		slices.Sort(names)
		nodes[key] = slices.Compact(names)
	}
	return nodes
}

// remedyBudget is how many vertices the graphs have that are made for the remedies of one answer: some ten seconds.
const remedyBudget = 600_000

// AddRemedies finds what to change so that the steps of paths, which are answers of this graph, are no longer there.
// Each remedy is tried: the graph of the cluster after the change does not have the step, whichever right gives it.
// Of the changes that end a step it is the one that takes the fewest other rights. The time is bounded: steps for
// which none was looked for any more say so. The paths are changed, and the cluster must not have changed since the
// graph was made.
func (g *Graph) AddRemedies(paths ...[]Step) { g.addRemedies(remedyBudget, paths...) }

func (g *Graph) addRemedies(budget int, paths ...[]Step) {
	w := g.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget = budget
	for _, path := range paths {
		for i := range path {
			at := *path[i].place
			if w.remedies[at] == nil && w.budget > 0 {
				w.remedies[at] = g.findRemedy(at)
			}
			path[i].Remedy = w.remedies[at]
			if path[i].Remedy == nil {
				path[i].Remedy = noRemedy(noneOfLimit)
			}
		}
	}
}

// Together makes the changes of several remedies of steps of this graph at once. What they change of one object is one patch:
// JSON patches name entries of lists by their places, which another patch moves.
func (g *Graph) Together(remedies ...*verdict.Remedy) *verdict.Remedy {
	w := g.world
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []changeKey
	for _, r := range remedies {
		all = append(all, w.made[r]...)
	}
	return w.objects.render(all)
}

func noRemedy(why string) *verdict.Remedy { return &verdict.Remedy{None: why} }

// deletion deletes an object.
func deletion(apiVersion string, object verdict.Object) verdict.Change {
	return verdict.Change{Of: verdict.OfObject, Op: verdict.Remove, APIVersion: apiVersion, Object: object}
}

// labelled sets a label of an object of the core API.
func labelled(object verdict.Object, label, value string) verdict.Change {
	e := editor{apiVersion: "v1", object: object}
	e.do(verdict.Add, "/metadata/labels/"+escaped(label), value)
	return e.changes[0]
}

// editor makes changes of one object.
type editor struct {
	apiVersion string
	object     verdict.Object
	changes    []verdict.Change
}

func (e *editor) do(op verdict.Op, path string, value any) {
	c := verdict.Change{Of: verdict.OfObject, Op: op, APIVersion: e.apiVersion, Object: e.object, Path: path}
	if op != verdict.Remove {
		text, err := json.Marshal(value)
		if err != nil {
			panic("a value of a remedy does not encode: " + err.Error())
		}
		c.Value = text
	}
	e.changes = append(e.changes, c)
}

// escaped is a key of an object in a JSON pointer (RFC 6901).
func escaped(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// podsLabel begins the names of labels for the nodes of one workload. A node may not set labels
// with this prefix on itself.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
const podsLabel = "node-restriction.kubernetes.io/"

// maxStealNodes bounds the nodes that a remedy labels: there is a remedy for each kind of pod that a
// node may get, which are thousands in a large cluster.
const maxStealNodes = 3

// keptNodes are the nodes of a workload to which its pods are kept.
func keptNodes(nodes []string) []string { return nodes[:min(maxStealNodes, len(nodes))] }

// keep keeps pods on nodes that have them now, which get a label that the template selects.
func (t *template) keep(p *inventory.Pod, nodes []string) {
	label := podsLabel + labelOf(p)
	for _, node := range keptNodes(nodes) {
		t.changes = append(t.changes, labelled(verdict.Object{Kind: Node, Name: node}, label, ""))
	}
	t.selectNodes(p, label, "")
	if more := len(nodes) - maxStealNodes; more > 0 {
		t.kept = fmt.Sprintf("The pods run on %d more nodes: label the ones that you trust, or the pods have to run on these %d.",
			more, maxStealNodes)
	}
}

// selectNodes selects the nodes with a label, besides those that the template selects.
func (t *template) selectNodes(p *inventory.Pod, label, value string) {
	if p.Placement.Selects() {
		t.do(verdict.Add, t.spec+"/nodeSelector/"+escaped(label), value)
	} else {
		t.do(verdict.Add, t.spec+"/nodeSelector", map[string]string{label: value})
	}
}

// labelOf is a name for the nodes of a workload. Names of labels have at most 63 characters.
func labelOf(p *inventory.Pod) string {
	name := p.Namespace + "." + p.Workload.Name
	if len(name) > 63 {
		name = name[:62] + "x"
	}
	return name
}

const (
	claimKind      = "PersistentVolumeClaim"
	volumeKind     = "PersistentVolume"
	warningOfMany  = "So many rights give the step that other changes may take fewer."
	warningOfClaim = "Pods that mount the claim keep it until they are gone, and lose their data."
)

// render makes changes to the cluster's objects, object by object.
func (o *objects) render(changes []changeKey) *verdict.Remedy {
	r := &verdict.Remedy{}
	rules, subjects := o.rulesWithout(changes), takenSubjects(changes)
	var done []verdict.Object
	for _, c := range changes {
		if slices.Contains(done, c.object) {
			continue
		}
		done = append(done, c.object)
		switch c.kind {
		case removeRule, takeRight:
			role, _ := o.roleOf(rbac.Ref(c.object))
			r.Changes = append(r.Changes, withRules(&o.roles[role], rules[role])...)
		case takeSubject:
			r.Changes = append(r.Changes, withoutSubjects(&o.bindings[o.bindingIndex()[c.object]], subjects[c.object])...)
		case setLevel:
			r.Changes = append(r.Changes, labelled(c.object, psa.EnforceLevelLabel, string(c.level)))
		case removeObject:
			r.Changes = append(r.Changes, deletion("v1", c.object))
			if c.object.Kind == claimKind {
				r.Warning = warningOfClaim
			}
		default:
			of := slices.DeleteFunc(slices.Clone(changes), func(o changeKey) bool { return o.object != c.object })
			changes, warning := o.renderTemplates(of)
			r.Changes = append(r.Changes, changes...)
			r.Warning = strings.TrimSpace(r.Warning + " " + warning)
		}
	}
	r.Changes = perObject(r.Changes)
	r.Disrupts = disruption(r.Changes)
	return r
}

func (g *Graph) render(p *plan) *verdict.Remedy {
	r := g.world.objects.render(p.changes)
	r.OtherRights, g.world.made[r] = p.lost, p.changes
	return r
}

// perObject moves the changes of fields of one object to the first of them, and makes each label once.
func perObject(changes []verdict.Change) []verdict.Change {
	var all []verdict.Change
	for i := range changes {
		c := &changes[i]
		after, known := len(all), false
		for j := range all {
			if o := &all[j]; c.Path != "" && o.Path != "" && o.Object == c.Object {
				after = j + 1
				known = known || c.Op == verdict.Add && c.Object.Kind == Node && o.Path == c.Path
			}
		}
		if !known {
			all = slices.Insert(all, after, *c)
		}
	}
	return all
}

func isDeletion(c *verdict.Change) bool { return c.Path == "" && c.Op == verdict.Remove }

// disruption says what changes delete, start again, or take from Kubernetes; empty if they do not.
func disruption(changes []verdict.Change) string {
	var all []string
	for _, part := range [...]struct {
		text string
		is   func(*verdict.Change) bool
	}{
		{"This deletes ", isDeletion},
		{"This starts the pods again of ", func(c *verdict.Change) bool {
			return c.APIVersion == "apps/v1" && c.Object.Kind != "ReplicaSet" && !isDeletion(c)
		}},
		{"Kubernetes makes this itself, and components that rely on it stop working: ", func(c *verdict.Change) bool {
			return c.APIVersion == rbacAPI &&
				(strings.HasPrefix(c.Object.Name, "system:") || strings.HasSuffix(c.Path, escaped(keepChanged)))
		}},
	} {
		var objects []string
		for i := range changes {
			if text := changes[i].Object.String(); part.is(&changes[i]) && !slices.Contains(objects, text) {
				objects = append(objects, text)
			}
		}
		if len(objects) > 0 {
			all = append(all, part.text+strings.Join(objects, ", ")+".")
		}
	}
	return strings.Join(all, " ")
}

// renderTemplates changes the templates of pods, and deletes what they do not replace.
func (o *objects) renderTemplates(changes []changeKey) (all []verdict.Change, warning string) {
	patched := map[verdict.Object]bool{}
	for _, p := range o.pods {
		t, concerned := templateOf(p), false
		for _, c := range changes {
			if t.object == c.object || templateObject(p) == c.object {
				concerned = t.change(o, p, c) || concerned
			}
		}
		if !concerned {
			continue
		}
		if warning == "" {
			warning = t.warning(changes[0])
		}
		if !patched[t.object] {
			patched[t.object], all = len(t.changes) > 0, append(all, t.changes...)
		}
		for _, c := range t.replaced(p) {
			if !slices.ContainsFunc(all, func(o verdict.Change) bool { return o.Path == "" && o.Object == c.Object }) {
				all = append(all, c)
			}
		}
	}
	return all, warning
}

// change makes a change of the template that a pod is made from, and reports whether the pod is concerned.
func (t *template) change(o *objects, p *inventory.Pod, c changeKey) (concerned bool) {
	switch c.kind {
	case removePods:
	case otherAccount:
		if t.spec != "" {
			t.do(verdict.Add, t.spec+"/serviceAccountName", defaultAccount)
		}
	case keepPods:
		t.keep(p, o.alike()[alikeOf(p)])
	case placePods:
		t.placeIn(p, c.placing)
	default:
		for i := range p.Fields {
			if f := &p.Fields[i]; c.takes(f) || c.kind == takeHost && f.Gives == inventory.GivesClaim && p.ClaimGives(f.Secret, o.claimed) {
				t.take(f)
				concerned = true
			}
		}
		return concerned
	}
	return true
}

// takes reports whether a change takes a field from pods, whatever is behind claims.
func (k changeKey) takes(f *inventory.Field) bool {
	switch {
	case k.kind == takeHost:
		return f.Gives == inventory.GivesHost
	case f.Secret != k.secret:
		return false
	case k.secret == "":
		return f.Gives == inventory.GivesToken
	}
	return f.Gives == inventory.GivesSecret || k.kind == takeMention && f.Gives == inventory.GivesNodeSecret
}
