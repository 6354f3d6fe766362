package attackpaths_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// enforceSome makes the cluster one with NodeScopes, of which some only observe. Constrained impersonation in
// scopes has cases of its own.
func (rc *randomCluster) enforceSome(t *testing.T) (*attackpaths.Cluster, []*v1alpha1.NodeScope) {
	t.Helper()
	if rc.Features.Enabled(kubeversion.ConstrainedImpersonation) {
		rc.Features = kubeversion.For(pick(rc, kubeversion.Minors()[:6]))
	}
	extra := pick(rc, extraRules)
	for _, resource := range extra {
		rc.Objects = append(rc.Objects, rc.extraRole(resource)...)
	}
	c := rc.cluster(t, rc.Objects)
	scopes := rc.scopes(c, v1alpha1.Enforce)
	for i, s := range scopes {
		s.Spec.Mode = pick(rc, []v1alpha1.Mode{v1alpha1.Enforce, v1alpha1.Enforce, v1alpha1.Enforce, v1alpha1.Observe})
		s.Spec.AsNode = s.Spec.AsNode || len(extra) > 0 && extra[0] == ofNodes && rc.chance(2)
		for _, resource := range extra {
			if rc.chance(2) {
				s.Spec.Anywhere = append(s.Spec.Anywhere, v1alpha1.AnywhereRule{
					APIGroups: []string{"*"}, Resources: []string{resource}, Verbs: []string{"*"},
				})
			}
		}
		if rc.chance(10) { // nothing passes, or everything
			scopes[i] = &v1alpha1.NodeScope{ObjectMeta: s.ObjectMeta, Spec: v1alpha1.NodeScopeSpec{
				Mode: s.Spec.Mode, Subjects: s.Spec.Subjects, Otherwise: s.Spec.Otherwise, TokensWithoutNode: s.Spec.TokensWithoutNode,
			}}
		}
	}
	c.NodeScopes = policyOf(t, scopes...)
	return c, scopes
}

// ofNodes is what a node may do so that its certificate is approved.
const ofNodes = "certificatesigningrequests"

// extraRules are rights that few random rules have and that matter in scopes.
var extraRules = [][]string{
	{},
	{},
	{},
	{ofNodes, ofNodes + "/nodeclient"},
	{"serviceaccounts/token"},
	{"serviceaccounts", "userextras/authentication.kubernetes.io/node-name"},
	{"serviceaccounts", "groups"},
	{"serviceaccounts", "serviceaccounts/token"},
	{"widgets", "stores"},
	{"rolebindings", "clusterrolebindings"},
	{"clusterroles", "roles"},
}

// extraRole lets an account, or all, do everything with a resource.
func (rc *randomCluster) extraRole(resource string) []runtime.Object {
	meta := metav1.ObjectMeta{Name: "extra-" + strings.NewReplacer("/", "-", ".", "-").Replace(resource)}
	rule := rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{resource}, Verbs: []string{"*"}}
	if rc.chance(3) {
		rule.ResourceNames = []string{pick(rc, []string{"n1", "x", "r1", "w1"})}
	}
	subjects := []rbacv1.Subject{
		{Kind: "ServiceAccount", Namespace: "a", Name: "x"},
		{Kind: "ServiceAccount", Namespace: "a", Name: "y"},
		{Kind: "ServiceAccount", Namespace: "kube-system", Name: "x"},
		{Kind: "Group", APIGroup: rbacGroup, Name: "system:serviceaccounts"},
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: meta.Name},
		Subjects: []rbacv1.Subject{pick(rc, subjects)},
	}
	if meta.Namespace = pick(rc, []string{"", "", "a", "b"}); meta.Namespace != "" && !strings.HasPrefix(resource, "userextras") {
		return []runtime.Object{
			&rbacv1.ClusterRole{ObjectMeta: binding.ObjectMeta, Rules: []rbacv1.PolicyRule{rule}},
			&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: binding.RoleRef, Subjects: binding.Subjects},
		}
	}
	return []runtime.Object{&rbacv1.ClusterRole{ObjectMeta: binding.ObjectMeta, Rules: []rbacv1.PolicyRule{rule}}, binding}
}

