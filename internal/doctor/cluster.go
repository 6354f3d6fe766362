package doctor

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// Cluster is the input of the checks.
type Cluster struct {
	// Origin describes where it comes from.
	Origin string
	// Live is true for a live cluster: it has all objects of every kind that is not in
	// Missing. Files may have a part of them.
	Live bool
	// Snapshot is true if a part comes from a snapshot. Snapshots have no data of config
	// maps, no certificate requests and no commands of pods.
	Snapshot bool
	// Missing is the input that could not be read.
	Missing []Missing
	// Version is the version of the API server; 0 if unknown.
	Version kubeversion.Minor

	// AWSAuth is the ConfigMap kube-system/aws-auth; nil if there is none.
	AWSAuth *ConfigMap
	// Unread are ConfigMaps named aws-auth that no authenticator reads: in another
	// namespace, or replaced by one of the same name.
	Unread []finding.Place
	// IdentityMappings are the mappings in custom resources.
	IdentityMappings []IdentityMapping
	// AccessEntries are the known EKS access entries, which are not stored in the cluster.
	// AccessEntriesGiven is true if an answer of EKS about them was given.
	AccessEntries      []AccessEntry
	AccessEntriesGiven bool
	// MappingFiles are files with mappings of authenticators.
	MappingFiles []MappingFile
	// Authenticators are the authenticators of AWS tokens whose configuration is known.
	// Credentials are the programs that make tokens for the cluster.
	Authenticators []Authenticator
	Credentials    []Credential
	Nodes          []Node
	// Requests are the CertificateSigningRequests of the kubelets' signers.
	Requests []CertificateRequest
	Bindings []Binding
	// RBAC holds all roles and bindings; it is never nil. RBACKnown is true if they could be
	// read.
	RBAC      *rbac.Policy
	RBACKnown bool
	// APIServers are the instances of kube-apiserver whose flags are known.
	APIServers []APIServer
	// Authorizations are AuthorizationConfigurations given as files.
	Authorizations []Authorization
	// APIServerConfigs are the config files of OpenShift's API servers.
	APIServerConfigs []APIServerConfig
	// Restrictions are webhooks that apply NodeRestriction instead of the plugin.
	Restrictions []finding.Place

	// pods are the API servers that pods run, units the ones that systemd units start, and machines
	// the ones of Talos' machine configs. rancher are config files of k3s and RKE2.
	pods, units, machines []APIServer
	rancher               []rancherFile
}

// ConfigMap is a ConfigMap with its place.
type ConfigMap struct {
	Place finding.Place
	Data  map[string]string
	// Lines are the lines of the file on which the text of each key begins, if known: line
	// n of the text is on line Lines[key]+n-1.
	Lines map[string]int
	// KeyLines are the lines of the file on which the keys' values begin.
	KeyLines map[string]int
	// Changed is the time of the last write in a live cluster; zero if unknown.
	Changed time.Time
}

// IdentityMapping is an IAMIdentityMapping of iamauthenticator.k8s.aws/v1alpha1.
type IdentityMapping struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		ARN      string   `json:"arn"`
		Username string   `json:"username"`
		Groups   []string `json:"groups"`
	} `json:"spec"`
	Place finding.Place `json:"-"`
}

// MappingFile is a file, or a key of a ConfigMap, with mapRoles and mapUsers as
// aws-iam-authenticator and node-authorizer read them.
type MappingFile struct {
	Place finding.Place
	// Name is its name in messages: a path, or an object and its key.
	Name string
	Text []byte
	// Line is the line of the file on which the text begins; 0 if unknown.
	Line int
}

// The kinds of authenticators.
const (
	NodeAuthorizer   = "node-authorizer"
	IAMAuthenticator = "aws-iam-authenticator"
)

// Authenticator is an authenticator of AWS tokens, with the settings of its configuration or
// flags. Settings that are not set are empty.
type Authenticator struct {
	Place finding.Place
	// Kind is NodeAuthorizer or IAMAuthenticator.
	Kind      string
	ClusterID string
	Partition string
	// RolePaths is node-authorizer's iam.rolePaths.
	RolePaths configv1alpha1.RolePaths
	// Reserved is node-authorizer's iam.reserved.
	Reserved configv1alpha1.Reserved
}

// Credential is a user of a kubeconfig who runs a program that makes AWS tokens.
type Credential struct {
	Place finding.Place
	// Name is the name of the user in the kubeconfig.
	Name string
	// Command is the program's name without its path.
	Command string
	// ClusterID and Region are its arguments; empty if not given.
	ClusterID, Region string
	// Own is true for the credential with which the cluster was read.
	Own bool
}

// Node is a Node object.
type Node struct {
	Place      finding.Place
	Name       string
	ProviderID string
	Labels     map[string]string
	Addresses  []corev1.NodeAddress
	// Ready is the status of the condition Ready; empty without one.
	Ready corev1.ConditionStatus

	// server is the API server in the annotations of k3s or RKE2; nil if there is none.
	server *APIServer
}

// CertificateRequest is a CertificateSigningRequest for a kubelet.
type CertificateRequest struct {
	Place  finding.Place
	Name   string
	Signer string
	// Requester and Groups are the user who asked.
	Requester string
	Groups    []string
	// RoleARN is the canonical ARN of the requester's AWS role, from the extra fields that
	// authenticators of AWS tokens set; empty without one.
	RoleARN string
	// CommonName and Organizations are fields of the requested subject.
	CommonName    string
	Organizations []string
	// Unreadable is why the request itself cannot be read; empty if it can.
	Unreadable               string
	Approved, Denied, Issued bool
	Created                  time.Time
}

// Binding is a RoleBinding or, without a namespace, a ClusterRoleBinding.
type Binding struct {
	Place     finding.Place
	Namespace string
	Name      string
	Role      rbacv1.RoleRef
	Subjects  []rbacv1.Subject
}

// APIServer holds the flags of a kube-apiserver.
type APIServer struct {
	Place finding.Place
	// Name is the name of its pod.
	Name string
	// Flags are the values of its flags, in order, by their names without dashes. A flag
	// without a value has "true".
	Flags flagValues
	// Distribution is the distribution, if it does not configure kube-apiserver only by its
	// command.
	Distribution Distribution
	// Unseen is why not all of its flags are known, and Lacking names the missing input; both
	// are empty if all are known.
	Unseen, Lacking string
	// Authorization is the AuthorizationConfiguration, if it is in the same file as the flags.
	Authorization *Authorization
	// Revision is the revision of the configuration of an OpenShift API server.
	Revision string

	// configPlace is the place of the flags that are not in its command.
	configPlace finding.Place
	// configFile is the config file that the program of a unit or container reads; empty if none. options is true
	// if its command sets flags of kube-apiserver.
	configFile string
	options    bool
}

// Authorization is an AuthorizationConfiguration of apiserver.config.k8s.io.
type Authorization struct {
	Place finding.Place
	Text  []byte
}
