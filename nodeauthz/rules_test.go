package nodeauthz_test

import (
	"testing"

	. "github.com/node-authorizer/node-authorizer/nodeauthz"
)

// The tests in this file have the rules for each resource at the defaults of
// the newest version. Behaviour of other versions and gates is in minors_test.go.

func TestSecretsAndConfigMaps(t *testing.T) {
	for _, tc := range []struct{ resource, own, other string }{
		{"secrets", "shop/db", "shop/tls"},
		{"configmaps", "shop/settings", "shop/pages"},
	} {
		t.Run(tc.resource, func(t *testing.T) {
			check(t, latest(), []rule{
				{"a node gets what its pods refer to", by1("get", tc.resource, tc.own), PathToObject},
				{"lists it by name", by1("list", tc.resource, tc.own), PathToObject},
				{"watches it by name", by1("watch", tc.resource, tc.own), PathToObject},
				{"gets nothing that only other nodes' pods refer to", by1("get", tc.resource, tc.other), NoPathToObject},
				{"lists nothing of theirs", by1("list", tc.resource, tc.other), NoPathToObject},
				{"gets nothing that nothing refers to", by1("get", tc.resource, "shop/unheard-of"), NoPathToObject},
				{
					"gets nothing of the same name in another namespace",
					by1("get", tc.resource, "elsewhere/"+tc.own[len("shop/"):]), NoPathToObject,
				},
				{"does not list a namespace", by1("list", tc.resource, "shop/"), NameRequired},
				{"does not watch a namespace", by1("watch", tc.resource, "shop/"), NameRequired},
				{"does not list the cluster", by1("list", tc.resource, ""), NameRequired},
				{"does not list its own by selector", by1("list", tc.resource, "shop/", "spec.nodeName=worker-1"), NameRequired},
				{"needs the namespace", by1("get", tc.resource, tc.own[len("shop/"):]), NamespaceRequired},
				{"does not create", by1("create", tc.resource, "shop/"), VerbNotAllowed},
				{"does not update", by1("update", tc.resource, tc.own), VerbNotAllowed},
				{"does not patch", by1("patch", tc.resource, tc.own), VerbNotAllowed},
				{"does not delete", by1("delete", tc.resource, tc.own), VerbNotAllowed},
				{"does not delete collections", by1("deletecollection", tc.resource, "shop/"), VerbNotAllowed},
				{"has no subresources", by1("get", tc.resource+"/status", tc.own), SubresourceNotAllowed},
				{"is read in the core group only", by1("get", tc.resource+".example.com", tc.own), NoRuleForResource},
				{"is not read by a node without pods", from("worker-3", "get", tc.resource, tc.own), NoPathToObject},
			})
		})
	}
	check(t, latest(), []rule{
		{"a volume's secret is read where its claim is used", by1("get", "secrets", "vault/orders-key"), PathToObject},
		{"and not elsewhere", by1("get", "secrets", "vault/images-key"), NoPathToObject},
		{"and not where no pod uses the claim", by1("get", "secrets", "vault/idle-key"), NoPathToObject},
	})
}

func TestPersistentVolumeClaims(t *testing.T) {
	const claims, status = "persistentvolumeclaims", "persistentvolumeclaims/status"
	check(t, latest(), []rule{
		{"a node gets what its pods mount", by1("get", claims, "shop/orders"), PathToObject},
		{"and no other", by1("get", claims, "shop/images"), NoPathToObject},
		{"needs the name", by1("get", claims, "shop/"), NameRequired},
		{"needs the namespace", by1("get", claims, "orders"), NamespaceRequired},
		{"does not list", by1("list", claims, "shop/orders"), VerbNotAllowed},
		{"does not watch", by1("watch", claims, "shop/orders"), VerbNotAllowed},
		{"does not update", by1("update", claims, "shop/orders"), VerbNotAllowed},
		{"does not create", by1("create", claims, "shop/"), VerbNotAllowed},
		{"does not delete", by1("delete", claims, "shop/orders"), VerbNotAllowed},
		{"updates the status", by1("update", status, "shop/orders"), PathToObject},
		{"patches the status", by1("patch", status, "shop/orders"), PathToObject},
		{"does not get the status", by1("get", status, "shop/orders"), VerbNotAllowed},
		{"updates no other status", by1("update", status, "shop/images"), NoPathToObject},
		{"updates the status by name", by1("update", status, "shop/"), NameRequired},
		{"has no other subresource", by1("get", claims+"/finalizers", "shop/orders"), SubresourceNotAllowed},
	})
}

