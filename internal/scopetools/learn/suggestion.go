package learn

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// Suggestion is a NodeScope for an account, and why.
type Suggestion struct {
	// Account is the service account, as NAMESPACE/NAME.
	Account string `json:"account"`
	// AccountExists says whether the service account was among those that were read. It is Unknown if these
	// could not be read, or files hold none at all.
	AccountExists Existence `json:"accountExists"`
	// Basis is AuditLog if the rules fit requests of a log, and Roles if there was none, so that they
	// are guesses from what roles grant.
	Basis Basis `json:"basis"`
	// Requests is the number of requests of the account that were not refused, and Nodes the number
	// of nodes from which they came.
	Requests int `json:"requests"`
	Nodes    int `json:"nodes"`
	// First and Last are the times of the first and last request; absent without requests.
	First *time.Time `json:"first,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
	// Scope is the NodeScope.
	Scope Scope `json:"scope"`
	// Evidence is why the scope has each of its rules, in their order. A rule in anywhere has an entry for each
	// verb, and for each of its resource names.
	Evidence []Evidence `json:"evidence"`
	// Outliers are the requests of the log that the scope refuses, because they are not about the node of their
	// token, and some requests with their verb and resource are about a node, the own or another, or the right to
	// make them lets the account leave its node. List and watch count as one verb, delete and deletecollection too. With
	// --accept-outliers they have rules in anywhere, and there are none. They are sorted by verb and resource,
	// the rarest first.
	Outliers []Outlier `json:"outliers"`
	// MoreOutliers is the number of further outliers, which are counted only.
	MoreOutliers int `json:"moreOutliers,omitempty"`
	// NeverUsed are the rights that roles grant and that the log does not show.
	NeverUsed []Right `json:"neverUsed"`
	// Wildcards are the rights for everything of a kind, with what was used of them.
	Wildcards []Wildcard `json:"wildcards"`
	// WithoutNode are requests with tokens that name no node. Enforced, the scope refuses them.
	WithoutNode Unscoped `json:"withoutNode"`
	// Refused are requests that the authorizers refused. They are no evidence.
	Refused Unscoped `json:"refused"`
	// Impersonating are requests that the account made as another user, whose scope counts.
	Impersonating Unscoped `json:"impersonating"`
	// AsItsNode is the number of requests that the account made as its own node.
	AsItsNode int `json:"asItsNode"`
	// Notes say what the suggestion does not take into account.
	Notes []string `json:"notes"`
	// Warnings are rules of the scope that let pass a right with which the account leaves its node.
	Warnings []attackpaths.ScopeWarning `json:"warnings"`
	// Invalid says why an API server would not accept the scope: it has more rules than it may have.
	Invalid []string `json:"invalid,omitempty"`
}

// Basis says from which input a suggestion is derived.
type Basis string

// The bases.
const (
	AuditLog Basis = "AuditLog"
	Roles    Basis = "Roles"
)

// Existence says whether an account exists.
type Existence string

// The answers.
const (
	Yes     Existence = "Yes"
	No      Existence = "No"
	Unknown Existence = "Unknown"
)

// Scope is a NodeScope as it is applied.
type Scope struct {
	// APIVersion and Kind are the API version and kind of NodeScopes.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Metadata has the name.
	Metadata Metadata `json:"metadata"`
	// Spec is the spec of the NodeScope.
	Spec v1alpha1.NodeScopeSpec `json:"spec"`
}

// Metadata is the metadata of a suggested NodeScope.
type Metadata struct {
	// Name is the name of the NodeScope.
	Name string `json:"name"`
}

// Evidence is why the scope has a rule.
type Evidence struct {
	// Rule is the rule in the spec: "namedAsNode[0]", or "asNode".
	Rule string `json:"rule"`
	// Count is the number of requests that need the rule, and Nodes the number of their nodes.
	Count int `json:"count"`
	Nodes int `json:"nodes"`
	// Example is the first of the requests; empty without a log.
	Example string `json:"example,omitempty"`
	// Guess is why the rule was chosen without a log; empty with one.
	Guess string `json:"guess,omitempty"`
	// GrantedBy are the roles that grant them; empty if none does now.
	GrantedBy []string `json:"grantedBy"`
}

// Outlier is requests with one verb for one object from one node that the scope refuses.
type Outlier struct {
	// Request is the verb and the resource: "patch nodes".
	Request string `json:"request"`
	// Namespace, Name and FieldSelector are the object or the selection; absent if the requests have none.
	Namespace     string `json:"namespace,omitempty"`
	Name          string `json:"name,omitempty"`
	FieldSelector string `json:"fieldSelector,omitempty"`
	// Node is the node of the token that sent them.
	Node string `json:"node"`
	// OtherNode is the node that they are about, by their names, the state or the log; absent if none of these
	// shows one.
	OtherNode string `json:"otherNode,omitempty"`
	// Count is the number of requests, and First and Last are their times; absent if the log has none.
	Count int        `json:"count"`
	First *time.Time `json:"first,omitempty"`
	Last  *time.Time `json:"last,omitempty"`
	// OwnNode is the number of requests with the same verb and resource that were about their own node.
	OwnNode int `json:"ownNode"`
	// Technique is the technique of attack paths with which a right to do this for any object lets the account leave
	// its node, or ContainmentControl; absent if there is none.
	Technique attackpaths.Code `json:"technique,omitempty"`

	text string
}

// Right is a right that a role grants.
type Right struct {
	// GrantedBy is the role, and Binding the binding that gives it to the account.
	GrantedBy string `json:"grantedBy"`
	Binding   string `json:"binding"`
	// Namespace is the namespace of the binding; empty for the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	// Verbs are the verbs, for Resource, which has its group after a dot, or for NonResourceURL.
	Verbs          []string `json:"verbs"`
	Resource       string   `json:"resource,omitempty"`
	NonResourceURL string   `json:"nonResourceURL,omitempty"`
	// ResourceNames are the only names that the right is for; absent for all.
	ResourceNames []string `json:"resourceNames,omitempty"`

	rule rbacv1.PolicyRule // with all verbs
}

// Wildcard is a right with a star that was used.
type Wildcard struct {
	Right
	// Used are the verbs and resources that were used of it.
	Used []string `json:"used"`
}

// DocumentKind is the kind of the suggestion as a document.
func (*Suggestion) DocumentKind() string { return "ScopeSuggestion" }

func scopeName(namespace, name string) string {
	const longest = 253
	joined := namespace + "." + name
	if len(joined) <= longest {
		return joined
	}
	sum := sha256.Sum256([]byte(joined))
	hash := hex.EncodeToString(sum[:8])
	return strings.TrimRight(joined[:longest-len(hash)-1], ".-") + "-" + hash
}

// newSuggestion returns one without rules.
func newSuggestion(namespace, name string, basis Basis) *Suggestion {
	return &Suggestion{
		Account: namespace + "/" + name, Basis: basis, Evidence: []Evidence{}, Outliers: []Outlier{},
		NeverUsed: []Right{}, Wildcards: []Wildcard{}, Notes: []string{}, Warnings: []attackpaths.ScopeWarning{},
		Scope: Scope{
			APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.NodeScopeKind, Metadata: Metadata{scopeName(namespace, name)},
			Spec: v1alpha1.NodeScopeSpec{
				Subjects: []v1alpha1.Subject{{Namespace: namespace, Name: name}}, Mode: v1alpha1.Observe,
				TokensWithoutNode: v1alpha1.Deny, Otherwise: v1alpha1.Deny,
			},
		},
	}
}

// Suggest returns the NodeScope that fits what was collected. Outliers get rules only if they are accepted.
func (c *Collector) Suggest(namespace, name string, acceptOutliers bool) *Suggestion {
	s := newSuggestion(namespace, name, AuditLog)
	s.Requests, s.Nodes = c.count.Requests(), len(c.nodes)
	s.First, s.Last = c.utc()
	s.WithoutNode, s.Refused, s.Impersonating, s.AsItsNode = c.withoutNode, c.refused, c.other, c.asItsNode.Requests()
	s.addRules(c.choose(s, acceptOutliers), c.grants)
	if s.AsItsNode > 0 && !s.Scope.Spec.AsNode {
		s.Scope.Spec.AsNode = true
		s.Evidence = append([]Evidence{{
			Rule: "asNode", Count: s.AsItsNode, Nodes: len(c.asItsNodes), Example: "impersonate:associated-node", GrantedBy: []string{},
		}}, s.Evidence...)
	}
	s.rights(c)
	c.notes(s)
	s.validate()
	return s
}

func (c *Collector) notes(s *Suggestion) {
	if len(c.groups) == 0 {
		s.Notes = append(s.Notes, "the logs have no request of a token of this account that names a node, so that there are no rules")
	}
	if c.beyond > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf(
			"the account asked for more than %d kinds of requests: %s of further kinds not in the rules", maxGroups,
			render.Count(c.beyond, "request")))
	}
	if len(c.pods) == maxPods {
		s.Notes = append(s.Notes, fmt.Sprintf("only the first %d pods of the logs are known", maxPods))
	}
}

func grantText(g rbac.Grant) string { return g.Role.String() }

func compareGroups(a, b group) int {
	return cmp.Or(strings.Compare(a.apiGroup, b.apiGroup), strings.Compare(a.resource, b.resource), strings.Compare(a.path, b.path),
		strings.Compare(a.verb, b.verb))
}
