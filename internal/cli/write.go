package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// admission is what NodeRestriction has to say about a node's write.
type admission struct {
	Operation noderestriction.Operation `json:"operation"`
	// NotAsked is true when the authorizers refuse before.
	NotAsked bool `json:"notAsked,omitempty"`
	// Checks are what it requires, in order.
	Checks []string `json:"checks,omitempty"`
	// Needs are the flags for the objects that it looks at and that were not
	// given. It has not decided then.
	Needs []string `json:"needs,omitempty"`
	// Answer is nil when it has not decided.
	Answer *noderestriction.Answer `json:"answer,omitempty"`
	// Missing is what could not be read and could turn a refusal.
	Missing []missing `json:"missing,omitempty"`
}

// operation returns the operation that API servers call a request, and false
// for requests that are not admitted or that NodeRestriction lets pass.
func (q question) operation() (noderestriction.Operation, bool) {
	if q.URL != "" || slices.Contains([]string{"exec", "attach", "portforward", "proxy"}, q.Subresource) {
		return "", false
	}
	switch q.Verb {
	case "create":
		return noderestriction.Create, true
	case "update", "patch":
		return noderestriction.Update, true
	case "delete", "deletecollection":
		return noderestriction.Delete, true
	}
	return "", false
}

// admission puts a node's write to NodeRestriction, as far as the objects that
// were given allow. It is nil for reads, for users that are not nodes, and for what the
// authorizers refuse and NodeRestriction has no checks for.
func (s *session) admission(ctx context.Context, who identity, q question, given writtenObjects, authorized string) (*admission, error) {
	operation, written := q.operation()
	if !written || !who.isNode {
		if given != (writtenObjects{}) {
			return nil, usagef("-f and --old-object are for writes of nodes, which NodeRestriction looks at")
		}
		return nil, nil
	}
	restriction := s.restriction()
	req := s.writeRequest(who, q, operation)
	a := &admission{Operation: operation, Checks: restriction.Checks(req)}
	readsObject, readsOld := restriction.Reads(req)
	if err := given.put(req, q, readsObject, readsOld); err != nil {
		return nil, err
	}
	switch {
	case authorized == no && len(a.Checks) == 0:
		return nil, nil
	case authorized == no:
		return &admission{Operation: operation, NotAsked: true}, nil
	}
	if readsObject && req.Object == nil {
		a.Needs = append(a.Needs, "-f")
	}
	if readsOld && req.OldObject == nil {
		a.Needs = append(a.Needs, "--old-object")
	}
	if len(a.Needs) > 0 {
		if given != (writtenObjects{}) {
			return nil, usagef("NodeRestriction also looks at the object %s: give it with %s", wanted(a.Needs), a.Needs[0])
		}
		return a, nil
	}
	answer := restriction.Decide(ctx, req)
	a.Answer, a.Missing = &answer, s.missingForWrite(req, answer)
	return a, nil
}

// wanted describes the one object that is missing beside a given one.
func wanted(needs []string) string {
	if needs[0] == "-f" {
		return "that is written"
	}
	return "as it was before"
}

func (s *session) writeRequest(who identity, q question, operation noderestriction.Operation) *noderestriction.Request {
	req := &noderestriction.Request{
		User: who.User, Groups: who.Groups, Operation: operation,
		Group: q.Group, Resource: q.Resource, Subresource: q.Subresource, Namespace: q.Namespace, Name: q.Name,
	}
	resource := schema.GroupResource{Group: q.Group, Resource: q.Resource}
	if found, err := s.names.Resolve(resource.String()); err == nil && len(found.Versions) > 0 {
		req.Version = found.Versions[0]
	}
	return req
}

// put decodes the objects that NodeRestriction reads into the request.
func (w writtenObjects) put(req *noderestriction.Request, q question, readsObject, readsOld bool) (err error) {
	switch {
	case w.object != nil && req.Operation == noderestriction.Delete:
		return usagef("-f does not go with %s, which writes no object", q.Verb)
	case w.oldObject != nil && req.Operation == noderestriction.Create:
		return usagef("--old-object does not go with create: there is nothing before")
	}
	switch {
	case !readsObject:
	case w.object != nil:
		if req.Object, err = w.object.decode(q); err != nil {
			return err
		}
	case req.Operation == noderestriction.Create:
		req.Object = impliedObject(q)
	}
	if readsOld && w.oldObject != nil {
		if req.OldObject, err = w.oldObject.decode(q); err != nil {
			return err
		}
	}
	if req.Name == "" && req.Object != nil {
		// API servers take the name of what is created from the object.
		if of, err := meta.Accessor(req.Object); err == nil {
			req.Name = of.GetName()
		}
	}
	return nil
}

// impliedObject is the object of requests that consist of little but a name; nil
// for others.
func impliedObject(q question) runtime.Object {
	if q.Name == "" {
		return nil
	}
	named := metav1.ObjectMeta{Namespace: q.Namespace, Name: q.Name}
	switch q.writtenKind() {
	case schema.GroupKind{Group: "policy", Kind: "Eviction"}:
		return &policyv1.Eviction{ObjectMeta: named}
	case schema.GroupKind{Group: "coordination.k8s.io", Kind: "Lease"}:
		return &coordinationv1.Lease{ObjectMeta: named}
	case schema.GroupKind{Group: "storage.k8s.io", Kind: "CSINode"}:
		return &storagev1.CSINode{ObjectMeta: named}
	}
	return nil
}

// admit changes the answer to what remains of it after NodeRestriction.
func (a *answer) admit(by *admission) {
	if by == nil || by.Answer == nil || by.Answer.Decision == verdict.Allow {
		return
	}
	if by.undecided() {
		a.undecided(undecidedReason(*by.Answer))
		a.Missing = by.Missing
		return
	}
	a.Answer, a.Decision, a.DecidedBy, a.Reason, a.Missing = no, verdict.Deny, nameRestriction, by.Answer.Reason, nil
}

// undecided reports whether a refusal is for want of an answer.
func (a *admission) undecided() bool {
	return len(a.Missing) > 0 || a.Answer.Code == noderestriction.AuthorizationFailed
}

// text adds what NodeRestriction says to an explanation.
func (a *admission) text(p *render.Page, mainHint string) {
	switch {
	case a.NotAsked:
		p.Section("%s: not asked", nameRestriction)
		p.Line("  the authorizers refuse before")
		return
	case a.Answer == nil:
		p.Section("%s: decides by the object", nameRestriction)
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
	if len(a.Checks) > 0 {
		p.Line("  %s", render.Faint.In("checks"))
	}
	for _, check := range a.Checks {
		p.Line("    %s", check)
	}
}
