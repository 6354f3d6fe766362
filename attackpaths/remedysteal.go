package attackpaths

import (
	"fmt"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/verdict"
)

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
