package attackpaths

// Resources that rows have in common.
const (
	mutating   = "mutatingwebhookconfigurations mutatingadmissionpolicies mutatingadmissionpolicybindings"
	policies   = "validatingadmissionpolicies validatingadmissionpolicybindings"
	validating = "validatingwebhookconfigurations " + policies

	templated        = "daemonsets deployments replicasets statefulsets"
	rolesAndBindings = "clusterrolebindings clusterroles rolebindings roles"

	devices = "podschedulingcontexts resourceclaimparameters resourceclaims resourceclaimtemplates resourceclassparameters"
	// deviceClasses have no namespace.
	deviceClasses = "deviceclasses devicetaintrules resourceclasses resourcepoolstatusrequests resourceslices"
)

var admissionRights = []rightsRow{
	{resources: mutating, verbs: reads, nothing: nothingRead},
	{
		resources: mutating,
		verbs:     "create " + edits, gives: []Code{AdmissionControl},
	},
	{resources: mutating, verbs: removes, open: openPolicies, clusterScoped: true},
	{
		resources: validating,
		verbs:     reads, nothing: nothingRead,
	},
	{resources: "validatingwebhookconfigurations", verbs: "create", gives: []Code{SecretRead}},
	{resources: "validatingwebhookconfigurations", verbs: edits, gives: []Code{SecretRead}, open: openPolicies, clusterScoped: true},
	{resources: "validatingwebhookconfigurations", verbs: removes, open: openPolicies, clusterScoped: true},
	{
		resources: policies, verbs: "create",
		nothing: "a policy only refuses, and answers who made the request",
	},
	{resources: policies, verbs: edits + " " + removes, open: openPolicies, clusterScoped: true},
	{resources: "validatingadmissionpolicies/status", verbs: ofStatus, nothing: nothingStatus},
}

var appsRights = []rightsRow{
	{resources: templated, verbs: "create", gives: []Code{PodCreate}},
	{resources: templated, verbs: edits, gives: []Code{PodUpdate}},
	{resources: templated, verbs: removes, open: openWorkloads},
	{resources: templated, verbs: reads, nothing: nothingRead},
	{resources: "daemonsets/status deployments/status replicasets/status statefulsets/status", verbs: ofStatus, nothing: nothingStatus},
	{resources: "deployments/scale replicasets/scale statefulsets/scale", verbs: edits, open: openScale},
	{resources: "deployments/scale replicasets/scale statefulsets/scale", verbs: "get", nothing: nothingRead},
	{resources: "controllerrevisions", verbs: writes, open: openRevisions},
	{resources: "controllerrevisions", verbs: reads, nothing: nothingRead},
}

var authenticationRights = []rightsRow{
	{resources: "selfsubjectreviews", verbs: "create", nothing: "it answers who somebody is"},
	{resources: "tokenreviews", verbs: "create", nothing: "it answers whose a token is that the requester has"},
	{resources: "uids", verbs: "impersonate impersonate:user-info", nothing: "no authorizer of Kubernetes reads it"},
	{resources: "userextras/*", verbs: "impersonate", gives: []Code{Impersonate}, open: openExtra, clusterScoped: true},
	{resources: "userextras/*", verbs: "impersonate:user-info", open: openExtra, clusterScoped: true},
	{resources: "users groups", verbs: "impersonate:user-info", gives: []Code{Impersonate}},
	{resources: "serviceaccounts", verbs: "impersonate:serviceaccount", gives: []Code{Impersonate}},
	{resources: "nodes", verbs: "impersonate:arbitrary-node impersonate:associated-node", gives: []Code{Impersonate}},
	{resources: "admissionReviewAPIGroups", verbs: "attest", open: openAttest, clusterScoped: true},
}

var batchRights = []rightsRow{
	{resources: "cronjobs jobs", verbs: "create", gives: []Code{PodCreate}},
	{resources: "cronjobs", verbs: edits, gives: []Code{PodUpdate}},
	{resources: "jobs", verbs: edits, open: openSuspended},
	{resources: "cronjobs jobs", verbs: removes, open: openWorkloads},
	{resources: "cronjobs jobs", verbs: reads, nothing: nothingRead},
	{resources: "cronjobs/status jobs/status", verbs: ofStatus, nothing: nothingStatus},
}

