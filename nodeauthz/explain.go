package nodeauthz

import (
	"fmt"
	"strings"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Explanation is an Answer with all that there is to say about it.
type Explanation struct {
	Answer
	// Rule that the request was put to, in words: the verbs, the resource and
	// the condition. Empty if there is none for it.
	Rule   string         `json:"rule,omitempty"`
	Reason verdict.Reason `json:"reason"`
	// Nearest says who refers to an object that the node has no path to.
	Nearest *graph.Nearest `json:"nearest,omitempty"`
}

// nearestLimit is how many other nodes and paths an explanation names.
const nearestLimit = 3

// Explain decides like Decide and says why.
func (a *Authorizer) Explain(req *Request) Explanation {
	return a.explain(req, a.Decide(req))
}

func (a *Authorizer) explain(req *Request, answer Answer) Explanation {
	e := Explanation{Answer: answer}
	if answer.rule != nil {
		e.Rule = answer.rule.describe(answer.entry)
	}
	if answer.Code == NoPathToObject {
		nearest := a.graph.Nearest(answer.entry.kind, req.Namespace, req.Name, nearestLimit)
		e.Nearest = &nearest
		e.Reason = noPath(req, answer, nearest)
		return e
	}
	e.Reason = a.reason(req, answer)
	return e
}

// describe renders a rule: "get, list, watch secrets (related to the node)".
func (r *rule) describe(e *entry) string {
	subresource := r.subresource
	if subresource == anySubresource {
		subresource = ""
	}
	return fmt.Sprintf("%s %s (%s)", r.verbs, qualified(e.group, e.name, subresource), r.words())
}

// qualified renders a resource as kubectl does: "csinodes.storage.k8s.io/status".
func qualified(group, resource, subresource string) string {
	if group != "" {
		resource += "." + group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return resource
}

// reason builds the text of an answer.
func (a *Authorizer) reason(req *Request, answer Answer) verdict.Reason {
	reason := verdict.Reason{Code: answer.Code, Message: summary(answer.Code)}
	switch answer.Code {
	case PathToObject:
		reason.Path = a.graph.Path(answer.Node, answer.entry.kind, req.Namespace, req.Name)
		reason.Message = pathMessage(reason.Path)
	case OwnName:
		reason.Message = fmt.Sprintf("%s/%s bears the node's own name", resourceName(req), req.Name)
	case OwnFieldSelector:
		reason.Message = fmt.Sprintf("the field selector %s=%s limits the request to this node", nodeNameField, answer.Node)
	case GrantedToNodes:
		reason.Message = fmt.Sprintf("every node may %s %s", req.Verb, target(req))
	case NotANode:
		reason.Message = notANode(req)
		reason.Hint = fmt.Sprintf("a kubelet's user is %s<node name> in group %s", nodeidentity.UserPrefix, nodeidentity.Group)
	case UnnamedNode:
		reason.Message = fmt.Sprintf("unknown node for user %q", req.User)
		reason.Hint = fmt.Sprintf("the user name must be %s followed by the node's name", nodeidentity.UserPrefix)
	default:
		refusal(req, answer, a.features, &reason)
	}
	return reason
}

func pathMessage(path verdict.Path) string {
	if len(path) == 0 {
		// The relation went away since the decision was taken.
		return summary(PathToObject)
	}
	if len(path) == 1 {
		return fmt.Sprintf("%s is on %s", path[0].From, path[0].To)
	}
	return fmt.Sprintf("%s on %s", relation(path), path[len(path)-1].To)
}

// relation says how the first object of a path is tied to the pod at its end.
func relation(path verdict.Path) string {
	verb, used := "referenced by", ""
	if path[0].From.Kind == graph.PersistentVolume.String() {
		verb = "bound to"
	}
	if pod := path[len(path)-1].From; pod != path[0].To {
		used = fmt.Sprintf(", used by %s", pod)
	}
	return fmt.Sprintf("%s is %s %s (%s)%s", path[0].From, verb, path[0].To, path[0].Field, used)
}

func notANode(req *Request) string {
	if strings.HasPrefix(req.User, nodeidentity.UserPrefix) {
		return fmt.Sprintf("user %q is not in group %s", req.User, nodeidentity.Group)
	}
	return fmt.Sprintf("user %q is not a node", req.User)
}

// target renders what a request is about: "secrets shop/db", "pods/eviction".
func target(req *Request) string {
	t := resourceName(req)
	switch {
	case req.Name != "" && req.Namespace != "":
		t += " " + req.Namespace + "/" + req.Name
	case req.Name != "":
		t += " " + req.Name
	}
	return t
}

// noPath says who refers to the object instead.
func noPath(req *Request, answer Answer, nearest graph.Nearest) verdict.Reason {
	kind := answer.entry.kind
	object := verdict.Object{Kind: kind.String(), Namespace: req.Namespace, Name: req.Name}
	reason := verdict.Reason{Code: NoPathToObject}
	if len(nearest.Paths) == 0 {
		reason.Message = fmt.Sprintf("no relationship found between node %s and %s: nothing on any node refers to it", answer.Node, object)
		reason.Hint = unreferencedHint(kind, answer.Node)
		return reason
	}
	reason.Path = nearest.Paths[0]
	if nearest.TotalNodes == 0 {
		last := reason.Path[len(reason.Path)-1].To
		if len(reason.Path) == 1 {
			reason.Message = fmt.Sprintf("%s is bound to %s, which no pod on any node uses", object, last)
		} else {
			reason.Message = fmt.Sprintf("%s is referenced by %s, whose claim %s no pod on any node uses", object, reason.Path[0].To, last)
		}
		reason.Hint = fmt.Sprintf("a pod bound to node %s that mounts %s would give access", answer.Node, last)
		return reason
	}
	reason.Message = elsewhere(object, reason.Path, nearest, answer.Node)
	reason.Hint = elsewhereHint(kind, answer.Node)
	return reason
}

// elsewhere says on which nodes an object is reachable instead.
func elsewhere(object verdict.Object, path verdict.Path, nearest graph.Nearest, node string) string {
	last := path[len(path)-1]
	if len(path) == 1 {
		return fmt.Sprintf("%s is on %s, not on node %s", object, last.To, node)
	}
	if nearest.TotalNodes == 1 {
		return fmt.Sprintf("%s on %s, not on node %s", relation(path), last.To, node)
	}
	return fmt.Sprintf("%s is reachable from %d nodes, but not from node %s: for example, %s on %s",
		object, nearest.TotalNodes, node, relation(path), last.To)
}

func unreferencedHint(kind graph.Kind, node string) string {
	switch kind {
	case graph.Pod:
		return fmt.Sprintf("only pods bound to node %s are readable by it: check the pod's name, namespace and spec.nodeName", node)
	case graph.VolumeAttachment, graph.ResourceSlice, graph.PodCertificateRequest:
		return fmt.Sprintf("only objects with spec.nodeName %s are readable by this node", node)
	case graph.PersistentVolume:
		return fmt.Sprintf("the volume must be bound (spec.claimRef) to a claim that a pod on node %s uses", node)
	}
	return fmt.Sprintf("a pod bound to node %s that refers to the object would give access; mirror (static) pods give none", node)
}

func elsewhereHint(kind graph.Kind, node string) string {
	switch kind {
	case graph.Pod, graph.VolumeAttachment, graph.ResourceSlice, graph.PodCertificateRequest:
		return "a node has access only to its own"
	}
	return fmt.Sprintf("a pod bound to node %s that refers to it would give access", node)
}

// refusal fills in the reasons that need no graph.
func refusal(req *Request, answer Answer, features kubeversion.Features, reason *verdict.Reason) {
	switch answer.Code {
	case NoRuleForResource:
		if !req.ResourceRequest {
			reason.Message = fmt.Sprintf("the Node authorizer gives nodes no access to paths such as %s", req.Path)
			return
		}
		reason.Message = fmt.Sprintf("the Node authorizer gives nodes no access to %s", resourceName(req))
		reason.Hint = "if nodes need this, grant it to them with RBAC"
	case SubresourceNotAllowed:
		reason.Message = fmt.Sprintf("nodes have no access to %s", resourceName(req))
		reason.Hint = answer.entry.allowed()
	case VerbNotAllowed:
		reason.Message = fmt.Sprintf("nodes may not %s %s", req.Verb, resourceName(req))
		reason.Hint = answer.entry.allowed()
	case FeatureDisabled:
		reason.Message = fmt.Sprintf("nodes may %s %s only with a feature gate that is off in Kubernetes %s", req.Verb, resourceName(req), features.Minor())
		reason.Hint = "needs " + answer.entry.gatesFor(req.Subresource, verb(req.Verb), features)
	case NamespaceRequired:
		reason.Message = fmt.Sprintf("nodes may %s %s only in one namespace, and the request has none", req.Verb, resourceName(req))
	case ClusterScoped:
		reason.Message = fmt.Sprintf("%s have no namespace, but the request has namespace %s", resourceName(req), req.Namespace)
		reason.Hint = "ask without a namespace"
	case NameRequired:
		reason.Message = fmt.Sprintf("nodes may %s %s only one by one, by name", req.Verb, resourceName(req))
		if verb(req.Verb)&(list|watch) != 0 {
			reason.Hint = singleObjectHint
		}
	case NotOwnNode:
		reason.Message = fmt.Sprintf("node %s may read only its own Node object", answer.Node)
		if req.Name != "" {
			reason.Message += ", not node " + req.Name
		} else if verb(req.Verb)&(list|watch) != 0 {
			reason.Hint = singleObjectHint
		}
	case NotOwnCSINode, NotOwnLease:
		reason.Message = fmt.Sprintf("%s: %s, not %q", summary(answer.Code), answer.Node, req.Name)
	case NotLeaseNamespace:
		reason.Message = fmt.Sprintf("%s, not %q", summary(answer.Code), req.Namespace)
	case FieldSelectorRequired:
		reason.Message = fmt.Sprintf("node %s may %s %s only with the field selector %s=%s", answer.Node, req.Verb, resourceName(req), nodeNameField, answer.Node)
		reason.Hint = fmt.Sprintf("add the field selector %s=%s", nodeNameField, answer.Node)
	}
}

// singleObjectHint is for lists and watches without a name.
const singleObjectHint = "list or watch a single object with the field selector metadata.name=NAME, which reaches authorizers as the name"

func resourceName(req *Request) string {
	return qualified(req.Group, req.Resource, req.Subresource)
}

// allowed says what the rules of a resource allow.
func (e *entry) allowed() string {
	var all []string
	for i := range e.rules {
		all = append(all, e.rules[i].describe(e))
	}
	if len(all) == 0 {
		return ""
	}
	return "nodes may " + strings.Join(all, "; ")
}

// gatesFor names the feature gates that a verb would need.
func (e *entry) gatesFor(subresource string, v verbSet, f kubeversion.Features) string {
	for i := range e.off {
		r := &e.off[i]
		if r.verbs&v == 0 || !r.covers(subresource) {
			continue
		}
		var names []string
		for _, gate := range r.when.missing(f) {
			names = append(names, string(gate))
		}
		return strings.Join(names, " or ")
	}
	return ""
}
