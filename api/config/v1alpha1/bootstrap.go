package v1alpha1

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bootstrap is the HTTPS endpoint where machines exchange evidence for a token for their
// node's name.
type Bootstrap struct {
	// Address is host:port. If it is empty, there is no such endpoint.
	Address string `json:"address"`
	// CertificateFile and KeyFile are paths of PEM files. Like ClientCAFile, they are
	// reloaded when they change.
	CertificateFile string `json:"certificateFile"`
	KeyFile         string `json:"keyFile"`
	// ClientCAFile is the path of a PEM file with the authorities of the machines'
	// certificates. It is empty if machines have none.
	ClientCAFile string `json:"clientCAFile"`
	// ClientCommonName is the common name of the certificates of machines.
	ClientCommonName string `json:"clientCommonName"`
	// CertificateWait is how long the server waits at its start for missing files. If it
	// is 0, it does not wait.
	CertificateWait metav1.Duration `json:"certificateWait"`
	// Attestor checks the evidence.
	Attestor AttestorName `json:"attestor"`
	// AcceptAlwaysAllow must be true for the attestor alwaysallow.
	AcceptAlwaysAllow bool `json:"acceptAlwaysAllow"`
	// RequestTimeout bounds the time of an answer, MaxBodyBytes the size of evidence.
	RequestTimeout metav1.Duration `json:"requestTimeout"`
	MaxBodyBytes   int64           `json:"maxBodyBytes"`
	// Reattestation says when a machine may join again.
	Reattestation Reattestation `json:"reattestation"`
	// VerifyRegistration refuses machines whose node exists already.
	VerifyRegistration bool      `json:"verifyRegistration"`
	Token              Token     `json:"token"`
	RateLimit          RateLimit `json:"rateLimit"`
	AWS                AWS       `json:"aws"`
	OIDC               OIDC      `json:"oidc"`
	// Approval says what happens to machines that nobody registered, with attestors that ask for registered machines.
	Approval Approval `json:"approval"`
	TPM      TPM      `json:"tpm"`
	Key      Key      `json:"key"`
	Exec     Exec     `json:"exec"`
	// ClusterAPI registers the machines that may join, with attestors whose evidence names an instance.
	ClusterAPI ClusterAPI `json:"clusterAPI"`
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
	// TTL is the validity of an unused token.
	TTL metav1.Duration `json:"ttl"`
}

// RateLimit is a rate limit of requests.
type RateLimit struct {
	PerSecond int32 `json:"perSecond"`
	Burst     int32 `json:"burst"`
	// PerSource is the limit per source address.
	PerSource SourceLimit `json:"perSource"`
}

// SourceLimit is the rate limit of requests per source address.
type SourceLimit struct {
	PerSecond int32 `json:"perSecond"`
	Burst     int32 `json:"burst"`
}

// AWS is which EC2 instances may join.
type AWS struct {
	// ClusterName is the value of the tag ClusterTag of the cluster's instances.
	ClusterName string `json:"clusterName"`
	ClusterTag  string `json:"clusterTag"`
	// Accounts, Regions and VPCs are where instances may be. The default is where the
	// server's own instance is.
	Accounts []string `json:"accounts"`
	Regions  []string `json:"regions"`
	VPCs     []string `json:"vpcs"`
	// VerifySignature and VerifySourceAddress are false in tests only.
	VerifySignature     bool `json:"verifySignature"`
	VerifySourceAddress bool `json:"verifySourceAddress"`
	// InstanceProfiles are names or ARNs. An instance must have one of them. If there are
	// none, it is not checked.
	InstanceProfiles []string `json:"instanceProfiles"`
	// Naming is the rule for names of nodes: one of the constants, or a template.
	Naming string `json:"naming"`
	// CertificatesFile is the path of a PEM file with additional certificates of AWS.
	CertificatesFile string         `json:"certificatesFile"`
	CallerIdentity   CallerIdentity `json:"callerIdentity"`
}

