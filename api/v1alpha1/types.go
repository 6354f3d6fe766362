// Package v1alpha1 has the custom resources of node-authorizer.io/v1alpha1.
//
// A [NodeAttestation] is an entry of the ledger in which the bootstrap service records which
// machine got which node name. A [Machine] registers a machine before it joins.
package v1alpha1

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The names of the resource NodeAttestation.
const (
	Group    = "node-authorizer.io"
	Version  = "v1alpha1"
	Kind     = "NodeAttestation"
	ListKind = "NodeAttestationList"
	Resource = "nodeattestations"
)

// EntryName returns the name of a machine's entry in the ledger.
func EntryName(provider, instanceID string) string { return provider + "-" + instanceID }

// NodeAttestation records that one machine was attested and was given one node name. It
// is cluster scoped. Its name is made of the machine alone (PROVIDER-INSTANCEID), so that
// only the first request of a machine can create it.
type NodeAttestation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec NodeAttestationSpec `json:"spec"`
	// The schema's default for the phase is Issued.
	Status NodeAttestationStatus `json:"status,omitempty"`
}

// NodeAttestationSpec has the attested facts, and the token that was issued. Only the
// bootstrap service writes it.
type NodeAttestationSpec struct {
	// Provider and InstanceID identify the machine.
	Provider   string `json:"provider"`
	InstanceID string `json:"instanceID"`
	// NodeName is the one name for which the machine may get certificates.
	NodeName string `json:"nodeName"`
	// Names and Addresses are the names and addresses that its serving certificates may have.
	Names     []string `json:"names,omitempty"`
	Addresses []string `json:"addresses,omitempty"`
	// Account, Region and Zone are where the machine is, if the provider knows.
	Account string `json:"account,omitempty"`
	Region  string `json:"region,omitempty"`
	Zone    string `json:"zone,omitempty"`
	// RemoteAddress is the source address of the request.
	RemoteAddress string `json:"remoteAddress,omitempty"`
	// PublicKey is "sha256:" and the hash, in hexadecimal, of the public key
	// (SubjectPublicKeyInfo, DER) that the evidence names. The machine gets certificates for this
	// key only; if it is empty, for the key for which the token is used first.
	PublicKey string `json:"publicKey,omitempty"`
	// Description is what else the evidence says about the machine, for people.
	Description string `json:"description,omitempty"`
	// EvidenceDigest is "sha256:" and the hash of the evidence in hexadecimal.
	EvidenceDigest string `json:"evidenceDigest"`
	// EvidenceTime is when the evidence was made, if it has a time.
	EvidenceTime *metav1.Time `json:"evidenceTime,omitempty"`
	// AttestedTime is when the evidence was last verified.
	AttestedTime metav1.Time `json:"attestedTime"`
	// TokenID is the public half of the bootstrap token. It is set before the token
	// exists: whichever replica creates its Secret, there is only one. No two entries
	// have the same token.
	TokenID string `json:"tokenID"`
	// TokenKeyID is the id of the service's key from which the secret half of the token
	// is derived. It is empty for a token of a version that derived none.
	TokenKeyID string `json:"tokenKeyID,omitempty"`
	// TokenExpiration is the latest expiry of the token.
	TokenExpiration metav1.Time `json:"tokenExpiration"`
}

// Phase is the progress of a machine.
type Phase string

// A machine goes from Issued to Certified to Registered. Revoked is final.
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

// The types of conditions. Their reasons are codes of docs/reference/reasons.
const (
	// ConditionCertified is True when the client certificate has been issued, and
	// False with the code when a request for it was denied.
	ConditionCertified = "Certified"
	// ConditionRegistered is True when the node exists.
	ConditionRegistered = "Registered"
	// ConditionRevoked is True when the machine was revoked.
	ConditionRevoked = "Revoked"
	// ConditionRefused is True when evidence of the machine was later refused. The reason
	// is the last code.
	ConditionRefused = "Refused"
)

// MaxCredentials is the maximum number of certificates of a machine in an entry, also in
// the schema.
const MaxCredentials = 64

// NodeAttestationStatus is the state of a token.
type NodeAttestationStatus struct {
	Phase Phase `json:"phase,omitempty"`
	// TokenID is the token that the rest of the status is about. If it differs from the
	// one in spec, the machine was attested again, and the phase is Issued.
	TokenID string `json:"tokenID,omitempty"`
	// Binding is the token that was last used, and the key that it was used for. It is
	// written before the first certificate of the token is approved.
	Binding *TokenBinding `json:"binding,omitempty"`
	// CertificateRequest is the CertificateSigningRequest that the token was used
	// for.
	CertificateRequest string `json:"certificateRequest,omitempty"`
	// CertificateExpiration is the expiry of the last known client certificate.
	CertificateExpiration *metav1.Time `json:"certificateExpiration,omitempty"`
	// Credentials are the ids of the last known client certificates of the machine, the
	// newest last, in the form of API servers: "X509SHA256=" and the hash of the
	// certificate in hexadecimal.
	Credentials []string `json:"credentials,omitempty"`
	// NodeUID is the UID of the node that the machine registered.
	NodeUID    string             `json:"nodeUID,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TokenBinding is the public key for which a token was used. The token cannot be used for
// another key.
type TokenBinding struct {
	TokenID string `json:"tokenID"`
	// PublicKey is "sha256:" and the hash, in hexadecimal, of the public key
	// (SubjectPublicKeyInfo, DER) of the certificate request.
	PublicKey string `json:"publicKey"`
	// RequestUID is the CertificateSigningRequest for which the token was bound. It may
	// be approved until ApproveUntil, also after the token's expiry. Other requests may
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

// Phase returns the phase of the token in spec. The default is Issued.
func (a *NodeAttestation) Phase() Phase {
	switch {
	case a.Status.Phase == Revoked:
		return Revoked
	case a.Status.Phase == "" || a.Status.TokenID != a.Spec.TokenID:
		return Issued
	}
	return a.Status.Phase
}

// BoundKey returns the public key that the token in spec was used for. It is empty for an
// unused token. A binding of another token is ignored.
func (a *NodeAttestation) BoundKey() string {
	if b := a.Status.Binding; b != nil && b.TokenID == a.Spec.TokenID {
		return b.PublicKey
	}
	return ""
}

// NamesToken reports whether the entry's spec or status is about a token.
func (a *NodeAttestation) NamesToken(id string) bool { return slices.Contains(a.TokenIDs(), id) }

// TokenIDs returns the ids of the tokens of the entry's spec and status. The id of the spec is the first.
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

// Older orders entries with the same node name by age, then by name. The first has the
// node name.
func Older(a, b *NodeAttestation) int {
	if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
