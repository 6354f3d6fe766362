package evaluate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Lack is something that the files do not hold and that could change a refusal.
type Lack = source.Gap

// Lacking returns what the files do not hold and might have allowed a request that no
// authorizer allowed: the objects that could relate the requested object to the node, if the
// Node authorizer found no path, and the roles, if RBAC was to be asked.
func (e *Evaluator) Lacking(req *access.Request, code verdict.Code, asksRBAC bool) []Lack {
	if e.State.Partial() {
		if unread := e.lackingParts(req, asksRBAC); len(unread) > 0 || !e.State.OfFile() {
			return unread
		}
	}
	if e.State.Complete() && !e.State.Changed() {
		return nil
	}
	var all []Lack
	if kind, ok := nodeauthz.KindOf(req.Group, req.Resource); ok && code == nodeauthz.NoPathToObject {
		node := nodeidentity.Of(req.User, req.Groups).Name
		all = append(all, e.State.Gaps(node, kind, req.Namespace, req.Name)...)
	}
	if asksRBAC {
		all = append(all, e.lackingRoles(e.unknown(chain.MissingRoles(e.State.RBAC, req)))...)
	}
	return all
}

// LackingForNode returns what the files do not hold and could extend the reach of a node.
func (e *Evaluator) LackingForNode(node string) []Lack {
	if e.State.Partial() {
		if unread := notRead(e.NodeParts(node)); len(unread) > 0 || !e.State.OfFile() {
			return unread
		}
	}
	if e.State.Complete() && !e.State.Changed() {
		return nil
	}
	return append(e.State.NodeGaps(node), e.LackingForUser(nodeidentity.User(node))...)
}

// LackingForUser returns what the files do not hold and could give a user more rights by RBAC.
func (e *Evaluator) LackingForUser(user string, groups []string) []Lack {
	switch {
	case e.State.Complete() && !e.State.Changed():
		return nil
	case e.State.Partial() && !e.State.OfFile():
		return notRead(e.grantParts(user, groups))
	}
	_, err := e.State.RBAC.Grants(user, groups)
	return e.lackingRoles(e.unknown(unresolvedIn(err)))
}

// LackingForPaths returns what the files do not hold and could lengthen attack paths that lead
// through the given nodes.
func (e *Evaluator) LackingForPaths(nodes ...string) []Lack {
	switch {
	case e.State.Complete() && !e.State.Changed():
		return nil
	case e.State.Partial():
		return notRead([]source.Part{{Kinds: source.AllKinds()}})
	}
	roles := map[rbac.Ref]bool{}
	for _, r := range e.State.RBAC.Roles() {
		roles[r.Role] = true
	}
	var unresolved []rbac.Unresolved
	for _, b := range e.State.RBAC.Bindings() {
		if !roles[b.Role] {
			roles[b.Role] = true // once is enough
			unresolved = append(unresolved, rbac.Unresolved{Binding: b.Binding, Role: b.Role, Err: rbac.ErrRoleNotFound})
		}
	}
	if unresolved = e.unknown(unresolved); e.State.Complete() {
		return e.lackingRoles(unresolved)
	}
	return append(e.lackingRoles(unresolved), e.nodeGapsForPaths(nodes)...)
}

// nodeGapsForPaths lists the pods and volumes that the files lack of nodes: only these lead to
// what a node holds. Nodes without any pod are one gap.
func (e *Evaluator) nodeGapsForPaths(nodes []string) []source.Gap {
	var empty []string
	var all []source.Gap
	for _, node := range nodes {
		if !e.State.HasPods(node) {
			empty = append(empty, node)
		}
		for _, gap := range e.State.NodeGaps(node) {
			switch gap.Resource.String() {
			case "persistentvolumes", "persistentvolumeclaims":
				if !slices.Contains(all, gap) {
					all = append(all, gap)
				}
			}
		}
	}
	if len(empty) == 0 {
		return all
	}
	const few = 3
	lacks := "any pod of node " + empty[0]
	if len(empty) > 1 {
		lacks = "any pod of nodes " + strings.Join(empty[:min(few, len(empty))], ", ")
	}
	if more := len(empty) - few; more > 0 {
		lacks += fmt.Sprintf(" and %d more", more)
	}
	return append(all, source.Gap{Resource: schema.GroupResource{Resource: "pods"}, Lacks: lacks})
}

// MissingForKind returns the missing state that could relate more objects of a kind to a
// node: the resources that could not be read, and what the files do not hold.
func (e *Evaluator) MissingForKind(node string, kind graph.Kind) ([]source.Missing, []Lack) {
	on := source.KindsAbout(kind)
	if e.State.Partial() && !e.State.OfFile() {
		return unread(e.State, on), notRead(slices.DeleteFunc([]source.Part{{Kinds: on}}, e.State.HasRead))
	}
	var lacks []Lack
	for _, gap := range e.State.NodeGaps(node) {
		named := strings.Split(gap.Resource.String(), ",")
		if slices.ContainsFunc(on.Resources(), func(r schema.GroupResource) bool { return slices.Contains(named, r.String()) }) {
			lacks = append(lacks, gap)
		}
	}
	return unread(e.State, on), lacks
}