// TestClusterScopedObjectsOfPods has objects that are got by name and path and lie in
// no namespace.
func TestClusterScopedObjectsOfPods(t *testing.T) {
	for _, tc := range []struct{ resource, own, other string }{
		{"persistentvolumes", "pv-orders", "pv-images"},
		{"volumeattachments.storage.k8s.io", "csi-worker-1", "csi-worker-2"},
	} {
		t.Run(tc.resource, func(t *testing.T) {
			check(t, latest(), []rule{
				{"a node gets its own", by1("get", tc.resource, tc.own), PathToObject},
				{"and no other", by1("get", tc.resource, tc.other), NoPathToObject},
				{"needs the name", by1("get", tc.resource, ""), NameRequired},
				{"not in a namespace", by1("get", tc.resource, "shop/"+tc.own), ClusterScoped},
				{"does not list", by1("list", tc.resource, ""), VerbNotAllowed},
				{"does not list by name", by1("list", tc.resource, tc.own), VerbNotAllowed},
				{"does not watch", by1("watch", tc.resource, tc.own), VerbNotAllowed},
				{"does not update", by1("update", tc.resource, tc.own), VerbNotAllowed},
				{"does not patch", by1("patch", tc.resource, tc.own), VerbNotAllowed},
				{"does not delete", by1("delete", tc.resource, tc.own), VerbNotAllowed},
				{"has no subresource", by1("get", tc.resource+"/status", tc.own), SubresourceNotAllowed},
			})
		})
	}
	check(t, latest(), []rule{
		{"a volume whose claim no pod uses is unrelated", by1("get", "persistentvolumes", "pv-idle"), NoPathToObject},
		{"volumes have no group", by1("get", "persistentvolumes.storage.k8s.io", "pv-orders"), NoRuleForResource},
		{"attachments have one", by1("get", "volumeattachments", "csi-worker-1"), NoRuleForResource},
	})
}

func TestResourceClaims(t *testing.T) {
	const claims = "resourceclaims.resource.k8s.io"
	check(t, latest(), []rule{
		{"a node gets those of its pods", by1("get", claims, "shop/a100"), PathToObject},
		{"and no other", by1("get", claims, "shop/v100"), NoPathToObject},
		{"needs the name", by1("get", claims, "shop/"), NameRequired},
		{"needs the namespace", by1("get", claims, "a100"), NamespaceRequired},
		{"does not list", by1("list", claims, "shop/"), VerbNotAllowed},
		{"does not watch", by1("watch", claims, "shop/a100"), VerbNotAllowed},
		{"does not update", by1("update", claims, "shop/a100"), VerbNotAllowed},
		{"has no subresource", by1("update", claims+"/status", "shop/a100"), SubresourceNotAllowed},
	})
}

func TestServiceAccounts(t *testing.T) {
	const accounts, token = "serviceaccounts", "serviceaccounts/token"
	check(t, latest(), []rule{
		{"a node makes tokens for those of its pods", by1("create", token, "shop/api"), PathToObject},
		{"and for no other", by1("create", token, "shop/web"), NoPathToObject},
		{"nor for the default one that no pod uses", by1("create", token, "shop/default"), NoPathToObject},
		{"makes tokens by name", by1("create", token, "shop/"), NameRequired},
		{"makes tokens in a namespace", by1("create", token, "api"), NamespaceRequired},
		{"does not get tokens", by1("get", token, "shop/api"), VerbNotAllowed},
		{"gets those of its pods", by1("get", accounts, "shop/api"), PathToObject},
		{"gets no other", by1("get", accounts, "shop/web"), NoPathToObject},
		{"does not list", by1("list", accounts, "shop/"), VerbNotAllowed},
		{"does not watch, not even by name", by1("watch", accounts, "shop/api"), VerbNotAllowed},
		{"does not create", by1("create", accounts, "shop/"), VerbNotAllowed},
		{"does not update", by1("update", accounts, "shop/api"), VerbNotAllowed},
		{"does not impersonate", by1("impersonate", accounts, "shop/api"), VerbNotAllowed},
		{"has no other subresource", by1("get", accounts+"/status", "shop/api"), SubresourceNotAllowed},
	})
}

