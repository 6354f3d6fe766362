package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The names of the resource Machine.
const (
	MachineKind     = "Machine"
	MachineListKind = "MachineList"
	MachineResource = "machines"
)

// Machine registers a machine before it joins: what it can prove to have, and the one node name that it then
// gets. It is cluster scoped. A Machine that waits for approval registers nothing.
type Machine struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec MachineSpec `json:"spec"`
}

// MachineSpec has what a machine can prove to have, at least one of TPM, PublicKeys and X509, and what it gets. One
// proof is enough.
type MachineSpec struct {
	// NodeName is the one name for which the machine may get certificates.
	NodeName string `json:"nodeName"`
	// Approval is Pending in Machines that the bootstrap service writes, until a person approves. The default is Approved.
	Approval Approval `json:"approval,omitempty"`
	// TPM names its TPM.
	TPM *MachineTPM `json:"tpm,omitempty"`
	// PublicKeys are public keys whose private keys the machine has: PEM (SubjectPublicKeyInfo), a line of OpenSSH
	// as in /etc/ssh/ssh_host_ed25519_key.pub, or "sha256:" and the hash of SubjectPublicKeyInfo in hexadecimal.
	PublicKeys []string `json:"publicKeys,omitempty"`
	// X509 names its certificate, of an authority in the service's configuration.
	X509 *MachineX509 `json:"x509,omitempty"`
	// Addresses are the IP addresses from which the machine may join, if there are any, and the addresses that its serving
	// certificates may have.
	Addresses []string `json:"addresses,omitempty"`
	// Names are DNS names that its serving certificates may have, beyond the name of its node.
	Names []string `json:"names,omitempty"`
	// Expires is when the registration ends. Certificates that were issued before stay valid.
	Expires *metav1.Time `json:"expires,omitempty"`
	// Evidence is what the service knows about a machine that nobody registered.
	Evidence *MachineEvidence `json:"evidence,omitempty"`
}

// Approval is whether a Machine is a registration.
type Approval string

// The approvals.
const (
	// Pending: a machine that nobody registered has asked to join.
	Pending Approval = "Pending"
	// Approved: the machine is registered.
	Approved Approval = "Approved"
)

// MachineTPM names a TPM.
type MachineTPM struct {
	// EKHashes are "sha256:" and the hash, in hexadecimal, of a public endorsement key (SubjectPublicKeyInfo, DER).
	EKHashes []string `json:"ekHashes"`
	// Policy is the name of the policy for what the machine may have booted, in the service's configuration. If it is
	// empty, any of them will do.
	Policy string `json:"policy,omitempty"`
}

// MachineX509 names a certificate.
type MachineX509 struct {
	// Subject is the subject of the certificate as text (RFC 4514): "CN=worker-1,O=Example".
	Subject string `json:"subject"`
}

// MachineEvidence is about a machine that nobody registered. Only the proof itself, in the other fields, was verified.
type MachineEvidence struct {
	// Description says what the machine showed: the vendor and the model of its TPM, the kind of its key.
	Description string `json:"description,omitempty"`
	// RemoteAddress is the source address of the last request.
	RemoteAddress string `json:"remoteAddress,omitempty"`
	// RequestTime is the time of the last request. It is written once a minute at most.
	RequestTime metav1.Time `json:"requestTime"`
}

// IsApproved reports whether the Machine is a registration.
func (m *Machine) IsApproved() bool { return m.Spec.Approval == "" || m.Spec.Approval == Approved }

// Expired reports whether the registration has ended.
func (m *Machine) Expired(now time.Time) bool {
	return m.Spec.Expires != nil && !now.Before(m.Spec.Expires.Time)
}

// MachineList is a list of Machines.
type MachineList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Machine `json:"items"`
}

// DeepCopy returns a copy that shares nothing with the original.
func (m *Machine) DeepCopy() *Machine {
	out := &Machine{TypeMeta: m.TypeMeta, Spec: m.Spec.deepCopy()}
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject implements runtime.Object.
func (m *Machine) DeepCopyObject() runtime.Object {
	return m.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *MachineList) DeepCopyObject() runtime.Object {
	out := &MachineList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]Machine, len(l.Items))
		for i := range l.Items {
			out.Items[i] = *l.Items[i].DeepCopy()
		}
	}
	return out
}
