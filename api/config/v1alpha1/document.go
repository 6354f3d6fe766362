package v1alpha1

// Document is a config file with the values of Defaults and an explanation of each field.
// Required fields are empty.
const Document = `# Configuration of node-authorizer server. Every field is shown with its default;
# omitted fields have the default.
apiVersion: config.node-authorizer.io/v1alpha1
kind: ServerConfiguration

# The cluster whose nodes are authorized.
cluster:
  # Path of a kubeconfig; empty for the service account of the pod. In the mode
  # Chain of authorization, the API server must authorize its user without this
  # server: the user must be in the group system:masters.
  kubeconfig: ""
  # The Kubernetes version to decide as, 1.30 to 1.37; empty for the version that
  # the API server tells.
  kubernetesVersion: ""
  # Feature gates that the API server runs with and that differ from the defaults
  # of its version: {PodCertificateRequest: true}
  featureGates: {}
  # The maximum age of the state of the cluster, 90s to 1h. It is the time since
  # the last event or bookmark of a resource. API servers send a bookmark about
  # once a minute if nothing changes. An answer that depends on older state
  # is an error, and the server is not ready.
  maxStaleness: 2m

# The endpoint that API servers call, over HTTPS: /authorize, /admit, /mutate and
# /authenticate. The handshake requires a client certificate.
webhook:
  # host:port to listen on; an empty host is all addresses. "" for no webhooks.
  address: ":8443"
  # The served endpoints: Authorization (/authorize), Admission (/admit
  # and /mutate), Authentication (/authenticate; see iam). The cluster's pods are
  # watched for the first two alone.
  serves: [Authorization, Admission]
  # Required: paths of the server's certificate and key, PEM. These files and
  # clientCAFile are read again when they change.
  certificateFile: ""
  keyFile: ""
  # The certificate that callers must show.
  # Required: one that clientCAFile signed, with a name of allowedClientNames.
  # AnyCertificate: any that clientCAFile signed. A cluster's authority also signs those
  # of its kubelets, and each could then ask about every node.
  # None: callers need no certificate.
  # Every caller learns which objects are in use on which node.
  clientAuthentication: Required
  # Required, unless clientAuthentication is None: path of the certificates of the
  # authorities that sign the certificates of callers, PEM.
  clientCAFile: ""
  # Required, unless clientAuthentication is AnyCertificate or None: the common names
  # that a caller's certificate may have, [kube-apiserver]. This prints the name in a file:
  # openssl x509 -noout -subject -in FILE
  allowedClientNames: []
  # The largest request body that is read, up to 40 MiB. An admission review can
  # hold the old and the new object.
  maxBodyBytes: 41943040

# The endpoint where machines join, over HTTPS: POST /authorize/NODE turns the
# evidence of a machine into a bootstrap token for the one name that the evidence
# gives it. /health, /livez and /readyz are open.
bootstrap:
  # host:port to listen on, usually ":10443"; empty for no such endpoint.
  address: ""
  # Required: paths of the server's certificate and key, PEM. These files and
  # clientCAFile are read again when they change.
  certificateFile: ""
  keyFile: ""
  # Path of the certificates of the authorities that sign the certificates of machines, PEM.
  # With it, machines must show a certificate with this common name.
  clientCAFile: ""
  clientCommonName: node-authorizer-client
  # How long the server waits for missing certificate files at start, up to 24h;
  # with 0s it does not wait.
  certificateWait: 1h
  # Required: what checks the evidence: aws, oidc, tpm, key, exec or alwaysallow.
  attestor: ""
  # alwaysallow accepts everything: every caller that can connect gets a token. It
  # is for development, and for networks that authenticate in another way. To
  # accept that, set this or the flag --accept-always-allow.
  acceptAlwaysAllow: false
  # How long an answer may take, and the largest evidence that is read.
  requestTimeout: 15s
  maxBodyBytes: 65536
  # When a machine whose token was used may join again: Never; NodeAbsent, when
  # its node is gone; NewerEvidence, after a stop and start of the machine; Always.
  reattestation: Never
  # Whether a machine is refused whose node exists, unless reattestation lets it
  # join again.
  verifyRegistration: true
  # Tokens, which are good for one certificate.
  token:
    # How long a machine has to use one.
    ttl: 5m
  # How many requests are answered per second for long, and how many at once: of
  # all machines together, and of each address.
  rateLimit:
    perSecond: 50
    burst: 200
    perSource:
      perSecond: 1
      burst: 10
  # Which EC2 instances may join, for the attestor aws.
  aws:
    # Required: the cluster's name. Instances bear it in the tag
    # clusterTag=clusterName or kubernetes.io/cluster/clusterName.
    clusterName: ""
    clusterTag: KubernetesCluster
    # Accounts, regions and VPCs of instances. An empty list means the account, region
    # or VPC of the instance that the server runs on.
    accounts: []
    regions: []
    vpcs: []
    # Whether AWS must have signed the identity document, and whether the request
    # must come from the instance's private address. Without the first, evidence
    # proves nothing.
    verifySignature: true
    verifySourceAddress: true
    # Instance profiles, names or ARNs, of which an instance must have one; with
    # none, they are not checked.
    instanceProfiles: []
    # The names of nodes: PrivateDNSName, InstanceID, ResourceName, or a template
    # such as {{.InstanceID}}.{{.Region}}.compute.internal
    naming: PrivateDNSName
    # Path of additional certificates of AWS, PEM.
    certificatesFile: ""
    # Whether an instance must also show a request to STS, signed with the
    # credentials of its role and with a challenge of the server's in it.
    callerIdentity:
      required: false
      # URL of STS; empty for the endpoint of the instance's region.
      endpoint: ""
  # With the attestor oidc: which machines may join with an identity token (a JSON
  # Web Token) of an issuer.
  oidc:
    # Google sets issuerURL, nodeName and instanceID for instances of Google Cloud.
    preset: ""
    # With the preset Google: the projects, and if given the zones, whose instances
    # may join. Whoever can create instances in a project can let a machine join.
    google:
      projects: []
      zones: []
    # The issuer: the claim iss of the tokens.
    issuerURL: ""
    # Path of the issuer's keys, a JSON Web Key Set; empty to ask the issuer.
    keysFile: ""
    # Path of the authorities of the issuer's certificate, PEM; empty for the ones
    # of the system.
    certificateAuthorityFile: ""
    # If machines choose the audience of their tokens, it is
    # node-authorizer/CLUSTERID/CHALLENGE/KEY, and a copied token is of no use.
    clusterID: ""
    # If they cannot: the accepted audiences.
    audiences: []
    # The maximum age of a token; with audiences, at most 5m.
    maxAge: 5m
    # What must be true: CEL expressions over claims and request (remoteAddress,
    # nodeName, publicKey), each with a message:
    # {expression: claims.tenant == "shop", message: the machine is of another tenant}
    conditions: []
    # CEL expressions for the node's name, and for a permanent identity of the
    # machine (DNS labels).
    nodeName: ""
    instanceID: ""
  # What happens to machines that no Machine registers, with the attestors tpm and
  # key: Registered refuses them, Manual lets them wait until a person approves them
  # (node-authorizer approve).
  approval: Registered
  # Which machines may join with a TPM 2.0, for the attestor tpm.
  tpm:
    # Path of the authorities of TPM vendors, a PEM file or a folder with such files;
    # empty if only registered machines may join.
    certificateAuthorities: ""
    # Whether certificates of TPMs are refused that have expired. Nobody renews them.
    rejectExpiredCertificates: false
    # Template for the names of machines that are not registered. With it, everybody
    # who has a TPM of one of the vendors may join: tpm-{{.EKHash}}
    nodeName: ""
    # What machines may have booted. One policy must allow it, or the one that the
    # Machine names: the values of PCRs, and from the event log of the firmware
    # Secure Boot and the digests of all events of a PCR; SHA-256, in hexadecimal.
    # {name: image-42, pcrs: [{pcr: 7, values: [e3b0...]}], secureBoot: true, events: []}
    policies: []
  # With the attestor key: machines that are registered with a key (Machine).
  key:
    # A name of the cluster that no other cluster has. Machines sign it.
    clusterID: ""
    # Path of the authorities of machines that are registered with the subject of
    # their certificate, PEM; empty without such machines.
    certificateAuthorityFile: ""
  # With the attestor exec: the program that checks the evidence.
  exec:
    # Required: the name of its provider, a DNS label: the ledger's entries are
    # PROVIDER-MACHINE.
    provider: ""
    # Required: the absolute path of the program, and its arguments; no shell is
    # involved: [/usr/local/bin/attest-machines, --project=shop]
    command: []
    # The variables that the program has besides PATH: NAME=VALUE, or NAME for one of
    # the server.
    environment: []
    # How long the program may run, up to 1m and requestTimeout, and how many run at
    # the same time.
    timeout: 10s
    maxConcurrent: 8
  # With the attestors aws, exec and oidc (preset Google): a machine may join only if a
  # Machine of Cluster API has its provider ID.
  clusterAPI:
    # The namespaces of the Machines; empty if Cluster API does not register machines.
    # Whoever can write Machines there registers machines.
    namespaces: []
    # Required with namespaces: the name of the Cluster.
    clusterName: ""
    # Path of a kubeconfig for the management cluster; empty for the own cluster.
    kubeconfig: ""

# The approver decides the CertificateSigningRequests of machines that joined and
# of nodes. Of several replicas, one leads.
approver:
  enabled: false
  # The decision about requests of nodes without a ledger entry: Deny,
  # Leave (to other approvers, and people) or Approve.
  unattestedNodes: Deny
  # Where the names and addresses of a serving certificate must be: Ledger or
  # LedgerAndNode. The latter trusts the status of the Node object too, which
  # kubelets write themselves unless a cloud provider does.
  servingAddresses: Ledger
  # Sources that vouch for the serving certificates of nodes without a ledger entry, up to
  # 16. One of them must vouch for all names and addresses of a request. A request that none
  # vouches for is denied with unattestedNodes: Deny, and left pending otherwise. If the
  # list is empty, unattestedNodes and servingAddresses decide about these requests.
  # All that a source has must hold:
  # names: templates of the DNS names, with {{.NodeName}} in each;
  # networks: networks of the IP addresses;
  # nodeAddresses: the status of the Node object has each name and address, which kubelets
  # write themselves unless a cloud provider does;
  # machine: the one Machine that is registered for the node has each name and address;
  # dns: each name resolves to addresses of the request only, and each address of the
  # request is one of them.
  # [{names: ["{{.NodeName}}.example.com"], networks: [10.0.0.0/16], dns: true}]
  servingCertificates: []
  leaderElection:
    namespace: kube-system
    name: node-authorizer-approver
    # How long others wait for a missing leader, how long a leader tries to renew
    # its lease, and the time between tries.
    leaseDuration: 15s
    renewDeadline: 10s
    retryPeriod: 2s

# The endpoint that monitoring and probes call, over plain HTTP: /metrics, and /livez
# and /readyz for all that the server does; /readyz/webhook and /readyz/bootstrap are
# about one part.
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
  # How long a refusal waits for changes that the watch has not delivered yet, up
  # to 10s; with 0s it does not wait.
  freshnessWait: 250ms

# How /admit decides.
admission:
  # As in authorization.
  freshnessWait: 250ms
  # Extra authorization checks, which are put to the API server as
  # SubjectAccessReviews: how long answers are cached; 0s disables it.
  accessReviews:
    allowedTTL: 10s
    deniedTTL: 10s

# The custom resources NodeScope and Quarantine (policy.node-authorizer.io), which limit
# what credentials on a node may do. The API server must have their definitions, and
# the server the right to read them.
containment:
  # Whether /authorize and /admit hold service accounts to the node of their pod, as
  # NodeScopes say: Disabled or Enabled.
  nodeScopes: Disabled
  # Whether nodes and credentials with a Quarantine are refused by everything that the
  # server does: webhooks, bootstrap and approver. Disabled or Enabled. Enable it for all
  # servers of a cluster.
  quarantines: Disabled
  # How many nodes can be quarantined at the same time: a number, or a percentage of all
  # nodes, rounded down. One always can. The oldest quarantines count.
  maxQuarantinedNodes: "10%"

# How /authenticate turns AWS IAM bearer tokens into users, with Authentication in
# webhook.serves.
iam:
  # Required: the id of the cluster, for which tokens are made:
  # node-authorizer token --cluster-id ID
  clusterID: ""
  # The partition of callers and of STS: aws, aws-cn, aws-us-gov, aws-iso,
  # aws-iso-b, aws-iso-e, aws-iso-f or aws-eusc.
  partition: aws
  # The region of EC2; empty for AWS_REGION, or else the region of the instance
  # that the server runs on.
  region: ""
  # The audiences of tokens. Tokens have none themselves; if it is empty, API
  # servers accept them for their own audiences.
  audiences: []
  # Where mappings are read, and in which order: File, ConfigMap, IdentityMapping.
  # The first match wins. All are followed: a list that becomes unreadable
  # keeps its last valid content.
  sources: [ConfigMap]
  # Path of a file with mapRoles, mapUsers and mapAccounts; required for File.
  file: ""
  # The ConfigMap with mapRoles, mapUsers and mapAccounts.
  configMap:
    namespace: kube-system
    name: aws-auth
  # STS names roles without their paths. MatchName finds a mapping for a role with
  # a path by account and name, where one mapping alone has them. Exact never
  # does.
  rolePaths: MatchName
  # A caller that may assume the role of nodes chooses the name of the session, and
  # with it the node. InstanceProfile: the name is the id of an instance that runs and whose
  # profile has the role. Instance: of one that runs. None: any.
  sessionCheck: InstanceProfile
  # ARNs of roles whose sessions are no instances, such as the pod execution roles
  # of Fargate profiles. Paths are ignored. A caller that may assume such a role
  # can be any node, if its mapping takes the node's name from {{SessionName}}. Of a
  # mapping with {{EC2PrivateDNSName}}, which is about instances, no role is exempt.
  sessionCheckExemptRoles: []
  # Names that no mapping gives, after its templates are filled in.
  reserved:
    # Prefixes of usernames and groups.
    prefixes: ["system:"]
    # The exceptions. One that ends in a colon grants the names that begin with it.
    grantedUsernames: ["system:node:"]
    grantedGroups: [system:bootstrappers, system:nodes, system:node-proxier, system:masters]
  # Requests to STS.
  sts:
    # Hosts in addition to the hosts of the partition, such as VPC endpoints, and the region
    # that tokens for them are signed for:
    # [{host: vpce-0123456789abcdef0-abcdefgh.sts.eu-west-1.vpce.amazonaws.com, region: eu-west-1}]
    extraHosts: []
    # How long an answer may take.
    timeout: 10s
    # The number of requests in flight, the rate limit per second, and the burst.
    # Further requests are answered with 429, and tried again. A quarter of
    # maxInFlight and of burst is reserved for callers that were authenticated in
    # the last hour.
    maxInFlight: 100
    perSecond: 200
    burst: 400
    # How long the caller of a token is cached, up to 15m and the end of the token;
    # 0s disables the cache. And the number of cached tokens.
    cacheTTL: 1m
    cacheSize: 10000
  # Requests to EC2 about instances, and to IAM about the roles of their profiles.
  ec2:
    # How long an instance is cached, and the number of cached instances.
    cacheTTL: 2m
    cacheSize: 20000
    # How many requests are sent per second for long, and how many at once: to IAM, and
    # to EC2 in each region. Those about machines that join (bootstrap.aws) are among them.
    perSecond: 10
    burst: 20
    # VPCs whose instances may be nodes; with none, instances of any VPC. A private DNS
    # name, and so the name of a node, is of one instance in its VPC alone.
    vpcs: []

# What is logged, on standard error.
log:
  # text or json.
  format: text
  # 0 for what operators should see, up to 10 for everything.
  verbosity: 0
  # One line for each refused request.
  refusals:
    # The minimum log verbosity at which refusals are logged: 0 for always; more than
    # log.verbosity disables it.
    verbosity: 0
    # How many are logged per second for long, and how many at once. The rest is
    # counted.
    perSecond: 10
    burst: 100

# What happens on SIGTERM: /readyz fails at once, requests are served for the time
# of delay, then the listeners close and requests in flight have the time of
# timeout. A second signal ends the server at once.
shutdown:
  delay: 0s
  timeout: 20s
`
