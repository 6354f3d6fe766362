package attack

import "fmt"

// mirror is the YAML of a mirror pod that NodeRestriction allows, except for the given
// fields: of its metadata, of its owner, and of its spec.
type mirror struct{ metadata, owner, spec string }

func (m mirror) String() string {
	metadata := m.metadata
	if metadata == "" {
		metadata = "annotations: {kubernetes.io/config.mirror: abc}"
	}
	owner := m.owner
	if owner == "" {
		owner = "[{apiVersion: v1, kind: Node, name: web-1, uid: UID(nodes/web-1), controller: true}]"
	}
	spec := m.spec
	if spec == "" {
		spec = "nodeName: web-1, " + plainContainer
	}
	return fmt.Sprintf("{apiVersion: v1, kind: Pod, metadata: {name: planted-web-1, namespace: stock, %s, "+
		"ownerReferences: %s}, spec: {automountServiceAccountToken: false, %s}}",
		metadata, owner, spec)
}

const plainContainer = "containers: [{name: app, image: registry.example.com/stock/app:1.0}]"

// onWeb is a spec on web-1 with more fields.
func onWeb(more string) mirror {
	return mirror{spec: "nodeName: web-1, " + plainContainer + ", " + more}
}

// container is a spec on web-1 whose container has more fields.
func container(more string) mirror {
	return mirror{spec: "nodeName: web-1, containers: [{name: app, image: registry.example.com/stock/app:1.0, " + more + "}]"}
}

// volume is a spec on web-1 with one volume.
func volume(source string) mirror { return onWeb("volumes: [{name: v, " + source + "}]") }

