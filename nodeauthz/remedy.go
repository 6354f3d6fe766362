package nodeauthz

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Remedy returns what to change so that a request that the Node authorizer does not allow is
// allowed, with the least privilege: a change of the request if nodes may do the same in another
// form, else a feature gate, else a role and a binding for this node. These count if RBAC is
// among the authorizers. It is the zero Remedy for a request that is allowed. The cost is that
// of an explanation.
func (a *Authorizer) Remedy(req *access.Request) verdict.Remedy {
	d := &draft{Authorizer: a, req: *req}
	for range maxSteps {
		answer := d.Decide(&d.req)
		if answer.Decision == verdict.Allow || d.granted {
			return verdict.Remedy{Changes: d.changes, Warning: strings.Join(d.warnings, "; ")}
		}
		if remedy := remedies[answer.Code]; remedy != nil {
			remedy(d, answer)
		}
		if d.none != "" {
			break
		}
	}
	return verdict.Remedy{None: cmp.Or(d.none, Summary(d.Decide(&d.req).Code))}
}

// maxSteps bounds the changes of a request: of the groups, the namespace, the name and the selector.
const maxSteps = 8

// remedies has the remedy for each code of a refusal. If one changes the request, the remedy
// for the answer to the changed request follows.
var remedies = map[verdict.Code]func(*draft, Answer){
	NotANode:              (*draft).joinGroup,
	UnnamedNode:           (*draft).cannotName,
	NoRuleForResource:     (*draft).grant,
	SubresourceNotAllowed: (*draft).grant,
	VerbNotAllowed:        (*draft).grant,
	FeatureDisabled:       (*draft).turnOn,
	NamespaceRequired:     (*draft).nameNamespace,
	ClusterScoped:         (*draft).dropNamespace,
	NameRequired:          (*draft).nameObject,
	NoPathToObject:        (*draft).reach,
	NotOwnNode:            (*draft).nameSelf,
	NotOwnCSINode:         (*draft).nameSelf,
	NotOwnLease:           (*draft).nameSelf,
	NotLeaseNamespace:     (*draft).useLeaseNamespace,
	FieldSelectorRequired: (*draft).selectNode,
}

// draft is a remedy that is being made, with the request as changed so far.
type draft struct {
	*Authorizer
	req      access.Request
	changes  []verdict.Change
	warnings []string
	none     string
	granted  bool
}

// change records a change of an attribute of the request.
func (d *draft) change(op verdict.Op, attribute string, value any) {
	c := verdict.Change{Of: verdict.OfRequest, Op: op, Path: verdict.RequestPath + "/" + attribute}
	if op != verdict.Remove {
		c.Value = encoded(value)
	}
	d.changes = append(d.changes, c)
}

// set records the change of an attribute that is a string.
func (d *draft) set(attribute string, of *string, value string) {
	op := verdict.Replace
	if *of == "" {
		op = verdict.Add
	}
	*of = value
	d.change(op, attribute, value)
}

func encoded(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic("nodeauthz: a value cannot be encoded: " + err.Error()) // values are strings and booleans
	}
	return text
}

func (d *draft) joinGroup(Answer) {
	name, ok := strings.CutPrefix(d.req.User, nodeidentity.UserPrefix)
	if !ok || name == "" {
		d.none = fmt.Sprintf("the Node authorizer decides about nodes only, and user %q is none: other authorizers decide", d.req.User)
		return
	}
	d.req.Groups = append(slices.Clip(d.req.Groups), nodeidentity.Group)
	d.change(verdict.Add, "groups/-", nodeidentity.Group)
}

func (d *draft) cannotName(Answer) {
	d.none = "a credential of the user system:node: names no node: the kubelet needs one with its node's name"
}

// grant gives the right by RBAC. Nodes must not have some rights: see never.
func (d *draft) grant(answer Answer) {
	if why := d.never(answer); why != "" {
		d.none = why
		return
	}
	// RBAC needs no gate.
	d.changes = slices.DeleteFunc(d.changes, func(c verdict.Change) bool { return c.Of == verdict.OfFeatureGate })
	d.changes = append(d.changes, d.req.Grant()...)
	d.warnings = []string{d.warning(answer.Node)}
	d.granted = true
}