// lackingRoles returns the missing roles of bindings that apply to the user, or all roles
// and bindings if the state has none.
func (e *Evaluator) lackingRoles(unresolved []rbac.Unresolved) []Lack {
	if !e.State.RBACLoaded() && !e.State.Complete() {
		return []Lack{{
			Resource: schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterrolebindings"},
			Lacks:    "roles and bindings", RolesAndBindings: true,
		}}
	}
	var all []Lack
	for _, u := range unresolved {
		all = append(all, Lack{
			Resource: schema.GroupResource{Group: rbacv1.GroupName, Resource: strings.ToLower(u.Role.Kind) + "s"},
			Lacks:    u.Role.String(), Because: fmt.Sprintf(", which %s grants", u.Binding),
		})
	}
	return all
}

// unknown leaves out missing roles that are known not to exist. A complete state has every role, except
// roles of bindings that were added to it.
func (e *Evaluator) unknown(unresolved []rbac.Unresolved) []rbac.Unresolved {
	if !e.State.Complete() {
		return unresolved
	}
	return slices.DeleteFunc(unresolved, func(u rbac.Unresolved) bool { return !e.State.WasAdded(u.Binding) })
}

// unresolvedIn returns the bindings to nonexistent roles from a joined error.
func unresolvedIn(err error) []rbac.Unresolved {
	var found []rbac.Unresolved
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	for _, e := range joined.Unwrap() {
		if u := (rbac.Unresolved{}); errors.As(e, &u) && errors.Is(u, rbac.ErrRoleNotFound) {
			found = append(found, u)
		}
	}
	return found
}

// lackingForWrite returns what the files do not hold and could change a refusal by
// NodeRestriction: objects that it looked up, or their uids.
func (e *Evaluator) lackingForWrite(req *noderestriction.Request, answer noderestriction.Answer) []Lack {
	if answer.Decision == verdict.Allow || e.State.Complete() || e.State.Partial() && !e.State.OfFile() {
		return nil // look-ups read the objects of a partial state
	}
	lack := func(resource, what string) []Lack {
		return []Lack{{Resource: schema.GroupResource{Resource: resource}, Lacks: what}}
	}
	absent := strings.TrimSuffix(answer.Reason.Message, " does not exist")
	switch answer.Code {
	case noderestriction.PodNotFound:
		if req.Name == "" && req.Object == nil {
			return nil // NodeRestriction refuses every deletecollection
		}
		return lack("pods", absent)
	case noderestriction.NodeNotFound:
		return lack("nodes", "node "+answer.Node)
	case noderestriction.ServiceAccountNotFound:
		return lack("serviceaccounts", absent)
	case noderestriction.NodeUIDMismatch:
		if node, ok := e.State.Node(answer.Node); ok && node.UID == "" {
			return lack("nodes", "the uid of node "+answer.Node)
		}
	case noderestriction.AudienceLookupFailed:
		found := lack("persistentvolumeclaims,persistentvolumes,csidrivers", "the objects that lead to the CSI drivers of the pod")
		found[0].Because = fmt.Sprintf(" (%v)", answer.Err)
		return found
	}
	return nil
}

// UnreadError means that a refusal is undecided, because resources that could change it
// could not be read.
type UnreadError struct{ Resources []source.Missing }

// Error names the resources.
func (e *UnreadError) Error() string {
	names := make([]string, len(e.Resources))
	for i, m := range e.Resources {
		names[i] = m.Resource.String()
	}
	return "could not read " + strings.Join(names, ", ")
}

// LackError means that a refusal is undecided, because the files lack what could change it.
type LackError struct{ Lacks []Lack }

// namedLacks is the number of missing objects that an error names.
const namedLacks = 3

// Error names the first few. The text depends only on what the files hold.
func (e *LackError) Error() string {
	names := make([]string, 0, namedLacks)
	for _, l := range e.Lacks[:min(namedLacks, len(e.Lacks))] {
		names = append(names, l.String())
	}
	text := "the input lacks " + strings.Join(names, "; ")
	if more := len(e.Lacks) - namedLacks; more > 0 {
		text += fmt.Sprintf("; and %s more", render.Thousands(more))
	}
	return text
}

// Unread returns the resources that could not be read and could change a refusal: by the
// Node authorizer with the given code, and by RBAC, if it was asked.
func (e *Evaluator) Unread(req *access.Request, code verdict.Code, asksRBAC bool) []source.Missing {
	on := authorizationReads(code, req)
	if asksRBAC {
		on |= source.RBACKinds()
	}
	return unread(e.State, on)
}

// undecided returns an error if missing state could change a refusal.
func (e *Evaluator) undecided(req *access.Request, code verdict.Code, asksRBAC bool) error {
	if missing := e.Unread(req, code, asksRBAC); len(missing) > 0 {
		return &UnreadError{missing}
	}
	if lacks := e.Lacking(req, code, asksRBAC); len(lacks) > 0 {
		return &LackError{lacks}
	}
	return nil
}

// evaluationError returns the evaluationError that an API server puts beside its answer:
// the error of the authorizer that denies, or the errors of all authorizers if none decides.
func evaluationError(result chain.Result) string {
	var failed []string
	for _, o := range result.Opinions {
		if o.Error != "" && result.Decision != verdict.Allow && (result.DecidedBy == "" || o.Authorizer == result.DecidedBy) {
			failed = append(failed, o.Failure())
		}
	}
	return strings.Join(failed, "; ")
}
