package v1alpha1

// Approval says what happens to machines that nobody registered.
type Approval string

// The approvals.
const (
	// RegisteredApproval lets only registered machines join.
	RegisteredApproval Approval = "Registered"
	// ManualApproval lets others wait until a person approves them.
	ManualApproval Approval = "Manual"
)

// TPM is which machines may join with a TPM 2.0.
type TPM struct {
	// CertificateAuthorities is the path of a PEM file with the authorities of TPM vendors, or of a folder with such
	// files. If it is empty, only registered machines may join.
	CertificateAuthorities string `json:"certificateAuthorities"`
	// RejectExpiredCertificates refuses certificates of TPMs that have expired.
	RejectExpiredCertificates bool `json:"rejectExpiredCertificates"`
	// NodeName is a template for names of machines that are not registered, but have a TPM of one of the vendors:
	// tpm-{{.EKHash}}. If it is empty, only registered machines may join.
	NodeName string `json:"nodeName"`
	// Policies say what machines may have booted. One of them must allow it; if there are none, it is not checked.
	Policies []TPMPolicy `json:"policies"`
}

// TPMPolicy says what machines may have booted. All of it must hold.
type TPMPolicy struct {
	// Name is the name by which a Machine chooses its policy.
	Name string `json:"name"`
	// PCRs are the allowed values of PCRs, SHA-256.
	PCRs []PCRValues `json:"pcrs"`
	// SecureBoot requires that Secure Boot is on, by the event log.
	SecureBoot bool `json:"secureBoot"`
	// Events are the allowed digests, SHA-256, of all events of PCRs in the event log.
	Events []PCRValues `json:"events"`
}

// PCRValues are values for one PCR.
type PCRValues struct {
	PCR int32 `json:"pcr"`
	// Values are 64 hexadecimal digits each.
	Values []string `json:"values"`
}
