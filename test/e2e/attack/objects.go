package attack

import "net/http"

func volumes() Section {
	const persistentVolumes = "/api/v1/persistentvolumes"
	const attachments = "/apis/storage.k8s.io/v1/volumeattachments"
	own := inStock("persistentvolumeclaims/own-claim")
	foreign := inStock("persistentvolumeclaims/foreign-claim")
	return Section{
		Title: "Claims, volumes and attachments",
		About: "A kubelet reads the claims and volumes of its pods, and tells their size.",
		Requests: []Request{
			get("its own claim", own),
			get("another node's claim", foreign),
			get("all claims", inStock("persistentvolumeclaims")),
			get("its own claim, by listing its name", with(inStock("persistentvolumeclaims"), "fieldSelector=metadata.name%3Down-claim")),
			patch("the size of its own volume", own+"/status", `{status: {capacity: {storage: 2Gi}}}`),
			patch("a condition of its own claim", own+"/status",
				`{status: {conditions: [{type: FileSystemResizePending, status: "True"}]}}`),
			patch("how far a resize is", own+"/status",
				`{status: {allocatedResources: {storage: 2Gi}, allocatedResourceStatuses: {storage: NodeResizePending}}}`),
			replace("its own claim's status as it is", own+"/status", ""),
			patch("its own claim is lost", own+"/status", `{status: {phase: Lost}}`),
			patch("other ways to mount its own claim", own+"/status", `{status: {accessModes: [ReadWriteMany]}}`),
			patch("a label of its own claim, through status", own+"/status", `{metadata: {labels: {app: bank}}}`),
			patch("an annotation of its own claim, through status", own+"/status", `{metadata: {annotations: {example.com/note: here}}}`),
			patch("a finalizer of its own claim, through status", own+"/status", `{metadata: {finalizers: [example.com/stay]}}`),
			patch("an owner of its own claim, through status", own+"/status",
				`{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: own, uid: UID(pods/own)}]}}`),
			patchAs(applyPatch, "a label of its own claim, by server-side apply", own+"/status?fieldManager=kubelet&force=true",
				`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: own-claim, labels: {app: bank}}}`),
			patch("the size of another's volume", foreign+"/status", `{status: {capacity: {storage: 2Gi}}}`),
			patch("another volume for its own claim", own, `{spec: {volumeName: foreign-volume}}`),
			remove("delete its own claim", own),
			get("its own volume", persistentVolumes+"/own-volume"),
			get("another node's volume", persistentVolumes+"/foreign-volume"),
			get("all volumes", persistentVolumes),
			patch("another claim for its own volume", persistentVolumes+"/own-volume",
				`{spec: {claimRef: {namespace: stock, name: foreign-claim}}}`),
			get("its own attachment", attachments+"/own-attachment"),
			get("another node's attachment", attachments+"/foreign-attachment"),
			get("all attachments", attachments),
			patch("its own attachment is done", attachments+"/own-attachment/status", `{status: {attached: true}}`),
			post("attach another's disk", attachments,
				`{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: made}, `+
					`spec: {attacher: disks.csi.example.com, nodeName: web-1, source: {persistentVolumeName: foreign-volume}}}`),
		},
	}
}

const slicePath = "/apis/resource.k8s.io/v1/resourceslices"

func devices() Section {
	const claims = "/apis/resource.k8s.io/v1/namespaces/stock/resourceclaims"
	slice := func(attack, where string) Request {
		return post(attack, slicePath,
			`{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: made}, `+
				`spec: {driver: devices.example.com, pool: {name: made, generation: 1, resourceSliceCount: 1}, `+where+`}}`)
	}
	return Section{
		Title: "Devices",
		About: "A node publishes the devices it has, and reads the claims of its pods.",
		Requests: []Request{
			slice("publish devices of its own", "nodeName: web-1"),
			slice("publish devices of another node", "nodeName: pay-1"),
			slice("publish devices of every node", "allNodes: true"),
			slice("publish devices of nodes with a label",
				"nodeSelector: {nodeSelectorTerms: [{matchExpressions: [{key: pool, operator: Exists}]}]}"),
			get("its own slice", slicePath+"/own-slice"),
			get("another node's slice", slicePath+"/foreign-slice"),
			patch("annotate its own slice", slicePath+"/own-slice", `{metadata: {annotations: {example.com/note: here}}}`),
			patch("move its own slice to another node", slicePath+"/own-slice", `{spec: {nodeName: pay-1}}`),
			patch("take another node's slice", slicePath+"/foreign-slice", `{spec: {nodeName: web-1}}`),
			remove("delete its own slice", slicePath+"/own-slice"),
			remove("delete another node's slice", slicePath+"/foreign-slice"),
			get("list its own slices", with(slicePath, "fieldSelector=spec.nodeName%3Dweb-1")),
			get("list another node's slices", with(slicePath, "fieldSelector=spec.nodeName%3Dpay-1")),
			get("list the slices of a driver", with(slicePath, "fieldSelector=spec.driver%3Ddevices.example.com")),
			get("list its own slices of a driver",
				with(slicePath, "fieldSelector=spec.nodeName%3Dweb-1,spec.driver%3Ddevices.example.com")),
			get("list all slices", slicePath),
			get("watch all slices", with(slicePath, watchFor)),
			remove("delete all its own slices", with(slicePath, "fieldSelector=spec.nodeName%3Dweb-1")),
			remove("delete all of another node's slices", with(slicePath, "fieldSelector=spec.nodeName%3Dpay-1")),
			remove("delete all slices", slicePath),
			get("its own claim", claims+"/own-devices"),
			get("another node's claim", claims+"/foreign-devices"),
			get("all claims", claims),
			patch("write its own claim", claims+"/own-devices", `{metadata: {annotations: {example.com/note: here}}}`),
			patch("allocate its own claim", claims+"/own-devices/status", `{status: {allocation: {}}}`),
			get("device classes", "/apis/resource.k8s.io/v1/deviceclasses"),
		},
	}
}