func mirrorPods() Section {
	section := Section{
		Title: "Planting pods",
		About: "A node may only create the mirror pods of its static pods, which may name nothing that the API holds: " +
			"else a stolen certificate would read any secret by planting a pod that mounts it.",
	}
	const me = "apiVersion: v1, kind: Node, name: web-1, uid: UID(nodes/web-1)"
	for _, c := range []struct {
		attack string
		pod    mirror
	}{
		{"an honest mirror pod", mirror{}},
		{"an honest mirror pod with a folder of its host", volume("hostPath: {path: /var/log}")},
		{"an honest mirror pod that is privileged", container("securityContext: {privileged: true}")},
		{"a pod that is no mirror pod", mirror{metadata: "annotations: {}"}},
		{
			"a pod that is no mirror pod but mounts a secret",
			mirror{
				metadata: "annotations: {}",
				spec:     "nodeName: web-1, " + plainContainer + ", volumes: [{name: v, secret: {secretName: foreign-secret}}]",
			},
		},
		{"on another node", mirror{spec: "nodeName: pay-1, " + plainContainer}},
		{"on no node", mirror{spec: plainContainer}},
		{"owned by nobody", mirror{owner: "[]"}},
		{"owned by another node", mirror{owner: "[{apiVersion: v1, kind: Node, name: pay-1, uid: UID(nodes/pay-1), controller: true}]"}},
		{
			"owned by itself, with another uid",
			mirror{owner: "[{apiVersion: v1, kind: Node, name: web-1, uid: UID(nodes/pay-1), controller: true}]"},
		},
		{
			"owned by itself and somebody else",
			mirror{owner: "[{" + me + ", controller: true}, {apiVersion: v1, kind: Pod, name: foreign, uid: UID(pods/foreign)}]"},
		},
		{"owned by a pod", mirror{owner: "[{apiVersion: v1, kind: Pod, name: foreign, uid: UID(pods/foreign), controller: true}]"}},
		{
			"owned by itself in another API version",
			mirror{owner: "[{apiVersion: v2, kind: Node, name: web-1, uid: UID(nodes/web-1), controller: true}]"},
		},
		{"not controlled by its owner", mirror{owner: "[{" + me + ", controller: false}]"}},
		{"not said to be controlled by its owner", mirror{owner: "[{" + me + "}]"}},
		{"blocking the deletion of its owner", mirror{owner: "[{" + me + ", controller: true, blockOwnerDeletion: true}]"}},
		{"with a service account", onWeb("serviceAccountName: foreign")},
		{"with an image pull secret", onWeb("imagePullSecrets: [{name: foreign-pull}]")},
		{"with a secret in its environment", container("env: [{name: KEY, valueFrom: {secretKeyRef: {name: foreign-secret, key: key}}}]")},
		{"with all of a secret in its environment", container("envFrom: [{secretRef: {name: foreign-secret}}]")},
		{
			"with a config map in its environment",
			container("env: [{name: KEY, valueFrom: {configMapKeyRef: {name: foreign-config, key: key}}}]"),
		},
		{"with all of a config map in its environment", container("envFrom: [{configMapRef: {name: foreign-config}}]")},
		{
			"with a secret in the environment of an init container",
			onWeb("initContainers: [{name: init, image: registry.example.com/stock/app:1.0, env: [{name: KEY, valueFrom: " +
				"{secretKeyRef: {name: foreign-secret, key: key}}}]}]"),
		},
		{"with a secret as a volume", volume("secret: {secretName: foreign-secret}")},
		{
			"with a secret as a volume among others",
			onWeb("volumes: [{name: a, emptyDir: {}}, {name: v, secret: {secretName: foreign-secret}}]"),
		},
		{"with a secret in a projected volume", volume("projected: {sources: [{secret: {name: foreign-secret}}]}")},
		{"with a config map as a volume", volume("configMap: {name: foreign-config}")},
		{"with a config map in a projected volume", volume("projected: {sources: [{configMap: {name: foreign-config}}]}")},
		{
			"with a token in a projected volume",
			volume("projected: {sources: [{serviceAccountToken: {audience: bank.example.com, path: token}}]}"),
		},
		{
			"with trust anchors in a projected volume",
			volume("projected: {sources: [{clusterTrustBundle: {name: bundle, path: bundle.pem}}]}"),
		},
		{
			"with a pod certificate in a projected volume",
			volume("projected: {sources: [{podCertificate: {signerName: stock.example.com/pods, keyType: ED25519, " +
				"credentialBundlePath: bundle.pem}}]}"),
		},
		{
			"with its own fields in a projected volume",
			volume("projected: {sources: [{downwardAPI: {items: [{path: name, fieldRef: {fieldPath: metadata.name}}]}}]}"),
		},
		{"with the claim of another's disk", volume("persistentVolumeClaim: {claimName: foreign-claim}")},
		{
			"with a claim of its own making",
			volume("ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}"),
		},
		{
			"with an inline volume of a storage driver",
			volume("csi: {driver: hollow.csi.example.com, nodePublishSecretRef: {name: foreign-secret}}"),
		},
		{"with a share that a secret opens", volume("azureFile: {secretName: foreign-secret, shareName: s}")},
		{
			"with a device that another pod claimed (CVE-2025-4563)",
			onWeb("resourceClaims: [{name: d, resourceClaimName: foreign-devices}]"),
		},
		{"with a device by template (CVE-2025-4563)", onWeb("resourceClaims: [{name: d, resourceClaimTemplateName: any}]")},
	} {
		section.Requests = append(section.Requests, post(c.attack, inStock("pods"), c.pod.String()))
	}
	return section
}

