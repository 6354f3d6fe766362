package replay

import (
	"bytes"
	"context"

	"github.com/go-json-experiment/json"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/internal/auditlog"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Unexamined is why NodeRestriction could not be asked about a write.
type Unexamined string

// The causes, each with the one line that people read.
const (
	// NoObject: the log has not what was written.
	NoObject Unexamined = "the log has not what was written: the audit policy logs it at level Request"
	// PatchOnly: the log has the patch only.
	PatchOnly Unexamined = "the log has the patch, and not what it was applied to"
	// NoOldObject: a rule compares with what was there before.
	NoOldObject Unexamined = "rules compare with the object as it was before, which no log has"
	// UnreadableObject: what was written is there, but cannot be decoded.
	UnreadableObject Unexamined = "what was written cannot be decoded"
	// OtherState: the state does not have what it had when the request came.
	OtherState Unexamined = "the state has not the pod, node or service account that was there when the request came"
	// NoDecision: an authorizer that NodeRestriction asks could not decide.
	NoDecision Unexamined = "the authorizers could not say whether the node may have what its pod does not ask for"
)

// operations are those of admission. What is left out is not admitted.
var operations = map[string]noderestriction.Operation{
	"create": noderestriction.Create, "update": noderestriction.Update, "patch": noderestriction.Update,
	"delete": noderestriction.Delete, "deletecollection": noderestriction.Delete,
}

// connects are subresources that pass data on, and are not admitted as writes.
var connects = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

// admit puts a write to NodeRestriction, as far as the log holds what it looks at.
func (ev *Evaluators) admit(ctx context.Context, e *auditlog.Event, asked *request, by who) answer {
	operation, written := operations[e.Verb]
	if !written || e.Object == nil || connects[e.Object.Subresource] || by.standing != Conforming && by.standing != EmptyName {
		return answer{}
	}
	req := noderestriction.Request{
		User: asked.User, UID: asked.UID, Groups: asked.Groups, Extra: asked.Extra, Operation: operation,
		Group: asked.Group, Version: asked.Version, Resource: asked.Resource, Subresource: asked.Subresource,
		Namespace: asked.Namespace, Name: e.Object.Name,
	}
	wantsObject, wantsOld := ev.Restriction.Reads(&req)
	var lacks Unexamined
	if wantsObject {
		req.Object, lacks = objectOf(e)
	}
	if wantsOld && lacks == "" {
		lacks = NoOldObject
	}
	return examined(ev.Restriction.Decide(ctx, &req), lacks)
}

// examined is what an answer means that was given without what lacks. Checks that need
// no object come before those that do, so that what they refuse is refused whatever
// was written.
func examined(said noderestriction.Answer, lacks Unexamined) answer {
	switch {
	case said.Code == noderestriction.NotRestricted:
		return answer{}
	case said.Decision == verdict.Allow && lacks == "":
		return answer{examined: true}
	case said.Decision == verdict.Allow, said.Code == noderestriction.UnexpectedObject:
		if lacks == "" {
			lacks = UnreadableObject
		}
		return answer{unexamined: lacks}
	}
	switch said.Code {
	case noderestriction.AuthorizationFailed:
		return answer{unexamined: NoDecision}
	case noderestriction.PodNotFound, noderestriction.PodUIDMismatch,
		noderestriction.NodeNotFound, noderestriction.NodeUIDMismatch,
		noderestriction.ServiceAccountNotFound, noderestriction.ServiceAccountUIDMismatch,
		noderestriction.AudienceLookupFailed:
		return answer{unexamined: OtherState}
	}
	a := answer{refusedBy: ByNodeRestriction, code: said.Code, reason: said.Reason, examined: true}
	if said.Stale {
		a.caveat = ObjectNotInState
	}
	return a
}

// objectOf is what was written. Of what consists of little but a name, the name is
// enough, which the log has at every level.
func objectOf(e *auditlog.Event) (runtime.Object, Unexamined) {
	text := e.RequestObject()
	switch {
	case e.Verb == "patch":
		return nil, PatchOnly
	case text == nil:
		if implied := impliedObject(e.Object); implied != nil {
			return implied, ""
		}
		return nil, NoObject
	}
	object, err := review.DecodeObject(text, kindOf(e.Object, text))
	if err != nil {
		return nil, UnreadableObject
	}
	return object, ""
}

// kindOf is the kind that an object says it is of. Kubelets write tokens more often
// than all else that is looked into.
func kindOf(o *auditlog.Object, text []byte) schema.GroupVersionKind {
	token := schema.GroupVersionKind{Group: authenticationv1.GroupName, Version: "v1", Kind: "TokenRequest"}
	if o.Subresource == "token" && bytes.HasPrefix(text, []byte(`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1"`)) {
		return token
	}
	var header metav1.TypeMeta
	_ = json.Unmarshal(text, &header) // of no kind then, which cannot be decoded
	return header.GroupVersionKind()
}

func impliedObject(o *auditlog.Object) runtime.Object {
	if o.Name == "" {
		return nil
	}
	named := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}
	switch {
	case o.Resource == "leases" && o.Group == coordination:
		return &coordinationv1.Lease{ObjectMeta: named}
	case o.Resource == "csinodes" && o.Group == storagev1.GroupName && o.Subresource == "":
		return &storagev1.CSINode{ObjectMeta: named}
	case o.Resource == "pods" && o.Group == "" && o.Subresource == "eviction":
		return &policyv1.Eviction{ObjectMeta: named}
	}
	return nil
}
