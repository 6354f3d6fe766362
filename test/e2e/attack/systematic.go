package attack

import (
	"fmt"
	"net/http"
	"strings"
)

// resource is a resource that the Node authorizer decides by object.
type resource struct {
	group, name, namespace string
	// own, foreign and missing are the names of an object of web-1, of one of pay-1, and
	// of one that does not exist.
	own, foreign string
	// object is the YAML of a valid object, with "%s" for its name.
	object       string
	subresources []string
}

const missing = "missing"

func (r resource) collection() string {
	path := "/apis/" + r.group
	if r.group == "" {
		path = "/api/v1"
	} else {
		path += "/v1"
	}
	if r.namespace != "" {
		path += "/namespaces/" + r.namespace
	}
	return path + "/" + r.name
}

func decidedByObject() []resource {
	const stock = "stock"
	return []resource{
		{"", "secrets", stock, "own-secret", "foreign-secret", "{apiVersion: v1, kind: Secret, metadata: {name: %s}}", nil},
		{"", "configmaps", stock, "own-config", "foreign-config", "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}", nil},
		{
			"", "persistentvolumeclaims", stock, "own-claim", "foreign-claim",
			"{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {accessModes: [ReadWriteOnce], " +
				"resources: {requests: {storage: 1Gi}}}}",
			[]string{"status"},
		},
		{
			"", "persistentvolumes", "", "own-volume", "foreign-volume",
			"{apiVersion: v1, kind: PersistentVolume, metadata: {name: %s}, spec: {capacity: {storage: 1Gi}, accessModes: " +
				"[ReadWriteOnce], hostPath: {path: /tmp}}}",
			[]string{"status"},
		},
		{"", "serviceaccounts", stock, "own", "foreign", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: %s}}", []string{"token"}},
		{
			"", "pods", stock, "own", "foreign",
			"{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {" + plainContainer + "}}",
			[]string{"status", "ephemeralcontainers"},
		},
		{"", "nodes", "", "web-1", "pay-1", "{apiVersion: v1, kind: Node, metadata: {name: %s}}", []string{"status"}},
		{
			"coordination.k8s.io", "leases", "kube-node-lease", "web-1", "pay-1",
			"{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: %s}}", nil,
		},
		{
			"storage.k8s.io", "csinodes", "", "web-1", "pay-1",
			"{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: %s}, spec: {drivers: []}}", nil,
		},
		{
			"storage.k8s.io", "volumeattachments", "", "own-attachment", "foreign-attachment",
			"{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: %s}, spec: {attacher: " +
				"disks.csi.example.com, nodeName: web-1, source: {persistentVolumeName: own-volume}}}",
			[]string{"status"},
		},
		{
			"resource.k8s.io", "resourceclaims", stock, "own-devices", "foreign-devices",
			"{apiVersion: resource.k8s.io/v1, kind: ResourceClaim, metadata: {name: %s}}",
			[]string{"status"},
		},
		{
			"resource.k8s.io", "resourceslices", "", "own-slice", "foreign-slice",
			"{apiVersion: resource.k8s.io/v1, kind: ResourceSlice, metadata: {name: %s}, spec: {driver: " +
				"devices.example.com, nodeName: web-1, pool: {name: web-1, generation: 1, resourceSliceCount: 1}}}",
			nil,
		},
		{
			"certificates.k8s.io", "podcertificaterequests", stock, "own-certificate", "foreign-certificate",
			strings.Replace(podCertificate{}.String(), "name: made", "name: %s", 1),
			[]string{"status"},
		},
	}
}

// everyVerb returns every verb on every resource, for an object of the node, for one of
// another node, and for one that does not exist.
func everyVerb() []Section {
	var sections []Section
	for _, r := range decidedByObject() {
		section := Section{
			Title: "Every verb: " + r.name,
			About: fmt.Sprintf("`%s` is the node's own, `%s` is not, `%s` is not there.", r.own, r.foreign, missing),
		}
		for _, name := range []string{r.own, r.foreign, missing} {
			section.Requests = append(section.Requests, r.verbs(name)...)
		}
		section.Requests = append(section.Requests,
			get("list", r.collection()),
			get("watch", with(r.collection(), watchFor)),
			remove("deletecollection", r.collection()),
		)
		sections = append(sections, section)
	}
	return sections
}

func (r resource) verbs(name string) []Request {
	path, object := r.collection()+"/"+name, fmt.Sprintf(r.object, name)
	named := with(r.collection(), "fieldSelector=metadata.name%3D"+name)
	requests := []Request{
		get("get", path),
		get("list of one name", named),
		get("watch of one name", with(named, watchFor)),
		post("create", r.collection(), object),
		replace("update", path, object),
		patch("patch", path, `{metadata: {annotations: {example.com/attack: here}}}`),
		remove("delete", path),
	}
	for _, subresource := range r.subresources {
		requests = append(requests,
			get("get "+subresource, path+"/"+subresource),
			post("create "+subresource, path+"/"+subresource, object),
			Request{Attack: "update " + subresource, Method: http.MethodPut, Path: path + "/" + subresource, Body: object, Current: true},
			patch("patch "+subresource, path+"/"+subresource, `{metadata: {annotations: {example.com/attack: here}}}`),
		)
	}
	return requests
}
