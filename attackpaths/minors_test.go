package attackpaths_test

import (
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// TestMinors has, for techniques that changed, whether the holding is reached in each minor from
// 1.30 to 1.37. It starts from the service account shop/web unless a case has another start.
func TestMinors(t *testing.T) {
	base := node("n1") + namespace("shop", restrictedLabel) + account("shop", "web") + account("shop", "db")
	accountDB := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "db"}
	podDB := attackpaths.Holding{Kind: attackpaths.Pod, Namespace: "shop", Name: "p"}
	podP := pod("shop", "p", "n1", "db")
	withoutToken := strings.ReplaceAll(podP, "serviceAccountToken: {path: token}", "configMap: {name: c}")
	admissions := "@admissionregistration.k8s.io"
	for _, c := range []struct {
		technique attackpaths.Code
		rule      string
		start     attackpaths.Holding
		add       string
		to        attackpaths.Holding
		want      string
	}{
		{
			attackpaths.TokenOfPodOnNode, "pods without a token", nodeN1, withoutToken, accountDB,
			"Certain Certain Certain No No No No No",
		},
		{
			attackpaths.TokenOfPodOnNode, "pods with a token", nodeN1, podP, accountDB,
			"Certain Certain Certain Certain Certain Certain Certain Certain",
		},
		{
			attackpaths.PodExec, "get", accountWeb, podP + role("r", "shop", "shop/web", "get pods/exec@"), podDB,
			"Certain Certain Certain Certain Certain No No No",
		},
		{
			attackpaths.PodExec, "create", accountWeb, podP + role("r", "shop", "shop/web", "create pods/exec@"), podDB,
			"Certain Certain Certain Certain Certain Certain Certain Certain",
		},
		{
			attackpaths.NodeProxy, "get nodes/proxy", accountWeb, podP + role("r", "", "shop/web", "get nodes/proxy@"), podDB,
			"Certain Certain Certain Certain Certain Certain Certain Certain",
		},
		{
			attackpaths.NodeProxy, "finer subresources", accountWeb,
			podP + role("r", "", "shop/web", "get,create nodes/pods@",
				"get,create nodes/healthz@", "get,create nodes/configz@"),
			podDB, "No No No No No No No No",
		},
		{
			attackpaths.Impersonate, "impersonate", accountWeb, role("r", "shop", "shop/web", "impersonate serviceaccounts@"), accountDB,
			"Certain Certain Certain Certain Certain Certain Certain Certain",
		},
		{
			attackpaths.Impersonate, "impersonate:serviceaccount", accountWeb, role("r", "", "shop/web",
				"impersonate:serviceaccount serviceaccounts@authentication.k8s.io", everyVerb("serviceaccount")+" *@*"), accountDB,
			"No No No No No No Certain Certain",
		},
		{
			attackpaths.AdmissionControl, "policies", accountWeb,
			role("r", "", "shop/web", "create mutatingadmissionpolicies"+admissions, "create mutatingadmissionpolicybindings"+admissions),
			attackpaths.Holding{Kind: attackpaths.ClusterAdmin},
			"No No Possible Possible Possible Possible Possible Possible",
		},
	} {
		t.Run(string(c.technique)+" "+c.rule, func(t *testing.T) {
			for i, want := range strings.Fields(c.want) {
				minor := kubeversion.Oldest + kubeversion.Minor(i)
				cluster := newCluster()
				cluster.Features = kubeversion.For(minor)
				parse(t, cluster, base+c.add)
				result := from(t, graphOf(t, cluster), c.start)
				if got := certainties(result)[c.to]; got.String() != want {
					t.Errorf("%s: %s is %s, want %s", minor, c.to, got, want)
				}
				compareSearch(t, cluster, result)
			}
		})
	}
}

// Before 1.36 the API server serves no mutating admission policies by default.
func TestOlderMinorsMayServePolicies(t *testing.T) {
	for minor, want := range map[kubeversion.Minor]bool{32: true, 35: true, 36: false} {
		cluster, found := newCluster(), false
		cluster.Features = kubeversion.For(minor)
		parse(t, cluster, account("shop", "web")+role("r", "", "shop/web",
			"create mutatingadmissionpolicies@admissionregistration.k8s.io",
			"create mutatingadmissionpolicybindings@admissionregistration.k8s.io"))
		for _, r := range from(t, graphOf(t, cluster), accountWeb).Reached {
			if got := r.Path[0].DependsOn; strings.Contains(got, "whether the API server serves") != want {
				t.Errorf("%s: the step depends on %q", minor, got)
			}
			found = true
		}
		if !found {
			t.Errorf("%s: nothing is reached", minor)
		}
	}
}
