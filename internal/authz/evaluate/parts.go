package evaluate

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// partsReader is an authorizer over a state that reads parts of a cluster: before it answers, it
// reads what its answer depends on.
type partsReader struct {
	chain.Authorizer
	read func(*access.Request) error
}

// Authorize implements chain.Authorizer.
func (r partsReader) Authorize(ctx context.Context, req *access.Request, detail chain.Detail) (chain.Opinion, error) {
	if err := r.read(req); err != nil {
		return chain.Opinion{}, err
	}
	return r.Authorizer.Authorize(ctx, req, detail)
}

// readingParts returns the authorizers that read the parts of a cluster that they need.
func (e *Evaluator) readingParts(all chain.Chain) chain.Chain {
	if !e.State.Partial() {
		return all
	}
	reading := slices.Clone(all)
	for i, a := range all {
		switch a.Name() {
		case chain.NameNode:
			reading[i] = partsReader{a, e.readRelated}
		case chain.NameRBAC:
			reading[i] = partsReader{a, e.readBound}
		}
	}
	return reading
}

// readRelated reads what the Node authorizer's answer to a request depends on, with the
// paths in its reason. A refusal always names the kinds that the user may not list.
func (e *Evaluator) readRelated(req *access.Request) error {
	if err := e.readAll(func() []source.Part { return e.unreadParts(req) }); err != nil {
		return err
	}
	code := e.Node.Decide(req).Code
	if code != nodeauthz.NoPathToObject {
		return nil
	}
	return e.State.Probe(authorizationReads(code, req))
}

// unreadParts returns unread parts of the cluster that the Node authorizer's answer to a request
// depends on. When they have been read, there may be more. If it returns none, the whole
// state gives the same decision and reason.
func (e *Evaluator) unreadParts(req *access.Request) []source.Part {
	answer := e.Node.Decide(req)
	if answer.Code != nodeauthz.PathToObject && answer.Code != nodeauthz.NoPathToObject {
		return nil
	}
	kind, ok := nodeauthz.KindOf(req.Group, req.Resource)
	if !ok {
		return nil
	}
	q := relationQuestion{Evaluator: e, req: req, kind: kind, node: answer.Node}
	for _, stage := range q.stages() {
		parts, done := stage()
		parts = slices.DeleteFunc(parts, e.State.HasRead)
		if len(parts) > 0 || done {
			return parts
		}
	}
	return nil
}

// relationQuestion asks whether an object is related to a node, by which path, and if it is not,
// what leads to the object instead.
type relationQuestion struct {
	*Evaluator
	req  *access.Request
	kind graph.Kind
	node string
}

// A stage returns parts to read. Done is true if the answer depends on nothing else.
type stage func() (parts []source.Part, done bool)

// stages returns what to read, the least first.
func (q *relationQuestion) stages() []stage {
	switch {
	case source.NamesItsNode(q.kind):
		return []stage{q.object}
	case q.kind == graph.PersistentVolume:
		return []stage{q.object, q.podsOfClaimsOnNode, q.found, q.podsOfClaims}
	case q.kind == graph.Secret:
		return []stage{
			q.podsOnNode, q.foundInPod, q.volumes, q.podsOfClaimsOnNode, q.found, q.pods, q.podsOfClaims,
		}
	}
	return []stage{q.podsOnNode, q.found, q.pods}
}

// object is the object of the question, if its own fields relate it.
func (q *relationQuestion) object() ([]source.Part, bool) {
	kinds := source.KindsAbout(q.kind)
	if q.kind == graph.PersistentVolume {
		kinds = source.PersistentVolumes
	}
	return []source.Part{{Kinds: kinds, Namespace: q.req.Namespace, Name: q.req.Name}}, false
}

// volumes are all volumes: API servers do not select them by claim or secret.
func (q *relationQuestion) volumes() ([]source.Part, bool) {
	return []source.Part{{Kinds: source.PersistentVolumes}}, false
}

// podsOnNode are the pods on the node that could refer to the object.
func (q *relationQuestion) podsOnNode() ([]source.Part, bool) {
	return []source.Part{{Kinds: source.Pods, Namespace: q.req.Namespace, Node: q.node}}, false
}

// pods are all pods that could refer to the object.
func (q *relationQuestion) pods() ([]source.Part, bool) {
	return []source.Part{{Kinds: source.Pods, Namespace: q.req.Namespace}}, false
}

func (q *relationQuestion) podsOfClaimsOnNode() ([]source.Part, bool) {
	return q.podsUsingClaims(q.node), false
}

