package query

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/internal/authz/evaluate"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// admission is the answer of NodeRestriction to a node's write.
type admission struct {
	// Operation is the operation of the request.
	Operation noderestriction.Operation `json:"operation"`
	// NotAsked is true if the authorizers refuse the request.
	NotAsked bool `json:"notAsked,omitempty"`
	// Checks are the checks of NodeRestriction, in order.
	Checks []string `json:"checks,omitempty"`
	// Conditions are the checks that depend on objects that were not given. NodeRestriction
	// allows objects that meet them.
	Conditions []noderestriction.Condition `json:"conditions,omitempty"`
	// Needs are the flags for the objects of the conditions.
	Needs []string `json:"needs,omitempty"`
	// Answer is the answer of NodeRestriction; nil if it depends on the conditions.
	Answer *noderestriction.Answer `json:"answer,omitempty"`
	// Missing is the missing state that could change a refusal.
	Missing []command.Missing `json:"missing,omitempty"`

	// passesRestriction says which object has to meet the conditions.
	passesRestriction string
	lacks             []evaluate.Lack
	write             *evaluate.Write
}

// operation returns the admission operation of a request. It returns false for requests that do
// not go through admission, or that NodeRestriction does not check.
func operation(q command.Question) (noderestriction.Operation, bool) {
	if q.URL != "" || slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, q.Subresource) {
		return "", false
	}
	operation := noderestriction.OperationOf(q.Verb)
	return operation, operation != ""
}

// evaluateWrite evaluates a node's write by NodeRestriction, as far as possible with the given
// objects. It returns nil for reads, for users that are not nodes, and for requests that the
// authorizers refuse and NodeRestriction does not check.
func evaluateWrite(
	ctx context.Context, s *command.Session, who command.Identity, q command.Question, given command.WrittenObjects, authorized string,
) (*admission, error) {
	operation, written := operation(q)
	if !written || !who.IsNode {
		if given != (command.WrittenObjects{}) {
			return nil, command.Usagef("-f and --old-object are for writes of nodes, which NodeRestriction looks at")
		}
		return nil, nil
	}
	restriction := s.Restriction
	req := writeRequest(s, who, q, operation)
	a := &admission{Operation: operation, Checks: restriction.Checks(req), passesRestriction: passesRestriction(q)}
	readsObject, readsOld := restriction.Reads(req)
	if err := decodeInto(given, req, q, readsObject, readsOld); err != nil {
		return nil, err
	}
	switch {
	case authorized != command.Yes && len(a.Checks) == 0:
		return nil, nil
	case authorized == command.No:
		return &admission{Operation: operation, NotAsked: true, write: &evaluate.Write{Request: *req, Open: open(q, req)}}, nil
	}
	a.write = &evaluate.Write{Request: *req, Open: open(q, req)}
	answer, conditions := restriction.Consider(ctx, req, a.write.Open)
	if len(conditions) == 0 {
		unread, lacks := s.MissingForWrite(req, answer)
		a.Answer, a.Missing, a.lacks = &answer, append(command.Unreadable(unread), s.AsMissing(lacks)...), lacks
		return a, nil
	}
	a.Conditions, a.Needs = conditions, needed(conditions)
	if len(a.Needs) > 0 && given != (command.WrittenObjects{}) {
		return nil, command.Usagef("NodeRestriction also looks at the object %s: give it with %s", wanted(a.Needs), a.Needs[0])
	}
	return a, nil
}

// open returns what the question does not specify. A deletecollection has no name.
func open(q command.Question, req *noderestriction.Request) noderestriction.Open {
	return noderestriction.Open{
		Object:    req.Object == nil && req.Operation != noderestriction.Delete,
		OldObject: req.OldObject == nil && req.Operation != noderestriction.Create,
		Name:      req.Name == "" && q.Verb != "deletecollection",
		Namespace: req.Namespace == "" && q.Namespaced,
	}
}

func needed(conditions []noderestriction.Condition) []string {
	var flags []string
	for _, part := range []struct{ name, flag string }{{"object", "-f"}, {"oldObject", "--old-object"}} {
		if slices.ContainsFunc(conditions, func(c noderestriction.Condition) bool { return slices.Contains(c.Of, part.name) }) {
			flags = append(flags, part.flag)
		}
	}
	return flags
}

func passesRestriction(q command.Question) string {
	if strings.HasPrefix(q.Verb, "delete") {
		return "the deleted object passes " + nameRestriction
	}
	return "the written object passes " + nameRestriction
}

// wanted describes the one object that is missing beside a given one.
func wanted(needs []string) string {
	if needs[0] == "-f" {
		return "that is written"
	}
	return "as it was before"
}

func writeRequest(
	s *command.Session, who command.Identity, q command.Question, operation noderestriction.Operation,
) *noderestriction.Request {
	req := &noderestriction.Request{
		User: who.User, Groups: who.Groups, Operation: operation,
		Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name,
	}
	resource := schema.GroupResource{Group: q.Group, Resource: q.Resource}
	if found, err := s.Names.Resolve(resource.String()); err == nil && len(found.Versions) > 0 {
		req.Version = found.Versions[0]
	}
	return req
}