// TestFromAgreesWithExhaustiveSearchInScopes compares what is certain and possible. What is no more certain than
// that the attacker owns the whole cluster is left out.
func TestFromAgreesWithExhaustiveSearchInScopes(t *testing.T) {
	reached, byScopes := 0, 0
	eachCluster(t, 160, func(t *testing.T, rc *randomCluster) {
		c, scopes := rc.enforceSome(t)
		n, g := newNaive(c, scopes...), graphOf(t, c)
		for _, start := range rc.starts(n) {
			result := from(t, g, start)
			compareWithSearch(t, n, result)
			for _, r := range result.Reached {
				reached++
				if strings.Contains(pathText(r.Path), "NodeScope") {
					byScopes++
				}
			}
		}
		if t.Failed() {
			t.Log(scopeTexts(scopes))
		}
	})
	if t.Logf("%d holdings, %d of them through scopes", reached, byScopes); byScopes == 0 {
		t.Error("nothing is reached through scopes")
	}
}

// compareWithSearch compares a result with that of the exhaustive search.
func compareWithSearch(t *testing.T, n *naive, result attackpaths.Result) {
	t.Helper()
	all, _ := n.from(result.Start)
	want := map[attackpaths.Holding]attackpaths.Certainty{}
	for h, f := range all {
		want[h] = f.certainty
	}
	compareOutside(t, n, result.Start, result.Reached, want)
}

// compareOutside compares what is more certain than cluster-admin. The credential of a node that is reached
// counts as reached.
func compareOutside(
	t *testing.T, n *naive, start attackpaths.Holding, reached []attackpaths.Reached, want map[attackpaths.Holding]attackpaths.Certainty,
) {
	t.Helper()
	got, paths := map[attackpaths.Holding]attackpaths.Certainty{}, map[attackpaths.Holding]string{}
	for _, r := range reached {
		got[r.Holding], paths[r.Holding] = r.Certainty, pathText(r.Path)
	}
	admin := attackpaths.Holding{Kind: attackpaths.ClusterAdmin}
	if got[admin] != want[admin] {
		t.Errorf("from %s: cluster-admin is %s, want %s\n%s%s", start, got[admin], want[admin], paths[admin], n.derivation(start, admin))
		return
	}
	for _, node := range n.nodes {
		h := attackpaths.Holding{Kind: attackpaths.Node, Name: node.Name}
		credential := attackpaths.Holding{Kind: attackpaths.User, Name: "system:node:" + node.Name}
		if start == h {
			delete(got, credential)
			delete(want, credential)
			continue
		}
		got[credential], want[credential] = max(got[credential], got[h]), max(want[credential], want[h])
	}
	for h := range want {
		if _, ok := got[h]; !ok {
			got[h] = attackpaths.No
		}
	}
	for h, certainty := range got {
		if certainty != want[h] && max(certainty, want[h]) > got[admin] && h != start {
			t.Errorf("from %s: %s is %s, want %s\n%s%s", start, h, certainty, want[h], paths[h], n.derivation(start, h))
		}
	}
}

// derivation writes how the exhaustive search reaches a holding.
func (n *naive) derivation(start, h attackpaths.Holding) string {
	f := n.startFact(start)
	names := make([]fact, len(n.facts))
	for name, id := range n.facts {
		names[id] = name
	}
	cost := n.solve(f, true)
	var text strings.Builder
	seen := map[int]bool{n.id(f): true}
	var explain func(id int)
	explain = func(id int) {
		if seen[id] {
			return
		}
		seen[id] = true
		for _, d := range n.derivations {
			sum, ok := d.cost, d.to == id
			for _, from := range d.from {
				c, reached := cost[from]
				sum, ok = sum+c, ok && reached && from != id
			}
			if ok && sum == cost[id] {
				for _, from := range d.from {
					explain(from)
				}
				fmt.Fprintf(&text, "\t%v (possible: %v) by", names[id], d.possible)
				for _, from := range d.from {
					fmt.Fprintf(&text, " %v,", names[from])
				}
				text.WriteString("\n")
				return
			}
		}
	}
	for _, f := range []fact{as(factOf(h)), factOf(h)} {
		if id, ok := n.facts[f]; ok {
			if _, reached := cost[id]; reached {
				explain(id)
			}
		}
	}
	return text.String()
}
