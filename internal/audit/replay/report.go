package replay

import (
	"time"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Kind is the kind of the document in which the report of a log is written.
const Kind = "AuditReport"

// Report is the report of a log.
type Report struct {
	// Totals count requests, and what was read.
	Totals Totals `json:"totals"`
	// WouldBeRefused are requests that were allowed and that the evaluators refuse. Each
	// is listed once, with a count. Those without a caveat come first, then the most
	// frequent.
	WouldBeRefused []Refusal `json:"wouldBeRefused"`
	// Refused are requests that were refused.
	Refused []Refusal `json:"refused"`
	// Undecided are requests that were allowed and that the evaluators could not
	// decide.
	Undecided []Refusal `json:"undecided,omitempty"`
	// More counts what is beyond the bounds of the three lists.
	More *More `json:"more,omitempty"`
	// Nonconforming are kubelets that do not authenticate as their node.
	Nonconforming []Identity `json:"nonconforming"`
	// Nodes says which nodes conform.
	Nodes Nodes `json:"nodes"`
	// NotExamined counts writes of nodes that NodeRestriction could not examine.
	NotExamined []NotExamined `json:"notExamined,omitempty"`
	// LeftOut are bindings of the state that the evaluators ignored.
	LeftOut []string `json:"leftOut,omitempty"`

	onlyReceived bool
}

func (*Report) DocumentKind() string { return Kind }

// OnlyReceived reports whether the log has no responses: its audit policy omits the stages
// that have them, so nothing could be examined.
func (r *Report) OnlyReceived() bool { return r.onlyReceived }

// Totals count requests of kubelets, each once, and what was read.
type Totals struct {
	// Files, Lines and Events are how much of the log was read.
	Files  int `json:"files"`
	Lines  int `json:"lines"`
	Events int `json:"events"`
	// BrokenLines could not be read and UnfinishedLines ended early; neither is
	// examined.
	BrokenLines     int `json:"brokenLines,omitempty"`
	UnfinishedLines int `json:"unfinishedLines,omitempty"`
	// First and Last are the times of the first and the last request of any user in the
	// log; null in an empty log. Duration is the time between them,
	// such as 1h30m5s.
	First    *time.Time `json:"first"`
	Last     *time.Time `json:"last"`
	Duration string     `json:"duration"`

	// Requests is how many requests of kubelets the log has: the sum of Conforming, Bootstrapping and
	// Nonconforming, which have these standings.
	Requests      int `json:"requests"`
	Conforming    int `json:"conforming"`
	Bootstrapping int `json:"bootstrapping"`
	Nonconforming int `json:"nonconforming"`
	// Impersonated are the impersonated ones of Requests.
	Impersonated int `json:"impersonated,omitempty"`
	// Unauthenticated are requests without a valid credential whose user agent is a
	// kubelet. They are not among Requests.
	Unauthenticated int `json:"unauthenticated,omitempty"`

	// Requests is also the sum of Allowed, Refused and Unanswered, which were not decided because
	// the request was throttled or failed before.
	Allowed    int `json:"allowed"`
	Refused    int `json:"refused"`
	Unanswered int `json:"unanswered,omitempty"`
	// MaybeTwice counts the requests that may have been counted twice: their other
	// stage was so far away in the log that it may have been forgotten.
	MaybeTwice int `json:"maybeTwice,omitempty"`

	// WouldBeRefused counts the allowed requests that the evaluators refuse. NotInState
	// counts the ones among them that have a caveat.
	WouldBeRefused int `json:"wouldBeRefused"`
	NotInState     int `json:"notInState"`
	// Undecided counts the allowed requests that the evaluators could not decide.
	Undecided int `json:"undecided"`
	// Writes counts the allowed requests that NodeRestriction has rules for. NotExamined
	// counts the ones among them that it could not examine.
	Writes      int `json:"writes"`
	NotExamined int `json:"notExamined"`
}

// Who refuses; authorizers of a configuration refuse under their names.
const (
	// ByAuthorization: no authorizer allows the request.
	ByAuthorization = "authorization"
	// ByNodeRestriction: the authorizers allow the request, NodeRestriction does not.
	ByNodeRestriction = "NodeRestriction"
	// ByAdmission: in a log, an admission plugin or webhook refused.
	ByAdmission = "admission"
)

// Caveat is why a refusal may be caused by objects that no longer exist.
type Caveat string

// The caveats.
const (
	// NodeNotInState: the state does not know the node that asked.
	NodeNotInState Caveat = "NodeNotInState"
	// ObjectNotInState: nothing in the state refers to the object any more, or it was
	// replaced.
	ObjectNotInState Caveat = "ObjectNotInState"
)

// Refusal is one request with one answer and a count. It has the identity, verb, group, resource,
// subresource, namespace and name that authorizers see. A refusal by admission has the ones
// that admission sees, so that a created object has a name.
type Refusal struct {
	// Node is the node of the kubelet that made the request; empty if unknown. In a merged report it
	// is empty if the part of the log that has the request does not show it.
	Node string `json:"node,omitempty"`
	// Identity is the username of the kubelet, and Standing says whether it is the username of its node.
	Identity string   `json:"identity"`
	Standing Standing `json:"standing"`
	// Groups are the groups of Identity, sorted.
	Groups []string `json:"groups,omitempty"`

	// Verb, Group, Resource, Subresource, Namespace and Name are attributes of the request; empty
	// ones are left out.
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// FieldSelector and LabelSelector are the parts of the selectors that an authorizer
	// reads. The Node authorizer reads only spec.nodeName of the field selector.
	FieldSelector string `json:"fieldSelector,omitempty"`
	LabelSelector string `json:"labelSelector,omitempty"`
	// Path is the path of a request without a resource.
	Path string `json:"path,omitempty"`

	// By is who refuses. In the list refused it is who refused according to the log:
	// "authorization" or "admission".
	By string `json:"by,omitempty"`
	// Code and Message are the evaluators' reason. In the list refused they are empty where
	// the evaluators allow the request.
	Code    verdict.Code `json:"code,omitempty"`
	Message string       `json:"message,omitempty"`
	// Hint says what would have to change for another answer.
	Hint string `json:"hint,omitempty"`
	// Caveat is why the refusal may be caused by objects that no longer exist.
	Caveat Caveat `json:"caveat,omitempty"`
	// AsNode is, for a kubelet that does not conform, the answer of the evaluators to the
	// node's own user: "allow", "refuse" or "undecided"; empty if the node is unknown.
	// NodeRestriction is not asked.
	AsNode string `json:"asNode,omitempty"`
	// Evaluators is, in the list refused, the answer of the evaluators: "allow", "refuse" or
	// "undecided".
	Evaluators string `json:"evaluators,omitempty"`
	// Reason is, in the list refused, the reason in the log.
	Reason string `json:"reason,omitempty"`
	// Error is why the evaluators could not decide.
	Error string `json:"error,omitempty"`

	// Count is how many such requests there are, First the time of the first one, and Last the time of
	// the last one. In a merged report they are of the parts whose lists have the request: if more
	// counts requests, there may be others.
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// More counts the requests beyond the bounds of the lists.
type More struct {
	// WouldBeRefused, Refused and Undecided are what the lists of these names lack.
	WouldBeRefused []Remainder `json:"wouldBeRefused,omitempty"`
	Refused        []Remainder `json:"refused,omitempty"`
	Undecided      []Remainder `json:"undecided,omitempty"`
}

// Remainder counts requests beyond the bound of a list. A remainder without node and resource
// counts the requests beyond the bound of the remainders.
type Remainder struct {
	// Node, Group, Resource, Subresource and Code are the same for all of the requests, and Count is
	// their number.
	Node        string       `json:"node,omitempty"`
	Group       string       `json:"group,omitempty"`
	Resource    string       `json:"resource,omitempty"`
	Subresource string       `json:"subresource,omitempty"`
	Code        verdict.Code `json:"code,omitempty"`
	Count       int          `json:"count"`
}

// Identity is a user of a kubelet that does not authenticate as its node.
type Identity struct {
	// Username and Groups are as in the log. Why explains Standing in words.
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
	Standing Standing `json:"standing"`
	Why      string   `json:"why"`
	// Nodes are the nodes for which it acted; MoreNodes counts those beyond the bound.
	Nodes     []string `json:"nodes"`
	MoreNodes int      `json:"moreNodes,omitempty"`
	// UserAgents are a few of the user agents that it used.
	UserAgents []string `json:"userAgents"`
	// Count is how many requests it made, First when it made the first one, and Last when the last
	// one.
	Count int       `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// Nodes says which nodes of the log and of the state conform.
type Nodes struct {
	// Conforming is the number of nodes that authenticated as themselves.
	Conforming int `json:"conforming"`
	// NeverConforming are nodes for which others acted and that never authenticated as
	// themselves.
	NeverConforming []NeverConforming `json:"neverConforming"`
	// Silent are nodes of the state that the log does not mention.
	Silent []string `json:"silent"`
	// NotInState are nodes of the log that the state does not contain.
	NotInState []string `json:"notInState"`
	// NotTold counts identities and nodes beyond the bounds.
	NotTold int `json:"notTold,omitempty"`
}

// NeverConforming is a node that others act for.
type NeverConforming struct {
	// Name is the name of the node.
	Name string `json:"name"`
	// Identities are the users that act for it.
	Identities []string `json:"identities"`
	// InState is true if the state has the node.
	InState bool `json:"inState"`
}

// NotExamined counts writes of one kind that were not examined for one reason.
type NotExamined struct {
	// Verb, Group, Resource and Subresource are the same for all of the writes.
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	// Why says what was missing. Count is how many writes there are.
	Why   Unexamined `json:"why"`
	Count int        `json:"count"`
}

// Clean reports whether the log shows no obstacle to Node authorization: every request was
// allowed and would be allowed, and every kubelet conforms.
func (r *Report) Clean() bool {
	return r.Totals.WouldBeRefused == 0 && r.Totals.Refused == 0 && r.Totals.Nonconforming == 0
}

// Complete reports whether everything could be read and decided, and the log has requests of
// kubelets.
func (r *Report) Complete() bool {
	return r.Totals.BrokenLines == 0 && r.Totals.Undecided == 0 && !r.onlyReceived && r.Totals.Requests > 0
}
