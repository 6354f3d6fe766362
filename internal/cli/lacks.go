package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/node-authorizer/node-authorizer/chain"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/render"
	"github.com/node-authorizer/node-authorizer/internal/source"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// missing is a resource that could not be read, or something of it that files lack.
type missing struct {
	Resource string `json:"resource"`
	// Lacks is what files do not hold: "persistent volume pv-1 of …"; empty
	// for a resource that could not be read.
	Lacks string `json:"lacks,omitempty"`
	// Reason is one line, with what to do about it.
	Reason string `json:"reason"`
}

func (m missing) String() string { return m.Resource + ": " + m.Reason }

// line says it below an answer.
func (m missing) line() string {
	if m.Lacks != "" {
		return m.Reason
	}
	return "could not read " + m.String()
}

const groupRBAC = "rbac.authorization.k8s.io"

// lack is what the files that the state is from do not hold.
func (s *session) lack(resource schema.GroupResource, what, because string) missing {
	return missing{
		Resource: resource.String(), Lacks: what + because,
		Reason: fmt.Sprintf("the input lacks %s%s: add what kubectl get %s -A -o yaml prints with --from, or use a snapshot", what, because, resource),
	}
}

// lackFor lists what files do not hold and might have allowed a request that nobody
// allowed: the objects that could relate it to the node, if that is why the Node
// authorizer has no opinion, and the roles, if RBAC was to be asked.
func (s *session) lackFor(req *nodeauthz.Request, noPath, asksRBAC bool) []missing {
	if s.state.Complete() {
		return nil
	}
	var all []missing
	if kind, ok := nodeauthz.KindOf(req.Group, req.Resource); ok && noPath {
		node := nodeidentity.Of(req.User, req.Groups).Name
		all = append(all, s.gaps(s.state.Gaps(node, kind, req.Namespace, req.Name))...)
	}
	if asksRBAC {
		all = append(all, s.lackingRoles(chain.MissingRoles(s.state.RBAC, req))...)
	}
	return all
}

// inputLacks says it in one line, the same for all files that hold the same.
func inputLacks(lacks []missing) string { return "the input lacks " + enumerate(lacks, 3) }

// lackError is the same as an error, nil if files lack nothing.
func (s *session) lackError(req *nodeauthz.Request, noPath, asksRBAC bool) error {
	lacks := s.lackFor(req, noPath, asksRBAC)
	if len(lacks) == 0 {
		return nil
	}
	return errors.New(inputLacks(lacks))
}

func (s *session) gaps(all []source.Gap) []missing {
	lacking := make([]missing, len(all))
	for i, gap := range all {
		lacking[i] = s.lack(gap.Resource, gap.Lacks, gap.Because)
	}
	return lacking
}

// lackingRoles are the roles of bindings that apply to the user, or all roles and
// bindings if there are none.
func (s *session) lackingRoles(unresolved []rbac.Unresolved) []missing {
	if !s.state.RBACLoaded() {
		return []missing{{
			Resource: "clusterrolebindings." + groupRBAC, Lacks: "roles and bindings",
			Reason: fmt.Sprintf("%s has no roles and bindings: add what kubectl get clusterroles,clusterrolebindings,roles,rolebindings -A -o yaml prints with --from, or use a snapshot", s.state.Origin),
		}}
	}
	var all []missing
	for _, u := range unresolved {
		resource := schema.GroupResource{Group: groupRBAC, Resource: strings.ToLower(u.Role.Kind) + "s"}
		all = append(all, s.lack(resource, u.Role.String(), fmt.Sprintf(", which %s grants", u.Binding)))
	}
	return all
}

// lackForNode lists what files do not hold and might be within a node's reach.
func (s *session) lackForNode(node string) []missing {
	if s.state.Complete() {
		return nil
	}
	user, groups := nodeidentity.User(node)
	_, err := s.state.RBAC.Grants(user, groups)
	return append(s.gaps(s.state.NodeGaps(node)), s.lackingRoles(unresolvedIn(err))...)
}

// unresolvedIn returns the bindings to roles that do not exist in an error that joins
// them.
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

