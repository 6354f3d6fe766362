package containment

import (
	"net/http"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/nodescope"
	"github.com/node-authorizer/node-authorizer/verdict"
)

const (
	leasesPath = "/apis/coordination.k8s.io/v1/namespaces/" + bypassNamespace + "/leases"
	podsOfApp  = "/api/v1/namespaces/" + appNamespace + "/pods"
)

// bypassScope is the scope of the account held. Its roles give it everything.
var bypassScope = v1alpha1.NodeScopeSpec{
	Subjects: []v1alpha1.Subject{{Namespace: bypassNamespace, Name: "held"}}, Mode: v1alpha1.Enforce,
	NamedAsNode: []v1alpha1.NamedRule{
		nodeRule("nodes", "get", "list", "watch", "patch"), nodeRule("nodes/status", "patch"),
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}},
	},
	SelectsNode: []v1alpha1.SelectedRule{{
		APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch", "deletecollection"}, Field: "spec.nodeName",
	}},
	PodsOnNode: []v1alpha1.PodRule{{
		Resources: []string{"pods", "pods/eviction", "pods/log", "pods/proxy", "pods/status"},
		Verbs:     []string{"get", "create", "delete", "patch"},
	}, {
		// Objects of the core group, which are named like pods for the test.
		APIGroups: []string{""}, Resources: []string{"limitranges"}, Verbs: []string{"*"},
	}},
}

// bypass is a request that is refused; with code, by a scope and for this reason. Without one, RBAC allows it.
type bypass struct {
	name string
	request
	code verdict.Code
}

func lease(metadata object) object {
	return object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": object{"holderIdentity": "x"}}
}

func apply(path string, body object) request {
	return request{method: http.MethodPatch, path: path, contentType: applyPatch, body: body}
}