func TestLeases(t *testing.T) {
	const leases = "leases.coordination.k8s.io"
	check(t, latest(), []rule{
		{"a node gets the one that bears its name", by1("get", leases, "kube-node-lease/worker-1"), OwnName},
		{"updates it", by1("update", leases, "kube-node-lease/worker-1"), OwnName},
		{"patches it", by1("patch", leases, "kube-node-lease/worker-1"), OwnName},
		{"deletes it", by1("delete", leases, "kube-node-lease/worker-1"), OwnName},
		{"creates, when the name is not known yet", by1("create", leases, "kube-node-lease/"), GrantedToNodes},
		{"creates with any name: admission checks it", by1("create", leases, "kube-node-lease/worker-2"), GrantedToNodes},
		{"gets no other node's", by1("get", leases, "kube-node-lease/worker-2"), NotOwnLease},
		{"updates no other node's", by1("update", leases, "kube-node-lease/worker-2"), NotOwnLease},
		{"deletes no other node's", by1("delete", leases, "kube-node-lease/worker-2"), NotOwnLease},
		{"names it", by1("get", leases, "kube-node-lease/"), NotOwnLease},
		{"compares names exactly", by1("get", leases, "kube-node-lease/worker-10"), NotOwnLease},
		{"has none in another namespace", by1("get", leases, "kube-system/worker-1"), NotLeaseNamespace},
		{"creates none in another namespace", by1("create", leases, "kube-system/"), NotLeaseNamespace},
		{"has none without a namespace", by1("update", leases, "worker-1"), NotLeaseNamespace},
		{"does not list", by1("list", leases, "kube-node-lease/"), VerbNotAllowed},
		{"does not list its own by name", by1("list", leases, "kube-node-lease/worker-1"), VerbNotAllowed},
		{"does not watch", by1("watch", leases, "kube-node-lease/worker-1"), VerbNotAllowed},
		{"does not delete collections", by1("deletecollection", leases, "kube-node-lease/"), VerbNotAllowed},
		{"has it with any subresource", by1("update", leases+"/status", "kube-node-lease/worker-1"), OwnName},
		{"has no other node's with any subresource", by1("update", leases+"/status", "kube-node-lease/worker-2"), NotOwnLease},
		{"has it before anything is on the node", from("worker-3", "get", leases, "kube-node-lease/worker-3"), OwnName},
		{"leases of the core group are not leases", by1("get", "leases", "kube-node-lease/worker-1"), NoRuleForResource},
	})
}

