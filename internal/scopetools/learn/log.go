package learn

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/audit/replay"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Request is one stage of a request of a service account. The token of a pod names its node in the extra
// values of the user. Nothing else is taken for the node of a request: neither an address nor a user agent.
type Request struct {
	// Request is the request as authorizers saw it. A create has no name.
	access.Request
	// Namespace and Name are the service account.
	AccountNamespace, AccountName string
	// Node is the node of the token; empty if the token names none, or several.
	Node string
	// CreatedName is the name of a created object, if the log has it.
	CreatedName string
	// Impersonates is the user that the account impersonated; the request is then that user's.
	Impersonates string
	// Constraint is the verb of the constrained impersonation, if there was one.
	Constraint string
	// Refused is true if the authorizers refused the request.
	Refused bool
	// Begun is true for the first of the two stages of a watch.
	Begun     bool
	UserAgent string
	At        time.Time
}

// Key tells requests apart: how often they occur is counted for each.
func (r *Request) Key() string {
	return strings.Join([]string{r.User, r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace, r.Request.Name, r.Path}, "\x00")
}

// Counter counts requests of which a log may have two stages.
type Counter struct{ Begun, Ended int }

// Add counts a stage, which is the first of two or not.
func (c *Counter) Add(begun bool) {
	if begun {
		c.Begun++
	} else {
		c.Ended++
	}
}

// Requests returns the number of requests.
func (c *Counter) Requests() int { return max(c.Begun, c.Ended) }

// times are the times of the first and the last of some requests; zero if the log has none.
type times struct{ first, last time.Time }

func (t *times) include(other times) {
	if !other.first.IsZero() && (t.first.IsZero() || other.first.Before(t.first)) {
		t.first = other.first
	}
	if other.last.After(t.last) {
		t.last = other.last
	}
}

// utc returns the times for documents; nil if there are none.
func (t *times) utc() (first, last *time.Time) {
	if t.first.IsZero() {
		return nil, nil
	}
	from, to := t.first.UTC(), t.last.UTC()
	return &from, &to
}

// PodOnNode is a pod that a log shows on a node.
type PodOnNode struct{ Namespace, Name, Node string }

// Complete reports whether the pod and its node have names.
func (p PodOnNode) Complete() bool { return p.Namespace != "" && p.Name != "" && p.Node != "" }

// Log says which requests are read, and receives them in the order of the log.
type Log struct {
	// Concerns reports whether the requests of an account are wanted.
	Concerns func(namespace, name string) bool
	// Request receives the requests.
	Request func(*Request)
	// Pod receives the pods that the log shows on nodes: those whose tokens are used, those whose
	// status a node wrote, and those that were bound to one.
	Pod func(PodOnNode)
}

type part struct {
	requests []Request
	pods     []PodOnNode
}

// Read reads audit logs.
func (l *Log) Read(ctx context.Context, files []auditlog.File, opts auditlog.Options) (auditlog.Summary, error) {
	sink := auditlog.Sink[*part]{
		New: func() *part { return &part{} },
		Event: func() func(*part, *auditlog.Event) {
			reader := replay.NewRequestReader()
			return func(p *part, e *auditlog.Event) { l.event(p, e, reader) }
		},
		Merge: l.merge,
	}
	return auditlog.Read(ctx, files, sink, opts)
}

func (l *Log) merge(p *part) {
	for i := range p.requests {
		l.Request(&p.requests[i])
	}
	for _, pod := range p.pods {
		l.Pod(pod)
	}
	clear(p.requests)
	p.requests, p.pods = p.requests[:0], p.pods[:0]
}

func (l *Log) event(p *part, e *auditlog.Event, reader *replay.RequestReader) {
	if !e.Answered() {
		return
	}
	if pod, shown := podOnNode(e); shown {
		p.pods = append(p.pods, pod)
	}
	if r, wanted := l.own(e, reader); wanted {
		p.requests = append(p.requests, r)
		if pod := r.Extra[nodeidentity.ExtraPod]; r.Node != "" && len(pod) == 1 && r.Impersonates == "" {
			p.pods = append(p.pods, PodOnNode{r.AccountNamespace, pod[0], r.Node})
		}
	}
}