func pods() Section {
	const all = "/api/v1/pods"
	section := Section{
		Title: "Pods",
		About: "A node sees its own pods, deletes them when they have ended, and writes nothing of them but their status.",
		Requests: []Request{
			get("its own pod", inStock("pods/own")),
			get("another node's pod", inStock("pods/foreign")),
			get("a pod that no node has yet", inStock("pods/waiting")),
			get("its own mirror pod", inStock("pods/clock-web-1")),
			get("another node's mirror pod", inStock("pods/clock-pay-1")),
			get("all pods", all),
			get("all pods of a namespace", inStock("pods")),
			get("all its own pods", with(all, "fieldSelector=spec.nodeName%3Dweb-1")),
			get("all its own pods, watched", with(with(all, "fieldSelector=spec.nodeName%3Dweb-1"), watchFor)),
			get("all its own pods that run", with(all, "fieldSelector=spec.nodeName%3Dweb-1,status.phase%3DRunning")),
			get("another node's pods", with(all, "fieldSelector=spec.nodeName%3Dpay-1")),
			get("another node's pods, watched", with(with(all, "fieldSelector=spec.nodeName%3Dpay-1"), watchFor)),
			get("all pods but its own", with(all, "fieldSelector=spec.nodeName!%3Dweb-1")),
			get("pods that are its own and another's, which are none",
				with(all, "fieldSelector=spec.nodeName%3Dweb-1,spec.nodeName%3Dpay-1")),
			get("pods of no node", with(all, "fieldSelector=spec.nodeName%3D")),
			get("pods by label", with(all, "labelSelector=app%3Dstock")),
			get("another node's pod, by listing its name", with(inStock("pods"), "fieldSelector=metadata.name%3Dforeign")),
			get("its own pod, by listing its name", with(inStock("pods"), "fieldSelector=metadata.name%3Down")),
			patch("change the image of its own pod", inStock("pods/own"),
				`{spec: {containers: [{name: app, image: registry.example.com/evil:1.0}]}}`),
			patch("label its own pod", inStock("pods/own"), `{metadata: {labels: {app: bank}}}`),
			replace("replace its own pod", inStock("pods/own"), ""),
			replace("replace another node's pod", inStock("pods/foreign"), ""),
			remove("delete its own pod", inStock("pods/own")),
			remove("delete its own pod at once", inStock("pods/own?gracePeriodSeconds=0")),
			remove("delete another node's pod", inStock("pods/foreign")),
			remove("delete another node's pod at once", inStock("pods/foreign?gracePeriodSeconds=0")),
			remove("delete a pod that no node has yet", inStock("pods/waiting")),
			remove("delete another node's mirror pod", inStock("pods/clock-pay-1")),
			remove("delete its own mirror pod", inStock("pods/clock-web-1")),
			remove("delete a pod that is not there", inStock("pods/gone")),
			remove("delete all pods of a namespace", inStock("pods")),
			remove("delete all its own pods", inStock("pods?fieldSelector=spec.nodeName%%3Dweb-1")),
			post("bind a waiting pod to itself, and so get its secrets", inStock("pods/waiting/binding"),
				`{apiVersion: v1, kind: Binding, metadata: {name: waiting}, target: {apiVersion: v1, kind: Node, name: web-1}}`),
			post("bind a waiting pod to itself, the old way", inStock("bindings"),
				`{apiVersion: v1, kind: Binding, metadata: {name: waiting}, target: {apiVersion: v1, kind: Node, name: web-1}}`),
			patch("put a container of its own into its pod", inStock("pods/own/ephemeralcontainers"),
				`{spec: {ephemeralContainers: [{name: evil, image: registry.example.com/evil:1.0}]}}`),
			patch("put a container of its own into another's pod", inStock("pods/foreign/ephemeralcontainers"),
				`{spec: {ephemeralContainers: [{name: evil, image: registry.example.com/evil:1.0}]}}`),
			patch("give its own pod more", inStock("pods/own/resize"),
				`{spec: {containers: [{name: app, resources: {requests: {cpu: 1m}}}]}}`),
		},
	}
	for _, pod := range []string{"own", "foreign"} {
		section.Requests = append(section.Requests,
			get("the log of a pod", inStock("pods/%s/log", pod)),
			post("run a command in a pod", inStock("pods/%s/exec?command=id&stdout=true", pod), ""),
			post("attach to a pod", inStock("pods/%s/attach?stdout=true", pod), ""),
			post("forward a port of a pod", inStock("pods/%s/portforward?ports=80", pod), ""),
			get("a pod through the API server", inStock("pods/%s/proxy/", pod)),
		)
	}
	return section
}

