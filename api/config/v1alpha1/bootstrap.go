package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Bootstrap is the HTTPS endpoint where machines turn evidence of what they are
// into a token for their node's name.
type Bootstrap struct {
	// Address is host:port; empty for no such endpoint.
	Address string `json:"address"`
	// CertificateFile and KeyFile are paths of PEM files. They are read again
	// when they change, as is ClientCAFile.
	CertificateFile string `json:"certificateFile"`
	KeyFile         string `json:"keyFile"`
	// ClientCAFile is the path of a PEM file with the authorities that sign the
	// certificates of machines; empty if these show none.
	ClientCAFile string `json:"clientCAFile"`
	// ClientCommonName is the common name of the certificates of machines.
	ClientCommonName string `json:"clientCommonName"`
	// CertificateWait is how long files are waited for that are not there when
	// the server starts; 0 for not at all.
	CertificateWait metav1.Duration `json:"certificateWait"`
	// Attestor checks the evidence.
	Attestor AttestorName `json:"attestor"`
	// AcceptAlwaysAllow must be true for the attestor alwaysallow.
	AcceptAlwaysAllow bool `json:"acceptAlwaysAllow"`
	// RequestTimeout is how long an answer may take, MaxBodyBytes the largest
	// evidence that is read.
	RequestTimeout metav1.Duration `json:"requestTimeout"`
	MaxBodyBytes   int64           `json:"maxBodyBytes"`
	// Reattestation says when a machine may join again.
	Reattestation Reattestation `json:"reattestation"`
	// VerifyRegistration refuses machines whose node exists already.
	VerifyRegistration bool      `json:"verifyRegistration"`
	Token              Token     `json:"token"`
	RateLimit          RateLimit `json:"rateLimit"`
	AWS                AWS       `json:"aws"`
}

// AttestorName names what checks the evidence of machines.
type AttestorName string

// The attestors.
const (
	// AWSAttestor checks the signed identity documents of EC2 instances.
	AWSAttestor AttestorName = "aws"
	// AlwaysAllowAttestor believes everything.
	AlwaysAllowAttestor AttestorName = "alwaysallow"
)

// Reattestation says when a machine may join again whose token was used.
type Reattestation string

// The policies of re-attestation.
const (
	// NeverReattest gives each machine one certificate.
	NeverReattest Reattestation = "Never"
	// ReattestNodeAbsent asks that the machine's node is gone.
	ReattestNodeAbsent Reattestation = "NodeAbsent"
	// ReattestNewerEvidence asks for evidence that is newer than what was used:
	// a virtual machine gets it by being stopped and started.
	ReattestNewerEvidence Reattestation = "NewerEvidence"
	// AlwaysReattest asks for nothing.
	AlwaysReattest Reattestation = "Always"
)

// Token says what is given to machines.
type Token struct {
	// TTL is how long a token that nobody uses is good for.
	TTL metav1.Duration `json:"ttl"`
}

// RateLimit is how many requests are answered: PerSecond for long, Burst at
// once.
type RateLimit struct {
	PerSecond int32 `json:"perSecond"`
	Burst     int32 `json:"burst"`
	// PerSource is the limit of each address.
	PerSource SourceLimit `json:"perSource"`
}

// SourceLimit is how many requests from one address are answered.
type SourceLimit struct {
	PerSecond int32 `json:"perSecond"`
	Burst     int32 `json:"burst"`
}

// AWS says which EC2 instances may join.
type AWS struct {
	// ClusterName is the value of the tag ClusterTag that instances bear.
	ClusterName string `json:"clusterName"`
	ClusterTag  string `json:"clusterTag"`
	// Accounts, Regions and VPCs are where instances may be; with none, where the
	// server's own instance is.
	Accounts []string `json:"accounts"`
	Regions  []string `json:"regions"`
	VPCs     []string `json:"vpcs"`
	// VerifySignature and VerifySourceAddress are off for tests only.
	VerifySignature     bool `json:"verifySignature"`
	VerifySourceAddress bool `json:"verifySourceAddress"`
	// InstanceProfiles are names or ARNs, of which an instance has to have one;
	// with none, they are not looked at.
	InstanceProfiles []string `json:"instanceProfiles"`
	// Naming is how an instance's node is called: one of the constants, or a
	// template.
	Naming string `json:"naming"`
	// CertificatesFile is the path of a PEM file with more certificates of AWS
	// than those that are known.
	CertificatesFile string         `json:"certificatesFile"`
	CallerIdentity   CallerIdentity `json:"callerIdentity"`
}

// The naming rules that have a name.
const (
	PrivateDNSNaming   = "PrivateDNSName"
	InstanceIDNaming   = "InstanceID"
	ResourceNameNaming = "ResourceName"
)

// CallerIdentity says whether instances have to prove their role with a signed
// request to STS.
type CallerIdentity struct {
	Required bool `json:"required"`
	// Endpoint is the URL of STS; empty for that of the instance's region.
	Endpoint string `json:"endpoint"`
}

// Approver decides the CertificateSigningRequests of machines and nodes.
type Approver struct {
	Enabled bool `json:"enabled"`
	// UnattestedNodes says what becomes of the renewals of nodes that the ledger
	// does not know.
	UnattestedNodes UnattestedNodes `json:"unattestedNodes"`
	// ServingAddresses says which names and addresses a serving certificate may
	// hold.
	ServingAddresses ServingAddresses `json:"servingAddresses"`
	LeaderElection   LeaderElection   `json:"leaderElection"`
}

// UnattestedNodes says what becomes of requests of nodes without a ledger entry.
type UnattestedNodes string

// What may become of them.
const (
	DenyUnattested    UnattestedNodes = "Deny"
	LeaveUnattested   UnattestedNodes = "Leave"
	ApproveUnattested UnattestedNodes = "Approve"
)

// ServingAddresses says where the names and addresses of a serving certificate
// are looked up.
type ServingAddresses string

// The places to look them up.
const (
	LedgerAddresses        ServingAddresses = "Ledger"
	LedgerAndNodeAddresses ServingAddresses = "LedgerAndNode"
)

// LeaderElection is how replicas agree on the one that approves, through a
// Lease.
type LeaderElection struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// LeaseDuration is how long others wait for a leader that is gone,
	// RenewDeadline how long a leader tries to stay one, and RetryPeriod how long
	// each waits between tries.
	LeaseDuration metav1.Duration `json:"leaseDuration"`
	RenewDeadline metav1.Duration `json:"renewDeadline"`
	RetryPeriod   metav1.Duration `json:"retryPeriod"`
}
