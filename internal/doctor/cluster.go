package doctor

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// Cluster is what the checks see of a cluster.
type Cluster struct {
	// Origin says where it is from, for people.
	Origin string
	// Live is true if all of a kind are here that the cluster has, unless it is in
	// Missing: a file may hold a part of them.
	Live bool
	// Snapshot is true if a part of it is from a snapshot, in which there are no data of
	// config maps, no certificate requests and no commands of pods.
	Snapshot bool
	// Missing is what could not be read.
	Missing []Missing
	// Version is that of the API server; 0 if unknown.
	Version kubeversion.Minor

	// AWSAuth is the ConfigMap kube-system/aws-auth; nil if there is none.
	AWSAuth *ConfigMap
	// Unread are ConfigMaps named aws-auth that nobody reads: in another namespace, or
	// replaced by one of the same name.
	Unread []finding.Place
	// IdentityMappings are the custom resources of the same purpose.
	IdentityMappings []IdentityMapping
	// AccessEntries are EKS access entries, as far as they are to be seen: they are not
	// in the cluster. AccessEntriesGiven says that an answer of EKS about them is here.
	AccessEntries      []AccessEntry
	AccessEntriesGiven bool
	// MappingFiles are files with mappings, as authenticators take them.
	MappingFiles []MappingFile
	// Authenticators are those of AWS tokens whose configuration is to be seen, and
	// Credentials what makes tokens for the cluster.
	Authenticators []Authenticator
	Credentials    []Credential
	Nodes          []Node
	// Requests are the CertificateSigningRequests of the kubelets' signers.
	Requests []CertificateRequest
	Bindings []Binding
	// RBAC is all roles and bindings; it is never nil. RBACKnown says whether they
	// could be read.
	RBAC      *rbac.Policy
	RBACKnown bool
	// APIServers are the instances of kube-apiserver whose flags are to be seen.
	APIServers []APIServer
	// Authorizations are AuthorizationConfigurations given as files.
	Authorizations []Authorization
	// APIServerConfigs are what API servers of OpenShift read.
	APIServerConfigs []APIServerConfig
	// Restrictions are webhooks that apply NodeRestriction in the plugin's place.
	Restrictions []finding.Place

	// rancher are config files of k3s and RKE2, and machines the API servers of Talos'
	// machine configs.
	rancher  []rancherFile
	machines []APIServer
	// talos has what documents of Talos of their own say, by file, and units the API
	// servers that units of systemd start.
	talos map[string]*talosFile
	units []APIServer
}

// ConfigMap is one with where it stands.
type ConfigMap struct {
	Place finding.Place
	Data  map[string]string
	// Lines are the lines of the file on which the text of each key begins, if they
	// are known: line n of the text is on line Lines[key]+n-1.
	Lines map[string]int
	// KeyLines are the lines of the file on which the keys' values begin.
	KeyLines map[string]int
	// Changed is when it was written last, in a live cluster; zero if unknown.
	Changed time.Time
}

// IdentityMapping is an IAMIdentityMapping of iamauthenticator.k8s.aws/v1alpha1.
type IdentityMapping struct {
	Place         finding.Place
	Name          string
	ARN, Username string
	Groups        []string
}

// MappingFile is a file, or a key of a ConfigMap, with mapRoles and mapUsers as
// aws-iam-authenticator and node-authorizer read them.
type MappingFile struct {
	Place finding.Place
	// Name is what people know it by: a path, or an object and its key.
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

// Authenticator is what turns AWS tokens into users, as its configuration or its
// flags have it. What they do not say is empty.
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
	// ExtraHosts are STS hosts taken beside those of the partition.
	ExtraHosts []string
}

// Credential is a user of a kubeconfig who runs a program that makes AWS tokens.
type Credential struct {
	Place finding.Place
	// Name is that of the user in the kubeconfig.
	Name string
	// Command is the program's name without its path.
	Command string
	// ClusterID, Region and RoleARN are those that it is given; empty if it is not.
	ClusterID, Region, RoleARN string
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
	// Ready is the status of the condition; empty if there is none.
	Ready corev1.ConditionStatus

	// server is the API server that k3s or RKE2 noted on it; nil if it has none.
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
	// RoleARN is the canonical ARN of the AWS role that the user came with, as
	// authenticators of AWS tokens note it; empty if there is none.
	RoleARN string
	// CommonName and Organizations are those of the subject that is asked for.
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
	Labels    map[string]string
}

// APIServer is the flags of a kube-apiserver.
type APIServer struct {
	Place finding.Place
	// Name is that of its pod.
	Name string
	// Flags are those of its command, by their names without dashes: what was given
	// for each, in order. A flag without a value has "true".
	Flags map[string][]string
	// Version is the tag of its image; empty if unknown.
	Version string
	// Distribution is who set it up, where that is not done by its command alone.
	Distribution Distribution
	// Unseen is why not all of its flags are known, and Lacking names what has to be
	// given; both are empty if all are.
	Unseen, Lacking string
	// Authorization is what --authorization-config stands for, where that is written
	// where the flags are.
	Authorization *Authorization
	// Revision is that of the configuration of an API server of OpenShift.
	Revision string

	// command are the flags of its command alone, and configPlace is where the rest is
	// written. derived is true for one that is no pod.
	command     map[string][]string
	configPlace finding.Place
	derived     bool
	// configFile is one that a unit's program takes its options from; empty if none.
	configFile string
}

// Authorization is an AuthorizationConfiguration of apiserver.config.k8s.io.
type Authorization struct {
	Place finding.Place
	Text  []byte

	// derived is true for what documents of Talos of their own say.
	derived bool
}