func podStatus() Section {
	const resourceClaim = `{status: {resourceClaimStatuses: [{name: devices, resourceClaimName: foreign-devices}]}}`
	const extended = `{status: {extendedResourceClaimStatus: {resourceClaimName: foreign-devices, ` +
		`requestMappings: [{containerName: app, resourceName: example.com/card, requestName: one}]}}}`
	section := Section{
		Title: "The status of pods",
		About: "A node says how its pods are, but a status may not widen what the node reaches.",
		Requests: []Request{
			patch("its own pod's phase", inStock("pods/own/status"), `{status: {message: here}}`),
			replace("its own pod's status as it is", inStock("pods/own/status"), ""),
			patch("another node's pod has failed", inStock("pods/foreign/status"), `{status: {phase: Failed}}`),
			replace("another node's pod's status", inStock("pods/foreign/status"), ""),
			patch("a waiting pod has failed", inStock("pods/waiting/status"), `{status: {phase: Failed}}`),
			patch("another node's mirror pod has failed", inStock("pods/clock-pay-1/status"), `{status: {phase: Failed}}`),
			patch("a pod that is not there has failed", inStock("pods/gone/status"), `{status: {phase: Failed}}`),
			patch("another label, so that a service sends it requests", inStock("pods/own/status"), `{metadata: {labels: {app: bank}}}`),
			patch("a label removed", inStock("pods/own/status"), `{metadata: {labels: {app: null}}}`),
			patchAs(jsonPatch, "another label, by JSON patch", inStock("pods/own/status"),
				`[{op: add, path: /metadata/labels/app, value: bank}]`),
			patchAs(applyPatch, "another label, by server-side apply", inStock("pods/own/status?fieldManager=kubelet&force=true"),
				`{apiVersion: v1, kind: Pod, metadata: {name: own, labels: {app: bank}}}`),
			patch("an annotation", inStock("pods/own/status"), `{metadata: {annotations: {example.com/note: here}}}`),
			patch("the annotation of a mirror pod", inStock("pods/own/status"),
				`{metadata: {annotations: {kubernetes.io/config.mirror: abc}}}`),
			patch("an owner", inStock("pods/own/status"),
				`{metadata: {ownerReferences: [{apiVersion: v1, kind: Pod, name: foreign, uid: UID(pods/foreign)}]}}`),
			patch("another node, which the API server leaves aside", inStock("pods/own/status"), `{spec: {nodeName: pay-1}}`),
			patch("another's devices, as made from a template", inStock("pods/own-odd/status"), resourceClaim),
			patch("another's devices, as made from a template, on a pod without claims", inStock("pods/own/status"), resourceClaim),
			patch("another's devices, as an extended resource", inStock("pods/own/status"), extended),
			patch("another's devices, as what a node shares out", inStock("pods/own/status"),
				`{status: {nodeAllocatableResourceClaimStatuses: [{resourceClaimName: foreign-devices, containers: [app]}]}}`),
			post("create a status", inStock("pods/own/status"), `{apiVersion: v1, kind: Pod, metadata: {name: own}}`),
			get("read its own pod's status", inStock("pods/own/status")),
		},
	}
	return section
}

func evictions() Section {
	eviction := func(attack, pod, name string) Request {
		return post(attack, inStock("pods/%s/eviction", pod),
			fmt.Sprintf(`{apiVersion: policy/v1, kind: Eviction, metadata: {name: %s, namespace: stock}}`, name))
	}
	return Section{
		Title: "Evictions",
		About: "A node may evict its own pods. Which pod that is says the path, not the body.",
		Requests: []Request{
			eviction("its own pod", "own", "own"),
			eviction("another node's pod", "foreign", "foreign"),
			eviction("another node's pod, on the path of its own", "own", "foreign"),
			eviction("another node's pod, with its own in the body", "foreign", "own"),
			eviction("a pod that no node has yet", "waiting", "waiting"),
			eviction("its own mirror pod", "clock-web-1", "clock-web-1"),
			eviction("another node's mirror pod", "clock-pay-1", "clock-pay-1"),
			eviction("a pod that is not there", "gone", "gone"),
		},
	}
}
