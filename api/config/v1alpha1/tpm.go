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
	CertificateAuthorities    string      `json:"certificateAuthorities"`
	RejectExpiredCertificates bool        `json:"rejectExpiredCertificates"`
	NodeName                  string      `json:"nodeName"`
	Policies                  []TPMPolicy `json:"policies"`
}

// TPMPolicy says what machines may have booted. All of it must hold.
type TPMPolicy struct {
	Name       string      `json:"name"`
	PCRs       []PCRValues `json:"pcrs"`
	SecureBoot bool        `json:"secureBoot"`
	Events     []PCRValues `json:"events"`
}

// PCRValues are values for one PCR.
type PCRValues struct {
	PCR    int32    `json:"pcr"`
	Values []string `json:"values"`
}
