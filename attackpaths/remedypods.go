package attackpaths

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	psa "k8s.io/pod-security-admission/api"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// ending lists what could end a step of a technique that an object makes, or says why nothing can: neither for a step by a right.
type ending func(g *Graph, s *stepSearch, u *use) (all []*plan, none string)

// endings is a table and never changes.
var endings = map[Code]ending{
	PodOnNode: never(noneOfNode), ControlPlaneNode: never(noneOfControlPlane), Masters: ofIdentities,
	PodTokenOnNode: ofPods(removeMount), PodToken: ofPods(removeMount), PodSecret: ofPods(removeMount),
	TokenOfPodOnNode: ofPods(otherAccount), PodEscape: ofPods(takeHost), StealPods: ofPods(keepPods), SecretOnNode: unreadOnNode,
	ServiceAccountTokenSecret: ofSecrets, BootstrapToken: ofSecrets, VolumeControl: ofVolumes, PodCreate: ofNamespaces,
}

func never(why string) ending {
	return func(*Graph, *stepSearch, *use) ([]*plan, string) { return nil, why }
}

func ofIdentities(_ *Graph, s *stepSearch, u *use) (all []*plan, none string) {
	if len(u.from) == 1 && s.keys[u.from[0].vertex].kind != isRole {
		none = noneOfMasters
	}
	return nil, none
}

func ofSecrets(_ *Graph, s *stepSearch, u *use) (all []*plan, none string) {
	if from := s.keys[u.from[0].vertex]; from.kind == isSecret && len(u.from) == 1 {
		all = deletes(Secret, from.namespace, from.name)
	}
	return all, ""
}

// ofVolumes deletes a volume, or a claim with the volumes that are for it alone: another claim could get them.
func ofVolumes(g *Graph, s *stepSearch, u *use) (all []*plan, none string) {
	switch to := s.keys[u.To]; to.name {
	case claimedVolume:
		namespace, name, _ := strings.Cut(to.namespace, "/")
		all = deletes(claimKind, namespace, name)
		for _, v := range g.world.references.Claimed[inventory.Name{Namespace: namespace, Name: name}] {
			if v.DependsOn == "" {
				all[0].changes = append(all[0].changes, deletes(volumeKind, "", v.Name)[0].changes...)
			}
		}
	case freeVolume:
		all = deletes(volumeKind, "", to.namespace)
	}
	return all, ""
}

func deletes(kind, namespace, name string) []*plan {
	object := verdict.Object{Kind: kind, Namespace: namespace, Name: name}
	return []*plan{{changes: []changeKey{{kind: removeObject, object: object}}, disrupts: true}}
}

// ofNamespaces makes a namespace refuse pods with rights over their host. Pods that have them now cannot be made again.
func ofNamespaces(g *Graph, s *stepSearch, u *use) (all []*plan, none string) {
	from, to := s.keys[u.from[0].vertex], s.keys[u.To]
	switch {
	case len(u.from) > 1 || from.kind != isNamespace:
		return nil, ""
	case to.kind != isFact || to.name != everyNode:
		return nil, noneOfUse
	}
	refused := 0
	for _, p := range g.pods {
		if p.Namespace == from.name && (len(p.Escapes) > 0 || p.HostPath) {
			refused++
		}
	}
	change := changeKey{kind: setLevel, object: verdict.Object{Kind: Namespace, Name: from.name}, level: psa.LevelBaseline}
	return []*plan{{changes: []changeKey{change}, own: -refused, harm: 1}}, ""
}

// ofPods changes the template of the pod that makes a step.
func ofPods(kind changeKind) ending {
	return func(g *Graph, s *stepSearch, u *use) ([]*plan, string) {
		if s.keys[u.from[0].vertex].kind == isRight {
			return nil, "" // the grant of the right is an edge of its own
		}
		p, to, kind, secret := s.pods[u.Arg], s.keys[u.To], kind, ""
		switch {
		case kind == takeHost && p.ClaimOfTemplateGives(g.world.references.Claimed):
			return nil, noneOfClaimTemplate
		case kind == otherAccount && !g.world.mintsUnnamed(p):
			kind = removeMount
		case kind == otherAccount && p.ServiceAccount == defaultAccount:
			return nil, noneOfEveryPod
		case kind == removeMount && to.kind == isSecret:
			secret = to.name
		}
		return changeTemplate(p, kind, secret)
	}
}

// unchangeable says why the template of a pod cannot be changed; empty if it can.
func unchangeable(p *inventory.Pod) string {
	switch {
	case p.Mirror:
		return noneOfStaticPod
	case p.Controller != "":
		return noneOfController(p)
	}
	return ""
}

// changeTemplate changes the template of a pod. A pod without one is deleted: its spec cannot be changed.
func changeTemplate(p *inventory.Pod, kind changeKind, secret string) (all []*plan, none string) {
	if none := unchangeable(p); none != "" {
		return nil, none
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
func unreadOnNode(g *Graph, s *stepSearch, u *use) (all []*plan, none string) {
	node, secret := s.nodeOf(u.from[0].vertex), s.keys[u.To]
	together := &plan{disrupts: true, harm: 1}
	for _, path := range g.world.cluster.Relations.Paths(node, graph.Secret, secret.namespace, secret.name) {
		i := slices.IndexFunc(g.pods, func(p *inventory.Pod) bool {
			return p.Namespace == secret.namespace && p.Name.Name == path[0].To.Name && p.Node == node
		})
		named := func(f inventory.Field) bool { return (changeKey{kind: takeMention, secret: secret.name}).takes(&f) }
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
	// kept says which nodes have pods that are kept to others.
	kept string
	// job is the object to delete besides.
	job *verdict.Object
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
	return t
}

// take takes a field away.
func (t *template) take(f *inventory.Field) {
	if f.Added || t.spec == "" {
		t.added = true
		return
	}
	for _, c := range f.Checks {
		t.do(verdict.Test, t.spec+c.Path, json.RawMessage(c.Value))
	}
	if f.Value != "" {
		t.do(verdict.Add, t.spec+f.Path, json.RawMessage(f.Value))
	} else {
		t.do(verdict.Remove, t.spec+f.Path, nil)
	}
}

// replaced deletes what a changed template does not replace: a Job, whose template cannot be changed, pods of a ReplicaSet or
// ReplicationController, and pods without a template.
func (t *template) replaced(p *inventory.Pod) (deletions []verdict.Change) {
	switch kind := t.object.Kind; {
	case t.job != nil:
		return []verdict.Change{deletion("batch/v1", *t.job)}
	case t.spec == "" || t.added || kind == "ReplicaSet" || kind == "ReplicationController":
		return []verdict.Change{deletion("v1", verdict.Object{Kind: Pod, Namespace: p.Namespace, Name: p.Name.Name})}
	}
	return nil
}
