package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Served names a kind of question that the webhooks answer.
type Served string

// The questions, each of which has paths of its own.
const (
	// ServeAuthorization answers SubjectAccessReviews on /authorize.
	ServeAuthorization Served = "Authorization"
	// ServeAdmission answers AdmissionReviews on /admit and /mutate.
	ServeAdmission Served = "Admission"
	// ServeAuthentication answers TokenReviews on /authenticate.
	ServeAuthentication Served = "Authentication"
)

// IAM says how /authenticate turns AWS IAM bearer tokens into users.
type IAM struct {
	// ClusterID is what tokens are signed for, in the header x-k8s-aws-id.
	ClusterID string `json:"clusterID"`
	// Partition is that of the callers, and of STS: "aws".
	Partition string `json:"partition"`
	// Region is where EC2 is asked; empty for that of the environment, or of the
	// instance that the server runs on.
	Region string `json:"region"`
	// Audiences are those that a token is good for; with none, tokens have no
	// audience, and API servers take them for their own.
	Audiences []string `json:"audiences"`
	// Sources are where mappings are read, the first match wins.
	Sources []MappingSource `json:"sources"`
	// File is the path of a file with mappings, for the source File.
	File string `json:"file"`
	// ConfigMap is that of the source ConfigMap.
	ConfigMap ConfigMapName `json:"configMap"`
	// RolePaths says whether a mapping for a role with a path is found.
	RolePaths RolePaths `json:"rolePaths"`
	// SessionCheck says what a node's session has to be.
	SessionCheck SessionCheck `json:"sessionCheck"`
	// SessionCheckExemptRoles are ARNs of roles whose sessions are no instances.
	// Their paths do not matter. Where a mapping has {{EC2PrivateDNSName}}, they are
	// checked all the same.
	SessionCheckExemptRoles []string `json:"sessionCheckExemptRoles"`
	Reserved                Reserved `json:"reserved"`
	STS                     STS      `json:"sts"`
	EC2                     EC2      `json:"ec2"`
}

// MappingSource names where mappings are read.
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

// RolePaths says how mappings whose role has a path are compared with callers,
// whose role STS names without it.
type RolePaths string

// The ways to compare them.
const (
	// MatchRoleName leaves the path out where only one mapping has the name.
	MatchRoleName RolePaths = "MatchName"
	// ExactRolePath compares what is written: such a mapping is never found.
	ExactRolePath RolePaths = "Exact"
)

// SessionCheck says what is asked of a session that becomes a node.
type SessionCheck string

// The checks, the strictest first.
const (
	// InstanceProfileCheck: the session is named after an instance that runs and
	// whose profile has the caller's role.
	InstanceProfileCheck SessionCheck = "InstanceProfile"
	// InstanceCheck: the session is named after an instance that runs.
	InstanceCheck SessionCheck = "Instance"
	// NoSessionCheck: the session may have any name that its template takes.
	NoSessionCheck SessionCheck = "None"
)

// Reserved are names that no mapping gives, but for exceptions.
type Reserved struct {
	// Prefixes are those of usernames and groups.
	Prefixes []string `json:"prefixes"`
	// GrantedUsernames and GrantedGroups are given all the same. One that ends in a
	// colon grants the names that begin with it.
	GrantedUsernames []string `json:"grantedUsernames"`
	GrantedGroups    []string `json:"grantedGroups"`
}

// STS says how callers are verified.
type STS struct {
	// ExtraHosts are asked besides the known ones of the partition.
	ExtraHosts []STSHost `json:"extraHosts"`
	// Timeout is how long an answer may take.
	Timeout metav1.Duration `json:"timeout"`
	// MaxInFlight is how many questions are put at once, PerSecond how many for
	// long, and Burst how many at once after a silence.
	MaxInFlight int32 `json:"maxInFlight"`
	PerSecond   int32 `json:"perSecond"`
	Burst       int32 `json:"burst"`
	// CacheTTL is how long the caller of a token is remembered, and never longer
	// than the token is good for; 0 for not at all. CacheSize is of how many.
	CacheTTL  metav1.Duration `json:"cacheTTL"`
	CacheSize int32           `json:"cacheSize"`
}

// STSHost is a host of STS, such as a VPC endpoint.
type STSHost struct {
	Host string `json:"host"`
	// Region is the one that requests to the host are signed for.
	Region string `json:"region"`
}

// EC2 says how instances are looked up, and their roles in IAM.
type EC2 struct {
	// CacheTTL is how long an instance is remembered, CacheSize how many are.
	CacheTTL  metav1.Duration `json:"cacheTTL"`
	CacheSize int32           `json:"cacheSize"`
	// PerSecond is how many requests are sent for long, Burst how many at once: to IAM,
	// and to EC2 in each region, also about machines that join.
	PerSecond int32 `json:"perSecond"`
	Burst     int32 `json:"burst"`
	// VPCs are those whose instances may be nodes; with none, those of any VPC may.
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