// bypasses are the requests that an attacker with a token of nodeA would try.
var bypasses = []bypass{
	{"another subresource of another node", get("/api/v1/nodes/" + nodeB + "/status"), nodescope.ScopeNoRule},
	{"another subresource of the own node", get("/api/v1/nodes/" + nodeA + "/proxy/pods"), nodescope.ScopeNoRule},
	{"a proxy to a port of another node", get("/api/v1/nodes/https:" + nodeB + ":10250/proxy/pods"), nodescope.ScopeNoRule},
	{"exec in the own pod, which no rule names", post(podsOfApp+"/"+appPod(nodeA)+"/exec?command=id", nil), nodescope.ScopeNoRule},
	{"a proxy to a pod of another node", get(podsOfApp + "/" + appPod(nodeB) + "/proxy/"), nodescope.ScopePodNotOnNode},
	{"with a port", get(podsOfApp + "/" + appPod(nodeB) + ":80/proxy/"), nodescope.ScopePodNotOnNode},
	{"with scheme and port", get(podsOfApp + "/https:" + appPod(nodeB) + ":443/proxy/"), nodescope.ScopePodNotOnNode},
	{
		"the own pod's name as scheme", get(podsOfApp + "/" + appPod(nodeA) + ":" + appPod(nodeB) + ":80/proxy/"),
		nodescope.ScopePodNotOnNode,
	},
	{"a name with escapes", get("/api/v1/nodes/node%2Db"), nodescope.ScopeNameNotNode},
	{"a watch by the old path", get("/api/v1/watch/nodes/" + nodeB + "?watch=true"), nodescope.ScopeNameNotNode},
	{"spec through the status of another node", patch("/api/v1/nodes/"+nodeB+"/status?dryRun=All",
		object{"spec": object{"unschedulable": true}}), nodescope.ScopeNameNotNode},
	{"an owner reference to the own node", post(leasesPath+"?dryRun=All", lease(object{
		"name": nodeB, "ownerReferences": []any{object{"apiVersion": "v1", "kind": "Node", "name": nodeA, "uid": "1"}},
	})), nodescope.ScopeNameNotNode},
	{"a create with another name", post(leasesPath+"?dryRun=All", lease(object{"name": nodeB})), nodescope.ScopeNameNotNode},
	{"a generated name", post(leasesPath+"?dryRun=All", lease(object{"generateName": nodeA})), nodescope.ScopeNameNotNode},
	{"a generated name that is cut", post(leasesPath+"?dryRun=All", lease(object{"generateName": "node-"})), nodescope.ScopeNameNotNode},
	{"an update that creates", put(leasesPath+"/"+nodeB+"?dryRun=All", lease(object{"name": nodeB})), nodescope.ScopeNameNotNode},
	{
		"server-side apply that creates", apply(leasesPath+"/"+nodeB+"?fieldManager=x&dryRun=All", lease(object{"name": nodeB})),
		nodescope.ScopeNameNotNode,
	},
	{"all of a collection", remove(leasesPath + "?dryRun=All"), nodescope.ScopeNameNotNode},
	{"all pods of a collection", remove(podsOfApp + "?dryRun=All"), nodescope.ScopeSelectorRequired},
	{
		"a collection of another node", remove(podsOfApp + "?dryRun=All&fieldSelector=spec.nodeName%3D" + nodeB),
		nodescope.ScopeSelectorRequired,
	},
	{"no selector", get("/api/v1/pods"), nodescope.ScopeSelectorRequired},
	{"an empty selector", get("/api/v1/pods?fieldSelector="), nodescope.ScopeSelectorRequired},
	{"not the own node", get("/api/v1/pods?fieldSelector=spec.nodeName!%3D" + nodeA), nodescope.ScopeSelectorRequired},
	{"not no node", get("/api/v1/pods?fieldSelector=spec.nodeName!%3D"), nodescope.ScopeSelectorRequired},
	{
		"a set, which field selectors do not have", get("/api/v1/pods?fieldSelector=spec.nodeName%20in%20(" + nodeA + "," + nodeB + ")"),
		nodescope.ScopeSelectorRequired,
	},
	{
		"another field with the node's name", get("/api/v1/pods?fieldSelector=status.nominatedNodeName%3D" + nodeA),
		nodescope.ScopeSelectorRequired,
	},
	{"the field in another case", get("/api/v1/pods?fieldSelector=spec.nodename%3D" + nodeA), nodescope.ScopeSelectorRequired},
	{"the name of the object", get("/api/v1/pods?fieldSelector=metadata.name%3D" + nodeA), nodescope.ScopeSelectorRequired},
	{"a label", get("/api/v1/pods?labelSelector=spec.nodeName%3D" + nodeA), nodescope.ScopeSelectorRequired},
	{"the parameter in another case", get("/api/v1/pods?FieldSelector=spec.nodeName%3D" + nodeA), nodescope.ScopeSelectorRequired},
	{"a longer name", get("/api/v1/pods?fieldSelector=spec.nodeName%3D" + nodeA + "%20"), nodescope.ScopeSelectorRequired},
	{
		"another node before the own one",
		get("/api/v1/pods?fieldSelector=spec.nodeName%3D" + nodeB + "&fieldSelector=spec.nodeName%3D" + nodeA),
		nodescope.ScopeSelectorRequired,
	},
	{"a watch of all", get("/api/v1/pods?watch=true"), nodescope.ScopeSelectorRequired},
	{"a watch of all by the old path", get("/api/v1/watch/pods?watch=true"), nodescope.ScopeSelectorRequired},
	{"the nodes by another name", get("/api/v1/nodes?fieldSelector=metadata.name%3D" + nodeB), nodescope.ScopeNameNotNode},
	{"the nodes but one", get("/api/v1/nodes?fieldSelector=metadata.name!%3D" + nodeA), nodescope.ScopeNameNotNode},
	{"the nodes by a label", get("/api/v1/nodes?labelSelector=kubernetes.io/hostname%3D" + nodeA), nodescope.ScopeNameNotNode},
	{"a binding instead of a pod", post("/api/v1/namespaces/"+appNamespace+"/bindings?dryRun=All", object{
		"apiVersion": "v1", "kind": "Binding", "metadata": object{"name": appPod(nodeB)}, "target": object{"kind": "Node", "name": nodeA},
	}), nodescope.ScopeNoRule},
	{"a new pod on the own node", post(podsOfApp+"?dryRun=All", podObject(appNamespace, "new", "app", nodeA)), nodescope.ScopePodNotOnNode},
	{
		"a create with the name of a pod of another node",
		post(limitsPath+"?dryRun=All", limits(object{"name": appPod(nodeB)})), nodescope.ScopePodNotOnNode,
	},
	{"one with the name of no pod", post(limitsPath+"?dryRun=All", limits(object{"name": "none"})), nodescope.ScopePodNotOnNode},
	{
		"one with a generated name",
		post(limitsPath+"?dryRun=All", limits(object{"generateName": appPod(nodeA)})), nodescope.ScopePodNotOnNode,
	},
	{
		"one with the name of the own pod in another namespace",
		post("/api/v1/namespaces/"+bypassNamespace+"/limitranges?dryRun=All", limits(object{"name": appPod(nodeA)})),
		nodescope.ScopePodNotOnNode,
	},
	{
		"one by server-side apply", apply(limitsPath+"/"+appPod(nodeB)+"?fieldManager=x&dryRun=All", limits(object{"name": appPod(nodeB)})),
		nodescope.ScopePodNotOnNode,
	},
	{"one whose owner is the own pod", post(limitsPath+"?dryRun=All", limits(object{
		"name": appPod(nodeB), "ownerReferences": []any{object{"apiVersion": "v1", "kind": "Pod", "name": appPod(nodeA), "uid": "1"}},
	})), nodescope.ScopePodNotOnNode},
	{
		"a deletion of what is named like a pod of another node",
		remove(limitsPath + "/" + appPod(nodeB) + "?dryRun=All"), nodescope.ScopePodNotOnNode,
	},
	{"a deletion of all that are named like pods", remove(limitsPath + "?dryRun=All"), nodescope.ScopePodNotOnNode},
	{"a list of all that are named like pods", get(limitsPath), nodescope.ScopePodNotOnNode},
	{
		"a list by the name of a pod of another node", get(limitsPath + "?fieldSelector=metadata.name%3D" + appPod(nodeB)),
		nodescope.ScopePodNotOnNode,
	},
	{"a token without a node", post(accountPath(bypassNamespace)+"/held/token", object{"spec": object{}}), nodescope.ScopeNoRule},
	{"the end of the scope", remove(scopesPath + "/held?dryRun=All"), nodescope.ScopeNoRule},
	{"the end of the webhook", remove("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/" +
		"node-authorizer-containment?dryRun=All"), nodescope.ScopeNoRule},
}