// own returns the request of an event if its user is a wanted account: the account that sent it,
// or the account that somebody impersonated.
func (l *Log) own(e *auditlog.Event, reader *replay.RequestReader) (r Request, wanted bool) {
	user := &e.User
	namespace, name, isAccount := nodeidentity.ServiceAccount(user.Name)
	wanted = isAccount && l.Concerns(namespace, name)
	if !wanted && e.Impersonated != nil {
		user = e.Impersonated
		namespace, name, isAccount = nodeidentity.ServiceAccount(user.Name)
		wanted = isAccount && l.Concerns(namespace, name)
	}
	if !wanted {
		return r, false
	}
	reader.Read(e, &r.Request)
	r.AccountNamespace, r.AccountName = namespace, name
	extra := e.Extra(user)
	r.Node, _ = nodeidentity.TokenNode(extra)
	if user == &e.User && e.Impersonated != nil {
		r.Impersonates, r.Constraint = e.Impersonated.Name, e.Authentication.ImpersonationConstraint
	}
	if e.Verb == "create" && e.Object != nil {
		r.CreatedName = e.Object.Name
	}
	r.Refused = e.Annotations.Decision == auditlog.Forbidden || e.Status.Code == http.StatusUnauthorized ||
		e.Status.Code == http.StatusForbidden && e.Annotations.Decision != auditlog.Allowed
	r.Begun, r.UserAgent, r.At = e.Stage == auditlog.ResponseStarted, e.UserAgent, e.Received
	return r, true
}

// podOnNode returns the pod that an event shows on a node: its kubelet wrote its status, or it was
// bound to the node.
func podOnNode(e *auditlog.Event) (pod PodOnNode, shown bool) {
	o := e.Object
	if o == nil || o.Group != "" || o.Resource != "pods" || o.Name == "" || e.Status.Code >= http.StatusMultipleChoices {
		return pod, false
	}
	pod = PodOnNode{Namespace: o.Namespace, Name: o.Name}
	switch {
	case o.Subresource == "status" && e.Impersonated == nil && (e.Verb == "patch" || e.Verb == "update"):
		pod.Node = nodeidentity.Of(e.User.Name, e.User.Groups).Name
	case o.Subresource == "binding" && e.Verb == "create":
		var binding struct {
			Target struct {
				Kind string `json:"kind"`
				Name string `json:"name"`
			} `json:"target"`
		}
		if json.Unmarshal(e.RequestObject(), &binding) == nil && (binding.Target.Kind == "Node" || binding.Target.Kind == "") {
			pod.Node = binding.Target.Name
		}
	}
	return pod, pod.Node != ""
}

// InState answers from a state what a node may do in it.
func InState(e *evaluate.Evaluator) Node { return state{e} }

type state struct{ *evaluate.Evaluator }

// NodeOf implements Node.
func (s state) NodeOf(namespace, pod string) string {
	nodes := s.State.Graph.NodesReaching(graph.Pod, namespace, pod)
	if len(nodes) == 0 {
		return ""
	}
	return nodes[0]
}

// IsNode implements Node.
func (s state) IsNode(name string) bool { return s.State.KnowsNode(name) }

// AsNode implements Node. A write whose object NodeRestriction would have to see is not allowed,
// but for tokens: a token that is not bound to a pod of the node is refused in any case.
func (s state) AsNode(req *access.Request, node string) bool {
	as := *req
	as.User, as.Groups = nodeidentity.User(node)
	as.UID, as.Extra = "", nil
	if s.Node.Decide(&as).Decision != verdict.Allow {
		return false
	}
	operation := noderestriction.OperationOf(req.Verb)
	if operation == "" || !req.ResourceRequest {
		return true
	}
	write := &noderestriction.Request{
		User: as.User, Groups: as.Groups, Operation: operation, Group: req.Group, Version: req.Version, Resource: req.Resource,
		Subresource: req.Subresource, Namespace: req.Namespace, Name: req.Name,
	}
	answer, conditions := s.Restriction.Consider(context.Background(), write, noderestriction.Open{
		Object: operation != noderestriction.Delete, OldObject: operation != noderestriction.Create,
		Name: req.Name == "", Namespace: false,
	})
	if len(conditions) > 0 {
		return req.Group == "" && req.Resource == "serviceaccounts" && req.Subresource == "token"
	}
	return answer.Decision == verdict.Allow
}
