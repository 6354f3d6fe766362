package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// What a config file says of itself.
const (
	GroupName  = "config.node-authorizer.io"
	APIVersion = GroupName + "/v1alpha1"
	Kind       = "ServerConfiguration"
)

// ServerConfiguration is a whole config file. Document explains every field.
type ServerConfiguration struct {
	metav1.TypeMeta `json:",inline"`

	Cluster       Cluster       `json:"cluster"`
	Webhook       Webhook       `json:"webhook"`
	Bootstrap     Bootstrap     `json:"bootstrap"`
	Approver      Approver      `json:"approver"`
	Metrics       Metrics       `json:"metrics"`
	Authorization Authorization `json:"authorization"`
	Admission     Admission     `json:"admission"`
	IAM           IAM           `json:"iam"`
	Log           Log           `json:"log"`
	Shutdown      Shutdown      `json:"shutdown"`
}

// Cluster says which cluster is watched, and how its API server decides.
type Cluster struct {
	// Kubeconfig is a path; empty for the service account of the pod.
	Kubeconfig string `json:"kubeconfig"`
	// KubernetesVersion is "1.37"; empty for the version that the API server
	// tells.
	KubernetesVersion string `json:"kubernetesVersion"`
	// FeatureGates are those that the API server runs with, as far as they are
	// not at the defaults of its version.
	FeatureGates map[string]bool `json:"featureGates"`
	// MaxStaleness is the age up to which the state of the cluster is good for
	// answers: what depends on older state is an error.
	MaxStaleness metav1.Duration `json:"maxStaleness"`
}

// Webhook is the HTTPS endpoint that API servers call.
type Webhook struct {
	// Address is host:port, where an empty host is all addresses; empty for no
	// such endpoint.
	Address string `json:"address"`
	// Serves are the questions that are answered. What none of them needs of the
	// cluster is not read.
	Serves []Served `json:"serves"`
	// CertificateFile and KeyFile are paths of PEM files. They are read again
	// when they change, as is ClientCAFile.
	CertificateFile string `json:"certificateFile"`
	KeyFile         string `json:"keyFile"`
	// ClientAuthentication says whether callers must show a certificate.
	ClientAuthentication ClientAuthentication `json:"clientAuthentication"`
	// ClientCAFile is the path of a PEM file with the authorities that sign the
	// certificates of callers.
	ClientCAFile string `json:"clientCAFile"`
	// AllowedClientNames are common names; with none, any certificate of the
	// authorities will do.
	AllowedClientNames []string `json:"allowedClientNames"`
	// MaxBodyBytes is the largest request that is read.
	MaxBodyBytes int64 `json:"maxBodyBytes"`
}

// ClientAuthentication says whether callers of the webhooks must show a client
// certificate.
type ClientAuthentication string

// The ways to authenticate callers.
const (
	// ClientCertificateRequired refuses callers without a certificate.
	ClientCertificateRequired ClientAuthentication = "Required"
	// NoClientAuthentication answers everybody who can connect.
	NoClientAuthentication ClientAuthentication = "None"
)

// Metrics is the HTTP endpoint that monitoring calls.
type Metrics struct {
	// Address is host:port; empty for no such endpoint.
	Address string `json:"address"`
}

// Authorization says how /authorize decides.
type Authorization struct {
	Mode AuthorizationMode `json:"mode"`
	// ConfigFile is the path of an AuthorizationConfiguration (apiserver.config.k8s.io),
	// for the mode Chain.
	ConfigFile string `json:"configFile"`
	// FreshnessWait is how long a refusal waits for a relation that the API
	// server has and the watch has not brought yet; 0 for not at all.
	FreshnessWait metav1.Duration `json:"freshnessWait"`
}

// AuthorizationMode says which authorizers are asked.
type AuthorizationMode string

// The modes of authorization.
const (
	// NodeMode asks the Node authorizer alone. It has no opinion on users that
	// are not nodes; the API server asks its other authorizers.
	NodeMode AuthorizationMode = "Node"
	// ChainMode asks the authorizers of an AuthorizationConfiguration.
	ChainMode AuthorizationMode = "Chain"
)

// Admission says how /admit decides.
type Admission struct {
	// FreshnessWait is as in Authorization.
	FreshnessWait metav1.Duration `json:"freshnessWait"`
	// AccessReviews are the extra authorization checks.
	AccessReviews AccessReviews `json:"accessReviews"`
}

// AccessReviews are questions that NodeRestriction puts to the API server as
// SubjectAccessReviews: whether a node may ask for a token with an audience, for
// example.
type AccessReviews struct {
	// AllowedTTL and DeniedTTL are how long answers are kept; 0 for not at all.
	AllowedTTL metav1.Duration `json:"allowedTTL"`
	DeniedTTL  metav1.Duration `json:"deniedTTL"`
}

// Log says what is logged, on standard error.
type Log struct {
	Format LogFormat `json:"format"`
	// Verbosity is 0 for what operators should see, up to 10.
	Verbosity int32    `json:"verbosity"`
	Refusals  Refusals `json:"refusals"`
}

// LogFormat is how log lines are written.
type LogFormat string

// The formats of logs, as in Kubernetes components.
const (
	TextLog LogFormat = "text"
	JSONLog LogFormat = "json"
)

// Refusals says how refused requests are logged: one line each.
type Refusals struct {
	// Verbosity is the one from which on they are logged.
	Verbosity int32 `json:"verbosity"`
	// PerSecond is how many are logged for long, Burst how many at once. The
	// others are counted.
	PerSecond int32 `json:"perSecond"`
	Burst     int32 `json:"burst"`
}

// Shutdown says how the server ends on SIGTERM.
type Shutdown struct {
	// Delay is how long it goes on to serve while it says that it is not ready,
	// so that callers turn to another replica.
	Delay metav1.Duration `json:"delay"`
	// Timeout is how long requests may then take that have begun.
	Timeout metav1.Duration `json:"timeout"`
}
