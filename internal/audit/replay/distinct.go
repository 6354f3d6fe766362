package replay

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// distinct identifies an entry of a report, but for the node: the user, the request and
// the answer.
type distinct struct {
	user, groups                            string
	standing                                Standing
	verb, group, resource, sub, space, name string
	selectors                               selectors
	// by is who refused, for refusals of the log.
	by string
	answerKey
}

// answerKey is the answer of the evaluators to a request: an entry of a report has one
// answer.
type answerKey struct {
	evaluators string
	by         string
	code       verdict.Code
	caveat     Caveat
	unexamined Unexamined
}

// selectors are the selectors of a request in canonical form.
type selectors struct{ fields, labels string }

func (o *outcome) distinct(by string) distinct {
	d, q := o.detail, &o.detail.asked
	key := distinct{
		user: q.User, groups: d.groups, standing: o.by.standing,
		verb: q.Verb, group: q.Group, resource: q.Resource, sub: q.Subresource,
		space: q.Namespace, name: q.Name, selectors: d.selectors, by: by, answerKey: d.answer.key(),
	}
	if !q.ResourceRequest {
		key.name = q.Path
	}
	if by == ByNodeRestriction || by == ByAdmission {
		key.name = d.written.Name
	}
	return key
}

// distinctOf returns the key of an entry of a report.
func distinctOf(r *Refusal) distinct {
	return distinct{
		user: r.Identity, groups: sortedGroups(r.Groups), standing: r.Standing,
		verb: r.Verb, group: r.Group, resource: r.Resource, sub: r.Subresource, space: r.Namespace, name: r.Name + r.Path,
		selectors: selectors{r.FieldSelector, r.LabelSelector}, by: r.By,
		answerKey: answerKey{evaluators: r.Evaluators, code: r.Code, caveat: r.Caveat},
	}
}

// key returns the answer without its texts.
func (a *answer) key() answerKey {
	switch {
	case a.err != nil:
		return answerKey{evaluators: saysUndecided}
	case a.unexamined != "":
		return answerKey{evaluators: saysUndecided, unexamined: a.unexamined}
	case a.refusedBy != "":
		return answerKey{evaluators: saysRefuse, by: a.refusedBy, code: a.code, caveat: a.caveat}
	}
	return answerKey{evaluators: saysAllow}
}

// sortedGroups returns groups in canonical form: order does not matter.
func sortedGroups(groups []string) string {
	return strings.Join(slices.Sorted(slices.Values(groups)), "\n")
}

// relevantSelectors returns the selectors of a request that an authorizer reads. The Node
// authorizer reads only the node name in the field selectors of some lists; configured
// authorizers may read all selectors.
func (ev *Evaluators) relevantSelectors(req *request) selectors {
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
