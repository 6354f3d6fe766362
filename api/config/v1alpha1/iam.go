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
	ClusterID               string          `json:"clusterID"`
	Partition               string          `json:"partition"`
	Region                  string          `json:"region"`
	Audiences               []string        `json:"audiences"`
	Sources                 []MappingSource `json:"sources"`
	File                    string          `json:"file"`
	ConfigMap               ConfigMapName   `json:"configMap"`
	RolePaths               RolePaths       `json:"rolePaths"`
	SessionCheck            SessionCheck    `json:"sessionCheck"`
	SessionCheckExemptRoles []string        `json:"sessionCheckExemptRoles"`
	Reserved                Reserved        `json:"reserved"`
	STS                     STS             `json:"sts"`
	EC2                     EC2             `json:"ec2"`
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
	Prefixes         []string `json:"prefixes"`
	GrantedUsernames []string `json:"grantedUsernames"`
	GrantedGroups    []string `json:"grantedGroups"`
}

// STS has the settings for requests to STS.
type STS struct {
	ExtraHosts  []STSHost       `json:"extraHosts"`
	Timeout     metav1.Duration `json:"timeout"`
	MaxInFlight int32           `json:"maxInFlight"`
	PerSecond   int32           `json:"perSecond"`
	Burst       int32           `json:"burst"`
	CacheTTL    metav1.Duration `json:"cacheTTL"`
	CacheSize   int32           `json:"cacheSize"`
}

// STSHost is a host of STS, such as a VPC endpoint.
type STSHost struct {
	Host   string `json:"host"`
	Region string `json:"region"`
}

// EC2 has the settings for look-ups of instances, and of their roles in IAM.
type EC2 struct {
	CacheTTL  metav1.Duration `json:"cacheTTL"`
	CacheSize int32           `json:"cacheSize"`
	PerSecond int32           `json:"perSecond"`
	Burst     int32           `json:"burst"`
	VPCs      []string        `json:"vpcs"`
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
