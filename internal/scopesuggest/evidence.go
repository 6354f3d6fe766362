package scopesuggest

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/selection"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/accountlog"
)

// add adds a request to the evidence about its group.
func (e *evidence) add(r *accountlog.Request, c *Collector) {
	e.count.add(r.Begun)
	if len(e.nodes) < maxNodes {
		e.nodes[r.Node] = true
	}
	e.namespaces.add(r.Request.Namespace, maxSpaces)
	name := cmp.Or(r.Request.Name, r.CreatedName)
	e.otherName = e.otherName || name != r.Node
	e.unnamed = e.unnamed || r.Request.Name == ""
	e.named.add(r.Request.Name, maxNames)
	e.notAsNode = e.notAsNode || !c.node.AsNode(&r.Request, r.Node)
	e.selects(r)
	e.pod(r, c)
}

// selects keeps the fields of which all requests require that they have the node's name.
func (e *evidence) selects(r *accountlog.Request) {
	required := []string{}
	for _, f := range r.FieldSelector {
		if f.Value == r.Node && (f.Operator == selection.Equals || f.Operator == selection.DoubleEquals) {
			required = append(required, f.Field)
		}
	}
	if e.fields == nil {
		slices.Sort(required)
		e.fields = slices.Compact(required)
		return
	}
	e.fields = slices.DeleteFunc(e.fields, func(f string) bool { return !slices.Contains(required, f) })
}

// pod notes the pod that a request names, or whose name its object has, unless the state shows it on the node.
func (e *evidence) pod(r *accountlog.Request, c *Collector) {
	if e.notOnNode {
		return
	}
	pod := accountlog.PodOnNode{Namespace: r.Request.Namespace, Name: r.Request.Name, Node: r.Node}
	isPod := r.Group == "" && r.Resource == "pods"
	if !isPod {
		pod.Name = cmp.Or(pod.Name, r.CreatedName)
	}
	switch {
	case !r.ResourceRequest || !isPod && r.Group == "" || !pod.Complete() || len(e.pods) == maxPods || !isPod && c.named == maxPods:
		e.notOnNode = true
		if !isPod {
			c.named -= len(e.pods)
		}
		e.pods = nil
	case c.node.OnNode(pod.Namespace, pod.Name, pod.Node) || e.pods[pod]:
	default:
		if !isPod {
			c.named++
		}
		e.pods[pod] = true
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

// describe describes a request: "patch nodes/status worker-1".
func describe(r *accountlog.Request) string {
	text := words(groupOf(&r.Request))
	if !r.ResourceRequest {
		return r.Verb + " " + r.Path
	}
	name := cmp.Or(r.Request.Name, r.CreatedName)
	switch {
	case r.Request.Namespace != "" && name != "":
		text += " " + r.Request.Namespace + "/" + name
	case r.Request.Namespace != "":
		text += " in " + r.Request.Namespace
	case name != "":
		text += " " + name
	}
	if selector := r.FieldSelector; len(selector) > 0 {
		text += " with " + selector[0].Field + string(selector[0].Operator) + selector[0].Value
	}
	if r.Impersonates != "" {
		text += " as " + r.Impersonates
	}
	return text
}