// OIDC is which machines may join with an identity token (a JSON Web Token).
type OIDC struct {
	// Preset sets IssuerURL, NodeName and InstanceID, and adds conditions. Google is for the
	// instances of Google Cloud. It is empty for other issuers.
	Preset OIDCPreset `json:"preset"`
	// Google is which instances of Google Cloud may join, with the preset Google.
	Google GoogleInstances `json:"google"`
	// IssuerURL is the issuer of the tokens: the claim iss.
	IssuerURL string `json:"issuerURL"`
	// KeysFile is the path of a JSON Web Key Set with the issuer's keys. If it is empty, the
	// server asks the issuer (/.well-known/openid-configuration).
	KeysFile string `json:"keysFile"`
	// CertificateAuthorityFile is the path of a PEM file with the authorities of the issuer's
	// certificate. The default are the ones of the system.
	CertificateAuthorityFile string `json:"certificateAuthorityFile"`
	// ClusterID is the cluster in the audience that machines choose:
	// node-authorizer/CLUSTERID/CHALLENGE/KEY.
	ClusterID string `json:"clusterID"`
	// Audiences are accepted instead of ClusterID, if machines cannot choose the audience.
	Audiences []string `json:"audiences"`
	// MaxAge is the maximum age of a token.
	MaxAge metav1.Duration `json:"maxAge"`
	// Conditions must all be true.
	Conditions []OIDCCondition `json:"conditions"`
	// NodeName is a CEL expression for the name of the node, and InstanceID one for a permanent
	// identity of the machine.
	NodeName   string `json:"nodeName"`
	InstanceID string `json:"instanceID"`
}

// OIDCPreset is the name of a preset.
type OIDCPreset string

// GooglePreset is for the instances of Google Cloud.
const GooglePreset OIDCPreset = "Google"

// GoogleInstances are instances of Google Cloud.
type GoogleInstances struct {
	// Projects are the ids of projects whose instances may join. Whoever can create instances in
	// one of them can let a machine join. Zones are the names of zones; if there are none, the
	// zone is not checked.
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
	Required bool `json:"required"`
	// Endpoint is the URL of STS. The default is the URL of STS in the instance's region.
	Endpoint string `json:"endpoint"`
}

// Approver decides the CertificateSigningRequests of machines and nodes.
type Approver struct {
	Enabled bool `json:"enabled"`
	// UnattestedNodes is the policy for renewals of nodes without a ledger entry.
	UnattestedNodes UnattestedNodes `json:"unattestedNodes"`
	// ServingAddresses is where allowed names and addresses of serving certificates come
	// from.
	ServingAddresses ServingAddresses `json:"servingAddresses"`
	// ServingCertificates are the sources that vouch for serving certificates of nodes
	// without a ledger entry. If there are none, the policies above decide about these.
	ServingCertificates []ServingSource `json:"servingCertificates"`
	LeaderElection      LeaderElection  `json:"leaderElection"`
}

// UsesMachines reports whether the approver asks for registered machines.
func (a *Approver) UsesMachines() bool {
	return a.Enabled && slices.ContainsFunc(a.ServingCertificates, func(s ServingSource) bool { return s.Machine })
}

// ServingSource vouches for the names in a node's serving certificate. Everything that it has
// must hold.
type ServingSource struct {
	// Names are templates of DNS names: {{.NodeName}}.example.com.
	Names []string `json:"names"`
	// Networks are the networks of IP addresses, as CIDRs.
	Networks []string `json:"networks"`
	// NodeAddresses requires that the status of the Node object has each name and address.
	NodeAddresses bool `json:"nodeAddresses"`
	// Machine requires that the one Machine that is registered for the node has each name and address.
	Machine bool `json:"machine"`
	// DNS requires that the names resolve to the addresses of the request, and to no others.
	DNS bool `json:"dns"`
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
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// LeaseDuration is how long others wait for a missing leader, RenewDeadline how long
	// a leader tries to renew its lease, and RetryPeriod the pause between tries.
	LeaseDuration metav1.Duration `json:"leaseDuration"`
	RenewDeadline metav1.Duration `json:"renewDeadline"`
	RetryPeriod   metav1.Duration `json:"retryPeriod"`
}