// passes are requests about the own node, close to the requests of bypasses.
var passes = []request{
	get("/api/v1/nodes/" + nodeA), get("/api/v1/pods?fieldSelector=spec.nodeName%3D" + nodeA),
	get("/api/v1/pods?fieldSelector=spec.nodeName%3D%3D" + nodeA),
	get("/api/v1/pods?fieldSelector=spec.nodeName%3D" + nodeA + ",status.phase!%3DFailed"),
	get("/api/v1/watch/nodes/" + nodeA + "?watch=true"), post(leasesPath+"?dryRun=All", lease(object{"name": nodeA})),
	apply(leasesPath+"/"+nodeA+"?fieldManager=x&dryRun=All", lease(object{"name": nodeA})),
	remove(podsOfApp + "?dryRun=All&fieldSelector=spec.nodeName%3D" + nodeA),
	patch("/api/v1/nodes/"+nodeA+"/status?dryRun=All", object{"metadata": object{"annotations": object{"a": "b"}}}),
	post(limitsPath+"?dryRun=All", limits(object{"name": appPod(nodeA)})),
	apply(limitsPath+"/"+appPod(nodeA)+"?fieldManager=x&dryRun=All", limits(object{"name": appPod(nodeA)})),
	get(limitsPath + "?fieldSelector=metadata.name%3D" + appPod(nodeA)),
}

// limitsPath has objects of the core group, which are named like pods for the test.
const limitsPath = "/api/v1/namespaces/" + appNamespace + "/limitranges"

func limits(metadata object) object {
	return object{"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata}
}

func TestBypasses(t *testing.T) {
	held := agentOf(t, bypassNamespace, "held", nodeA)
	must(t, plane.grant(t.Context(), bypassNamespace, "held", rule("*", "*", "*")))
	must(t, until(t.Context(), held, get("/api/v1/nodes/"+nodeB), false))
	before := map[string]answer{}
	for _, b := range bypasses {
		before[b.name] = send(t, held, b.request)
	}
	enforceScope(t, "held", bypassScope)
	must(t, until(t.Context(), held, get("/api/v1/nodes/"+nodeB), true))
	for _, b := range bypasses {
		t.Run(b.name, func(t *testing.T) {
			if before[b.name].refused() {
				t.Errorf("%s without a scope: %s", b.request, before[b.name])
			}
			checkRefused(t, b.request, send(t, held, b.request), b.code)
		})
	}
	for _, r := range passes {
		t.Run(r.String(), func(t *testing.T) {
			a := send(t, held, r)
			if a.status >= 300 || strings.Contains(string(a.body), appPod(nodeB)) {
				t.Errorf("got %s", a)
			}
		})
	}
}

func checkRefused(t *testing.T, r request, a answer, code verdict.Code) {
	t.Helper()
	if !a.refused() || codeOf(a) != code {
		t.Errorf("%s: %s; want a refusal %s", r, a, code)
	}
}