func decodeInto(w command.WrittenObjects, req *noderestriction.Request, q command.Question, readsObject, readsOld bool) (err error) {
	switch {
	case w.Object != nil && req.Operation == noderestriction.Delete:
		return command.Usagef("-f does not go with %s, which writes no object", q.Verb)
	case w.OldObject != nil && req.Operation == noderestriction.Create:
		return command.Usagef("--old-object does not go with create: there is nothing before")
	}
	switch {
	case !readsObject:
	case w.Object != nil:
		if req.Object, err = w.Object.Decode(q); err != nil {
			return err
		}
	}
	if readsOld && w.OldObject != nil {
		if req.OldObject, err = w.OldObject.Decode(q); err != nil {
			return err
		}
	}
	if req.Name == "" && req.Object != nil {
		// API servers take the name of a created object from the object itself.
		if of, err := meta.Accessor(req.Object); err == nil {
			req.Name = of.GetName()
		}
	}
	return nil
}

func admitted(s *command.Session, a *answer, by *admission) {
	switch {
	case by == nil || by.NotAsked:
	case by.Answer == nil && a.Answer == command.Yes:
		a.Conditions = by.Conditions
		if ownNameOnly(by.Conditions) {
			a.OnlyName = a.Identity.Node
		}
	case by.Answer == nil || by.Answer.Decision == verdict.Allow:
	case by.undecided():
		reason := undecidedReason(*by.Answer)
		if len(by.lacks) > 0 {
			reason = s.LackReason(by.lacks, a.Identity)
		}
		a.undecided(reason)
		a.Missing = by.Missing
	default:
		a.Answer, a.Decision, a.DecidedBy, a.Missing = command.No, verdict.Deny, nameRestriction, nil
		a.Reason = remediedReason{Reason: by.Answer.Reason}
	}
}

// undecided reports whether NodeRestriction refuses only because something is unknown.
func (a *admission) undecided() bool {
	return len(a.Missing) > 0 || a.Answer.Code == noderestriction.AuthorizationFailed
}

func (a *admission) text(p *render.Page, mainHint string) {
	switch {
	case a.NotAsked:
		p.Section("%s: not asked", nameRestriction)
		p.Line("  the authorizers refuse the request")
		return
	case a.Answer == nil:
		object := strings.TrimSuffix(a.passesRestriction, " passes "+nameRestriction)
		p.Section("%s: allows, if %s meets the conditions", nameRestriction, object)
	case a.Answer.Decision == verdict.Allow:
		p.Section("%s: %s", nameRestriction, render.Good.In("allows"))
	case a.undecided():
		p.Section("%s: %s", nameRestriction, render.Unsure.In("could not decide"))
	default:
		p.Section("%s: %s", nameRestriction, render.Bad.In("refuses"))
	}
	fields := []render.Field{{Name: "operation", Value: strings.ToLower(string(a.Operation))}}
	if answer := a.Answer; answer != nil {
		hint := answer.Reason.Hint
		if hint == mainHint {
			hint = "" // has a section of its own
		}
		fields = append(fields,
			render.Field{Name: "code", Value: string(answer.Code)},
			render.Field{Name: "rule", Value: answer.Rule},
			render.Field{Name: "status", Value: strings.TrimSpace(fmt.Sprint(answer.Status, " ", answer.StatusReason))},
			render.Field{Name: "reason", Value: answer.Reason.Message},
			render.Field{Name: "hint", Value: hint},
		)
	}
	p.Fields(fields...)
	depends := requirements(a.Conditions)
	lines(p, "checks", slices.DeleteFunc(slices.Clone(a.Checks), func(check string) bool { return slices.Contains(depends, check) }))
	lines(p, "conditions", depends)
}

func lines(p *render.Page, heading string, all []string) {
	if len(all) == 0 {
		return
	}
	p.Line("  %s", render.Faint.In(heading))
	for _, line := range all {
		p.Line("    %s", line)
	}
}

const nameRestriction = "NodeRestriction"

// admit evaluates AdmissionReviews by NodeRestriction. If an unreadable resource could change
// a refusal, the status tells the client to retry. If missing objects in files could change
// it, the status is the status that Kubernetes returns, and the message says so.
func admit(ctx context.Context, s *command.Session, req *noderestriction.Request) noderestriction.Answer {
	a := s.Admit(ctx, req)
	answer := a.Answer
	if err := a.Contained; err != nil { // NodeScopes or Quarantines could refuse the write, and are not known
		return noderestriction.Answer{
			Decision: verdict.Deny, Code: command.CodeEvaluationFailed, Status: http.StatusInternalServerError,
			Reason: verdict.Reason{Code: command.CodeEvaluationFailed, Message: "could not decide: " + err.Error()},
		}
	}
	answer.Reason = undecidedReason(answer)
	if len(a.Unread) > 0 {
		answer.Status, answer.StatusReason = http.StatusInternalServerError, ""
		answer.Reason.Message += "; but " + (&evaluate.UnreadError{Resources: a.Unread}).Error()
	}
	if len(a.Lacks) > 0 {
		answer.Reason.Message += "; not decided: " + (&evaluate.LackError{Lacks: a.Lacks}).Error()
	}
	return answer
}

// undecidedReason returns the answer's reason, with the error if the chain could not answer
// an access review of NodeRestriction.
func undecidedReason(answer noderestriction.Answer) verdict.Reason {
	reason := answer.Reason
	if answer.Code == noderestriction.AuthorizationFailed {
		reason.Message += fmt.Sprintf(" (%v)", answer.Err)
	}
	return reason
}