// lackForWrite lists what files do not hold and might have turned a refusal of
// NodeRestriction: objects that it looked up, or their uids.
func (s *session) lackForWrite(req *noderestriction.Request, answer noderestriction.Answer) []missing {
	if answer.Decision == verdict.Allow || s.state.Complete() {
		return nil
	}
	pods, nodes := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "nodes"}
	accounts := schema.GroupResource{Resource: "serviceaccounts"}
	absent := strings.TrimSuffix(answer.Reason.Message, " does not exist")
	switch answer.Code {
	case noderestriction.PodNotFound:
		if req.Name == "" && req.Object == nil {
			return nil // a deletion of many, which is refused whatever there is
		}
		return []missing{s.lack(pods, absent, "")}
	case noderestriction.NodeNotFound:
		return []missing{s.lack(nodes, "node "+answer.Node, "")}
	case noderestriction.ServiceAccountNotFound:
		return []missing{s.lack(accounts, absent, "")}
	case noderestriction.NodeUIDMismatch:
		if node, ok := s.state.Node(answer.Node); ok && node.UID == "" {
			return []missing{s.lack(nodes, "the uid of node "+answer.Node, "")}
		}
	case noderestriction.AudienceLookupFailed:
		return []missing{s.lack(schema.GroupResource{Resource: "persistentvolumeclaims,persistentvolumes,csidrivers"}, "what leads to the CSI drivers of the pod", fmt.Sprintf(" (%v)", answer.Err))}
	}
	return nil
}

// unreadable names the resources that could not be read, among what is missing.
func unreadable(all []missing) []string {
	return resourceNames(slices.DeleteFunc(slices.Clone(all), func(m missing) bool { return m.Lacks != "" }))
}

// lackReason says that a question could not be decided because of what files lack.
func (s *session) lackReason(all []missing, who identity) verdict.Reason {
	if len(all) == 1 && all[0].Lacks == "roles and bindings" {
		return s.rbacNeeded(who)
	}
	return verdict.Reason{
		Code:    codeInputIncomplete,
		Message: inputLacks(all),
		Hint:    "add it with --from, or use a snapshot of the cluster, which has all that matters",
	}
}

// enumerate names up to limit of what is lacking.
func enumerate(all []missing, limit int) string {
	names := make([]string, 0, limit)
	for _, m := range all[:min(limit, len(all))] {
		names = append(names, m.Lacks)
	}
	text := strings.Join(names, "; ")
	if more := len(all) - limit; more > 0 {
		text += fmt.Sprintf("; and %s more", render.Thousands(more))
	}
	return text
}

// holders are the resources whose objects relate those of a kind to nodes.
func holders(kind graph.Kind) map[schema.GroupResource]bool {
	pods := schema.GroupResource{Resource: "pods"}
	volumes := schema.GroupResource{Resource: "persistentvolumes"}
	switch kind {
	case graph.Secret, graph.PersistentVolume:
		return map[schema.GroupResource]bool{pods: true, volumes: true}
	case graph.VolumeAttachment:
		return map[schema.GroupResource]bool{{Group: "storage.k8s.io", Resource: "volumeattachments"}: true}
	case graph.ResourceSlice:
		return map[schema.GroupResource]bool{{Group: "resource.k8s.io", Resource: "resourceslices"}: true}
	case graph.PodCertificateRequest:
		return map[schema.GroupResource]bool{{Group: "certificates.k8s.io", Resource: "podcertificaterequests"}: true}
	}
	return map[schema.GroupResource]bool{pods: true}
}

// warningRows is how much of what is missing stderr gets; results have all.
const warningRows = 10

// warnMissing says on stderr what an answer lacks.
func (a *app) warnMissing(all []missing) {
	for _, m := range all[:min(warningRows, len(all))] {
		a.warn("%s", m)
	}
	if more := len(all) - warningRows; more > 0 {
		a.warn("and %s more that the input lacks", render.Thousands(more))
	}
}

// leftOut says which kinds of objects in the files were not used. Secrets, config
// maps and resource claims are known by the names that pods have for them.
func leftOut(state *source.State) string {
	known := []string{"Secret", "ConfigMap", "ResourceClaim.resource.k8s.io"}
	skipped := state.Skipped()
	var kinds []string
	makesPods := false
	for kind, n := range skipped {
		if slices.Contains(known, kind) {
			continue
		}
		makesPods = makesPods || podMaker(kind)
		kinds = append(kinds, fmt.Sprintf("%s (%s)", kind, render.Thousands(n)))
	}
	if len(kinds) == 0 {
		return ""
	}
	slices.Sort(kinds)
	const few = 12
	text := strings.Join(kinds[:min(few, len(kinds))], ", ")
	if more := len(kinds) - few; more > 0 {
		text += fmt.Sprintf(" and %d other kinds", more)
	}
	text = state.Origin + ": not used, because they do not say what is on a node: " + text
	if makesPods {
		text += "; what counts are pods with spec.nodeName, which their controllers and the scheduler make"
	}
	if makesPods && state.Counts()["Pod"] == 0 {
		text += ": add what kubectl get pods -A -o yaml prints"
	}
	return text
}

// podMaker reports whether pods are made from objects of a kind.
func podMaker(kind string) bool {
	switch kind {
	case "Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps", "DaemonSet.apps", "Job.batch", "CronJob.batch", "ReplicationController":
		return true
	}
	return false
}
