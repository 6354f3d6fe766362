package v1alpha1

// Document is a config file that says what Defaults returns, with an explanation
// of each field. The fields that must be filled in are empty.
const Document = `# Configuration of node-authorizer server. Every field is shown with its default;
# what a file leaves out has the default.
apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration

# The cluster whose nodes are decided about.
cluster:
  # Path of a kubeconfig; empty for the service account of the pod. In the mode
  # Chain of authorization, its user must be one whom the API server lets in
  # without asking this server: one in the group system:masters.
  kubeconfig: ""
  # The Kubernetes version to decide as, 1.30 to 1.37; empty for the version that
  # the API server tells.
  kubernetesVersion: ""
  # Feature gates that the API server runs with and that differ from the defaults
  # of its version: {PodCertificateRequest: true}
  featureGates: {}

# The endpoint that API servers call, over HTTPS: /authorize, /admit and /mutate,
# which ask for a client certificate, and /livez and /readyz, which do not.
webhook:
  # host:port to listen on; an empty host is all addresses.
  address: ":8443"
  # Required: paths of the server's certificate and key, PEM. These files and
  # clientCAFile are read again when they change.
  certificateFile: ""
  keyFile: ""
  # Whether callers must show a client certificate: Required or None. With None
  # everybody who can connect learns which objects are in use on which node.
  clientAuthentication: Required
  # Required, unless clientAuthentication is None: path of the certificates of the
  # authorities that sign those of callers, PEM.
  clientCAFile: ""
  # Common names that a caller's certificate may have: [kube-apiserver]
  # With none, any certificate of the authorities will do. Name the API server's
  # if they sign others too: a cluster's authority signs those of its nodes.
  allowedClientNames: []
  # The largest request body that is read, up to 40 MiB. An admission review can
  # hold an object twice, as it was and as it is to be.
  maxBodyBytes: 41943040

# The endpoint that monitoring calls, over plain HTTP: /metrics.
metrics:
  # host:port to listen on; empty for no such endpoint.
  address: ":8081"

# How /authorize decides.
authorization:
  # Node: the Node authorizer alone; the API server asks its other authorizers
  # about what it does not allow.
  # Chain: the authorizers of configFile in their order.
  mode: Node
  # Path of an AuthorizationConfiguration (apiserver.config.k8s.io), for the mode
  # Chain. It is read at start.
  configFile: ""
  # How long a refusal waits for what the API server has and the watch has not
  # brought yet, up to 10s; 0s for not at all.
  freshnessWait: 250ms

# How /admit decides.
admission:
  # As in authorization.
  freshnessWait: 250ms
  # Extra authorization checks, which are put to the API server as
  # SubjectAccessReviews: how long their answers are kept, 0s for not at all.
  accessReviews:
    allowedTTL: 10s
    deniedTTL: 10s

# What is logged, on standard error.
log:
  # text or json.
  format: text
  # 0 for what operators should see, up to 10 for everything.
  verbosity: 0
  # One line for each refused request.
  refusals:
    # The log verbosity from which on refusals are logged: 0 for always; more than
    # log.verbosity for not at all.
    verbosity: 0
    # How many are logged per second for long, and how many at once. The rest is
    # counted.
    perSecond: 10
    burst: 100

# What happens on SIGTERM: /readyz fails at once, requests are served for the time
# of delay, then the listeners close and requests under way have the time of
# timeout. A second signal ends the server at once.
shutdown:
  delay: 0s
  timeout: 20s
`
