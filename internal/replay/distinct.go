package replay

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// distinct tells requests apart: by who asks, what is asked, and what the answer is.
type distinct struct {
	node, user, groups                      string
	standing                                Standing
	verb, group, resource, sub, space, name string
	selectors                               selectors
	// by is who refuses, in what was refused by what the log says.
	by string
	said
}

// said is what the evaluators say to a request: one entry of a report has one answer.
type said struct {
	evaluators string
	by         string
	code       verdict.Code
	caveat     Caveat
	unexamined Unexamined
}

// selectors are those of a request, in one form.
type selectors struct{ fields, labels string }

func (o *outcome) distinct(node, by string) distinct {
	d, q := o.detail, &o.detail.asked
	key := distinct{
		node: node, user: q.User, groups: d.groups, standing: o.by.standing,
		verb: q.Verb, group: q.Group, resource: q.Resource, sub: q.Subresource,
		space: q.Namespace, name: q.Name, selectors: d.selectors, by: by, said: d.answer.said(),
	}
	if !q.ResourceRequest {
		key.name = q.Path
	}
	if by == ByNodeRestriction || by == ByAdmission {
		key.name = d.written.Name
	}
	return key
}

// said is what there is in an answer beside the texts.
func (a *answer) said() said {
	switch {
	case a.err != nil:
		return said{evaluators: saysUndecided}
	case a.unexamined != "":
		return said{evaluators: saysUndecided, unexamined: a.unexamined}
	case a.refusedBy != "":
		return said{evaluators: saysRefuse, by: a.refusedBy, code: a.code, caveat: a.caveat}
	}
	return said{evaluators: saysAllow}
}

// sortedGroups are groups in one form: their order does not matter.
func sortedGroups(groups []string) string {
	return strings.Join(slices.Sorted(slices.Values(groups)), "\n")
}

// selectorsLookedAt returns the selectors of a request as far as an authorizer looks at
// them. The Node authorizer looks for a node's name among those of some lists; what a
// configuration asks may look at them all.
func (ev *Evaluators) selectorsLookedAt(req *request) selectors {
	if len(req.FieldSelector)+len(req.LabelSelector) == 0 {
		return selectors{}
	}
	if !ev.Extra {
		switch ev.Node.Decide(req).Code {
		case nodeauthz.OwnFieldSelector, nodeauthz.FieldSelectorRequired:
		default:
			return selectors{}
		}
	}
	var fields, labels []string
	for _, r := range req.FieldSelector {
		if ev.Extra || r.Field == nodeNameField {
			fields = append(fields, r.Field+string(r.Operator)+r.Value)
		}
	}
	if ev.Extra {
		for _, r := range req.LabelSelector {
			labels = append(labels, r.String())
		}
	}
	slices.Sort(fields)
	slices.Sort(labels)
	return selectors{strings.Join(fields, ","), strings.Join(labels, ",")}
}
