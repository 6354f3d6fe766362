package replay

import (
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Report is what came of a log. Its JSON form is stable: fields are only ever added.
type Report struct {
	Totals Totals `json:"totals"`
	// WouldBeRefused are requests that were allowed and that the evaluators refuse,
	// each once however often it was made; first those without a caveat, the most
	// frequent first.
	WouldBeRefused []Refusal `json:"wouldBeRefused"`
	// Refused are requests that were refused.
	Refused []Refusal `json:"refused"`
	// Undecided are requests that were allowed and that the evaluators could not
	// decide.
	Undecided []Refusal `json:"undecided,omitempty"`
	// More counts what is beyond the bounds of the three lists.
	More *More `json:"more,omitempty"`
	// Nonconforming are kubelets that do not go by the name of a node.
	Nonconforming []Identity `json:"nonconforming"`
	Nodes         Nodes      `json:"nodes"`
	// NotExamined counts writes of nodes that NodeRestriction could not look at.
	NotExamined []NotExamined `json:"notExamined,omitempty"`
	// LeftOut are bindings of the state that the evaluators were asked without.
	LeftOut []string `json:"leftOut,omitempty"`

	onlyReceived bool
}

// OnlyReceived reports whether the log has no answers: its audit policy omits the
// stages that tell them, so that nothing could be examined.
func (r *Report) OnlyReceived() bool { return r.onlyReceived }

// Totals count requests of kubelets, each once, and what was read.
type Totals struct {
	Files  int `json:"files"`
	Lines  int `json:"lines"`
	Events int `json:"events"`
	// BrokenLines could not be read and UnfinishedLines ended early; neither is
	// examined.
	BrokenLines     int `json:"brokenLines,omitempty"`
	UnfinishedLines int `json:"unfinishedLines,omitempty"`
	// First and Last are when the first and the last request of the log came, of
	// whomever; null in an empty log. Duration is the time between them.
	First    *time.Time `json:"first"`
	Last     *time.Time `json:"last"`
	Duration string     `json:"duration"`

	// Requests is the sum of the three that follow.
	Requests      int `json:"requests"`
	Conforming    int `json:"conforming"`
	Bootstrapping int `json:"bootstrapping"`
	Nonconforming int `json:"nonconforming"`
	// Impersonated are those of them that somebody made in another's name.
	Impersonated int `json:"impersonated,omitempty"`
	// Unauthenticated were made by kubelets, by their own word, that gave no
	// credential that the API server knows. They are not among Requests.
	Unauthenticated int `json:"unauthenticated,omitempty"`

	// Requests is also the sum of these: allowed, refused, and turned away before
	// that was decided.
	Allowed    int `json:"allowed"`
	Refused    int `json:"refused"`
	Unanswered int `json:"unanswered,omitempty"`
	// MaybeTwice are those of Requests that may have been counted before: their other
	// stage was so far away in the log that it may have been forgotten.
	MaybeTwice int `json:"maybeTwice,omitempty"`

	// WouldBeRefused are those of Allowed that the evaluators refuse; NotInState
	// those of them that have a caveat.
	WouldBeRefused int `json:"wouldBeRefused"`
	NotInState     int `json:"notInState"`
	// Undecided are those of Allowed that the evaluators could not decide.
	Undecided int `json:"undecided"`
	// Writes are those of Allowed that NodeRestriction has rules for, and
	// NotExamined those of them that it could not look at.
	Writes      int `json:"writes"`
	NotExamined int `json:"notExamined"`
}

// Who refuses, beside the authorizers of a configuration by their names.
const (
	// ByAuthorization: no authorizer allows the request.
	ByAuthorization = "authorization"
	// ByNodeRestriction: the authorizers allow the request, NodeRestriction does not.
	ByNodeRestriction = "NodeRestriction"
	// ByAdmission: in a log, an admission plugin or webhook refused.
	ByAdmission = "admission"
)

// Caveat is why a refusal may be for want of what was there when the request came.
type Caveat string

// The caveats.
const (
	// NodeNotInState: the state does not know the node that asked.
	NodeNotInState Caveat = "NodeNotInState"
	// ObjectNotInState: nothing in the state refers to the object any more, or it is
	// another one.
	ObjectNotInState Caveat = "ObjectNotInState"
)

// Refusal is one request with one answer, however often it was made. Identity, verb, group, resource,
// subresource, namespace and name are those that authorizers see, or for refusals of
// admission that admission sees, where what is created has a name.
type Refusal struct {
	// Node is the one that asked, or for which somebody asked; empty if it cannot be
	// told.
	Node     string   `json:"node,omitempty"`
	Identity string   `json:"identity"`
	Standing Standing `json:"standing"`
	// Groups are those of Identity, sorted.
	Groups []string `json:"groups,omitempty"`

	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// FieldSelector and LabelSelector are those of the request where an authorizer
	// looks at them; of the field selector, all that the Node authorizer looks at is
	// spec.nodeName.
	FieldSelector string `json:"fieldSelector,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
	// Path is that of a request without a resource.
	Path string `json:"path,omitempty"`

	// By is who refuses. In Refused it is who did, by what the log says:
	// "authorization" or "admission".
	By string `json:"by,omitempty"`
	// Code and Message are the evaluators' reason. In Refused they are empty where
	// the evaluators allow the request.
	Code    verdict.Code `json:"code,omitempty"`
	Message string       `json:"message,omitempty"`
	Hint    string       `json:"hint,omitempty"`
	Caveat  Caveat       `json:"caveat,omitempty"`
	// AsNode is, for a kubelet that does not conform, what the evaluators would say to
	// the node's own user: "allow", "refuse" or "undecided"; empty if the node is not
	// known. NodeRestriction is not asked.
	AsNode string `json:"asNode,omitempty"`
	// Evaluators is, in Refused, what they say: "allow", "refuse" or "undecided".
	Evaluators string `json:"evaluators,omitempty"`
	// Reason is, in Refused, what the log says.
	Reason string `json:"reason,omitempty"`
	// Error is why the evaluators could not decide.
	Error string `json:"error,omitempty"`

	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// More is the remainder of the lists.
type More struct {
	WouldBeRefused []Remainder `json:"wouldBeRefused,omitempty"`
	Refused        []Remainder `json:"refused,omitempty"`
	Undecided      []Remainder `json:"undecided,omitempty"`
}

// Remainder counts requests that are not in a list for want of room. One without node
// and resource counts those for which there was no room here either.
type Remainder struct {
	Node        string       `json:"node,omitempty"`
	Group       string       `json:"group,omitempty"`
	Resource    string       `json:"resource,omitempty"`
	Subresource string       `json:"subresource,omitempty"`
	Code        verdict.Code `json:"code,omitempty"`
	Count       int          `json:"count"`
}

// Identity is a user behind which is a kubelet, but whose name is not a node's.
type Identity struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
	Standing Standing `json:"standing"`
	Why      string   `json:"why"`
	// Nodes are those that it acted for; MoreNodes counts those beyond the bound.
	Nodes     []string `json:"nodes"`
	MoreNodes int      `json:"moreNodes,omitempty"`
	// UserAgents are the first few that it used.
	UserAgents []string  `json:"userAgents"`
	Count      int       `json:"count"`
	First      time.Time `json:"first"`
	Last       time.Time `json:"last"`
}

// Nodes says which nodes of the log and of the state conform.
type Nodes struct {
	// Conforming is how many asked in their own name.
	Conforming int `json:"conforming"`
	// NeverConforming are those for which others asked, and that never asked in
	// their own name.
	NeverConforming []NeverConforming `json:"neverConforming"`
	// Silent are nodes of the state of which the log has nothing.
	Silent []string `json:"silent"`
	// NotInState are nodes of the log that the state does not have.
	NotInState []string `json:"notInState"`
	// NotTold counts identities and nodes for which there was no room.
	NotTold int `json:"notTold,omitempty"`
}

// NeverConforming is a node that others act for.
type NeverConforming struct {
	Name string `json:"name"`
	// Identities are the users that act for it.
	Identities []string `json:"identities"`
	InState    bool     `json:"inState"`
}

// NotExamined counts writes of one kind that were not examined for one cause.
type NotExamined struct {
	Verb        string     `json:"verb"`
	Group       string     `json:"group,omitempty"`
	Resource    string     `json:"resource"`
	Subresource string     `json:"subresource,omitempty"`
	Why         Unexamined `json:"why"`
	Count       int        `json:"count"`
}

// Clean reports whether nothing stands in the way of Node authorization: every
// request was allowed and would be, and every kubelet conforms.
func (r *Report) Clean() bool {
	return r.Totals.WouldBeRefused == 0 && r.Totals.Refused == 0 && r.Totals.Nonconforming == 0
}

// Complete reports whether everything could be read and decided, and there was
// something: a log without kubelets shows nothing of them.
func (r *Report) Complete() bool {
	return r.Totals.BrokenLines == 0 && r.Totals.Undecided == 0 && !r.onlyReceived && r.Totals.Requests > 0
}