func (q *relationQuestion) podsOfClaims() ([]source.Part, bool) { return q.podsUsingClaims(""), false }

// podsUsingClaims are the pods that could use the claims of volumes that lead to the object.
func (q *relationQuestion) podsUsingClaims(node string) []source.Part {
	var parts []source.Part
	for _, claim := range q.State.Graph.Claims(q.kind, q.req.Namespace, q.req.Name) {
		part := source.Part{Kinds: source.Pods, Namespace: claim.Namespace, Node: node}
		if claim.Namespace != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	return parts
}

// ReadForAllNodes reads what the Node authorizer's answers about an object depend on, for every node.
func (e *Evaluator) ReadForAllNodes(req *access.Request, kind graph.Kind) error {
	q := relationQuestion{Evaluator: e, req: req, kind: kind}
	stages := []stage{q.pods}
	switch {
	case source.NamesItsNode(kind):
		stages = []stage{q.object}
	case kind == graph.PersistentVolume:
		stages = []stage{q.object, q.podsOfClaims}
	case kind == graph.Secret:
		stages = []stage{q.pods, q.volumes, q.podsOfClaims}
	}
	for _, stage := range stages {
		parts, _ := stage()
		if err := e.State.Read(parts...); err != nil {
			return err
		}
	}
	return nil
}

// found ends the question if there is a path: what has been read has all paths.
func (q *relationQuestion) found() ([]source.Part, bool) {
	return nil, q.Node.Decide(q.req).Decision == verdict.Allow
}

// foundInPod ends the question if a pod on the node refers to the object: paths through volumes
// are longer, and the first path is the shortest.
func (q *relationQuestion) foundInPod() ([]source.Part, bool) {
	const throughPod = 2
	return nil, len(q.State.Graph.Path(q.node, q.kind, q.req.Namespace, q.req.Name)) == throughPod
}

// NodeParts returns unread parts of the cluster that the reach of a node depends on. When they
// have been read, there may be more.
func (e *Evaluator) NodeParts(node string) []source.Part {
	parts := e.grantParts(nodeidentity.User(node))
	for _, kind := range graph.Kinds() {
		parts = append(parts, e.partsOf(node, kind)...)
	}
	return slices.DeleteFunc(parts, e.State.HasRead)
}

// partsOf returns the parts that relations of a node to objects of a kind depend on.
func (e *Evaluator) partsOf(node string, kind graph.Kind) []source.Part {
	switch kind {
	case graph.Node:
		return nil
	case graph.VolumeAttachment, graph.ResourceSlice, graph.PodCertificateRequest:
		return []source.Part{{Kinds: source.KindsAbout(kind), Node: node}}
	}
	parts := []source.Part{{Kinds: source.Pods, Node: node}}
	throughVolumes := kind == graph.Secret || kind == graph.PersistentVolume
	if throughVolumes && len(e.State.Graph.Objects(node, graph.PersistentVolumeClaim)) > 0 {
		parts = append(parts, source.Part{Kinds: source.PersistentVolumes})
	}
	return parts
}

// ReadNode reads what the reach of a node depends on.
func (e *Evaluator) ReadNode(node string) error {
	return e.readAll(func() []source.Part { return e.NodeParts(node) })
}

// readAll reads parts until there are no more.
func (e *Evaluator) readAll(unread func() []source.Part) error {
	for {
		parts := unread()
		if len(parts) == 0 {
			return nil
		}
		if err := e.State.Read(parts...); err != nil {
			return err
		}
	}
}

// readForRemedy reads what the Node authorizer's remedy for a request depends on: the objects that
// the node reaches, unless its code has a remedy that does not look for them.
func (e *Evaluator) readForRemedy(req *access.Request) error {
	switch e.Node.Decide(req).Code {
	case nodeauthz.NoPathToObject:
		return e.readRelated(req)
	case nodeauthz.NoRuleForResource, nodeauthz.SubresourceNotAllowed, nodeauthz.VerbNotAllowed, nodeauthz.NotOwnNode,
		nodeauthz.NotOwnCSINode, nodeauthz.NotOwnLease, nodeauthz.NotLeaseNamespace, nodeauthz.FieldSelectorRequired, nodeauthz.UnnamedNode:
		return nil
	}
	node, isNode := strings.CutPrefix(req.User, nodeidentity.UserPrefix)
	kind, related := nodeauthz.KindOf(req.Group, req.Resource)
	if !isNode || !related {
		return nil
	}
	return e.readAll(func() []source.Part { return slices.DeleteFunc(e.partsOf(node, kind), e.State.HasRead) })
}

// lackingParts returns what was not read of a cluster and could change a refusal. It is empty if
// the authorizers read what they need; otherwise the answer is unknown.
func (e *Evaluator) lackingParts(req *access.Request, asksRBAC bool) []Lack {
	var parts []source.Part
	if nodeidentity.Of(req.User, req.Groups).IsNode {
		parts = e.unreadParts(req)
	}
	if asksRBAC {
		parts = append(parts, e.boundParts(req)...)
	}
	return notRead(parts)
}

func notRead(parts []source.Part) []Lack {
	var all []Lack
	for _, part := range parts {
		for _, resource := range part.Kinds.Resources() {
			all = append(all, Lack{
				Resource: schema.GroupResource{Group: resource.Group, Resource: resource.Resource},
				Lacks:    resource.String() + " that were not read",
			})
		}
	}
	return all
}

// manyRoles is the number of roles from which a kind is read whole, and not each role by its name.
const manyRoles = 64

// readBound reads what RBAC's answer to a request depends on, with all bindings that apply to it,
// which an explanation names. A refusal names the kinds that the user may not list.
func (e *Evaluator) readBound(req *access.Request) error {
	if err := e.readAll(func() []source.Part { return e.boundParts(req) }); err != nil {
		return err
	}
	if e.State.RBAC.Evaluate(req).Allowed {
		return nil
	}
	return e.State.Probe(source.RBACKinds())
}

// boundParts returns unread parts of the cluster that RBAC's answer to a request depends on: the
// bindings of its scope, and then the roles of those that apply to the user. When they have been
// read, there may be more.
func (e *Evaluator) boundParts(req *access.Request) []source.Part {
	bindings := []source.Part{{Kinds: source.ClusterRoleBindings}}
	if req.Namespace != "" {
		bindings = append(bindings, source.Part{Kinds: source.RoleBindings, Namespace: req.Namespace})
	}
	if bindings = slices.DeleteFunc(bindings, e.State.HasRead); len(bindings) > 0 {
		return bindings
	}
	var roles []rbac.Ref
	for _, explained := range e.State.RBAC.Explain(req) {
		if errors.Is(explained.Err, rbac.ErrRoleNotFound) {
			roles = append(roles, explained.Grant.Role)
		}
	}
	return e.roleParts(roles)
}

// ReadUser reads the bindings, and the roles of those that apply to a user. The kinds of roles and
// bindings that the caller may not list are then known.
func (e *Evaluator) ReadUser(user string, groups []string) error {
	if err := e.readAll(func() []source.Part { return e.grantParts(user, groups) }); err != nil {
		return err
	}
	return e.State.Probe(source.RBACKinds())
}

// grantParts returns unread parts of the cluster that the rights of a user by RBAC depend on. When
// they have been read, there may be more.
func (e *Evaluator) grantParts(user string, groups []string) []source.Part {
	bindings := source.Part{Kinds: source.ClusterRoleBindings | source.RoleBindings}
	if !e.State.HasRead(bindings) {
		return []source.Part{bindings}
	}
	_, err := e.State.RBAC.Grants(user, groups)
	var roles []rbac.Ref
	for _, u := range unresolvedIn(err) {
		roles = append(roles, u.Role)
	}
	return e.roleParts(roles)
}

// roleParts returns the unread parts that have the roles: each by its name, or all of a kind if
// there are many.
func (e *Evaluator) roleParts(roles []rbac.Ref) []source.Part {
	var parts []source.Part
	for _, kind := range []struct {
		name       string
		kinds      source.Kinds
		namespaced bool
	}{{"ClusterRole", source.ClusterRoles, false}, {"Role", source.Roles, true}} {
		named := map[source.Part]struct{}{}
		for _, role := range roles {
			// No object has an empty name, and a cluster role binding cannot name a role of a namespace.
			if role.Kind != kind.name || role.Name == "" || kind.namespaced != (role.Namespace != "") {
				continue
			}
			part := source.Part{Kinds: kind.kinds, Namespace: role.Namespace, Name: role.Name}
			if !e.State.HasRead(part) {
				named[part] = struct{}{}
			}
		}
		if len(named) > manyRoles {
			named = map[source.Part]struct{}{{Kinds: kind.kinds}: {}}
		}
		for part := range named {
			parts = append(parts, part)
		}
	}
	return parts
}
