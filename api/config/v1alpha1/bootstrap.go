package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bootstrap is the HTTPS endpoint where machines exchange evidence for a token for their
// node's name.
type Bootstrap struct {
	Address            string          `json:"address"`
	CertificateFile    string          `json:"certificateFile"`
	KeyFile            string          `json:"keyFile"`
	ClientCAFile       string          `json:"clientCAFile"`
	ClientCommonName   string          `json:"clientCommonName"`
	CertificateWait    metav1.Duration `json:"certificateWait"`
	Attestor           AttestorName    `json:"attestor"`
	AcceptAlwaysAllow  bool            `json:"acceptAlwaysAllow"`
	RequestTimeout     metav1.Duration `json:"requestTimeout"`
	MaxBodyBytes       int64           `json:"maxBodyBytes"`
	Reattestation      Reattestation   `json:"reattestation"`
	VerifyRegistration bool            `json:"verifyRegistration"`
	Token              Token           `json:"token"`
	RateLimit          RateLimit       `json:"rateLimit"`
	AWS                AWS             `json:"aws"`
	OIDC               OIDC            `json:"oidc"`
	Approval           Approval        `json:"approval"`
	TPM                TPM             `json:"tpm"`
	Key                Key             `json:"key"`
	Exec               Exec            `json:"exec"`
	ClusterAPI         ClusterAPI      `json:"clusterAPI"`
}

// UsesMachines reports whether the attestor asks for registered machines.
func (b *Bootstrap) UsesMachines() bool {
	return b.Attestor == TPMAttestor || b.Attestor == KeyAttestor
}

// AttestorName is the name of an attestor.
type AttestorName string

// The attestors.
const (
	// AWSAttestor checks the signed identity documents of EC2 instances.
	AWSAttestor AttestorName = "aws"
	// OIDCAttestor checks the identity tokens of any issuer.
	OIDCAttestor AttestorName = "oidc"
	// KeyAttestor checks signatures of registered machines.
	KeyAttestor AttestorName = "key"
	// TPMAttestor checks the keys and quotes of TPMs.
	TPMAttestor AttestorName = "tpm"
	// ExecAttestor lets a program check evidence.
	ExecAttestor AttestorName = "exec"
	// AlwaysAllowAttestor accepts every machine.
	AlwaysAllowAttestor AttestorName = "alwaysallow"
)

// Reattestation says when a machine may join again whose token was used.
type Reattestation string

// The policies for attesting again.
const (
	// NeverReattest gives each machine one certificate.
	NeverReattest Reattestation = "Never"
	// ReattestNodeAbsent requires that the machine's node does not exist.
	ReattestNodeAbsent Reattestation = "NodeAbsent"
	// ReattestNewerEvidence requires newer evidence than before. A virtual machine gets
	// it by a stop and start.
	ReattestNewerEvidence Reattestation = "NewerEvidence"
	// AlwaysReattest requires nothing.
	AlwaysReattest Reattestation = "Always"
)

// Token has the settings of tokens for machines.
type Token struct {
	TTL metav1.Duration `json:"ttl"`
}

// RateLimit is a rate limit of requests.
type RateLimit struct {
	PerSecond int32       `json:"perSecond"`
	Burst     int32       `json:"burst"`
	PerSource SourceLimit `json:"perSource"`
}

// SourceLimit is the rate limit of requests per source address.
type SourceLimit struct {
	PerSecond int32 `json:"perSecond"`
	Burst     int32 `json:"burst"`
}

// AWS is which EC2 instances may join.
type AWS struct {
	ClusterName         string         `json:"clusterName"`
	ClusterTag          string         `json:"clusterTag"`
	Accounts            []string       `json:"accounts"`
	Regions             []string       `json:"regions"`
	VPCs                []string       `json:"vpcs"`
	VerifySignature     bool           `json:"verifySignature"`
	VerifySourceAddress bool           `json:"verifySourceAddress"`
	InstanceProfiles    []string       `json:"instanceProfiles"`
	Naming              string         `json:"naming"`
	CertificatesFile    string         `json:"certificatesFile"`
	CallerIdentity      CallerIdentity `json:"callerIdentity"`
}