func TestCSINodes(t *testing.T) {
	const csiNodes, status = "csinodes.storage.k8s.io", "csinodes.storage.k8s.io/status"
	check(t, latest(), []rule{
		{"a node gets the one that bears its name", by1("get", csiNodes, "worker-1"), OwnName},
		{"updates it", by1("update", csiNodes, "worker-1"), OwnName},
		{"patches it", by1("patch", csiNodes, "worker-1"), OwnName},
		{"deletes it", by1("delete", csiNodes, "worker-1"), OwnName},
		{"creates with any name: admission checks it", by1("create", csiNodes, ""), GrantedToNodes},
		{"gets no other node's", by1("get", csiNodes, "worker-2"), NotOwnCSINode},
		{"patches no other node's", by1("patch", csiNodes, "worker-2"), NotOwnCSINode},
		{"compares names exactly", by1("update", csiNodes, "worker-10"), NotOwnCSINode},
		{"deletes no other node's", by1("delete", csiNodes, "worker-2"), NotOwnCSINode},
		{"does not list", by1("list", csiNodes, ""), VerbNotAllowed},
		{"does not watch, not even by name", by1("watch", csiNodes, "worker-1"), VerbNotAllowed},
		{"does not delete collections", by1("deletecollection", csiNodes, ""), VerbNotAllowed},
		{"writes the status only with a gate", by1("update", status, "worker-1"), FeatureDisabled},
		{"has no other subresource", by1("get", csiNodes+"/scale", "worker-1"), SubresourceNotAllowed},
		{"has it before anything is on the node", from("worker-3", "get", csiNodes, "worker-3"), OwnName},
	})
}

func TestNodes(t *testing.T) {
	const nodes, status = "nodes", "nodes/status"
	check(t, latest(), []rule{
		{"a node reads itself", by1("get", nodes, "worker-1"), OwnName},
		{"lists itself", by1("list", nodes, "worker-1"), OwnName},
		{"watches itself", by1("watch", nodes, "worker-1"), OwnName},
		{"reads itself before it exists or anything is on it", from("worker-3", "get", nodes, "worker-3"), OwnName},
		{"reads no other", by1("get", nodes, "worker-2"), NotOwnNode},
		{"watches no other", by1("watch", nodes, "worker-2"), NotOwnNode},
		{"does not list all", by1("list", nodes, ""), NotOwnNode},
		{"does not list by spec.nodeName", by1("list", nodes, "", "spec.nodeName=worker-1"), NotOwnNode},
		{"compares names exactly", by1("get", nodes, "Worker-1"), NotOwnNode},
		{"to the end", by1("get", nodes, "worker-10"), NotOwnNode},
		{"registers: admission looks at the name", by1("create", nodes, ""), GrantedToNodes},
		{"updates: admission looks at the name", by1("update", nodes, "worker-1"), GrantedToNodes},
		{"may update others as far as authorization goes", by1("update", nodes, "worker-2"), GrantedToNodes},
		{"patches", by1("patch", nodes, "worker-1"), GrantedToNodes},
		{"updates the status", by1("update", status, "worker-1"), GrantedToNodes},
		{"patches the status", by1("patch", status, "worker-1"), GrantedToNodes},
		{"does not get the status", by1("get", status, "worker-1"), VerbNotAllowed},
		{"does not delete itself", by1("delete", nodes, "worker-1"), VerbNotAllowed},
		{"does not delete collections", by1("deletecollection", nodes, ""), VerbNotAllowed},
		{"has no proxy", by1("get", nodes+"/proxy", "worker-1"), SubresourceNotAllowed},
	})
}

