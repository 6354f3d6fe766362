package attackpaths

import (
	"slices"

	"github.com/node-authorizer/node-authorizer/inventory"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// podsLabel begins the names of labels for the nodes of one workload. A node may not set labels
// with this prefix on itself.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#noderestriction
const podsLabel = "node-restriction.kubernetes.io/"

// stealRemedy keeps pods on the nodes that have them now. A pod that no node has is kept off by
// deleting it.
func (s *solver) stealRemedy(p *inventory.Pod) *verdict.Remedy {
	if p.Controller != "" {
		return noRemedy(noneOfController(p))
	}
	t := templateOf(p)
	if t.spec == "" {
		t.replacePods(p)
		return &verdict.Remedy{Changes: t.changes}
	}
	label := podsLabel + labelOf(p)
	var changes []verdict.Change
	for _, node := range s.nodesOf(p) {
		e := editor{apiVersion: "v1", object: verdict.Object{Kind: Node, Name: node}}
		e.do(verdict.Add, "/metadata/labels/"+escaped(label), "")
		changes = append(changes, e.changes...)
	}
	if p.Placement.Selects() {
		t.do(verdict.Add, t.spec+"/nodeSelector/"+escaped(label), "")
	} else {
		t.do(verdict.Add, t.spec+"/nodeSelector", map[string]string{label: ""})
	}
	t.replacePods(p)
	return &verdict.Remedy{Changes: append(changes, t.changes...)}
}

// nodesOf are the nodes with pods of the same workload.
func (s *solver) nodesOf(p *inventory.Pod) []string {
	var nodes []string
	for _, other := range s.pods {
		if other.Node != "" && other.Namespace == p.Namespace && other.Workload == p.Workload && other.Placement == p.Placement {
			nodes = append(nodes, other.Node)
		}
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// labelOf is a name for the nodes of a workload. Names of labels have at most 63 characters.
func labelOf(p *inventory.Pod) string {
	name := p.Namespace + "." + p.Workload.Name
	if len(name) > 63 {
		name = name[:62] + "x"
	}
	return name
}
