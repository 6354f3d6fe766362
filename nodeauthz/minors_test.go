package nodeauthz_test

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	. "github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// since is a code that applies from a minor on, until the next one in a list.
type since struct {
	minor kubeversion.Minor
	code  verdict.Code
}

// TestEveryMinor has the changes between Kubernetes 1.30 and 1.37: requests
// with their codes at the defaults of each minor, and with gates set in the
// minors that let them be set.
func TestEveryMinor(t *testing.T) {
	const (
		selectors     = "AuthorizeNodeWithSelectors"
		saTokens      = "KubeletServiceAccountTokenForCredentialProviders"
		podCerts      = "PodCertificateRequest"
		bundles       = "ClusterTrustBundle"
		volumeHealth  = "CSIVolumeHealth"
		dra           = "DynamicResourceAllocation"
		slices        = "resourceslices.resource.k8s.io"
		requests      = "podcertificaterequests.certificates.k8s.io"
		trustBundles  = "clustertrustbundles.certificates.k8s.io"
		csiNodeStatus = "csinodes.storage.k8s.io/status"
	)
	for _, tc := range []struct {
		shows   string
		request *access.Request
		gates   string // if the minor has them; empty: all defaults
		codes   []since
	}{
		{
			"nodes read all nodes, then only themselves", by1("get", "nodes", "worker-2"), "",
			[]since{{30, GrantedToNodes}, {32, NotOwnNode}},
		},
		{
			"nodes list all nodes, then only themselves", by1("list", "nodes", ""), "",
			[]since{{30, GrantedToNodes}, {32, NotOwnNode}},
		},
		{
			"nodes watch themselves always", by1("watch", "nodes", "worker-1"), "",
			[]since{{30, GrantedToNodes}, {32, OwnName}},
		},
		{
			"with selectors: only themselves", by1("list", "nodes", ""), selectors + "=true",
			[]since{{31, NotOwnNode}},
		},
		{
			"without: all nodes", by1("list", "nodes", ""), selectors + "=false",
			[]since{{30, GrantedToNodes}, {34, ""}},
		},
		{
			"nodes write nodes always", by1("update", "nodes", "worker-2"), "",
			[]since{{30, GrantedToNodes}},
		},
		{
			"nodes write node status always", by1("patch", "nodes/status", "worker-2"), "",
			[]since{{30, GrantedToNodes}},
		},
		{
			"nodes never delete nodes", by1("delete", "nodes", "worker-1"), "",
			[]since{{30, VerbNotAllowed}},
		},

		{
			"nodes read all pods, then only their own", by1("get", "pods", "shop/web"), "",
			[]since{{30, GrantedToNodes}, {32, NoPathToObject}},
		},
		{
			"nodes read their own pods always", by1("get", "pods", "shop/api"), "",
			[]since{{30, GrantedToNodes}, {32, PathToObject}},
		},
		{
			"nodes list all pods, then only with a selector", by1("list", "pods", ""), "",
			[]since{{30, GrantedToNodes}, {32, FieldSelectorRequired}},
		},
		{
			"nodes watch their own pods always", by1("watch", "pods", "", "spec.nodeName=worker-1"), "",
			[]since{{30, GrantedToNodes}, {32, OwnFieldSelector}},
		},
		{
			"with selectors: only their own pods", by1("list", "pods", ""), selectors + "=true",
			[]since{{31, FieldSelectorRequired}},
		},
		{
			"without: all pods", by1("get", "pods", "shop/web"), selectors + "=false",
			[]since{{30, GrantedToNodes}, {34, ""}},
		},
		{
			"nodes create pods always", by1("create", "pods", "shop/"), "",
			[]since{{30, GrantedToNodes}},
		},
		{
			"nodes evict pods always", by1("create", "pods/eviction", "shop/web"), "",
			[]since{{30, GrantedToNodes}},
		},
		{
			"nodes write pod status always", by1("update", "pods/status", "shop/web"), "",
			[]since{{30, GrantedToNodes}},
		},
		{
			"nodes never update pods", by1("update", "pods", "shop/api"), "",
			[]since{{30, VerbNotAllowed}},
		},

		{
			"nodes list all slices, then only with a selector", by1("list", slices, ""), "",
			[]since{{30, GrantedToNodes}, {32, FieldSelectorRequired}},
		},
		{
			"nodes watch their own slices always", by1("watch", slices, "", "spec.nodeName=worker-1"), "",
			[]since{{30, GrantedToNodes}, {32, OwnFieldSelector}},
		},
		{
			"nodes delete collections of slices since 1.31", by1("deletecollection", slices, ""), "",
			[]since{{30, VerbNotAllowed}, {31, GrantedToNodes}, {32, FieldSelectorRequired}},
		},
		{
			"with selectors: only their own", by1("deletecollection", slices, ""), selectors + "=true",
			[]since{{31, FieldSelectorRequired}},
		},
		{
			"without: all slices", by1("deletecollection", slices, ""), selectors + "=false",
			[]since{{30, VerbNotAllowed}, {31, GrantedToNodes}, {34, ""}},
		},
		{
			"nodes get no slices without their gate, which is on since 1.34", by1("get", slices, "worker-1-gpus"), "",
			[]since{{30, FeatureDisabled}, {34, PathToObject}},
		},
		{
			"nodes get only their own slices with it", by1("get", slices, "worker-2-gpus"), dra + "=true",
			[]since{{30, NoPathToObject}},
		},
		{
			"their own slices", by1("delete", slices, "worker-1-gpus"), dra + "=true",
			[]since{{30, PathToObject}},
		},
		{
			"without the gate none", by1("delete", slices, "worker-1-gpus"), dra + "=false",
			[]since{{30, FeatureDisabled}, {35, ""}},
		},
		{
			"slices are created without the gate too", by1("create", slices, ""), dra + "=false",
			[]since{{30, GrantedToNodes}, {35, ""}},
		},
		{
			"claims of extended resources since 1.34", by1("get", "resourceclaims.resource.k8s.io", "shop/api-extended"), "",
			[]since{{30, NoPathToObject}, {34, PathToObject}},
		},
		{
			"claims that a pod also names in its spec", by1("get", "resourceclaims.resource.k8s.io", "shop/api-both"), "",
			[]since{{30, PathToObject}},
		},
		{
			"resource claims do not depend on their gate", by1("get", "resourceclaims.resource.k8s.io", "shop/a100"), dra + "=false",
			[]since{{30, PathToObject}, {35, ""}},
		},

		{
			"nodes get the service accounts of their pods since 1.34", by1("get", "serviceaccounts", "shop/api"), "",
			[]since{{30, VerbNotAllowed}, {33, FeatureDisabled}, {34, PathToObject}},
		},
		{
			"in 1.33 with a gate", by1("get", "serviceaccounts", "shop/api"), saTokens + "=true",
			[]since{{33, PathToObject}},
		},
		{
			"since 1.34 not without it", by1("get", "serviceaccounts", "shop/api"), saTokens + "=false",
			[]since{{30, VerbNotAllowed}, {33, FeatureDisabled}, {37, PathToObject}},
		}, // 1.37 has PodCertificateRequest on
		{
			"unless pods may have certificates", by1("get", "serviceaccounts", "shop/api"), saTokens + "=false," + podCerts + "=true",
			[]since{{34, PathToObject}},
		},
		{
			"not without both", by1("get", "serviceaccounts", "shop/api"), saTokens + "=false," + podCerts + "=false",
			[]since{{30, VerbNotAllowed}, {33, FeatureDisabled}},
		},
		{
			"never those of other nodes' pods", by1("get", "serviceaccounts", "shop/web"), saTokens + "=true",
			[]since{{33, NoPathToObject}},
		},
		{
			"nodes never list service accounts", by1("list", "serviceaccounts", "shop/"), "",
			[]since{{30, VerbNotAllowed}},
		},
		{
			"nodes always make tokens for their pods", by1("create", "serviceaccounts/token", "shop/api"), "",
			[]since{{30, PathToObject}},
		},

		{
			"pod certificates are unknown, then off, then on", by1("create", requests, "shop/"), "",
			[]since{{30, NoRuleForResource}, {34, FeatureDisabled}, {37, GrantedToNodes}},
		},
		{
			"requests are got by path", by1("get", requests, "shop/api-cert"), podCerts + "=true",
			[]since{{34, PathToObject}},
		},
		{
			"requests are listed with a selector", by1("list", requests, "", "spec.nodeName=worker-1"), podCerts + "=true",
			[]since{{34, OwnFieldSelector}},
		},
		{
			"and only so", by1("list", requests, ""), podCerts + "=true",
			[]since{{34, FieldSelectorRequired}},
		},
		{
			"not without the gate", by1("get", requests, "shop/api-cert"), podCerts + "=false",
			[]since{{30, NoRuleForResource}, {34, FeatureDisabled}},
		},
		{
			"nor any subresource with it", by1("get", requests+"/status", "shop/api-cert"), podCerts + "=true",
			[]since{{34, SubresourceNotAllowed}},
		},

		{
			"trust bundles are off until 1.37", by1("list", trustBundles, ""), "",
			[]since{{30, FeatureDisabled}, {37, GrantedToNodes}},
		},
		{
			"nodes read them with the gate", by1("watch", trustBundles, ""), bundles + "=true",
			[]since{{30, GrantedToNodes}},
		},
		{
			"not without", by1("get", trustBundles, "ca"), bundles + "=false",
			[]since{{30, FeatureDisabled}},
		},
		{
			"and never write them", by1("update", trustBundles, "ca"), bundles + "=true",
			[]since{{30, VerbNotAllowed}},
		},

		{
			"the status of csinodes can be opened since 1.37", by1("update", csiNodeStatus, "worker-1"), "",
			[]since{{30, SubresourceNotAllowed}, {37, FeatureDisabled}},
		},
		{
			"with a gate that is older", by1("update", csiNodeStatus, "worker-1"), volumeHealth + "=true",
			[]since{{30, SubresourceNotAllowed}, {37, OwnName}},
		},
		{
			"to read", by1("get", csiNodeStatus, "worker-1"), volumeHealth + "=true",
			[]since{{30, SubresourceNotAllowed}, {37, OwnName}},
		},
		{
			"for the node's own", by1("patch", csiNodeStatus, "worker-2"), volumeHealth + "=true",
			[]since{{30, SubresourceNotAllowed}, {37, NotOwnCSINode}},
		},
		{
			"never to create", by1("create", csiNodeStatus, "worker-1"), volumeHealth + "=true",
			[]since{{30, SubresourceNotAllowed}, {37, VerbNotAllowed}},
		},
		{
			"also with the slash in the resource", whole("get", "storage.k8s.io", "csinodes/status", "worker-2"), volumeHealth + "=true",
			[]since{{30, NoRuleForResource}, {37, GrantedToNodes}},
		},
		{
			"where the default is the same", whole("get", "storage.k8s.io", "csinodes/status", "worker-1"), "",
			[]since{{30, NoRuleForResource}, {37, FeatureDisabled}},
		},

		{
			"events of the new group since 1.35", by1("create", "events.events.k8s.io", "shop/"), "",
			[]since{{30, NoRuleForResource}, {35, GrantedToNodes}},
		},
		{
			"events of the core group always", by1("create", "events", "shop/"), "",
			[]since{{30, GrantedToNodes}},
		},
	} {
		t.Run(tc.shows, func(t *testing.T) {
			for _, minor := range kubeversion.Minors() {
				want, known := codeIn(tc.codes, minor)
				features, err := kubeversion.For(minor).WithOverrides(tc.gates)
				if settable := err == nil; settable != known {
					t.Errorf("%s: gates %q can be set is %v (%v), the test says %v", minor, tc.gates, settable, err, known)
				} else if settable {
					g := newCluster()
					addExtended(g)
					if got := New(g, features).Decide(tc.request).Code; got != want {
						t.Errorf("%s with gates %q: got %s, want %s", minor, tc.gates, got, want)
					}
				}
			}
		})
	}
}

