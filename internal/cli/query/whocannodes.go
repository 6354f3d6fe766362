package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// whoCan answers the question for every node of the state, as can-i does for one.
func whoCan(ctx context.Context, s *command.Session, q command.Question) (WhoCanResult, error) {
	known, err := s.ReadWhoCan(q)
	if err != nil {
		return WhoCanResult{}, err
	}
	if len(known) == 0 {
		return WhoCanResult{}, fmt.Errorf(
			"no nodes to ask about in %s: add Node objects, or pods with spec.nodeName, with --from", s.State.Origin,
		)
	}
	w := &whoCanSearch{
		Session: s, question: q,
		result: WhoCanResult{
			Request: q, Nodes: []nodeThatCan{}, NodesAsked: len(known), NodeScopes: len(s.State.NodeScopes()), State: s.Info(),
		},
	}
	if w.kind, w.related = nodeauthz.KindOf(q.Group, q.Resource); w.related && q.Name != "" {
		w.paths = s.Node.PathsByNode(w.kind, q.Namespace, q.Name)
	}
	for _, node := range known {
		if err := w.ask(ctx, node); err != nil {
			return w.result, err
		}
	}
	if len(w.result.Nodes) == 0 && len(w.result.Undecided) == 0 {
		w.result.Why = w.why
	}
	return w.result, nil
}

type whoCanSearch struct {
	*command.Session
	question command.Question
	kind     graph.Kind
	related  bool // whether the graph relates objects of the kind to nodes
	paths    map[string][]verdict.Path

	result  WhoCanResult
	refused int             // nodes
	why     *verdict.Reason // nil unless it is the same for all of them
	seen    map[command.Missing]bool
}

// ask adds the answer about a node to the result. It asks the chain for full reasons only if
// they are shown.
func (w *whoCanSearch) ask(ctx context.Context, node string) error {
	who := command.NewIdentity(nodeidentity.User(node))
	req := w.question.Request(who)
	decision, by, err := w.Chain.Decide(ctx, req)
	a := answer{Answer: command.Yes, Identity: who}
	switch unread := w.UnreadContainment(req); {
	case err != nil && len(unread) > 0:
		// It is not known whether the node is quarantined: the answer is unknown, unless the others refuse.
		a = answer{Answer: command.Unknown, Identity: who, Missing: command.Unreadable(unread)}
		if said, _ := w.Chain.Brief(ctx, req); said.Doubt() == "" { // the opinions hold the errors
			a = w.notAllowed(who, req)
		}
	case err != nil:
		return fmt.Errorf("deciding about node %s: %w", node, err)
	case decision == verdict.Deny:
		a = w.quarantined(ctx, who, req, by)
	case decision != verdict.Allow:
		a = w.notAllowed(who, req)
	}
	admission, err := evaluateWrite(ctx, w.Session, who, w.question, command.WrittenObjects{}, a.Answer)
	if err != nil {
		return err
	}
	admitted(w.Session, &a, admission)
	switch a.Answer {
	case command.Yes:
		w.result.Conditions = a.Conditions // the same for all nodes
		return w.add(ctx, nodeThatCan{Node: node, DecidedBy: by, OnlyName: a.OnlyName}, req)
	case command.Unknown:
		w.result.Undecided = append(w.result.Undecided, node)
		w.miss(a.Missing)
	default:
		w.refuse(a, req)
	}
	if decision != verdict.Deny {
		w.addSome(who, req)
	}
	return nil
}

// quarantined returns the answer to a request that a Quarantine refuses: the authorizers of who-can are
// not configured, so that none but that denies.
func (w *whoCanSearch) quarantined(ctx context.Context, who command.Identity, req *access.Request, by string) answer {
	said, _ := w.Chain.Brief(ctx, req) // it was decided without an error
	reason := evaluate.Main(said).Reason
	if note := command.Assumption(by); note != "" {
		w.result.note(note)
		reason.Message += "; " + note
	}
	return answer{Answer: command.No, Identity: who, Reason: remediedReason{Reason: reason}}
}

func (r *WhoCanResult) note(note string) {
	r.Quarantined++
	if !slices.Contains(r.Notes, note) {
		r.Notes = append(r.Notes, note)
	}
}

// notAllowed returns the answer to a request that no authorizer allows, as can-i does.
func (w *whoCanSearch) notAllowed(who command.Identity, req *access.Request) answer {
	a := answer{Answer: command.No, Identity: who}
	unread, lacks := missingFor(w.Session, req, w.Node.Decide(req).Code, true)
	a.Missing = append(unread, w.AsMissing(lacks)...)
	if len(a.Missing) > 0 {
		a.Answer = command.Unknown
	}
	return a
}

func (w *whoCanSearch) add(ctx context.Context, can nodeThatCan, req *access.Request) error {
	if can.DecidedBy == chain.NameNode {
		can.Paths = w.paths[can.Node]
	}
	if len(can.Paths) == 0 {
		said, err := w.Chain.Explain(ctx, req)
		if err != nil {
			return fmt.Errorf("explaining the decision about node %s: %w", can.Node, err)
		}
		can.Message = evaluate.Main(said).Message
	}
	w.result.Nodes = append(w.result.Nodes, can)
	return nil
}

// refuse keeps the reason while it is the same for all refused nodes. Reasons about a path to
// the object are different for each node.
func (w *whoCanSearch) refuse(a answer, req *access.Request) {
	w.refused++
	code := a.Reason.Code
	if code == "" { // the authorizers refuse
		code = w.Node.Decide(req).Code
	}
	switch {
	case code == nodeauthz.NoPathToObject || w.refused > 1 && (w.why == nil || w.why.Code != code):
		w.why = nil
	case w.refused == 1 && a.Reason.Code == "":
		reason := w.Node.Explain(req).Reason
		w.why = &reason
	case w.refused == 1:
		w.why = &a.Reason.Reason
	}
}

// addSome adds the objects to which the node can do it, if the question needs a name and has
// none.
func (w *whoCanSearch) addSome(who command.Identity, req *access.Request) {
	if !w.related || w.Node.Decide(req).Code != nodeauthz.NameRequired {
		return
	}
	some := nodeThatCanSome{Node: who.Node}
	for _, object := range w.State.Graph.Objects(who.Node, w.kind) {
		if w.question.Namespace != "" && object.Namespace != w.question.Namespace {
			continue
		}
		named := *req
		named.Namespace, named.Name = object.Namespace, object.Name
		if w.Node.Decide(&named).Decision == verdict.Allow {
			some.Objects = append(some.Objects, object)
		}
	}
	if len(some.Objects) > 0 {
		w.result.Some = append(w.result.Some, some)
	}
	unread, lacking := w.MissingForKind(who.Node, w.kind)
	if lacks := append(command.Unreadable(unread), w.AsMissing(lacking)...); len(lacks) > 0 {
		w.result.SomeUndecided = append(w.result.SomeUndecided, who.Node)
		w.miss(lacks)
	}
}

// miss adds missing state without duplicates.
func (w *whoCanSearch) miss(all []command.Missing) {
	if w.seen == nil {
		w.seen = map[command.Missing]bool{}
	}
	for _, m := range all {
		if !w.seen[m] {
			w.seen[m] = true
			w.result.Missing = append(w.result.Missing, m)
		}
	}
}

func (r WhoCanResult) status() int {
	switch {
	case len(r.Nodes) > 0:
		return command.StatusAllowed
	case len(r.Undecided) > 0:
		return command.StatusUndecided
	}
	return command.StatusDenied
}