// OIDC is which machines may join with an identity token (a JSON Web Token).
type OIDC struct {
	Preset                   OIDCPreset      `json:"preset"`
	Google                   GoogleInstances `json:"google"`
	IssuerURL                string          `json:"issuerURL"`
	KeysFile                 string          `json:"keysFile"`
	CertificateAuthorityFile string          `json:"certificateAuthorityFile"`
	ClusterID                string          `json:"clusterID"`
	Audiences                []string        `json:"audiences"`
	MaxAge                   metav1.Duration `json:"maxAge"`
	Conditions               []OIDCCondition `json:"conditions"`
	NodeName                 string          `json:"nodeName"`
	InstanceID               string          `json:"instanceID"`
}

// OIDCPreset is the name of a preset.
type OIDCPreset string

// GooglePreset is for the instances of Google Cloud.
const GooglePreset OIDCPreset = "Google"

// GoogleInstances are instances of Google Cloud.
type GoogleInstances struct {
	Projects []string `json:"projects"`
	Zones    []string `json:"zones"`
}

// OIDCCondition is a CEL expression over claims and request, with what is wrong if it is false.
type OIDCCondition struct {
	Expression string `json:"expression"`
	Message    string `json:"message"`
}

// The predefined naming rules.
const (
	PrivateDNSNaming   = "PrivateDNSName"
	InstanceIDNaming   = "InstanceID"
	ResourceNameNaming = "ResourceName"
)

// CallerIdentity is whether instances must prove their role with a signed request to STS.
type CallerIdentity struct {
	Required bool   `json:"required"`
	Endpoint string `json:"endpoint"`
}

// Approver decides the CertificateSigningRequests of machines and nodes.
type Approver struct {
	Enabled             bool             `json:"enabled"`
	UnattestedNodes     UnattestedNodes  `json:"unattestedNodes"`
	ServingAddresses    ServingAddresses `json:"servingAddresses"`
	ServingCertificates []ServingSource  `json:"servingCertificates"`
	LeaderElection      LeaderElection   `json:"leaderElection"`
}

// UsesMachines reports whether the approver asks for registered machines.
func (a *Approver) UsesMachines() bool {
	return a.Enabled && slices.ContainsFunc(a.ServingCertificates, func(s ServingSource) bool { return s.Machine })
}

// ServingSource vouches for the names in a node's serving certificate. Everything that it has
// must hold.
type ServingSource struct {
	Names         []string `json:"names"`
	Networks      []string `json:"networks"`
	NodeAddresses bool     `json:"nodeAddresses"`
	Machine       bool     `json:"machine"`
	DNS           bool     `json:"dns"`
}

// UnattestedNodes is the policy for requests of nodes without a ledger entry.
type UnattestedNodes string

// The policies for unattested nodes.
const (
	DenyUnattested    UnattestedNodes = "Deny"
	LeaveUnattested   UnattestedNodes = "Leave"
	ApproveUnattested UnattestedNodes = "Approve"
)

// ServingAddresses is where allowed names and addresses of serving certificates come
// from.
type ServingAddresses string

// The sources of names and addresses.
const (
	LedgerAddresses        ServingAddresses = "Ledger"
	LedgerAndNodeAddresses ServingAddresses = "LedgerAndNode"
)

// LeaderElection elects the replica that approves, with a Lease.
type LeaderElection struct {
	Namespace     string          `json:"namespace"`
	Name          string          `json:"name"`
	LeaseDuration metav1.Duration `json:"leaseDuration"`
	RenewDeadline metav1.Duration `json:"renewDeadline"`
	RetryPeriod   metav1.Duration `json:"retryPeriod"`
}
