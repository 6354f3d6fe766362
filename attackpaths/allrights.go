package attackpaths

import (
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// The table of all rights says for each request that an API server can be asked what the right to
// make it gives. It covers each resource and subresource that API servers of the supported minors
// serve, and the rights that they ask about besides: testdata/discovery.txt and
// testdata/unlisted.txt, with which a test compares it. docs/reference/rights.md is made from it. The rights that techniques use
// come from the tables of rights and techniques, and the others from rightsRows.

// rightsRow says about some verbs on some resources of a group what the rights to them give besides techniques.
type rightsRow struct {
	group string
	// resources are separated by spaces, as in "pods pods/exec". As a resource or as a subresource, *
	// stands for any name; a path, as in /logs/*, is a URL without a resource.
	resources string
	// verbs are separated by spaces. One that ends in * stands for all that begin so.
	verbs string
	// open says what the right may give that is not followed, and who decides. clusterScoped is set if the
	// resources of such a row have no namespace.
	open          string
	clusterScoped bool
	// nothing says why the right gives nothing beyond itself. A row has either this or open.
	nothing string
}

// Verbs that rows have in common.
const (
	reads   = "get list watch"
	edits   = "update patch"
	removes = "delete deletecollection"
	every   = reads + " " + writes
	writes  = "create " + edits + " " + removes
)

// TableRight is a verb on a resource, and what the right to it gives, as in docs/reference/rights.md.
type TableRight struct {
	// Group, Resource and Subresource say what the right is about. As a resource or a subresource, * stands for any
	// name; a path, as in /logs/*, is a URL without a resource.
	Group, Resource, Subresource string
	// Verb ends in * if it stands for all that begin so.
	Verb string
	// Gives are the techniques that use the right, alone or together with others.
	Gives []Code
	// NotFollowed says what the right may give that paths do not follow, and who decides; empty for other rights.
	NotFollowed string
	// Nothing says why the right gives nothing beyond itself. A right has either this or one of the others.
	Nothing string

	clusterScoped bool
}

// String names the right as people write it: "create pods/exec".
func (r TableRight) String() string {
	return r.Verb + " " + objectText(r.Group, r.Resource, r.Subresource)
}

// objectText names what a right is about: "applications.argoproj.io/status".
func objectText(group, resource, subresource string) string {
	if group != "" {
		resource += "." + group
	}
	if subresource != "" {
		resource += "/" + subresource
	}
	return resource
}

// TableOfRights returns the table of all rights.
func TableOfRights() []TableRight {
	all := make([]TableRight, len(allRights))
	for i, r := range allRights {
		all[i] = *r
		all[i].Gives = slices.Clone(r.Gives)
	}
	return all
}

// allRights is the table, and never changes.
var allRights = listAllRights()

// rightsList is the table while it is made.
type rightsList struct {
	all   []*TableRight
	known map[string]*TableRight
}

// at finds verbs on resources of a group, and adds those that are new.
func (l *rightsList) at(group, resources, verbs string) []*TableRight {
	var found []*TableRight
	for _, name := range strings.Fields(resources) {
		resource, subresource, _ := strings.Cut(name, "/")
		if resource == "" {
			resource, subresource = name, "" // a path
		}
		for _, verb := range strings.Fields(verbs) {
			r := &TableRight{Group: group, Resource: resource, Subresource: subresource, Verb: verb}
			if known := l.known[r.String()]; known != nil {
				r = known
			} else {
				l.all, l.known[r.String()] = append(l.all, r), r
			}
			found = append(found, r)
		}
	}
	return found
}

// uses notes that a technique uses a kind of request.
func (l *rightsList) uses(k *requestKind, code Code) {
	object := objectText("", k.resource, k.subresource)
	if k.subresource == nodeidentity.ExtraNode {
		object = k.resource + "/*"
	}
	for _, r := range l.at(k.group, object, strings.Join(k.verbs, " ")) {
		if !slices.Contains(r.Gives, code) {
			r.Gives = append(r.Gives, code)
		}
	}
}

// say notes what a row says. That a right gives nothing counts where it is not known to give something.
func (l *rightsList) say(row rightsRow) {
	for _, r := range l.at(row.group, row.resources, row.verbs) {
		switch {
		case row.open != "":
			r.NotFollowed, r.clusterScoped = row.open, row.clusterScoped
		case len(r.Gives) == 0 && r.NotFollowed == "" && r.Nothing == "":
			r.Nothing = row.nothing
		}
	}
}

// listAllRights takes the rights that techniques use, and adds what the rows say; and that objects which can be deleted or changed
// can be read, and that controllers write the status of some again.
func listAllRights() []*TableRight {
	l, parts := rightsList{known: map[string]*TableRight{}}, rightsList{known: map[string]*TableRight{}}
	kinds := kindsFor(&Cluster{Features: kubeversion.For(kubeversion.Oldest)})
	for i := range techniques {
		t := &techniques[i]
		for _, r := range slices.Concat(t.needs, t.helps) {
			l.uses(&kinds[r], t.Code)
			if place := slices.Index(madeByName[:], r); place >= 0 {
				parts.uses(&kinds[partOf(place)+1], t.Code)
			}
		}
	}
	for _, part := range parts.all { // who may patch an object creates one, if nothing else comes from that
		if r := l.at(part.Group, part.Resource, part.Verb)[0]; len(r.Gives) == 0 {
			r.Gives = part.Gives
		}
	}
	l.at("*", "*", "impersonate-on:*")[0].Gives = []Code{Impersonate}
	for _, row := range rightsRows {
		l.say(row)
	}
	for i := 0; i < len(l.all); i++ { // which grows
		r := l.all[i]
		object := objectText("", r.Resource, r.Subresource)
		switch {
		case r.Verb == "delete" && r.Subresource == "":
			l.say(rightsRow{group: r.Group, resources: object, verbs: reads, nothing: nothingRead})
			if slices.Contains(strings.Fields(reported), r.Resource) {
				l.say(rightsRow{group: r.Group, resources: object + "/status", verbs: edits, nothing: nothingStatus})
			}
		case r.Verb == "update":
			l.say(rightsRow{group: r.Group, resources: object, verbs: "get", nothing: nothingRead})
		}
	}
	return l.all
}

// What rows say about rights that give nothing beyond themselves.
const (
	nothingRead    = "it shows objects in which Kubernetes keeps no credential"
	nothingStatus  = "it changes what a controller reports and writes again, and labels, which nothing here rests on"
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
	openLedger      = "node-authorizer admits machines by their entries in the ledger: its attestors decide"
	openHostFiles   = "it reads files in /var/log of the host and the logs of its services: what is logged there decides"
	openMemory      = "it writes the memory of a container into a file of the node: who reads that file decides"
	openSandbox     = "a class of the same name with another handler takes the sandbox from pods that are made later: runtimes decide"
	openDebug       = "it shows profiles and command lines of the API server, or raises what it logs: who reads its logs decides"
)

// reported are the resources of which controllers write the status again.
const reported = "apiservices compositepodgroups cronjobs csinodes customresourcedefinitions daemonsets deployments flowschemas " +
	"horizontalpodautoscalers jobs nodescopes persistentvolumeclaims persistentvolumes poddisruptionbudgets podgroups " +
	"prioritylevelconfigurations quarantines replicasets replicationcontrollers statefulsets storageversionmigrations " +
	"storageversions validatingadmissionpolicies volumeattachments"

// Resources that rows have in common. The classes of devices have no namespace.
const (
	policies      = "validatingadmissionpolicies validatingadmissionpolicybindings"
	devices       = "podschedulingcontexts resourceclaimparameters resourceclaims resourceclaimtemplates resourceclassparameters"
	deviceClasses = "deviceclasses devicetaintrules resourceclasses resourcepoolstatusrequests resourceslices"
)

// rightsRows are what the rights give that techniques do not use, or besides techniques. They never change.
var rightsRows = []rightsRow{
	{resources: "secrets", verbs: "update", open: openSecrets},
	{resources: "serviceaccounts", verbs: edits, open: openAccounts},
	{resources: "*", verbs: audienceVerb, open: openAudiences},
	{resources: "pods/eviction", verbs: "create", nothing: nothingMoved},
	{resources: "pods/resize", verbs: edits, nothing: "containers get more or less of a resource"},
	{resources: "pods/status", verbs: edits, open: openPodMoves},
	{resources: "pods/binding bindings", verbs: "create", open: openBinding},
	{resources: "pods/portforward", verbs: "create get", open: openPorts},
	{resources: "pods/proxy services/proxy", verbs: "create get delete " + edits, open: openPorts},
	{resources: "pods/log", verbs: "get", open: openContent},
	{resources: "replicationcontrollers", verbs: removes, open: openWorkloads},
	{resources: "replicationcontrollers/scale", verbs: edits, open: openScale},
	{resources: "podtemplates", verbs: every, nothing: "no controller makes pods of it"},
	{resources: "configmaps", verbs: "create " + edits, open: openConfig},
	{resources: "configmaps", verbs: reads + " " + removes, open: openContent},
	{resources: "namespaces", verbs: "delete", nothing: "it removes what is in one"},
	{resources: "resourcequotas resourcequotas/status", verbs: edits, open: openQuota},
	{resources: "resourcequotas", verbs: removes, open: openQuota},
	{resources: "resourcequotas", verbs: "create", nothing: "it sets limits"},
	{resources: "limitranges", verbs: every, nothing: "it limits pods and sets defaults for their resources"},
	{resources: "persistentvolumes", verbs: edits, open: openVolumes, clusterScoped: true},
	{resources: "persistentvolumeclaims", verbs: edits, open: openClaims},
	{resources: "serviceaccounts persistentvolumeclaims", verbs: removes, nothing: nothingRemoved},
	{resources: "services endpoints", verbs: writes, open: openTraffic},
	{resources: "services/status", verbs: edits, open: openTraffic},
	{resources: "events", verbs: every, nothing: nothingEvents},
	{resources: "componentstatuses", verbs: "get list", nothing: nothingRead},
	{resources: "/logs/*", verbs: "get", open: openHostFiles, clusterScoped: true},
	{resources: "/debug/*", verbs: "get put", open: openDebug, clusterScoped: true},
	{resources: "/*", verbs: "get head post put", nothing: "it shows versions, health, metrics and schemas"},

	// Kubelets ask about subresources of nodes other than proxy and status.
	{resources: "nodes", verbs: "create " + removes, open: openNodes, clusterScoped: true},
	{resources: "nodes/proxy", verbs: "delete " + edits, nothing: "kubelets run nothing for such a request"},
	{resources: "nodes/log", verbs: "create get", open: openHostFiles, clusterScoped: true},
	{resources: "nodes/checkpoint", verbs: "create get", open: openMemory, clusterScoped: true},
	{resources: "nodes/metrics nodes/stats", verbs: "create get", nothing: nothingKubelet},
	{resources: "nodes/configz nodes/healthz nodes/pods nodes/statusz", verbs: "get", nothing: nothingKubelet},

	{
		group: admis, resources: "mutatingwebhookconfigurations mutatingadmissionpolicies mutatingadmissionpolicybindings",
		verbs: removes, open: openPolicies, clusterScoped: true,
	},
	{
		group: admis, resources: "validatingwebhookconfigurations " + policies, verbs: edits + " " + removes,
		open: openPolicies, clusterScoped: true,
	},
	{group: admis, resources: policies, verbs: "create", nothing: "a policy only refuses, and answers who made the request"},
	{
		group: extns, resources: "customresourcedefinitions", verbs: "create " + edits,
		open: openConversion, clusterScoped: true,
	},
	{group: extns, resources: "customresourcedefinitions", verbs: removes, open: openControllers, clusterScoped: true},
	{group: "apiregistration.k8s.io", resources: "apiservices", verbs: removes, nothing: "it ends an API, and no right comes from that"},
	{group: apps, resources: "daemonsets deployments replicasets statefulsets", verbs: removes, open: openWorkloads},
	{group: apps, resources: "deployments/scale replicasets/scale statefulsets/scale", verbs: edits, open: openScale},
	{group: apps, resources: "controllerrevisions", verbs: writes, open: openRevisions},
	{group: "autoscaling", resources: "horizontalpodautoscalers", verbs: writes, open: openScale},
	{group: batch, resources: "jobs", verbs: edits, open: openSuspended},
	{group: batch, resources: "cronjobs jobs", verbs: removes, open: openWorkloads},

	{group: authn, resources: "selfsubjectreviews", verbs: "create", nothing: "it answers who somebody is"},
	{group: authn, resources: "tokenreviews", verbs: "create", nothing: "it answers whose a token is that the requester has"},
	{group: authn, resources: "uids", verbs: "impersonate impersonate:user-info", nothing: "no authorizer of Kubernetes reads it"},
	{group: authn, resources: "userextras/*", verbs: "impersonate impersonate:user-info", open: openExtra, clusterScoped: true},
	{group: authn, resources: "admissionReviewAPIGroups", verbs: "attest", open: openAttest, clusterScoped: true},
	{
		group: "authorization.k8s.io", verbs: "create", nothing: "it answers what somebody may do",
		resources: "localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews",
	},

	{group: certG, resources: "certificatesigningrequests/selfnodeclient", verbs: "create", nothing: "a node gets its certificate again"},
	{group: certG, resources: "signers", verbs: "attest", open: openTrust, clusterScoped: true},
	{group: certG, resources: "clustertrustbundles", verbs: writes, open: openTrust, clusterScoped: true},
	{
		group: certG, resources: "podcertificaterequests", verbs: reads + " " + removes,
		nothing: "a certificate is of no use without the kubelet's key",
	},
	{group: certG, resources: "podcertificaterequests", verbs: "create " + edits, open: openSigner},
	{group: certG, resources: "podcertificaterequests/status", verbs: edits, open: openSigner},
	{group: certG, resources: "*", verbs: "request-serviceaccounts-podcertificate-signer", open: openSigner},

	{group: "coordination.k8s.io", resources: "leases leasecandidates", verbs: writes, open: openLeases},
	{group: "discovery.k8s.io", resources: "endpointslices", verbs: writes, open: openTraffic},
	{group: "events.k8s.io", resources: "events", verbs: every, nothing: nothingEvents},
	{
		group: "flowcontrol.apiserver.k8s.io", resources: "flowschemas prioritylevelconfigurations", verbs: every,
		nothing: "it changes whose requests wait, and never whose are allowed",
	},
	{
		group: "internal.apiserver.k8s.io", resources: "storageversions", verbs: every,
		nothing: "API servers note there in which version they store objects",
	},
	{group: "lifecycle.k8s.io", resources: "evictionrequests evictions", verbs: writes, open: openEvictions},
	{group: "lifecycle.k8s.io", resources: "evictionrequests/status evictions/status", verbs: edits, open: openEvictions},

	{group: "networking.k8s.io", resources: "ingresses", verbs: writes, open: openTraffic},
	{
		group: "networking.k8s.io", resources: "ingressclasses ipaddresses servicecidrs", verbs: writes,
		open: openTraffic, clusterScoped: true,
	},
	{group: "networking.k8s.io", resources: "networkpolicies", verbs: writes, open: openNetwork},
	{group: "networking.k8s.io", resources: "ingresses/status", verbs: edits, open: openTraffic},
	{group: "networking.k8s.io", resources: "servicecidrs/status", verbs: edits, open: openTraffic, clusterScoped: true},
	{group: "node.k8s.io", resources: "runtimeclasses", verbs: writes, open: openSandbox, clusterScoped: true},
	{
		group: "policy", resources: "poddisruptionbudgets", verbs: every,
		nothing: "it delays evictions; pods that may be evicted count as evicted at some time",
	},

	{group: "resource.k8s.io", resources: devices, verbs: writes, open: openDevices},
	{group: "resource.k8s.io", resources: deviceClasses, verbs: writes, open: openDevices, clusterScoped: true},
	{
		group: "resource.k8s.io", resources: "podschedulingcontexts/status resourceclaims/status resourceclaims/binding", verbs: edits,
		open: openDevices,
	},
	{
		group: "resource.k8s.io", resources: "devicetaintrules/status resourcepoolstatusrequests/status", verbs: edits,
		open: openDevices, clusterScoped: true,
	},
	{
		group: "resource.k8s.io", resources: "resourceclaims/driver", open: openDevices,
		verbs: "arbitrary-node:patch arbitrary-node:update associated-node:patch associated-node:update",
	},
	{group: "scheduling.k8s.io", resources: "priorityclasses", verbs: writes, open: openPriority, clusterScoped: true},
	{
		group: "scheduling.k8s.io", resources: "compositepodgroups podgroups workloads", verbs: every,
		nothing: "it says which pods are scheduled together; others make the pods",
	},
	{group: "storage.k8s.io", resources: "csidrivers", verbs: writes, open: openTokens, clusterScoped: true},
	{group: "storage.k8s.io", resources: "csinodes csistoragecapacities", verbs: writes, nothing: "it says where volumes fit"},
	{group: "storage.k8s.io", resources: "storageclasses volumeattributesclasses", verbs: writes, open: openVolumes, clusterScoped: true},
	{group: "storage.k8s.io", resources: "volumeattachments", verbs: writes, open: openAttached, clusterScoped: true},
	{
		group: "storagemigration.k8s.io", resources: "storageversionmigrations", verbs: every,
		nothing: "objects are written again as they are",
	},

	{group: "metrics.k8s.io", resources: "nodes pods", verbs: "get list", nothing: nothingMetrics},
	{group: "custom.metrics.k8s.io", resources: "*", verbs: "get list", nothing: nothingMetrics},
	{group: "external.metrics.k8s.io", resources: "*", verbs: "get list", nothing: nothingMetrics},
	{group: "iamauthenticator.k8s.aws", resources: "iamidentitymappings", verbs: removes, nothing: nothingRemoved},
	{group: "policy.node-authorizer.io", resources: "nodescopes quarantines", verbs: writes, open: openScopes, clusterScoped: true},
	{group: "node-authorizer.io", resources: "nodeattestations machines", verbs: writes, open: openLedger, clusterScoped: true},
	{group: "node-authorizer.io", resources: "nodeattestations/status", verbs: edits, open: openLedger, clusterScoped: true},
	{group: "*", resources: "*", verbs: "unsafe-delete-ignore-read-errors", nothing: "an object that cannot be read is deleted"},
}
