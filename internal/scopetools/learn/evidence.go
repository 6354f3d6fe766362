package learn

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
)

// evidence is what the log has about a group.
type evidence struct {
	group
	// own are the requests about the own node, by the rules that fit them.
	own map[forms]*sum
	// notOwn are the other requests, and requests that a later line may show to be about a pod on the node.
	notOwn map[object]*tally
	kept   int // the number of these that no later line changes
	// beyond are further such requests, which exceed the bounds. otherNode is true if one of them is about another node.
	beyond    sum
	otherNode bool
	grants    map[int]bool
}

// forms are the rules that hold an account to its node and fit a request. A request that one fits is about
// the own node.
type forms struct {
	named, onNode, asNode bool
	// fields are the fields of a selector that require the node's name, sorted and joined by commas.
	fields string
}

// object is the object that requests of a group are about, and the node from which they come.
type object struct {
	node, namespace, name, selector string
	// unnamed is true if authorizers do not see the name, because the object is created.
	unnamed bool
	// forms fit the requests independently of the rest of the log.
	forms forms
	// isPod is true if the requests are about the node also if the log shows the pod there.
	isPod bool
}

type tally struct {
	Counter
	times
	order int // of the first of them in the log
}

// sum is what several requests have in common.
type sum struct {
	Counter
	nodes      map[string]bool
	namespaces names
	named      names
	unnamed    bool
	example    object
	order      int // of the example
}

func (c *Collector) add(e *evidence, r *Request) {
	o := objectOf(r)
	c.fit(&o, r)
	one := &tally{times: times{r.At, r.At}, order: c.order}
	one.Add(r.Begun)
	c.order++
	known := e.notOwn[o]
	switch {
	case known != nil:
		known.merge(one)
	case o.isPod && c.undecided < maxPods:
		c.undecided++
		e.notOwn[o] = one
	case o.forms != forms{}:
		if e.own[o.forms] == nil {
			e.own[o.forms] = &sum{}
		}
		e.own[o.forms].add(&o, one)
	case c.kept < maxKept && e.kept < maxKeptOfGroup:
		c.kept, e.kept = c.kept+1, e.kept+1
		e.notOwn[o] = one
	default:
		e.beyond.add(&o, one)
		e.otherNode = e.otherNode || c.otherNode(e.group, &o) != ""
	}
}

func (c *Collector) fit(o *object, r *Request) {
	if !r.ResourceRequest {
		return
	}
	o.forms.named = o.name == r.Node
	o.forms.asNode = c.node.AsNode(&r.Request, r.Node)
	if slices.Contains([]string{"list", "watch", "deletecollection"}, r.Verb) {
		o.forms.fields = selecting(r.FieldSelector, r.Node)
	}
	pod := PodOnNode{Namespace: o.namespace, Name: o.name, Node: o.node}
	if r.Group == "" && (r.Resource != "pods" || o.unnamed) || !pod.Complete() {
		return
	}
	o.forms.onNode = c.pods[pod] || c.node.NodeOf(pod.Namespace, pod.Name) == pod.Node
	o.isPod = !o.forms.onNode
}

// selecting returns the fields that a selector requires to have a value.
func selecting(selector fields.Requirements, value string) string {
	var required []string
	for _, f := range selector {
		if f.Value == value && (f.Operator == selection.Equals || f.Operator == selection.DoubleEquals) {
			required = append(required, f.Field)
		}
	}
	slices.Sort(required)
	return strings.Join(slices.Compact(required), ",")
}

func (t *tally) merge(with *tally) {
	t.Begun, t.Ended = t.Begun+with.Begun, t.Ended+with.Ended
	t.include(with.times)
	t.order = min(t.order, with.order)
}

func (s *sum) add(o *object, t *tally) {
	s.count(t.Counter, o, t.order)
	s.node(o.node)
	s.namespaces.add(o.namespace, maxSpaces)
	s.named.add(o.name, maxNames)
	s.unnamed = s.unnamed || o.unnamed
}

func (s *sum) merge(with *sum) {
	if with.Requests() == 0 {
		return
	}
	s.count(with.Counter, &with.example, with.order)
	for node := range with.nodes {
		s.node(node)
	}
	s.namespaces.merge(with.namespaces, maxSpaces)
	s.named.merge(with.named, maxNames)
	s.unnamed = s.unnamed || with.unnamed
}

// count adds requests, of which the first is an example.
func (s *sum) count(n Counter, first *object, order int) {
	if s.Requests() == 0 || order < s.order {
		s.example, s.order = *first, order
	}
	s.Begun, s.Ended = s.Begun+n.Begun, s.Ended+n.Ended
}

func (s *sum) node(name string) {
	if s.nodes == nil {
		s.nodes = map[string]bool{}
	}
	if len(s.nodes) < maxNodes {
		s.nodes[name] = true
	}
}

func (n *names) merge(with names, limit int) {
	n.more = n.more || with.more
	for _, name := range with.all {
		n.add(name, limit)
	}
}

func groupOf(r *access.Request) group {
	if !r.ResourceRequest {
		return group{verb: r.Verb, path: discoveryPath(r.Path)}
	}
	resource := r.Resource
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	return group{verb: r.Verb, apiGroup: r.Group, resource: resource}
}

// objectOf returns what a request is about. The name of a request that is not about a resource is its path.
func objectOf(r *Request) object {
	if !r.ResourceRequest {
		return object{node: r.Node, name: r.Path}
	}
	o := object{
		node: r.Node, namespace: r.Request.Namespace, name: cmp.Or(r.Request.Name, r.CreatedName), unnamed: r.Request.Name == "",
	}
	terms := make([]string, len(r.FieldSelector))
	for i, f := range r.FieldSelector {
		terms[i] = f.Field + string(f.Operator) + fields.EscapeValue(f.Value)
	}
	slices.Sort(terms)
	o.selector = strings.Join(terms, ",")
	return o
}

// discoveryPath joins the paths by which clients learn which resources a server has.
func discoveryPath(path string) string {
	for _, prefix := range []string{"/api/", "/apis/", "/openapi/"} {
		if strings.HasPrefix(path, prefix) {
			return prefix + "*"
		}
	}
	return path
}

// words describes a group: "get pods", "get /metrics".
func words(g group) string {
	switch {
	case g.path != "":
		return g.verb + " " + g.path
	case g.apiGroup == "":
		return g.verb + " " + g.resource
	}
	return g.verb + " " + g.resource + "." + g.apiGroup
}

// describe describes requests for an object: "patch nodes/status worker-1".
func (g group) describe(o *object) string {
	if g.path != "" {
		return g.verb + " " + o.name
	}
	text := words(g)
	switch {
	case o.namespace != "" && o.name != "":
		text += " " + o.namespace + "/" + o.name
	case o.namespace != "":
		text += " in " + o.namespace
	case o.name != "":
		text += " " + o.name
	}
	if o.selector != "" {
		text += " with " + o.selector
	}
	return text
}