func cluster() Section {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	const reviews = "/apis/authorization.k8s.io/v1/"
	as := func(attack, path, header string) Request {
		r := get(attack, path)
		r.Header = header
		return r
	}
	return Section{
		Title: "The rest of the cluster",
		About: "Requests that every node may make, whichever pods it runs, and attempts to become another user.",
		Requests: []Request{
			as("speak as an administrator", inStock("secrets/foreign-secret"), "Impersonate-User: admin"),
			as("speak as the other node", inStock("secrets/foreign-secret"), "Impersonate-User: system:node:pay-1"),
			as("speak as a group", inStock("secrets/foreign-secret"), "Impersonate-Group: system:masters"),
			as("speak as a service account", inStock("secrets/foreign-secret"),
				"Impersonate-User: system:serviceaccount:kube-system:clusterrole-aggregation-controller"),
			as("say that it is another user, as a proxy would", inStock("secrets/foreign-secret"), "X-Remote-User: admin"),
			post("make itself an administrator", rbac+"clusterrolebindings",
				`{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: made}, `+
					`roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, `+
					`subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:node:web-1"}]}`),
			patch("bind a role to nodes", rbac+"clusterrolebindings/cluster-admin",
				`{subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:nodes"}]}`),
			get("read roles", rbac+"clusterroles"),
			remove("remove the webhooks that check it", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"),
			remove("remove a service", inStock("services/any")),
			get("list webhooks", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"),
			post("ask who a token is", "/apis/authentication.k8s.io/v1/tokenreviews",
				`{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: none}}`),
			post("ask what another user may do", reviews+"subjectaccessreviews",
				`{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, spec: {user: admin, `+
					`resourceAttributes: {verb: get, resource: secrets, namespace: stock}}}`),
			post("ask what another user may do in a namespace", reviews+"namespaces/stock/localsubjectaccessreviews",
				`{apiVersion: authorization.k8s.io/v1, kind: LocalSubjectAccessReview, metadata: {namespace: stock}, `+
					`spec: {user: admin, resourceAttributes: {verb: get, resource: secrets, namespace: stock}}}`),
			post("ask what it may do itself", reviews+"selfsubjectaccessreviews",
				`{apiVersion: authorization.k8s.io/v1, kind: SelfSubjectAccessReview, `+
					`spec: {resourceAttributes: {verb: get, resource: secrets, namespace: stock, name: foreign-secret}}}`),
			get("services", inStock("services")),
			get("endpoints by name", inStock("endpoints/any")),
			get("all endpoints", inStock("endpoints")),
			get("endpoint slices", "/apis/discovery.k8s.io/v1/namespaces/stock/endpointslices"),
			get("storage drivers", "/apis/storage.k8s.io/v1/csidrivers"),
			get("storage classes", "/apis/storage.k8s.io/v1/storageclasses"),
			get("runtime classes", "/apis/node.k8s.io/v1/runtimeclasses"),
			get("trust anchors", "/apis/certificates.k8s.io/v1/clustertrustbundles"),
			get("namespaces", "/api/v1/namespaces"),
			get("its own namespace", "/api/v1/namespaces/stock"),
			get("deployments", "/apis/apps/v1/namespaces/stock/deployments"),
			post("make a deployment", "/apis/apps/v1/namespaces/stock/deployments",
				`{apiVersion: apps/v1, kind: Deployment, metadata: {name: made}, `+
					`spec: {selector: {matchLabels: {app: made}}, template: {metadata: {labels: {app: made}}, `+
					`spec: {`+plainContainer+`}}}}`),
			post("run a pod on every node", "/apis/apps/v1/namespaces/stock/daemonsets",
				`{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: made}, `+
					`spec: {selector: {matchLabels: {app: made}}, template: {metadata: {labels: {app: made}}, `+
					`spec: {`+plainContainer+`}}}}`),
			post("tell an event", inStock("events"),
				`{apiVersion: v1, kind: Event, metadata: {name: made, namespace: stock}, involvedObject: {kind: Pod, `+
					`name: own, namespace: stock}, reason: Made, type: Normal}`),
			get("read events", inStock("events")),
			remove("remove events", inStock("events")),
			get("custom resources", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
			get("the API server's metrics", "/metrics"),
			get("the API server's profile", "/debug/pprof/"),
			get("the API server's logs", "/logs/"),
			get("the API server's health", "/healthz"),
			get("the API server's version", "/version"),
			get("the list of its interfaces", "/apis"),
			get("the keys of service account tokens", "/openid/v1/jwks"),
			{Attack: "a method that is none", Method: http.MethodOptions, Path: inStock("secrets/foreign-secret")},
		},
	}
}
