package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The type of a config file.
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
	Containment   Containment   `json:"containment"`
	IAM           IAM           `json:"iam"`
	Log           Log           `json:"log"`
	Shutdown      Shutdown      `json:"shutdown"`
}

// Cluster is the cluster and its API server.
type Cluster struct {
	// Kubeconfig is a path. The default is the service account of the pod.
	Kubeconfig string `json:"kubeconfig"`
	// KubernetesVersion is "1.37". The default is the version of the API server.
	KubernetesVersion string `json:"kubernetesVersion"`
	// FeatureGates are the API server's gates that differ from the defaults of its version.
	FeatureGates map[string]bool `json:"featureGates"`
	// MaxStaleness is the maximum age of the state of the cluster. An answer that depends
	// on older state is an error. What the API server's store lost in a restore is used for at most twice as long.
	MaxStaleness metav1.Duration `json:"maxStaleness"`
}

// Webhook is the HTTPS endpoint that API servers call.
type Webhook struct {
	// Address is host:port. An empty host means all addresses. If it is empty, there is
	// no such endpoint.
	Address string `json:"address"`
	// Serves are the kinds of reviews that are answered. Objects that none of them needs
	// are not read.
	Serves []Served `json:"serves"`
	// CertificateFile and KeyFile are paths of PEM files. Like ClientCAFile, they are
	// reloaded when they change.
	CertificateFile string `json:"certificateFile"`
	KeyFile         string `json:"keyFile"`
	// ClientAuthentication says which certificate callers must have.
	ClientAuthentication ClientAuthentication `json:"clientAuthentication"`
	// ClientCAFile is the path of a PEM file with the authorities of the callers'
	// certificates.
	ClientCAFile string `json:"clientCAFile"`
	// AllowedClientNames are the common names of callers, with ClientCertificateRequired.
	AllowedClientNames []string `json:"allowedClientNames"`
	// MaxBodyBytes is the maximum size of a request.
	MaxBodyBytes int64 `json:"maxBodyBytes"`
}

// ClientAuthentication says which client certificate callers of the webhooks must have.
type ClientAuthentication string

// The ways to authenticate callers.
const (
	// ClientCertificateRequired accepts certificates of the authorities that have one of the
	// allowed names.
	ClientCertificateRequired ClientAuthentication = "Required"
	// AnyClientCertificate accepts all certificates of the authorities, with any name.
	AnyClientCertificate ClientAuthentication = "AnyCertificate"
	// NoClientAuthentication accepts all callers.
	NoClientAuthentication ClientAuthentication = "None"
)

// Metrics is the HTTP endpoint for monitoring.
type Metrics struct {
	// Address is host:port. If it is empty, there is no such endpoint.
	Address string `json:"address"`
}

// Authorization has the settings of /authorize.
type Authorization struct {
	Mode AuthorizationMode `json:"mode"`
	// ConfigFile is the path of an AuthorizationConfiguration (apiserver.config.k8s.io),
	// for the mode Chain.
	ConfigFile string `json:"configFile"`
	// FreshnessWait is how long a refusal waits for a relation that the watch may not
	// have delivered yet. If it is 0, refusals do not wait.
	FreshnessWait metav1.Duration `json:"freshnessWait"`
}

// AuthorizationMode selects the authorizers.
type AuthorizationMode string

// The modes of authorization.
const (
	// NodeMode uses the Node authorizer alone. It has no opinion on other users than
	// nodes; the API server asks its other authorizers.
	NodeMode AuthorizationMode = "Node"
	// ChainMode uses the authorizers of an AuthorizationConfiguration.
	ChainMode AuthorizationMode = "Chain"
)

// Admission has the settings of /admit.
type Admission struct {
	// FreshnessWait is as in Authorization.
	FreshnessWait metav1.Duration `json:"freshnessWait"`
	// AccessReviews are the extra authorization checks.
	AccessReviews AccessReviews `json:"accessReviews"`
}

// AccessReviews are SubjectAccessReviews that NodeRestriction sends to the API server,
// for example whether a node may request a token with an audience.
type AccessReviews struct {
	// AllowedTTL and DeniedTTL are how long answers are cached. If they are 0, answers
	// are not cached.
	AllowedTTL metav1.Duration `json:"allowedTTL"`
	DeniedTTL  metav1.Duration `json:"deniedTTL"`
}

// Log has the settings of the log on standard error.
type Log struct {
	Format LogFormat `json:"format"`
	// Verbosity is from 0, for operators, to 10.
	Verbosity int32    `json:"verbosity"`
	Refusals  Refusals `json:"refusals"`
}

// LogFormat is the format of log lines.
type LogFormat string

// The formats of logs, as Kubernetes components have them.
const (
	TextLog LogFormat = "text"
	JSONLog LogFormat = "json"
)

// Refusals has the settings of the log of refused requests, which has one line each.
type Refusals struct {
	// Verbosity is the minimum verbosity at which they are logged.
	Verbosity int32 `json:"verbosity"`
	// PerSecond is the rate limit of lines, and Burst the number of lines at once. The
	// others are counted.
	PerSecond int32 `json:"perSecond"`
	Burst     int32 `json:"burst"`
}

// Shutdown has the settings of the shutdown on SIGTERM.
type Shutdown struct {
	// Delay is how long the server continues to serve while it reports that it is not
	// ready, so that callers switch to another replica.
	Delay metav1.Duration `json:"delay"`
	// Timeout is how long requests in flight may then take.
	Timeout metav1.Duration `json:"timeout"`
}