func TestPods(t *testing.T) {
	const pods = "pods"
	check(t, latest(), []rule{
		{"a node gets those bound to it", by1("get", pods, "shop/api"), PathToObject},
		{"gets its mirror pods", by1("get", pods, "kube-system/proxy-worker-1"), PathToObject},
		{"gets no other", by1("get", pods, "shop/web"), NoPathToObject},
		{"gets none that is not bound", by1("get", pods, "shop/pending"), NoPathToObject},
		{"gets none by selector", by1("get", pods, "shop/web", "spec.nodeName=worker-1"), NoPathToObject},
		{"gets by name", by1("get", pods, "shop/"), NameRequired},
		{"lists by its own name in a selector", by1("list", pods, "", "spec.nodeName=worker-1"), OwnFieldSelector},
		{"watches so", by1("watch", pods, "", "spec.nodeName=worker-1"), OwnFieldSelector},
		{"lists so in a namespace", by1("list", pods, "shop/", "spec.nodeName=worker-1"), OwnFieldSelector},
		{"does not list all", by1("list", pods, ""), FieldSelectorRequired},
		{"does not watch a namespace", by1("watch", pods, "shop/"), FieldSelectorRequired},
		{"does not list another node's", by1("list", pods, "", "spec.nodeName=worker-2"), FieldSelectorRequired},
		{"lists one by name that is bound to it", by1("list", pods, "shop/api"), PathToObject},
		{"watches one by name that is bound to it", by1("watch", pods, "shop/api", "metadata.name=api"), PathToObject},
		{"lists no other by name", by1("list", pods, "shop/web"), NoPathToObject},
		{
			"lists any name with the selector: nothing of others matches", by1("list", pods, "shop/web", "spec.nodeName=worker-1"),
			OwnFieldSelector,
		},
		{"creates: admission lets mirror pods through", by1("create", pods, "shop/"), GrantedToNodes},
		{"deletes: admission looks at the node", by1("delete", pods, "shop/web"), GrantedToNodes},
		{"updates the status", by1("update", pods+"/status", "shop/api"), GrantedToNodes},
		{"patches the status", by1("patch", pods+"/status", "shop/api"), GrantedToNodes},
		{"does not get the status", by1("get", pods+"/status", "shop/api"), VerbNotAllowed},
		{"evicts", by1("create", pods+"/eviction", "shop/api"), GrantedToNodes},
		{"does not update", by1("update", pods, "shop/api"), VerbNotAllowed},
		{"does not patch", by1("patch", pods, "shop/api"), VerbNotAllowed},
		{"does not delete collections", by1("deletecollection", pods, "shop/", "spec.nodeName=worker-1"), VerbNotAllowed},
		{"does not bind", by1("create", pods+"/binding", "shop/api"), SubresourceNotAllowed},
		{"does not exec", by1("create", pods+"/exec", "shop/api"), SubresourceNotAllowed},
		{"does not read logs", by1("get", pods+"/log", "shop/api"), SubresourceNotAllowed},
		{"does not attach ephemeral containers", by1("patch", pods+"/ephemeralcontainers", "shop/api"), SubresourceNotAllowed},
	})
}

func TestResourceSlices(t *testing.T) {
	const slices = "resourceslices.resource.k8s.io"
	check(t, latest(), []rule{
		{"a node creates: admission looks at the node", by1("create", slices, ""), GrantedToNodes},
		{"gets its own", by1("get", slices, "worker-1-gpus"), PathToObject},
		{"updates its own", by1("update", slices, "worker-1-gpus"), PathToObject},
		{"patches its own", by1("patch", slices, "worker-1-gpus"), PathToObject},
		{"deletes its own", by1("delete", slices, "worker-1-gpus"), PathToObject},
		{"gets no other", by1("get", slices, "worker-2-gpus"), NoPathToObject},
		{"deletes no other", by1("delete", slices, "worker-2-gpus"), NoPathToObject},
		{"deletes by name", by1("delete", slices, ""), NameRequired},
		{"not in a namespace", by1("get", slices, "shop/worker-1-gpus"), ClusterScoped},
		{"lists by its own name in a selector", by1("list", slices, "", "spec.nodeName=worker-1"), OwnFieldSelector},
		{"watches so", by1("watch", slices, "", "spec.nodeName=worker-1"), OwnFieldSelector},
		{
			"deletes collections so", by1("deletecollection", slices, "", "spec.nodeName=worker-1,spec.driver=gpu.example.com"),
			OwnFieldSelector,
		},
		{"does not list all", by1("list", slices, ""), FieldSelectorRequired},
		{"does not list one by name", by1("list", slices, "worker-1-gpus"), FieldSelectorRequired},
		{"does not delete another node's", by1("deletecollection", slices, "", "spec.nodeName=worker-2"), FieldSelectorRequired},
		{"has no subresource", by1("get", slices+"/status", "worker-1-gpus"), SubresourceNotAllowed},
	})
}

