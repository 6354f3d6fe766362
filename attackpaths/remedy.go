package attackpaths

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
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

func newWorld(b *builder) *world {
	b.objects.rights, b.objects.claimed = b.Graph, b.references.Claimed
	return &world{
		builder: b, from: map[vertex]*leading{}, remedies: map[stepPlace]*verdict.Remedy{}, made: map[*verdict.Remedy][]changeKey{},
	}
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
