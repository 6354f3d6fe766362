package attackpaths

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/inventory"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

func itoa(i int) string { return strconv.Itoa(i) }

// podRemedy takes away what a pod gives.
func (s *solver) podRemedy(code Code, place int32, to key) *verdict.Remedy {
	if code == ControlPlaneNode {
		return noRemedy(noneOfControlPlane)
	}
	p := s.pods[place]
	switch code {
	case PodOnNode:
		return noRemedy(noneOfNode)
	case TokenOfPodOnNode:
		return s.mintRemedy(p)
	case StealPods:
		return s.stealRemedy(p)
	case PodEscape:
		return s.escapeRemedy(p)
	}
	if to.kind == isSecret {
		return templateRemedy(p, inventory.GivesSecret, to.name)
	}
	return templateRemedy(p, inventory.GivesToken, "")
}

// mintRemedy keeps a node from requesting tokens for a pod: those of audiences that the pod names.
// Before Kubernetes 1.33, nodes may request any.
func (s *solver) mintRemedy(p *inventory.Pod) *verdict.Remedy {
	if !s.world.cluster.Features.Enabled(kubeversion.ServiceAccountNodeAudienceRestriction) {
		return otherAccount(p)
	}
	if s.world.cluster.Audiences != nil {
		if audiences, restricted := s.world.cluster.Audiences(p.Namespace, p.Name.Name); !restricted || slices.Contains(audiences, "") {
			return otherAccount(p)
		}
	}
	return templateRemedy(p, inventory.GivesToken, "")
}

// defaultAccount is the account that each namespace has.
const defaultAccount = "default"

// otherAccount runs a pod as the account that its namespace has anyway.
func otherAccount(p *inventory.Pod) *verdict.Remedy {
	switch {
	case p.ServiceAccount == defaultAccount:
		return noRemedy(noneOfEveryPod)
	case p.Controller != "":
		return noRemedy(noneOfController(p))
	}
	t := templateOf(p)
	t.set("/serviceAccountName", encoded(defaultAccount))
	t.replacePods(p)
	return &verdict.Remedy{Changes: t.changes}
}

func noneOfController(p *inventory.Pod) string {
	return "The pod is made by " + p.Controller + ", of which no resource is known that could be changed."
}

// templateRemedy takes something from the template that a pod is made from. A pod without a
// template is deleted: its spec cannot be changed.
func templateRemedy(p *inventory.Pod, gives inventory.Gives, secret string) *verdict.Remedy {
	return templateRemedyOf(p, gives, func(f *inventory.Field) bool { return f.Gives == gives && f.Secret == secret })
}

func templateRemedyOf(p *inventory.Pod, gives inventory.Gives, wanted func(*inventory.Field) bool) *verdict.Remedy {
	switch {
	case p.Mirror:
		return noRemedy(noneOfStaticPod)
	case p.Controller != "":
		return noRemedy(noneOfController(p))
	}
	t := templateOf(p)
	t.take(p, wanted)
	t.replacePods(p)
	return &verdict.Remedy{Changes: t.changes, Warning: t.warning(gives)}
}

// escapeRemedy takes all rights over the host from a pod: the volumes of its claims only if they are folders of the host.
func (s *solver) escapeRemedy(p *inventory.Pod) *verdict.Remedy {
	if p.ClaimOfTemplateGives(s.world.references.Claimed) {
		return noRemedy(noneOfClaimTemplate)
	}
	return templateRemedyOf(p, inventory.GivesHost, func(f *inventory.Field) bool {
		return f.Gives == inventory.GivesHost || f.Gives == inventory.GivesClaim && p.ClaimGives(f.Secret, s.world.references.Claimed)
	})
}