var certificatesRights = []rightsRow{
	{resources: "certificatesigningrequests", verbs: "create", gives: []Code{ApproveCertificate, SignCertificate}},
	{resources: "certificatesigningrequests", verbs: reads + " " + edits + " " + removes, gives: []Code{ApproveCertificate}},
	{resources: "certificatesigningrequests/approval", verbs: edits + " get", gives: []Code{ApproveCertificate}},
	{resources: "certificatesigningrequests/status", verbs: "get", gives: []Code{ApproveCertificate}},
	{resources: "certificatesigningrequests/status", verbs: "update", gives: []Code{SignCertificate}},
	{resources: "certificatesigningrequests/status", verbs: "patch", gives: []Code{ApproveCertificate, SignCertificate}},
	{resources: "certificatesigningrequests/nodeclient", verbs: "create", gives: []Code{ApproveCertificate}},
	{resources: "certificatesigningrequests/selfnodeclient", verbs: "create", nothing: "a node gets its own certificate again"},
	{resources: "signers", verbs: "approve", gives: []Code{ApproveCertificate}},
	{resources: "signers", verbs: "sign", gives: []Code{SignCertificate}},
	{resources: "signers", verbs: "attest", open: openTrust, clusterScoped: true},
	{resources: "clustertrustbundles", verbs: reads, nothing: nothingRead},
	{resources: "clustertrustbundles", verbs: writes, open: openTrust, clusterScoped: true},
	{resources: "podcertificaterequests", verbs: reads + " " + removes, nothing: "a certificate is of no use without the kubelet's key"},
	{resources: "podcertificaterequests", verbs: "create " + edits, open: openSigner},
	{resources: "podcertificaterequests/status", verbs: edits, open: openSigner},
	{resources: "podcertificaterequests/status", verbs: "get", nothing: nothingRead},
	{resources: "*", verbs: "request-serviceaccounts-podcertificate-signer", open: openSigner},
}

var networkRights = []rightsRow{
	{resources: "ingresses ingressclasses networkpolicies ipaddresses servicecidrs", verbs: reads, nothing: nothingRead},
	{resources: "ingresses", verbs: writes, open: openTraffic},
	{resources: "ingressclasses ipaddresses servicecidrs", verbs: writes, open: openTraffic, clusterScoped: true},
	{resources: "networkpolicies", verbs: writes, open: openNetwork},
	{resources: "ingresses/status servicecidrs/status", verbs: "get", nothing: nothingRead},
	{resources: "ingresses/status", verbs: edits, open: openTraffic},
	{resources: "servicecidrs/status", verbs: edits, open: openTraffic, clusterScoped: true},
}

var rbacRights = []rightsRow{
	{resources: "clusterrolebindings rolebindings", verbs: "create " + edits, gives: []Code{BindRole}},
	{resources: "clusterroles roles", verbs: "create " + edits, gives: []Code{EscalateRole}},
	{resources: "clusterroles roles", verbs: "bind", gives: []Code{BindRole}},
	{resources: "clusterroles roles", verbs: "escalate", gives: []Code{EscalateRole}},
	{resources: rolesAndBindings, verbs: removes, nothing: nothingRemoved},
	{resources: rolesAndBindings, verbs: reads, nothing: nothingRead},
}

var deviceRights = []rightsRow{
	{resources: devices + " " + deviceClasses, verbs: reads, nothing: nothingRead},
	{resources: devices, verbs: writes, open: openDevices},
	{resources: deviceClasses, verbs: writes, open: openDevices, clusterScoped: true},
	{
		resources: "devicetaintrules/status podschedulingcontexts/status resourceclaims/status resourcepoolstatusrequests/status",
		verbs:     "get", nothing: nothingRead,
	},
	{resources: "podschedulingcontexts/status resourceclaims/status resourceclaims/binding", verbs: edits, open: openDevices},
	{resources: "devicetaintrules/status resourcepoolstatusrequests/status", verbs: edits, open: openDevices, clusterScoped: true},
	{
		resources: "resourceclaims/driver", open: openDevices,
		verbs: "arbitrary-node:patch arbitrary-node:update associated-node:patch associated-node:update",
	},
}

var schedulingRights = []rightsRow{
	{resources: "priorityclasses", verbs: reads, nothing: nothingRead},
	{resources: "priorityclasses", verbs: writes, open: openPriority, clusterScoped: true},
	{
		resources: "compositepodgroups podgroups workloads", verbs: every,
		nothing: "it says which pods are scheduled together; others make the pods",
	},
	{resources: "compositepodgroups/status podgroups/status", verbs: ofStatus, nothing: nothingStatus},
}

var storageRights = []rightsRow{
	{
		resources: "csidrivers csinodes csistoragecapacities storageclasses volumeattachments volumeattributesclasses",
		verbs:     reads, nothing: nothingRead,
	},
	{resources: "csidrivers", verbs: writes, open: openTokens, clusterScoped: true},
	{resources: "csinodes csistoragecapacities", verbs: writes, nothing: "it says where volumes fit"},
	{resources: "storageclasses volumeattributesclasses", verbs: writes, open: openVolumes, clusterScoped: true},
	{resources: "volumeattachments", verbs: writes, open: openAttached, clusterScoped: true},
	{resources: "volumeattachments/status", verbs: ofStatus, nothing: nothingStatus},
	{resources: "csinodes/status", verbs: ofStatus, nothing: nothingStatus},
}
