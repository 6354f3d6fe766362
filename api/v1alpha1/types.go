// Package v1alpha1 has the custom resources of node-authorizer.io/v1alpha1.
//
// There is one: the [NodeAttestation], an entry of the ledger in which the
// bootstrap service writes down which machine got which node name.
package v1alpha1

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The resource that the types here are the API of.
const (
	Group    = "node-authorizer.io"
	Version  = "v1alpha1"
	Kind     = "NodeAttestation"
	ListKind = "NodeAttestationList"
	Resource = "nodeattestations"
)

// EntryName is the name of a machine's entry in the ledger.
func EntryName(provider, instanceID string) string { return provider + "-" + instanceID }

// NodeAttestation says that one machine proved what it is and was given one node
// name. It is cluster scoped, and its name is made of the machine alone
// (PROVIDER-INSTANCEID), so that creating it is what makes a machine's request
// the first.
type NodeAttestation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NodeAttestationSpec `json:"spec"`
	// Status without a phase has the phase Issued: it is the schema's default.
	Status NodeAttestationStatus `json:"status,omitempty"`
}

// NodeAttestationSpec is what was attested, and the token that was given for it.
// Only the bootstrap service writes it.
type NodeAttestationSpec struct {
	// Provider and InstanceID name the machine.
	Provider   string `json:"provider"`
	InstanceID string `json:"instanceID"`
	// NodeName is the one name for which the machine may get certificates.
	NodeName string `json:"nodeName"`
	// Names and Addresses are what its serving certificates may hold.
	Names     []string `json:"names,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// Account, Region and Zone are where the machine is, if the provider knows.
	Account string `json:"account,omitempty"`
	Region  string `json:"region,omitempty"`
	Zone    string `json:"zone,omitempty"`
	// RemoteAddress is where the request came from.
	RemoteAddress string `json:"remoteAddress,omitempty"`
	// EvidenceDigest is "sha256:" and the hash of the evidence in hexadecimal.
	EvidenceDigest string `json:"evidenceDigest"`
	// EvidenceTime is when the evidence was made, if it says.
	EvidenceTime *metav1.Time `json:"evidenceTime,omitempty"`
	// AttestedTime is when the evidence was checked last.
	AttestedTime metav1.Time `json:"attestedTime"`
	// TokenID is the public half of the bootstrap token, which is fixed before the
	// token exists: whoever creates its Secret, there is only one. No two entries
	// name the same token.
	TokenID string `json:"tokenID"`
	// TokenKeyID names the key of the service from which the secret half of the
	// token is derived; empty for a token of a version that derived none.
	TokenKeyID string `json:"tokenKeyID,omitempty"`
	// TokenExpiration is when the token ends at the latest.
	TokenExpiration metav1.Time `json:"tokenExpiration"`
}

// Phase is how far a machine has come.
type Phase string

// A machine goes from Issued to Certified to Registered. Revoked is for good.
const (
	// Issued: the machine was given a name and a token.
	Issued Phase = "Issued"
	// Certified: the token was turned into a client certificate.
	Certified Phase = "Certified"
	// Registered: the node exists.
	Registered Phase = "Registered"
	// Revoked: the machine gets no further token and no further certificate.
	Revoked Phase = "Revoked"
)

// The types of conditions. Their reasons are codes of docs/reasons.md.
const (
	// ConditionCertified is True when the client certificate has been issued, and
	// False with the code when a request for it was denied.
	ConditionCertified = "Certified"
	// ConditionRegistered is True when the node exists.
	ConditionRegistered = "Registered"
	// ConditionRevoked is True when somebody revoked the machine.
	ConditionRevoked = "Revoked"
	// ConditionRefused is True when somebody showed evidence of the machine later
	// and got no token for it. The reason is the last such code.
	ConditionRefused = "Refused"
)

// MaxCredentials is how many certificates of a machine an entry remembers. The
// schema takes no more.
const MaxCredentials = 64

// NodeAttestationStatus is what became of a token.
type NodeAttestationStatus struct {
	Phase Phase `json:"phase,omitempty"`
	// TokenID is the token that the rest of the status is about. When it differs
	// from the one in spec, the machine was attested again since, and the phase
	// is Issued.
	TokenID string `json:"tokenID,omitempty"`
	// Binding is the token that was used last, and the key that it was used for. It
	// is written before the first certificate of the token is approved.
	Binding *TokenBinding `json:"binding,omitempty"`
	// CertificateRequest is the CertificateSigningRequest that the token was used
	// for.
	CertificateRequest string `json:"certificateRequest,omitempty"`
	// CertificateExpiration is when the last client certificate that is known to
	// have been issued ends.
	CertificateExpiration *metav1.Time `json:"certificateExpiration,omitempty"`
	// Credentials name the last client certificates that are known to have been
	// issued to the machine, the newest last, as API servers name them:
	// "X509SHA256=" and the hash of the certificate in hexadecimal.
	Credentials []string `json:"credentials,omitempty"`
	// NodeUID is the UID of the node that the machine registered.
	NodeUID    string             `json:"nodeUID,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TokenBinding says for which public key a token was used. For another key the
// token is good for nothing.
type TokenBinding struct {
	TokenID string `json:"tokenID"`
	// PublicKey is "sha256:" and the hash, in hexadecimal, of the public key
	// (SubjectPublicKeyInfo, DER) of the certificate request.
	PublicKey string `json:"publicKey"`
	// RequestUID is the CertificateSigningRequest for which the token was bound. It may
	// be approved until ApproveUntil, also after the token's end; another request may
	// not. Both are missing in bindings of earlier versions.
	RequestUID   types.UID    `json:"requestUID,omitempty"`
	ApproveUntil *metav1.Time `json:"approveUntil,omitempty"`
}

// NodeAttestationList is a list of entries.
type NodeAttestationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []NodeAttestation `json:"items"`
}

// Phase of the token in spec: Issued when nothing else is known of it.
func (a *NodeAttestation) Phase() Phase {
	switch {
	case a.Status.Phase == Revoked:
		return Revoked
	case a.Status.Phase == "" || a.Status.TokenID != a.Spec.TokenID:
		return Issued
	}
	return a.Status.Phase
}

// BoundKey is the public key that the token in spec was used for; empty while it was
// not used. A binding of another token says nothing about it.
func (a *NodeAttestation) BoundKey() string {
	if b := a.Status.Binding; b != nil && b.TokenID == a.Spec.TokenID {
		return b.PublicKey
	}
	return ""
}

// NamesToken reports whether the entry's spec or status is about a token.
func (a *NodeAttestation) NamesToken(id string) bool { return slices.Contains(a.TokenIDs(), id) }

// TokenIDs are the tokens that the entry's spec and status are about, that of the
// spec first.
func (a *NodeAttestation) TokenIDs() []string {
	ids := []string{a.Spec.TokenID}
	add := func(id string) {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	add(a.Status.TokenID)
	if a.Status.Binding != nil {
		add(a.Status.Binding.TokenID)
	}
	return ids
}

// Older orders entries with one node name by age, and those of one second by
// name: the first has the node name.
func Older(a, b *NodeAttestation) int {
	if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