// warning says what the changes break.
func (t *template) warning(gives inventory.Gives) string {
	if t.spec == "" {
		return "The spec of a " + t.object.Kind + " cannot be changed: make it again without what it gives here."
	}
	switch gives {
	case inventory.GivesToken:
		return "What calls the API from the pods with this token no longer can."
	case inventory.GivesHost:
		return "What manages the host from the pods, as agents of networks and storage do, no longer can."
	}
	return "What reads the secret in the pods no longer can."
}

// template edits the template of a pod.
type template struct {
	editor
	// spec is the path of the pod's spec; empty for a pod without a template.
	spec string
	// added is true if only the pod itself has some of what is taken away.
	added bool
	// job is the object to delete besides, and pods are true if pods that exist are not replaced.
	job  *verdict.Object
	pods bool
}

// scheduled is the name of a Job that a CronJob makes: its own, and the time in minutes.
var scheduled = regexp.MustCompile(`^(.+)-[0-9]{8,10}$`)

// templateOf finds the object whose template a pod is made from.
func templateOf(p *inventory.Pod) *template {
	t := &template{spec: "/spec/template/spec"}
	t.object = templateObject(p)
	switch t.object.Kind {
	case "Deployment", "DaemonSet", "StatefulSet":
		t.apiVersion = "apps/v1"
	case "ReplicaSet":
		t.apiVersion, t.pods = "apps/v1", true
	case "ReplicationController":
		t.apiVersion, t.pods = "v1", true
	case "Job":
		job := t.object
		t.job, t.apiVersion, t.spec = &job, "batch/v1", ""
		if match := scheduled.FindStringSubmatch(job.Name); match != nil {
			t.object.Kind, t.object.Name, t.spec = "CronJob", match[1], "/spec/jobTemplate/spec/template/spec"
		}
	default:
		t.apiVersion, t.spec = "v1", ""
	}
	return t
}

// set puts a value into the spec.
func (t *template) set(path string, value json.RawMessage) {
	if t.spec != "" {
		t.do(verdict.Add, t.spec+path, value)
	}
}

// take takes fields away.
func (t *template) take(p *inventory.Pod, wanted func(*inventory.Field) bool) {
	for i := range p.Fields {
		f := &p.Fields[i]
		switch {
		case !wanted(f):
		case f.Added || t.spec == "":
			t.added = true
		default:
			t.takeField(f)
		}
	}
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

// secretOnNodeRemedy takes a secret from all pods because of which a node may read it.
func (s *solver) secretOnNodeRemedy(credential vertex, secret key) *verdict.Remedy {
	k := s.keys[credential]
	if k.kind == isLimited || k.kind == isAssociated {
		k = s.keys[k.role]
	}
	node := strings.TrimPrefix(k.name, nodeidentity.UserPrefix)
	pods := map[string]*inventory.Pod{}
	for _, i := range s.world.podsOn[node] {
		if p := s.pods[i]; p.Namespace == secret.namespace {
			pods[p.Name.Name] = p
		}
	}
	gives := func(f *inventory.Field) bool { return f.Secret == secret.name && f.Gives != 0 }
	var changes []verdict.Change
	done := map[string]bool{}
	for _, path := range s.world.cluster.Relations.Paths(node, graph.Secret, secret.namespace, secret.name) {
		p := pods[path[0].To.Name]
		if path[0].To.Kind != Pod || p == nil || !slices.ContainsFunc(p.Fields, func(f inventory.Field) bool { return gives(&f) }) {
			return noRemedy(noneOfVolume)
		}
		if done[p.Name.Name] {
			continue
		}
		done[p.Name.Name] = true
		if p.Controller != "" {
			return noRemedy(noneOfController(p))
		}
		t := templateOf(p)
		if t.spec != "" && !done[t.object.Kind+"/"+t.object.Name] {
			t.take(p, gives)
		}
		done[t.object.Kind+"/"+t.object.Name] = true
		t.replacePods(p)
		changes = append(changes, t.changes...)
	}
	if len(changes) == 0 {
		return noRemedy(noneOfVolume)
	}
	return &verdict.Remedy{Changes: changes}
}
