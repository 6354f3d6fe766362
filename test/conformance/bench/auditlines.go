package main

import (
	"bytes"
	"fmt"
	"time"
)

// auditLines generates an endless sequence of lines of an audit log.
type auditLines struct {
	fileCluster
	made int
	at   time.Time
	text bytes.Buffer
}

func newAuditLines(l fileCluster) *auditLines {
	return &auditLines{fileCluster: l, at: time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)}
}

// some returns lines of at least the size given. They are valid until the next call.
func (a *auditLines) some(size int) []byte {
	a.text.Reset()
	for a.text.Len() < size {
		a.add()
	}
	return a.text.Bytes()
}

// next returns one line, or for a watch the two of its stages.
func (a *auditLines) next() []byte {
	a.text.Reset()
	a.add()
	return a.text.Bytes()
}

// auditRequest has the fields that vary between lines.
type auditRequest struct {
	verb, path, query string
	reference         string // the fields of objectRef
	object            string // the written object; empty at level Metadata
}

func (a *auditLines) add() {
	i := a.made
	a.made++
	a.at = a.at.Add(3 * time.Millisecond)
	node := i * 7919 % a.nodes
	if i%10 >= 6 {
		a.event(auditController(i), "system:kube-controller-manager", "",
			"kube-controller-manager/v1.37.1 (linux/amd64) kubernetes/5c9f8ab/leader-election", "ResponseComplete")
		return
	}
	request, stages := a.kubeletRequest(i, node)
	for _, stage := range stages {
		a.event(request, "system:node:"+nodeName(node), `"system:nodes",`, "kubelet/v1.37.1 (linux/amd64) kubernetes/5c9f8ab", stage)
	}
}

func (a *auditLines) kubeletRequest(i, node int) (auditRequest, []string) {
	complete := []string{"ResponseComplete"}
	replica := i % a.replicas()
	app := a.appOf(node, replica)
	if i%20 == 11 {
		// Of another node: it would be refused.
		app = a.appOf((node+a.nodes/2)%a.nodes, replica)
	}
	namespace := appNamespace(app)
	switch i / 10 % 6 {
	case 0:
		return auditObject("update", "coordination.k8s.io", "leases", "", "kube-node-lease", nodeName(node), "?timeout=10s"), complete
	case 1:
		return auditObject("patch", "", "nodes", "status", "", nodeName(node), "?timeout=10s"), complete
	case 2:
		return auditObject("get", "", "secrets", "", namespace, appName(app)+"-credentials", ""), complete
	case 3:
		return auditObject("get", "", "configmaps", "", namespace, appName(app)+"-config", ""), complete
	case 4:
		r := auditObject("create", "", "serviceaccounts", "token", namespace, appName(app), "")
		r.object = fmt.Sprintf(`{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","metadata":{},`+
			`"spec":{"audiences":null,"expirationSeconds":3607,`+
			`"boundObjectRef":{"kind":"Pod","apiVersion":"v1","name":%q,"uid":"0b4e7c3e-0000-4000-8000-%012x"}},`+
			`"status":{"token":"","expirationTimestamp":null}}`,
			a.replicaPod(node, replica), i)
		return r, complete
	}
	r := auditObject("watch", "", "configmaps", "", namespace, appName(app)+"-config",
		"?allowWatchBookmarks=true&fieldSelector=metadata.name%3D"+appName(app)+
			"-config&resourceVersion=81234&timeoutSeconds=431&watch=true")
	return r, []string{"ResponseStarted", "ResponseComplete"}
}

func auditController(i int) auditRequest {
	return auditObject("update", "apps", "replicasets", "status", namespaceName(i%50), fmt.Sprintf("service-%06d-6d4cf56db6", i%1000), "")
}

func auditObject(verb, group, resource, subresource, namespace, name, query string) auditRequest {
	path, reference := "/api/v1", ""
	if group != "" {
		path, reference = "/apis/"+group+"/v1", fmt.Sprintf(`,"apiGroup":%q`, group)
	}
	if namespace != "" {
		path, reference = path+"/namespaces/"+namespace, reference+fmt.Sprintf(`,"namespace":%q`, namespace)
	}
	path += "/" + resource
	if verb != "watch" {
		path += "/" + name
	}
	if subresource != "" {
		path, reference = path+"/"+subresource, reference+fmt.Sprintf(`,"subresource":%q`, subresource)
	}
	return auditRequest{
		verb: verb, path: path, query: query,
		reference: fmt.Sprintf(`"resource":%q,"name":%q,"apiVersion":"v1"%s`, resource, name, reference),
	}
}

// event writes one line as kube-apiserver does.
func (a *auditLines) event(r auditRequest, user, group, agent, stage string) {
	level, object := "Metadata", ""
	if r.object != "" {
		level, object = "Request", `"requestObject":`+r.object+","
	}
	at := a.at.Format("2006-01-02T15:04:05.000000Z")
	fmt.Fprintf(&a.text, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":%q,"auditID":"6f1e0d5c-1f3a-4b57-9c8e-%012x","stage":%q,`+
		`"requestURI":%q,"verb":%q,"user":{"username":%q,"groups":[%s"system:authenticated"],`+
		`"extra":{"authentication.kubernetes.io/credential-id":`+
		`["X509SHA256=8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"]}},`+
		`"sourceIPs":["10.0.12.34"],"userAgent":%q,"objectRef":{%s},"responseStatus":{"metadata":{},"code":200},%s`+
		`"requestReceivedTimestamp":%q,"stageTimestamp":%q,`+
		`"annotations":{"authorization.k8s.io/decision":"allow",`+
		`"authorization.k8s.io/reason":"RBAC: allowed by ClusterRoleBinding \"system:node\" of ClusterRole `+
		`\"system:node\" to Group \"system:nodes\""}}`+"\n",
		level, a.made, stage, r.path+r.query, r.verb, user, group, agent, r.reference, object, at, at)
}
