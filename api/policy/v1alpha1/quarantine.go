package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The names of the resource Quarantine.
const (
	QuarantineKind     = "Quarantine"
	QuarantineListKind = "QuarantineList"
	QuarantineResource = "quarantines"
)

// Quarantine cuts off a node or one credential from the API server, until it is deleted or
// expires. It is cluster scoped.
//
// A quarantined node is refused as a user (system:node:NAME), and so is every service account
// with a token that is bound to a pod of the node. The node's certificate requests are denied, its
// machine gets no bootstrap token, and its AWS role no user.
type Quarantine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   QuarantineSpec   `json:"spec"`
	Status QuarantineStatus `json:"status,omitempty"`
}

// Accepted reports whether the servers have accepted the Quarantine, in this generation or an earlier one. An edit
// does not lose it its place: what it cuts off cannot change.
func (q *Quarantine) Accepted() bool {
	return meta.IsStatusConditionTrue(q.Status.Conditions, ConditionAccepted)
}

// QuarantineSpec says what is cut off. It has either Node or Credential, which cannot change.
type QuarantineSpec struct {
	// Node is the name of the node.
	Node string `json:"node,omitempty"`
	// Credential is the id of one credential, as in the extra value
	// authentication.kubernetes.io/credential-id: "X509SHA256=…" of a certificate (Kubernetes
	// 1.32), "JTI=…" of a service account's token (1.30).
	Credential string `json:"credential,omitempty"`
	// Reason says why, for people. It appears in the log and not in answers to the node.
	Reason string `json:"reason,omitempty"`
	// ExpirationTime is when the quarantine ends; nil means when it is deleted.
	ExpirationTime *metav1.Time `json:"expirationTime,omitempty"`
	// Allow are the requests that are not refused. The authorizers after it decide about them. The
	// node's certificate requests, tokens and roles have no exceptions.
	Allow []QuarantineRule `json:"allow,omitempty"`
}

// QuarantineRule matches requests of a quarantined credential that are not refused.
type QuarantineRule struct {
	// APIGroups, Resources, ResourceNames, Verbs and NonResourceURLs are as in RBAC.
	APIGroups       []string `json:"apiGroups,omitempty"`
	Resources       []string `json:"resources,omitempty"`
	ResourceNames   []string `json:"resourceNames,omitempty"`
	Verbs           []string `json:"verbs"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty"`
	// Namespaces are the namespaces of the request; none means all.
	Namespaces []string `json:"namespaces,omitempty"`
	// ServiceAccounts are the accounts whose tokens on the node the rule is for. If there are none,
	// it is for the node's own credential.
	ServiceAccounts []Subject `json:"serviceAccounts,omitempty"`
}

// QuarantineStatus says what the servers make of a Quarantine.
type QuarantineStatus struct {
	// ObservedGeneration is the generation that the conditions are about.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: Accepted is True while the servers refuse what the spec names, and False with a
	// code of docs/reference/reasons if they do not: it has expired, it is not valid, or too many nodes are
	// quarantined.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// QuarantineList is a list of Quarantines.
type QuarantineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Quarantine `json:"items"`
}
