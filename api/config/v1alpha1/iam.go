package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Served is a kind of review that the webhooks answer.
type Served string

// The kinds of reviews. Each has its own paths.
const (
	// ServeAuthorization answers SubjectAccessReviews on /authorize.
	ServeAuthorization Served = "Authorization"
	// ServeAdmission answers AdmissionReviews on /admit and /mutate.
	ServeAdmission Served = "Admission"
	// ServeAuthentication answers TokenReviews on /authenticate.
	ServeAuthentication Served = "Authentication"
)

// IAM has the settings for authentication of AWS IAM bearer tokens on /authenticate.
type IAM struct {
	// ClusterID is the id that tokens must be signed for, in the header x-k8s-aws-id.
	ClusterID string `json:"clusterID"`
	// Partition is the partition of the callers and of STS: "aws".
	Partition string `json:"partition"`
	// Region is the region of EC2. The default is the region of the environment, or of the
	// instance that the server runs on.
	Region string `json:"region"`
	// Audiences are the audiences of tokens. If there are none, tokens have no audience,
	// and API servers accept them for their own.
	Audiences []string `json:"audiences"`
	// Sources are the sources of mappings. The first match wins.
	Sources []MappingSource `json:"sources"`
	// File is the path of a file with mappings, for the source File.
	File string `json:"file"`
	// ConfigMap is the name for the source ConfigMap.
	ConfigMap ConfigMapName `json:"configMap"`
	// RolePaths is how roles with a path are compared.
	RolePaths RolePaths `json:"rolePaths"`
	// SessionCheck is the check of a node's session.
	SessionCheck SessionCheck `json:"sessionCheck"`
	// SessionCheckExemptRoles are ARNs of roles whose sessions are not instances. Paths
	// are ignored. A mapping with {{EC2PrivateDNSName}} is checked nevertheless.
	SessionCheckExemptRoles []string `json:"sessionCheckExemptRoles"`
	Reserved                Reserved `json:"reserved"`
	STS                     STS      `json:"sts"`
	EC2                     EC2      `json:"ec2"`
}

// MappingSource is a source of mappings.
type MappingSource string

// The sources of mappings.
const (
	// FileSource is a file on the server's host.
	FileSource MappingSource = "File"
	// ConfigMapSource is a ConfigMap such as aws-auth.
	ConfigMapSource MappingSource = "ConfigMap"
	// IdentityMappingSource is the custom resource IAMIdentityMapping.
	IdentityMappingSource MappingSource = "IdentityMapping"
)

// ConfigMapName names a ConfigMap.
type ConfigMapName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// RolePaths is how a role with a path in a mapping is compared with callers. STS omits
// paths.
type RolePaths string

// The ways to compare roles.
const (
	// MatchRoleName ignores the path if only one mapping has the name.
	MatchRoleName RolePaths = "MatchName"
	// ExactRolePath compares ARNs exactly: a mapping with a path matches no caller.
	ExactRolePath RolePaths = "Exact"
)

// SessionCheck is the check of a session that becomes a node.
type SessionCheck string

// The checks, from the strictest.
const (
	// InstanceProfileCheck: the session's name is the id of a running instance whose
	// profile has the caller's role.
	InstanceProfileCheck SessionCheck = "InstanceProfile"
	// InstanceCheck: the session's name is the id of a running instance.
	InstanceCheck SessionCheck = "Instance"
	// NoSessionCheck: the session may have any name.
	NoSessionCheck SessionCheck = "None"
)

// Reserved are names that mappings must not give, with exceptions.
type Reserved struct {
	// Prefixes are prefixes of usernames and groups.
	Prefixes []string `json:"prefixes"`
	// GrantedUsernames and GrantedGroups are exceptions. One that ends in a colon allows
	// names with that prefix.
	GrantedUsernames []string `json:"grantedUsernames"`
	GrantedGroups    []string `json:"grantedGroups"`
}

// STS has the settings for requests to STS.
type STS struct {
	// ExtraHosts are hosts in addition to the hosts of the partition.
	ExtraHosts []STSHost `json:"extraHosts"`
	// Timeout bounds the time of an answer.
	Timeout metav1.Duration `json:"timeout"`
	// MaxInFlight is the number of concurrent requests, PerSecond the rate limit, and
	// Burst the number of requests at once after a pause.
	MaxInFlight int32 `json:"maxInFlight"`
	PerSecond   int32 `json:"perSecond"`
	Burst       int32 `json:"burst"`
	// CacheTTL is how long the caller of a token is cached, but not beyond the token's
	// expiry. If it is 0, callers are not cached. CacheSize is the number of cached
	// callers.
	CacheTTL  metav1.Duration `json:"cacheTTL"`
	CacheSize int32           `json:"cacheSize"`
}

// STSHost is a host of STS, such as a VPC endpoint.
type STSHost struct {
	Host string `json:"host"`
	// Region is the region that requests to the host are signed for.
	Region string `json:"region"`
}

// EC2 has the settings for look-ups of instances, and of their roles in IAM.
type EC2 struct {
	// CacheTTL is how long an instance is cached, CacheSize the number of cached instances.
	CacheTTL  metav1.Duration `json:"cacheTTL"`
	CacheSize int32           `json:"cacheSize"`
	// PerSecond is the rate limit of requests to IAM, and to EC2 in each region,
	// including those about machines that join. Burst is the number of requests at once.
	PerSecond int32 `json:"perSecond"`
	Burst     int32 `json:"burst"`
	// VPCs are the VPCs whose instances may be nodes. If there are none, instances of all
	// VPCs may.
	VPCs []string `json:"vpcs"`
}

// Answers reports whether the webhooks answer a kind of question.
func (w *Webhook) Answers(kind Served) bool {
	if w.Address == "" {
		return false
	}
	for _, s := range w.Serves {
		if s == kind {
			return true
		}
	}
	return false
}