// TestWhatIsTheSameInEveryMinor repeats requests that no version decides
// otherwise.
func TestWhatIsTheSameInEveryMinor(t *testing.T) {
	for _, minor := range kubeversion.Minors() {
		t.Run(minor.String(), func(t *testing.T) {
			check(t, New(newCluster(), kubeversion.For(minor)), []rule{
				{"secrets", by1("get", "secrets", "shop/db"), PathToObject},
				{"secrets of others", by1("get", "secrets", "shop/tls"), NoPathToObject},
				{"secrets by list", by1("list", "secrets", "shop/"), NameRequired},
				{"secrets of volumes", by1("get", "secrets", "vault/orders-key"), PathToObject},
				{"config maps", by1("watch", "configmaps", "shop/settings"), PathToObject},
				{"claims", by1("get", "persistentvolumeclaims", "shop/orders"), PathToObject},
				{"the status of claims", by1("patch", "persistentvolumeclaims/status", "shop/orders"), PathToObject},
				{"the status of claims by get", by1("get", "persistentvolumeclaims/status", "shop/orders"), VerbNotAllowed},
				{"volumes", by1("get", "persistentvolumes", "pv-orders"), PathToObject},
				{"attachments", by1("get", "volumeattachments.storage.k8s.io", "csi-worker-1"), PathToObject},
				{"resource claims", by1("get", "resourceclaims.resource.k8s.io", "shop/a100"), PathToObject},
				{"slices", by1("create", "resourceslices.resource.k8s.io", ""), GrantedToNodes},
				{"tokens", by1("create", "serviceaccounts/token", "shop/web"), NoPathToObject},
				{"leases", by1("update", "leases.coordination.k8s.io", "kube-node-lease/worker-1"), OwnName},
				{"leases of others", by1("get", "leases.coordination.k8s.io", "kube-node-lease/worker-2"), NotOwnLease},
				{"csinodes", by1("delete", "csinodes.storage.k8s.io", "worker-1"), OwnName},
				{"csinodes of others", by1("get", "csinodes.storage.k8s.io", "worker-2"), NotOwnCSINode},
				{"services", by1("watch", "services", ""), GrantedToNodes},
				{"endpoints", by1("get", "endpoints", "shop/api"), GrantedToNodes},
				{"signing requests", by1("create", "certificatesigningrequests.certificates.k8s.io", ""), GrantedToNodes},
				{"drivers", by1("list", "csidrivers.storage.k8s.io", ""), GrantedToNodes},
				{"runtime classes", by1("get", "runtimeclasses.node.k8s.io", "gvisor"), GrantedToNodes},
				{"token reviews", by1("create", "tokenreviews.authentication.k8s.io", ""), GrantedToNodes},
				{"access reviews", by1("create", "subjectaccessreviews.authorization.k8s.io", ""), GrantedToNodes},
				{"pods with a slash", whole("create", "", "pods/eviction", "shop/web"), GrantedToNodes},
				{"all else", by1("get", "deployments.apps", "shop/api"), NoRuleForResource},
			})
		})
	}
}

func codeIn(codes []since, minor kubeversion.Minor) (code verdict.Code, known bool) {
	for _, c := range codes {
		if c.minor <= minor {
			code = c.code
		}
	}
	return code, code != ""
}
