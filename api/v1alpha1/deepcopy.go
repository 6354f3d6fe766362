package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopy returns a copy that shares nothing with the entry.
func (a *NodeAttestation) DeepCopy() *NodeAttestation {
	out := &NodeAttestation{TypeMeta: a.TypeMeta, Spec: a.Spec.deepCopy(), Status: a.Status.deepCopy()}
	a.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// DeepCopyObject implements runtime.Object.
func (a *NodeAttestation) DeepCopyObject() runtime.Object {
	return a.DeepCopy()
}

// DeepCopyObject implements runtime.Object.
func (l *NodeAttestationList) DeepCopyObject() runtime.Object {
	out := &NodeAttestationList{TypeMeta: l.TypeMeta}
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	if l.Items != nil {
		out.Items = make([]NodeAttestation, len(l.Items))
		for i := range l.Items {
			out.Items[i] = *l.Items[i].DeepCopy()
		}
	}
	return out
}

func (s *NodeAttestationSpec) deepCopy() NodeAttestationSpec {
	out := *s
	out.Names, out.Addresses = slices.Clone(s.Names), slices.Clone(s.Addresses)
	out.EvidenceTime = s.EvidenceTime.DeepCopy()
	out.AttestedTime, out.TokenExpiration = *s.AttestedTime.DeepCopy(), *s.TokenExpiration.DeepCopy()
	return out
}

func (s *NodeAttestationStatus) deepCopy() NodeAttestationStatus {
	out := *s
	out.CertificateExpiration = s.CertificateExpiration.DeepCopy()
	out.Credentials = slices.Clone(s.Credentials)
	if s.Binding != nil {
		binding := *s.Binding
		binding.ApproveUntil = s.Binding.ApproveUntil.DeepCopy()
		out.Binding = &binding
	}
	if s.Conditions != nil {
		out.Conditions = make([]metav1.Condition, len(s.Conditions))
		for i := range s.Conditions {
			s.Conditions[i].DeepCopyInto(&out.Conditions[i])
		}
	}
	return out
}

func (s *MachineSpec) deepCopy() MachineSpec {
	out := *s
	out.PublicKeys, out.Addresses, out.Names = slices.Clone(s.PublicKeys), slices.Clone(s.Addresses), slices.Clone(s.Names)
	out.Expires = s.Expires.DeepCopy()
	if s.TPM != nil {
		out.TPM = &MachineTPM{EKHashes: slices.Clone(s.TPM.EKHashes), Policy: s.TPM.Policy}
	}
	if s.X509 != nil {
		x509 := *s.X509
		out.X509 = &x509
	}
	if s.Evidence != nil {
		evidence := *s.Evidence
		evidence.RequestTime = *s.Evidence.RequestTime.DeepCopy()
		out.Evidence = &evidence
	}
	return out
}
