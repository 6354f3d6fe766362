package attackpaths

// What rows say about rights that give nothing beyond themselves.
const (
	nothingRead    = "it shows objects in which Kubernetes keeps no credential"
	nothingStatus  = "it shows or changes what a controller reports and writes again, and labels, which nothing here rests on"
	nothingRemoved = "it takes rights or objects away"
	nothingMoved   = "a workload makes its pods again, and these count as moving to any node that may get them anyway"
	nothingEvents  = "nothing acts on events"
	nothingMetrics = "it shows numbers"
	nothingKubelet = "the kubelet shows its state there, and runs nothing"
)

// What rows say about rights that are not followed.
const (
	openContent = "people and programs write into it what they like, also credentials: its content decides"
	openTraffic = "it turns what clients send to another server: who these are, and whether they check the " +
		"server's certificate, decides"
	openPorts    = "what listens on the ports of the pods decides, and whom it trusts"
	openPodMoves = "labels, readiness and phases of pods decide which services send to them and which controllers " +
		"replace them: the controllers and the scheduler decide"
	openBinding = "who binds a pending pod chooses its node, and gets the pod if that node is held: which pods are pending decides"
	openScale   = "a workload without pods may get some, with an identity that no pod shows, or one be emptied that guards the " +
		"cluster: its template decides"
	openWorkloads = "what the workload does is gone, also a webhook that counts as passed when it does not answer: " +
		"its program decides"
	openAccounts = "new pods get the image pull secrets that the account names, and clouds map accounts by annotations: " +
		"the node and the cloud decide"
	openAudiences = "a node gets tokens for the audience, of accounts whose pods it runs: who accepts the audience decides"
	openSecrets   = "programs use what the secret holds, such as certificates and passwords: who reads it decides"
	openQuota     = "a quota that keeps pods out of a namespace does so no longer: its figures decide"
	openVolumes   = "a volume, and what is stored on it, gets another claim or another driver: drivers, and who mounts it, decide"
	openClaims    = "a claim without a volume gets one that it names, with what is on it: which volumes are free decides"
	openAttached  = "the node that a volume is attached to may read the secrets of the volume: the volume's driver decides"
	openConfig    = "other programs are configured there, such as DNS and agents: they decide"
	openLeases    = "controllers stop where somebody else holds the lease, and nodes without one are emptied: " +
		"the controllers decide"
	openEvictions = "controllers evict pods because of it, which may come to a node that is held: the scheduler decides"
	openNodes     = "a node object that is removed, or made anew with other labels and taints, moves pods: the scheduler decides"
	openDevices   = "drivers give devices of a node to pods, and taints of devices evict pods: the drivers decide"
	openPriority  = "pods of a higher priority displace others, which may come to a node that is held: the scheduler decides"
	openNetwork   = "it opens or closes connections: the network, and what listens there, decides"
	openPolicies  = "what the webhook or policy refuses, or adds to objects, is so no longer; where NodeScopes are enforced by it, " +
		"they are not: its rules decide"
	openRevisions  = "StatefulSets and DaemonSets make pods of a revision while they are updated or rolled back: the controllers decide"
	openSuspended  = "a suspended job gets other selectors of nodes, and its pods may come to a node that is held: the scheduler decides"
	openTokens     = "CSI drivers say there of which service accounts kubelets give them tokens: the drivers decide"
	openTrust      = "programs that read the bundle trust the authorities in it: they decide"
	openSigner     = "the signer decides whom it certifies, and the servers that trust it what the certificate gives"
	openExtra      = "authorizers other than RBAC, and admission, may read it: they decide"
	openAttest     = "webhook servers take the account for the API server: they decide"
	openConversion = "a conversion webhook receives the objects of the kind, and a schema lets other fields pass: " +
		"the kind's controllers decide, and whether the API server reaches the webhook"
	openControllers = "all objects of the kind are deleted, also rules that protect: the kind's controllers decide"
	openScopes      = "NodeScopes and Quarantines limit credentials; without them, or with others, they do not"
	openLedger      = "node-authorizer admits machines by what the ledger says of them: its attestors decide"
	openHostFiles   = "it reads files in /var/log of the host and the logs of its services: what is logged there decides"
	openMemory      = "it writes the memory of a container into a file of the node: who reads that file decides"
	openSandbox     = "a class of the same name with another handler takes the sandbox from pods that are made later: runtimes decide"
	openDebug       = "it shows profiles and command lines of the API server, or raises what it logs: who reads its logs decides"
)

