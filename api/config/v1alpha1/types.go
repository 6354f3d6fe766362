package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The type of a config file.
const (
	GroupName  = "config.node-authorizer.io"
	APIVersion = GroupName + "/v1alpha1"
	Kind       = "ServerConfiguration"
)

// ServerConfiguration is a whole config file. [Document], the file document.yaml, explains every field of it and of its parts: the
// form and the unit of its values, and what its default is.
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
	Kubeconfig        string          `json:"kubeconfig"`
	KubernetesVersion string          `json:"kubernetesVersion"`
	FeatureGates      map[string]bool `json:"featureGates"`
	MaxStaleness      metav1.Duration `json:"maxStaleness"`
}

// Webhook is the HTTPS endpoint that API servers call.
type Webhook struct {
	Address              string               `json:"address"`
	Serves               []Served             `json:"serves"`
	CertificateFile      string               `json:"certificateFile"`
	KeyFile              string               `json:"keyFile"`
	ClientAuthentication ClientAuthentication `json:"clientAuthentication"`
	ClientCAFile         string               `json:"clientCAFile"`
	AllowedClientNames   []string             `json:"allowedClientNames"`
	MaxBodyBytes         int64                `json:"maxBodyBytes"`
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
	Address string `json:"address"`
}

// Authorization has the settings of /authorize.
type Authorization struct {
	Mode          AuthorizationMode `json:"mode"`
	ConfigFile    string            `json:"configFile"`
	FreshnessWait metav1.Duration   `json:"freshnessWait"`
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
	FreshnessWait metav1.Duration `json:"freshnessWait"`
	AccessReviews AccessReviews   `json:"accessReviews"`
}

// AccessReviews are SubjectAccessReviews that NodeRestriction sends to the API server,
// for example whether a node may request a token with an audience.
type AccessReviews struct {
	AllowedTTL metav1.Duration `json:"allowedTTL"`
	DeniedTTL  metav1.Duration `json:"deniedTTL"`
}

// Log has the settings of the log on standard error.
type Log struct {
	Format    LogFormat `json:"format"`
	Verbosity int32     `json:"verbosity"`
	Refusals  Refusals  `json:"refusals"`
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
	Verbosity int32 `json:"verbosity"`
	PerSecond int32 `json:"perSecond"`
	Burst     int32 `json:"burst"`
}

// Shutdown has the settings of the shutdown on SIGTERM.
type Shutdown struct {
	Delay   metav1.Duration `json:"delay"`
	Timeout metav1.Duration `json:"timeout"`
}
