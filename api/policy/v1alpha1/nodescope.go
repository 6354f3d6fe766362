package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The names of the resource NodeScope.
const (
	NodeScopeKind     = "NodeScope"
	NodeScopeListKind = "NodeScopeList"
	NodeScopeResource = "nodescopes"
)

// NodeScope says that some service accounts act for their own node only: a token that is bound to
// a pod of one node may do nothing on behalf of another. It is cluster scoped. A NodeScope never
// allows a request: the authorizers after it decide about the requests that it lets through.
type NodeScope struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   NodeScopeSpec   `json:"spec"`
	Status NodeScopeStatus `json:"status,omitempty"`
}

// NodeScopeSpec are the accounts, and what they may ask for. A request passes if one rule
// matches it. Several NodeScopes about one account must all let a request pass.
type NodeScopeSpec struct {
	// Subjects are the service accounts. At least one.
	Subjects []Subject `json:"subjects"`
	// Mode is whether requests are refused, or only reported.
	Mode Mode `json:"mode"`
	// TokensWithoutNode is the effect on tokens that are bound to no pod, and on requests that
	// impersonate the account without naming a node. The default is Deny.
	TokensWithoutNode Effect `json:"tokensWithoutNode,omitempty"`
	// AsNode lets pass what the Node authorizer and NodeRestriction would allow the node itself.
	AsNode bool `json:"asNode,omitempty"`
	// NamedAsNode lets pass requests for objects that have the name of the node.
	NamedAsNode []NamedRule `json:"namedAsNode,omitempty"`
	// SelectsNode lets pass lists and watches with a field selector that requires the node's name.
	SelectsNode []SelectedRule `json:"selectsNode,omitempty"`
	// PodsOnNode lets pass requests for pods that run on the node, and for objects that are named like them.
	PodsOnNode []PodRule `json:"podsOnNode,omitempty"`
	// Anywhere lets pass requests about any node.
	Anywhere []AnywhereRule `json:"anywhere,omitempty"`
	// Otherwise is the effect on requests that no rule names, by resource and verb. The default is
	// Deny. A request that a rule names, and that is about another node, is refused in any case.
	Otherwise Effect `json:"otherwise,omitempty"`
}

// Subject is one service account, or all of a namespace.
type Subject struct {
	Namespace string `json:"namespace"`
	// Name is the name of a service account; empty means all service accounts of the namespace.
	Name string `json:"name,omitempty"`
}

// Mode is whether a NodeScope is enforced.
type Mode string

// The modes.
const (
	// Observe reports what Enforce would refuse, and changes no answer.
	Observe Mode = "Observe"
	// Enforce refuses.
	Enforce Mode = "Enforce"
)

// Effect is what happens to some requests.
type Effect string

// The effects. Allow lets a request pass to the next authorizers; it never grants one.
const (
	Allow Effect = "Allow"
	Deny  Effect = "Deny"
)

// NamedRule matches requests for objects with the name of the node.
type NamedRule struct {
	// APIGroups, Resources and Verbs are as in RBAC: "" is the core group, "nodes/status" a
	// subresource, "*" everything, "*/status" a subresource of every resource.
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
	// Namespaces are the namespaces of the objects; none means all, and cluster-scoped objects.
	Namespaces []string `json:"namespaces,omitempty"`
}

// SelectedRule matches lists and watches that select the node's objects.
type SelectedRule struct {
	// APIGroups and Resources are as in RBAC. Verbs are among list, watch and deletecollection.
	APIGroups []string `json:"apiGroups"`
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
	// Namespaces are the namespaces of the request; none means all, and requests for all namespaces.
	Namespaces []string `json:"namespaces,omitempty"`
	// Field is the field that the request's selector must require to have the node's name, such as
	// spec.nodeName.
	Field string `json:"field"`
}

// PodRule matches requests for single pods on the node, or for single objects that have the namespace and
// the name of such a pod.
type PodRule struct {
	// APIGroups are as in RBAC, but without "*". None means the core group, and that Resources are pods.
	//
	// A name limits a node only where no object outlives the pod that it is named like: an attacker with the
	// credential of the node may create a mirror pod with any name that is free.
	APIGroups []string `json:"apiGroups,omitempty"`
	// Resources are pods and subresources of pods, or pods/* for all of these. With APIGroups they may be
	// others too, which are named as in RBAC, but without "*".
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
	// Namespaces are the namespaces of the pods; none means all.
	Namespaces []string `json:"namespaces,omitempty"`
}

// AnywhereRule matches requests of any node, for resources or for paths.
type AnywhereRule struct {
	// APIGroups, Resources, Verbs and ResourceNames are as in RBAC. Creates and lists have no
	// name, so that a rule with ResourceNames does not match them.
	APIGroups     []string `json:"apiGroups,omitempty"`
	Resources     []string `json:"resources,omitempty"`
	ResourceNames []string `json:"resourceNames,omitempty"`
	Verbs         []string `json:"verbs"`
	// Namespaces are the namespaces of the request; none means all.
	Namespaces []string `json:"namespaces,omitempty"`
	// NonResourceURLs are paths as in RBAC: "/metrics", "/healthz/*". A rule has either these or
	// Resources.
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
}

// NodeScopeStatus says what the servers make of a NodeScope.
type NodeScopeStatus struct {
	// ObservedGeneration is the generation that the conditions are about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Accepted is True if the servers use this generation, and False with a code of
	// docs/reference/reasons if they use an earlier one, or none.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionAccepted is the type of the condition of a [NodeScope] and a [Quarantine].
const ConditionAccepted = "Accepted"

// NodeScopeList is a list of NodeScopes.
type NodeScopeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeScope `json:"items"`
}