func TestPodCertificateRequests(t *testing.T) {
	const requests = "podcertificaterequests.certificates.k8s.io"
	check(t, latest(), []rule{
		{"a node creates: admission looks at the pod", by1("create", requests, "shop/"), GrantedToNodes},
		{"gets its own", by1("get", requests, "shop/api-cert"), PathToObject},
		{"gets no other", by1("get", requests, "shop/web-cert"), NoPathToObject},
		{"lists by its own name in a selector", by1("list", requests, "", "spec.nodeName=worker-1"), OwnFieldSelector},
		{"watches so", by1("watch", requests, "shop/", "spec.nodeName=worker-1"), OwnFieldSelector},
		{"does not list all", by1("list", requests, ""), FieldSelectorRequired},
		{"does not list one by name", by1("list", requests, "shop/api-cert"), FieldSelectorRequired},
		{"does not update", by1("update", requests, "shop/api-cert"), VerbNotAllowed},
		{"does not delete", by1("delete", requests, "shop/api-cert"), VerbNotAllowed},
		{"does not delete collections", by1("deletecollection", requests, "", "spec.nodeName=worker-1"), VerbNotAllowed},
		{"does not write the status", by1("update", requests+"/status", "shop/api-cert"), SubresourceNotAllowed},
	})
}

// TestWhatEveryNodeMayDo has the resources that are open to nodes with any
// pods, with every verb.
func TestWhatEveryNodeMayDo(t *testing.T) {
	verbs := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	for resource, allowed := range map[string][]string{
		"tokenreviews.authentication.k8s.io":             {"create"},
		"subjectaccessreviews.authorization.k8s.io":      {"create"},
		"localsubjectaccessreviews.authorization.k8s.io": {"create"},
		"services":             {"get", "list", "watch"},
		"endpoints":            {"get"},
		"events":               {"create", "update", "patch"},
		"events.events.k8s.io": {"create", "update", "patch"},
		"certificatesigningrequests.certificates.k8s.io": {"create", "get", "list", "watch"},
		"clustertrustbundles.certificates.k8s.io":        {"get", "list", "watch"},
		"csidrivers.storage.k8s.io":                      {"get", "list", "watch"},
		"runtimeclasses.node.k8s.io":                     {"get", "list", "watch"},
	} {
		var rules []rule
		for _, verb := range verbs {
			code := VerbNotAllowed
			for _, v := range allowed {
				if v == verb {
					code = GrantedToNodes
				}
			}
			rules = append(rules,
				rule{resource + ": " + verb, by1(verb, resource, "shop/any"), code},
				rule{resource + ": " + verb + " from a node that nothing is on", from("worker-3", verb, resource, ""), code})
		}
		check(t, latest(),
			append(rules, rule{resource + ": no subresources", by1("get", resource+"/status", "shop/any"), SubresourceNotAllowed}))
	}
}

func TestWhatNodesHaveNoAccessTo(t *testing.T) {
	check(t, latest(), []rule{
		{"deployments", by1("get", "deployments.apps", "shop/api"), NoRuleForResource},
		{"namespaces", by1("get", "namespaces", "shop"), NoRuleForResource},
		{"endpoint slices", by1("list", "endpointslices.discovery.k8s.io", ""), NoRuleForResource},
		{"cluster roles", by1("get", "clusterroles.rbac.authorization.k8s.io", "system:node"), NoRuleForResource},
		{
			"self reviews, which all users are granted elsewhere",
			by1("create", "selfsubjectaccessreviews.authorization.k8s.io", ""), NoRuleForResource,
		},
		{"a resource without a name", by1("get", "", ""), NoRuleForResource},
		{
			"a resource with a longer name than any",
			by1("get", "validatingadmissionpolicybindings.admissionregistration.k8s.io", "any"), NoRuleForResource,
		},
		{"a resource with a star", by1("get", "*", ""), NoRuleForResource},
		{"a resource in the wrong case", by1("get", "Secrets", "shop/db"), NoRuleForResource},
		{"a verb with a star", by1("*", "secrets", "shop/db"), VerbNotAllowed},
		{"a verb in the wrong case", by1("GET", "secrets", "shop/db"), VerbNotAllowed},
		{"no verb", by1("", "services", "shop/api"), VerbNotAllowed},
	})
}
