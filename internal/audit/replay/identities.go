package replay

import (
	"cmp"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

type identityKey struct {
	user     string
	standing Standing
}

// identity is what the log shows about a nonconforming kubelet.
type identity struct {
	groups      []string // of the first request
	agents      []string
	count       int
	first, last time.Time
	// acted is how many requests show the node for which they were made.
	acted int
}

// seen is what the log shows about a node.
type seen struct {
	conforms bool
	actors   []string
}

// address is a user with the source address of its requests.
type address struct{ user, source string }

type pairKey struct {
	identity identityKey
	node     string
}

// identities collects the kubelets of a log and the nodes for which they act.
type identities struct {
	all   map[identityKey]*identity
	nodes map[string]*seen
	// at has the node behind each address of a user that names no node; empty if there were several nodes.
	at    map[address]string
	pairs map[pairKey]int
	// beyond are requests that show an identity or a node beyond the bounds, and moreNodes those that show such a node.
	beyond, moreNodes int
}

// add records who made a request, and returns where it comes from.
func (ids *identities) add(o *outcome) place {
	switch o.by.standing {
	case Conforming:
		// An impersonated request does not show that the node itself conforms.
		if !o.by.impersonated {
			if n := ids.node(o.by.node); n != nil {
				n.conforms = true
			}
		}
		return place{node: o.by.node}
	case Bootstrapping:
		return place{}
	}
	d := o.detail
	key := identityKey{o.by.name, o.by.standing}
	ids.addIdentity(key, identity{groups: d.asked.Groups, agents: []string{d.agent}, count: 1, first: o.at, last: o.at})
	if acted := cmp.Or(d.acted, o.by.node); acted != "" && !o.by.impersonated {
		if id := ids.all[key]; id != nil {
			id.acted++
		}
		if n := ids.node(acted); n != nil {
			n.actors = bounded(n.actors, key.user, maxActors)
		}
		ids.addPair(pairKey{key, acted}, 1)
	}
	switch {
	case o.by.node != "":
		return place{node: o.by.node}
	case d.acted != "":
		ids.evidence(address{o.by.name, d.source}, d.acted)
		return place{node: d.acted}
	}
	return place{user: o.by.name, standing: o.by.standing, source: d.source}
}

// node returns what is known about a node; nil beyond the bound.
func (ids *identities) node(name string) *seen {
	n := ids.nodes[name]
	switch {
	case n != nil:
	case len(ids.nodes) < MaxNodes:
		n = &seen{}
		ids.nodes[strings.Clone(name)] = n
	default:
		ids.beyond++
		ids.moreNodes++
	}
	return n
}

func (ids *identities) addIdentity(key identityKey, of identity) {
	id := ids.all[key]
	switch {
	case id != nil:
	case len(ids.all) < MaxIdentities:
		id = &identity{}
		ids.all[key] = id
	default:
		ids.beyond += of.count
		return
	}
	id.add(of)
}

// add adds the requests of another part of the log.
func (id *identity) add(other identity) {
	if id.count == 0 {
		id.groups, id.first, id.last = slices.Clone(other.groups), other.first, other.last
	}
	if c := other.first.Compare(id.first); c < 0 || c == 0 && slices.Compare(other.groups, id.groups) < 0 {
		id.first, id.groups = other.first, slices.Clone(other.groups)
	}
	id.last = later(id.last, other.last)
	id.count += other.count
	id.acted += other.acted
	for _, agent := range other.agents {
		id.agents = bounded(id.agents, agent, maxAgents)
	}
}

// evidence records a request that shows the node behind an address.
func (ids *identities) evidence(at address, node string) {
	before, known := ids.at[at]
	switch {
	case at.source == "" || !known && len(ids.at) >= MaxNodes:
		return
	case known && before != node:
		node = ""
	}
	ids.at[at] = node
}

func (ids *identities) addPair(key pairKey, count int) {
	if _, known := ids.pairs[key]; known || len(ids.pairs) < MaxNodes {
		ids.pairs[key] += count
	}
}

// bounded adds a text to a sorted list. If the list is full, it keeps the first.
func bounded(list []string, text string, most int) []string {
	at, found := slices.BinarySearch(list, text)
	if found || text == "" || at == most {
		return list
	}
	list = slices.Insert(list, at, strings.Clone(text))
	return list[:min(len(list), most)]
}

// Standing says whether a kubelet authenticates as its node, and if not, in what way.
type Standing string

// The standings. The first two conform, the others do not.
const (
	// Conforming: system:node:<name> in system:nodes.
	Conforming Standing = "Conforming"
	// Bootstrapping: a bootstrap token, with which a kubelet requests its
	// certificate.
	Bootstrapping Standing = "Bootstrapping"
	// NotNamed: in system:nodes, with a user name that is not a node's.
	NotNamed Standing = "NotNamed"
	// EmptyName: in system:nodes, with the user name system:node: and nothing after
	// it.
	EmptyName Standing = "EmptyName"
	// NotInGroup: a node's user name, but not in system:nodes.
	NotInGroup Standing = "NotInGroup"
	// KubeletAgent: the user agent is a kubelet, and the user is not a node.
	KubeletAgent Standing = "KubeletAgent"
	// WritesForNode: the user renews the Lease of a node, as only its kubelet does, or
	// writes the node's status with a bootstrap token.
	WritesForNode Standing = "WritesForNode"
)

// conforms reports whether the kubelet needs no change.
func (s Standing) conforms() bool { return s == Conforming || s == Bootstrapping }

// Why describes what is wrong; empty for standings that conform.
func (s Standing) Why() string {
	switch s {
	case NotNamed:
		return "in the group system:nodes, but the user name is not system:node:<name>"
	case EmptyName:
		return "the user name ends after system:node:, so that no node is named"
	case NotInGroup:
		return "named as a node, but not in the group system:nodes"
	case KubeletAgent:
		return "a kubelet, by its user agent, whose user is not a node"
	case WritesForNode:
		return "renews the Lease of a node, as its kubelet does, but is not that node"
	}
	return ""
}

const (
	bootstrapUser   = "system:bootstrap:"
	bootstrapGroup  = "system:bootstrappers"
	kubeletAgent    = "kubelet/"
	leasesNamespace = "kube-node-lease"
	coordination    = coordinationv1.GroupName
	nodeNameField   = "spec.nodeName"
	serviceAccount  = "system:serviceaccount:"
	// controlPlane is the prefix of the names of kube-controller-manager, kube-scheduler
	// and kube-proxy.
	controlPlane = "system:kube-"
)

// who is the kubelet that made a request.
type who struct {
	name         string
	standing     Standing
	impersonated bool
	// node is the node in the user name; empty if there is none.
	node string
}

// userOf returns the impersonated user of a request, or else the authenticated user.
func userOf(e *auditlog.Event) *auditlog.User {
	if e.Impersonated != nil {
		return e.Impersonated
	}
	return &e.User
}

// identify returns the kubelet behind an event; false if there is none.
func identify(e *auditlog.Event) (who, bool) {
	user := userOf(e)
	w := who{name: user.Name, impersonated: e.Impersonated != nil}
	rest, named := strings.CutPrefix(user.Name, nodeidentity.UserPrefix)
	inGroup := slices.Contains(user.Groups, nodeidentity.Group)
	switch {
	case named && inGroup && rest != "":
		w.standing, w.node = Conforming, rest
	case named && inGroup:
		w.standing = EmptyName
	case inGroup:
		w.standing = NotNamed
	case named:
		w.standing, w.node = NotInGroup, rest
	case bootstraps(user):
		w.standing = Bootstrapping
		if renewsLease(e) || writesStatus(e) {
			w.standing = WritesForNode
		}
	case w.name == "":
		return w, false
	case !w.impersonated && strings.HasPrefix(e.UserAgent, kubeletAgent):
		w.standing = KubeletAgent
	case renewsLease(e) && answerOf(e) == answeredAllowed && !controls(w.name):
		w.standing = WritesForNode
	default:
		return w, false
	}
	return w, true
}

func bootstraps(u *auditlog.User) bool {
	return strings.HasPrefix(u.Name, bootstrapUser) || slices.ContainsFunc(u.Groups, func(group string) bool {
		return group == bootstrapGroup || strings.HasPrefix(group, bootstrapGroup+":")
	})
}

// renewsLease reports whether an event updates the Lease of a node. Only kubelets have a
// reason to do that.
func renewsLease(e *auditlog.Event) bool {
	o := e.Object
	return o != nil && o.Resource == "leases" && o.Group == coordination && o.Namespace == leasesNamespace &&
		(e.Verb == "create" || e.Verb == "update" || e.Verb == "patch")
}

// writesStatus reports whether an event writes the status of a Node. Controllers of the
// cluster and of the cloud also write conditions, addresses and resources into it.
func writesStatus(e *auditlog.Event) bool {
	o := e.Object
	return o != nil && o.Resource == "nodes" && o.Group == "" && o.Subresource == "status" &&
		(e.Verb == "update" || e.Verb == "patch")
}

// controls reports whether a user belongs to the control plane, whose controllers may write
// any object.
func controls(user string) bool {
	return strings.HasPrefix(user, controlPlane) || user == "system:apiserver" ||
		strings.HasPrefix(user, serviceAccount+"kube-system:generic-garbage-collector") ||
		strings.HasPrefix(user, serviceAccount+"kube-system:namespace-controller")
}

// actedFor returns the node for which a request is made, if the request shows it: it writes
// an object with the name of a node, or reads what is on one node.
func actedFor(e *auditlog.Event, asked *request) string {
	o := e.Object
	if o == nil {
		return ""
	}
	reads := e.Verb == "get" || e.Verb == "list" || e.Verb == "watch"
	switch {
	case o.Resource == "nodes" && o.Group == "" && !reads,
		o.Resource == "leases" && o.Group == coordination && o.Namespace == leasesNamespace,
		o.Resource == "csinodes" && !reads:
		return o.Name
	}
	for _, r := range asked.FieldSelector {
		if r.Field == nodeNameField {
			return r.Value
		}
	}
	return ""
}

// answered is the authorization result of a request according to the log.
type answered uint8

const (
	// answeredNothing: authorization was not decided, because the request was throttled
	// before, or because of an error.
	answeredNothing answered = iota
	answeredAllowed
	answeredRefused
	// answeredUnknown: authentication failed.
	answeredUnknown
)

// answerOf uses the annotation of authorization. If the log does not have it, it uses the
// HTTP status. Admission comes after authorization and refuses with 403 too.
func answerOf(e *auditlog.Event) answered {
	const unauthorized, forbidden, tooMany, internalError = 401, 403, 429, 500
	code := e.Status.Code
	switch {
	case code == unauthorized && e.Annotations.Decision == "":
		return answeredUnknown
	case e.Annotations.Decision == auditlog.Forbidden || code == forbidden:
		return answeredRefused
	case e.Annotations.Decision == auditlog.Allowed:
		return answeredAllowed
	case code == 0 || code == tooMany || code >= internalError:
		return answeredNothing
	}
	return answeredAllowed
}