// turnOn turns on one of the feature gates that are sufficient.
func (d *draft) turnOn(answer Answer) {
	gate := answer.entry.gatesFor(d.req.Subresource, verb(d.req.Verb), d.features)[0]
	with, err := d.features.With(kubeversion.Gate(gate), true)
	if err != nil {
		d.grant(answer)
		return
	}
	d.Authorizer = New(d.graph, with)
	d.changes = append(d.changes, verdict.Change{
		Of: verdict.OfFeatureGate, Op: verdict.Replace, Object: verdict.Object{Kind: "FeatureGate", Name: gate}, Value: encoded(true),
	})
	d.warnings = append(d.warnings, fmt.Sprintf("feature gate %s changes the whole cluster", gate))
}

// nameNamespace uses the first namespace in which the node reaches an object of the name.
func (d *draft) nameNamespace(answer Answer) {
	for _, o := range d.reached(answer) {
		if o.Name == d.req.Name {
			d.set("namespace", &d.req.Namespace, o.Namespace)
			return
		}
	}
	d.grant(answer)
}

func (d *draft) dropNamespace(Answer) {
	d.req.Namespace = ""
	d.change(verdict.Remove, "namespace", nil)
}

// nameObject uses the first object that the node reaches.
func (d *draft) nameObject(answer Answer) {
	reached := slices.DeleteFunc(d.reached(answer), func(o verdict.Object) bool {
		return d.req.Namespace != "" && !answer.entry.clusterScoped && o.Namespace != d.req.Namespace
	})
	if len(reached) == 0 {
		d.grant(answer)
		return
	}
	if d.req.Namespace == "" && reached[0].Namespace != "" {
		d.set("namespace", &d.req.Namespace, reached[0].Namespace)
	}
	d.set("name", &d.req.Name, reached[0].Name)
	if more := len(reached) - 1; more > 0 {
		d.warnings = append(d.warnings, fmt.Sprintf("the node needs one request for each object, and is related to %d more", more))
	}
}

// reached returns the objects of the requested kind that the node may access.
func (d *draft) reached(answer Answer) []verdict.Object {
	all := d.graph.Objects(answer.Node, answer.entry.kind)
	return slices.DeleteFunc(all, func(o verdict.Object) bool { return !d.hasPath(answer.Node, answer.entry.kind, o.Namespace, o.Name) })
}

// reach gives access to one object that the node is not related to. Pods are related to nodes by
// the scheduler, so that a role is the smaller change.
func (d *draft) reach(answer Answer) {
	if answer.rule.condition == selectedOrRelated {
		d.selectNode(answer)
		return
	}
	d.grant(answer)
}

// nameSelf asks for the object of the node instead, except for a deletion, which means the other.
func (d *draft) nameSelf(answer Answer) {
	if d.req.Verb == "delete" && d.req.Name != "" {
		d.none = fmt.Sprintf("a node deletes no %s of another node, with any right: NodeRestriction refuses it", resourceName(&d.req))
		return
	}
	d.set("name", &d.req.Name, answer.Node)
}

func (d *draft) useLeaseNamespace(Answer) { d.set("namespace", &d.req.Namespace, leasesNamespace) }

// selectNode adds spec.nodeName=<node> to the requirements about other fields.
func (d *draft) selectNode(answer Answer) {
	op := verdict.Replace
	if len(d.req.FieldSelector) == 0 {
		op = verdict.Add
	}
	otherFields := slices.DeleteFunc(slices.Clone(d.req.FieldSelector), func(r fields.Requirement) bool { return r.Field == nodeNameField })
	d.req.FieldSelector = append(otherFields, fields.Requirement{Field: nodeNameField, Operator: selection.Equals, Value: answer.Node})
	d.change(op, "fieldSelector", selectorText(d.req.FieldSelector))
}

func selectorText(all fields.Requirements) string {
	terms := make([]string, len(all))
	for i, r := range all {
		terms[i] = r.Field + string(r.Operator) + fields.EscapeValue(r.Value)
	}
	return strings.Join(terms, ",")
}

// never says why RBAC cannot or must not give a right to a node; empty if it can.
func (d *draft) never(answer Answer) string {
	token := d.req.Resource == "serviceaccounts" && d.req.Subresource == "token" || d.req.Resource == "serviceaccounts/token"
	switch {
	case d.req.Group == "" && token && d.req.Verb == "create":
		return fmt.Sprintf("nodes get tokens only for service accounts of their pods, with any right: "+
			"a pod that is bound to node %s must run as the service account", answer.Node)
	case d.req.ResourceRequest && d.req.Namespace != "" && len(validation.IsDNS1123Label(d.req.Namespace)) > 0:
		return fmt.Sprintf("no namespace can have the name %q", d.req.Namespace)
	}
	return ""
}