// coreRights are the rights of the core group, without nodes.
var coreRights = []rightsRow{
	{resources: "secrets", verbs: reads + " patch " + removes, gives: []Code{SecretRead, ServiceAccountTokenSecret}},
	{resources: "secrets", verbs: "create", gives: []Code{ServiceAccountTokenSecret, BootstrapToken}},
	{resources: "secrets", verbs: "update", open: openSecrets},

	{resources: "serviceaccounts", verbs: "create", gives: []Code{TokenRequest, PodCreate}},
	{resources: "serviceaccounts", verbs: "update", open: openAccounts},
	{resources: "serviceaccounts", verbs: "patch", gives: []Code{TokenRequest, PodCreate}, open: openAccounts},
	{resources: "serviceaccounts", verbs: reads + " " + removes, nothing: "it shows accounts, or removes them"},
	{resources: "serviceaccounts/token", verbs: "create", gives: []Code{TokenRequest}},
	{resources: "serviceaccounts users groups", verbs: "impersonate", gives: []Code{Impersonate}},
	{resources: "*", verbs: audienceVerb, gives: []Code{TokenOfPodOnNode}, open: openAudiences},

	{resources: "pods", verbs: "create", gives: []Code{PodCreate, VolumeControl}},
	{resources: "pods", verbs: edits, gives: []Code{PodUpdate}},
	{resources: "pods", verbs: removes, nothing: nothingMoved},
	{resources: "pods", verbs: reads, nothing: nothingRead},
	{resources: "pods/exec pods/attach", verbs: "create get", gives: []Code{PodExec}},
	{resources: "pods/ephemeralcontainers", verbs: edits, gives: []Code{PodExec}},
	{resources: "pods/ephemeralcontainers pods/resize pods/status", verbs: "get", nothing: nothingRead},
	{resources: "pods/resize", verbs: edits, nothing: "containers get more or less of a resource"},
	{resources: "pods/eviction", verbs: "create", nothing: nothingMoved},
	{resources: "pods/status", verbs: edits, open: openPodMoves},
	{resources: "pods/binding bindings", verbs: "create", open: openBinding},
	{resources: "pods/portforward", verbs: "create get", open: openPorts},
	{resources: "pods/proxy services/proxy", verbs: "create get delete " + edits, open: openPorts},
	{resources: "pods/log", verbs: "get", gives: []Code{PodEscape}, open: openContent},

	{resources: "replicationcontrollers", verbs: "create", gives: []Code{PodCreate}},
	{resources: "replicationcontrollers", verbs: edits, gives: []Code{PodUpdate}},
	{resources: "replicationcontrollers", verbs: removes, open: openWorkloads},
	{resources: "replicationcontrollers", verbs: reads, nothing: nothingRead},
	{resources: "replicationcontrollers/scale", verbs: edits, open: openScale},
	{resources: "replicationcontrollers/scale", verbs: "get", nothing: nothingRead},
	{resources: "replicationcontrollers/status services/status", verbs: "get", nothing: nothingRead},
	{resources: "replicationcontrollers/status", verbs: edits, nothing: nothingStatus},
	{resources: "podtemplates", verbs: every, nothing: "no controller makes pods of it"},

	{resources: "configmaps", verbs: "create " + edits, gives: []Code{NodeIdentityConfig}, open: openConfig},
	{resources: "configmaps", verbs: reads + " " + removes, open: openContent},

	{resources: "namespaces", verbs: "create", gives: []Code{PodCreate}},
	{resources: "namespaces namespaces/status", verbs: edits, gives: []Code{NamespaceRelabel}},
	{resources: "namespaces/finalize", verbs: "update", gives: []Code{NamespaceRelabel}},
	{resources: "namespaces", verbs: reads + " delete", nothing: "it shows namespaces, or removes what is in one"},
	{resources: "namespaces/status", verbs: "get", nothing: nothingRead},
	{resources: "resourcequotas resourcequotas/status", verbs: edits, open: openQuota},
	{resources: "resourcequotas", verbs: removes, open: openQuota},
	{resources: "resourcequotas", verbs: reads + " create", nothing: "it shows or sets limits"},
	{resources: "resourcequotas/status", verbs: "get", nothing: nothingRead},
	{resources: "limitranges", verbs: every, nothing: "it limits pods and sets defaults for their resources"},

	{resources: "persistentvolumes", verbs: "create", gives: []Code{VolumeControl}},
	{resources: "persistentvolumes", verbs: "update", open: openVolumes, clusterScoped: true},
	{resources: "persistentvolumes", verbs: "patch", gives: []Code{VolumeControl}, open: openVolumes, clusterScoped: true},
	{resources: "persistentvolumes", verbs: reads + " " + removes, nothing: "it shows volumes, or removes them"},
	{resources: "persistentvolumes/status", verbs: ofStatus, nothing: nothingStatus},
	{resources: "persistentvolumeclaims", verbs: "create", gives: []Code{VolumeControl}},
	{resources: "persistentvolumeclaims", verbs: "update", open: openClaims},
	{resources: "persistentvolumeclaims", verbs: "patch", gives: []Code{VolumeControl}, open: openClaims},
	{resources: "persistentvolumeclaims", verbs: reads + " " + removes, nothing: "it shows claims, or removes them"},
	{resources: "persistentvolumeclaims/status", verbs: ofStatus, nothing: nothingStatus},

	{resources: "services endpoints", verbs: reads, nothing: nothingRead},
	{resources: "services endpoints", verbs: writes, open: openTraffic},
	{resources: "services/status", verbs: edits, open: openTraffic},
	{resources: "events", verbs: every, nothing: nothingEvents},
	{resources: "componentstatuses", verbs: "get list", nothing: nothingRead},

	{resources: "/logs/*", verbs: "get", open: openHostFiles, clusterScoped: true},
	{resources: "/debug/*", verbs: "get put", open: openDebug, clusterScoped: true},
	{resources: "/*", verbs: "get head post put", nothing: "it shows versions, health, metrics and schemas"},
}

// nodeRights are the rights to nodes. Kubelets ask about subresources other than proxy and status.
var nodeRights = []rightsRow{
	{resources: "nodes nodes/status", verbs: edits, gives: []Code{StealPods}},
	{resources: "nodes", verbs: "create " + removes, open: openNodes, clusterScoped: true},
	{resources: "nodes", verbs: reads, nothing: nothingRead},
	{resources: "nodes/status", verbs: "get", nothing: nothingRead},
	{resources: "nodes/proxy", verbs: "create get", gives: []Code{NodeProxy}},
	{resources: "nodes/proxy", verbs: "delete " + edits, nothing: "kubelets run nothing for such a request"},
	{resources: "nodes/log", verbs: "get", gives: []Code{PodEscape}, open: openHostFiles, clusterScoped: true},
	{resources: "nodes/log", verbs: "create", open: openHostFiles, clusterScoped: true},
	{resources: "nodes/checkpoint", verbs: "create get", open: openMemory, clusterScoped: true},
	{resources: "nodes/metrics nodes/stats", verbs: "create get", nothing: nothingKubelet},
	{resources: "nodes/configz nodes/healthz nodes/pods nodes/statusz", verbs: "get", nothing: nothingKubelet},
}
