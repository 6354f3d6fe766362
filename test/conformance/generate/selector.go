package generate

import (
	"slices"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
)

// selector draws the field selector of a request from node: usual for verbs on
// collections, rare for others.
func (a *Asker) selector(req *Request, node string) fields.Requirements {
	collection := slices.Contains([]string{"list", "watch", "deletecollection"}, req.Verb)
	if (collection && chance(a.r, 35)) || (!collection && chance(a.r, 92)) {
		return nil
	}
	if chance(a.r, 45) {
		return fields.Requirements{equals("spec.nodeName", node)}
	}
	var requirements fields.Requirements
	for range 1 + a.r.IntN(3) {
		requirements = append(requirements, a.requirement(req, node))
	}
	return requirements
}

func equals(field, value string) fields.Requirement {
	return fields.Requirement{Field: field, Operator: selection.Equals, Value: value}
}

// requirement draws one requirement: right, nearly right, contradicting, or
// about something else.
func (a *Asker) requirement(req *Request, node string) fields.Requirement {
	switch a.r.IntN(8) {
	case 0, 1:
		return equals("spec.nodeName", node)
	case 2:
		return equals("spec.nodeName", pick(a.r, append([]string{"", nearly(a.r, node)}, a.cluster.Nodes...)))
	case 3:
		return equals(pick(a.r, []string{"nodeName", "spec.nodename", ".spec.nodeName", "metadata.name", "spec.nodeName "}), node)
	case 4:
		return equals("metadata.name", req.Name)
	default:
		return fields.Requirement{Field: "spec.nodeName", Value: node, Operator: pick(a.r, []selection.Operator{
			selection.NotEquals, selection.DoubleEquals, selection.In, selection.NotIn,
			selection.Exists, selection.DoesNotExist, selection.GreaterThan, "", "EQUALS",
		})}
	}
}
