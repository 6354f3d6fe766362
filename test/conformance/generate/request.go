package generate

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
)

// Request is one question to an authorizer.
type Request struct {
	User   string
	Groups []string
	// Verb, Group (the API group), Resource, Subresource, Namespace and Name
	// are set for a resource request.
	Verb, Group, Resource, Subresource, Namespace, Name string
	FieldSelector                                       fields.Requirements
	// Path is set for non-resource requests, and for them only.
	Path string
}

// ResourceRequest reports whether r asks for a resource.
func (r *Request) ResourceRequest() bool { return r.Path == "" }

// String renders r on one line, with every field that is set.
func (r *Request) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "user %q groups %q verb %q", r.User, r.Groups, r.Verb)
	if !r.ResourceRequest() {
		fmt.Fprintf(&b, " path %q", r.Path)
		return b.String()
	}
	fmt.Fprintf(&b, " group %q resource %q", r.Group, r.Resource)
	for _, f := range []struct{ name, value string }{
		{"subresource", r.Subresource}, {"namespace", r.Namespace}, {"name", r.Name},
	} {
		if f.value != "" {
			fmt.Fprintf(&b, " %s %q", f.name, f.value)
		}
	}
	for _, s := range r.FieldSelector {
		fmt.Fprintf(&b, " selector %q %s %q", s.Field, s.Operator, s.Value)
	}
	return b.String()
}

// target is an object worth asking for, and a node that something relates to
// it, or "".
type target struct {
	object Object
	node   string
}

// Asker draws questions about one cluster.
type Asker struct {
	r       *rand.Rand
	cluster *Cluster
	targets map[string][]target
}

// NewAsker prepares questions about c.
func NewAsker(seed uint64, c *Cluster) *Asker {
	return &Asker{r: source(seed, "requests"), cluster: c, targets: c.targets()}
}

// Next draws a question.
func (a *Asker) Next() Request {
	if chance(a.r, 2) {
		return a.nonResource()
	}
	kind := drawResource(a.r)
	t := a.target(kind)
	node := a.asker(t)
	req := Request{Group: kind.Group, Resource: kind.Resource, Namespace: t.object.Namespace, Name: t.object.Name}
	if !chance(a.r, 85) {
		a.misname(&req, kind)
	}
	req.User, req.Groups = a.identity(node)
	a.act(&req, kind)
	a.stray(&req)
	req.FieldSelector = a.selector(&req, node)
	return req
}

// nonResource draws a request for a path.
func (a *Asker) nonResource() Request {
	req := Request{
		Verb: pick(a.r, []string{"get", "head", "post", "*"}),
		Path: pick(a.r, []string{"/healthz", "/api", "/metrics", "/logs/", "*", "/"}),
	}
	req.User, req.Groups = a.identity(pick(a.r, a.cluster.Nodes))
	return req
}

// target draws an object of the kind: mostly one that something mentions.
func (a *Asker) target(kind Resource) target {
	if known := a.targets[kind.Resource]; len(known) > 0 && chance(a.r, 90) {
		return pick(a.r, known)
	}
	t := target{node: pick(a.r, a.cluster.Nodes)}
	t.object = Object{Resource: kind.Resource, Name: pick(a.r, objectNames)}
	if kind.Namespaced {
		t.object.Namespace = pick(a.r, a.cluster.Namespaces)
	}
	if kind.OwnName {
		t.object.Name = t.node
	}
	if kind.Resource == "leases" {
		t.object.Namespace = "kube-node-lease"
	}
	return t
}

// asker draws the node that asks for t: mostly the one that t belongs to.
func (a *Asker) asker(t target) string {
	switch n := a.r.IntN(100); {
	case n < 65 && t.node != "":
		return t.node
	case n < 95:
		return pick(a.r, a.cluster.Nodes)
	default:
		return nearly(a.r, pick(a.r, a.cluster.Nodes))
	}
}

// misname makes the object another one, or none.
func (a *Asker) misname(req *Request, kind Resource) {
	switch a.r.IntN(6) {
	case 0:
		req.Name = ""
	case 1:
		req.Name = nearly(a.r, req.Name)
	case 2:
		req.Namespace = nearly(a.r, req.Namespace)
	case 3:
		req.Namespace = ""
	case 4:
		req.Namespace = pick(a.r, a.cluster.Namespaces)
	default:
		req.Name = pick(a.r, objectNames)
		if kind.OwnName {
			req.Name = pick(a.r, a.cluster.Nodes)
		}
	}
}

// act draws a verb and a subresource: mostly ones that make sense together.
func (a *Asker) act(req *Request, kind Resource) {
	if chance(a.r, 75) && len(kind.Actions) > 0 {
		action := pick(a.r, kind.Actions)
		req.Subresource, req.Verb = action.Subresource, pick(a.r, action.Verbs)
		return
	}
	req.Verb = pick(a.r, verbs)
	if chance(a.r, 35) {
		req.Subresource = pick(a.r, subresources)
	}
}

// stray moves a few requests to another group, or folds the subresource into
// the resource, as in "pods/status".
func (a *Asker) stray(req *Request) {
	if chance(a.r, 4) {
		req.Group = pick(a.r, groups)
	}
	if chance(a.r, 3) && req.Subresource != "" {
		req.Resource, req.Subresource = req.Resource+"/"+req.Subresource, ""
	}
}
