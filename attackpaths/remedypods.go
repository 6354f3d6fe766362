package attackpaths

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// changePod takes away what a pod gives.
func (g *Graph) changePod(s *stepSearch, code Code, place int32, to key) (all []*plan, none string) {
	switch {
	case code == ControlPlaneNode:
		return nil, noneOfControlPlane
	case code == PodOnNode:
		return nil, noneOfNode
	}
	p := s.pods[place]
	kind, secret := removeMount, ""
	switch {
	case code == PodEscape && p.ClaimOfTemplateGives(g.world.references.Claimed):
		return nil, noneOfClaimTemplate
	case code == PodEscape:
		kind = takeHost
	case code == StealPods:
		kind = keepPods
	case code == TokenOfPodOnNode && g.world.mintsUnnamed(p):
		if kind = otherAccount; p.ServiceAccount == defaultAccount {
			return nil, noneOfEveryPod
		}
	case to.kind == isSecret:
		secret = to.name
	}
	return changeTemplate(p, kind, secret)
}

// changeTemplate changes the template of a pod. A pod without one is deleted: its spec cannot be changed.
func changeTemplate(p *inventory.Pod, kind changeKind, secret string) (all []*plan, none string) {
	switch {
	case p.Mirror:
		return nil, noneOfStaticPod
	case p.Controller != "":
		return nil, noneOfController(p)
	}
	t := templateOf(p)
	if t.spec == "" {
		kind, secret = removePods, ""
	}
	return []*plan{{changes: []changeKey{{kind: kind, object: t.object, secret: secret}}, harm: 1, disrupts: true}}, ""
}

// nodeOf is the node of a credential.
func (g *Graph) nodeOf(credential vertex) string {
	k := g.keys[credential]
	if k.kind == isLimited || k.kind == isAssociated {
		k = g.keys[k.of]
	}
	return strings.TrimPrefix(k.name, nodeidentity.UserPrefix)
}

// unreadOnNode takes a secret from the first pod because of which a node may read it.
func (g *Graph) unreadOnNode(s *stepSearch, credential vertex, secret key) (all []*plan, none string) {
	node := s.nodeOf(credential)
	together := &plan{disrupts: true, harm: 1}
	for _, path := range g.world.cluster.Relations.Paths(node, graph.Secret, secret.namespace, secret.name) {
		i := slices.IndexFunc(g.pods, func(p *inventory.Pod) bool {
			return p.Namespace == secret.namespace && p.Name.Name == path[0].To.Name && p.Node == node
		})
		named := func(f inventory.Field) bool {
			return f.Secret == secret.name && f.Gives != 0 && f.Gives != inventory.GivesClaim
		}
		if path[0].To.Kind != Pod || i < 0 || !slices.ContainsFunc(g.pods[i].Fields, named) {
			return nil, noneOfVolume
		}
		found, none := changeTemplate(g.pods[i], takeMention, secret.name)
		if none != "" {
			return nil, none
		}
		together.changes = append(together.changes, found[0].changes...)
	}
	if len(together.changes) == 0 {
		return nil, noneOfVolume
	}
	return []*plan{together}, ""
}

// defaultAccount is the account that each namespace has.
const defaultAccount = "default"

func noneOfController(p *inventory.Pod) string {
	return "The pod is made by " + p.Controller + ", of which no resource is known that could be changed."
}

// warning says what a change breaks.
func (t *template) warning(c changeKey) string {
	switch {
	case t.spec == "":
		return "The spec of a " + t.object.Kind + " cannot be changed: make it again without what it gives here."
	case c.kind == takeHost:
		return "What manages the host from the pods, as agents of networks and storage do, no longer can."
	case c.kind == removeMount && c.secret == "":
		return "What calls the API from the pods with this token no longer can."
	case c.kind == removeMount || c.kind == takeMention:
		return "What reads the secret in the pods no longer can."
	}
	return t.kept
}

// template edits the template of a pod.
type template struct {
	editor
	// spec is the path of the pod's spec; empty for a pod without a template.
	spec string
	// added is true if only the pod itself has some of what is taken away.
	added bool
	// kept says which nodes have pods that are kept to others, and claimed are the volumes of nodes by their claims.
	kept    string
	claimed map[inventory.Name][]inventory.Volume
	// job is the object to delete besides, and pods are true if pods that exist are not replaced.
	job  *verdict.Object
	pods bool
}

// scheduled is the name of a Job that a CronJob makes: its own, and the time in minutes.
var scheduled = regexp.MustCompile(`^(.+)-[0-9]{8,10}$`)

// templateOf finds the object whose template a pod is made from.
func templateOf(p *inventory.Pod) *template {
	t := &template{editor: editor{apiVersion: "v1", object: templateObject(p)}}
	if job := t.object; job.Kind == "Job" {
		t.job = &job
		if match := scheduled.FindStringSubmatch(job.Name); match != nil {
			t.object.Kind, t.object.Name = "CronJob", match[1]
		}
	}
	for i := range workloads {
		if w := &workloads[i]; w.kind == t.object.Kind {
			t.apiVersion = schema.GroupVersion{Group: requestKinds[w.create].group, Version: "v1"}.String()
			if w.create != createJobs { // whose template cannot be changed
				t.spec = "/" + strings.Join(w.template, "/")
			}
		}
	}
	t.pods = t.object.Kind == "ReplicaSet" || t.object.Kind == "ReplicationController"
	return t
}

// take takes fields away, and reports whether the pod has some.
func (t *template) take(p *inventory.Pod, wanted func(*inventory.Field) bool) (found bool) {
	for i := range p.Fields {
		f := &p.Fields[i]
		if !wanted(f) {
			continue
		}
		found = true
		if f.Added || t.spec == "" {
			t.added = true
		} else {
			t.takeField(f)
		}
	}
	return found
}

func (t *template) takeField(f *inventory.Field) {
	for _, c := range f.Checks {
		t.do(verdict.Test, t.spec+c.Path, json.RawMessage(c.Value))
	}
	if f.Value != "" {
		t.do(verdict.Add, t.spec+f.Path, json.RawMessage(f.Value))
		return
	}
	t.do(verdict.Remove, t.spec+f.Path, nil)
}

// replacePods deletes what a changed template does not replace: a Job, whose template cannot be
// changed, pods of a ReplicaSet or ReplicationController, and pods without a template.
func (t *template) replacePods(p *inventory.Pod) {
	pod := verdict.Object{Kind: Pod, Namespace: p.Namespace, Name: p.Name.Name}
	switch {
	case t.job != nil:
		t.changes = append(t.changes, deletion("batch/v1", *t.job))
	case t.spec == "" || t.pods || t.added:
		t.changes = append(t.changes, deletion("v1", pod))
	}
}
