package main

import (
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

const pathsScopesRemark = `With NodeScopes, three agents have more rights in the whole cluster, the same in both columns: one reads secrets
and requests tokens, as its node; one starts processes in pods on its node and connects to it; one changes pods on
its node and lists objects. Both graphs are made in one process, in turns.`

// agentOfPaths is a DaemonSet with rights in the whole cluster, and a NodeScope.
type agentOfPaths struct {
	rules []rbacv1.PolicyRule
	spec  v1alpha1.NodeScopeSpec
}

func agentsOfPaths() []agentOfPaths {
	core, read := []string{""}, []string{"get", "list", "watch"}
	rule := func(verbs []string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: verbs, APIGroups: core, Resources: resources}
	}
	anywhere := []v1alpha1.AnywhereRule{{APIGroups: core, Resources: []string{"nodes", "pods", "services", "namespaces"}, Verbs: read}}
	return []agentOfPaths{
		{
			rules: []rbacv1.PolicyRule{rule(read, "nodes", "pods", "secrets"), rule([]string{"create"}, "serviceaccounts/token")},
			spec:  v1alpha1.NodeScopeSpec{AsNode: true, Anywhere: anywhere},
		},
		{
			rules: []rbacv1.PolicyRule{rule([]string{"create"}, "pods/exec"), rule([]string{"get", "create"}, "nodes/proxy")},
			spec: v1alpha1.NodeScopeSpec{
				NamedAsNode: []v1alpha1.NamedRule{{APIGroups: core, Resources: []string{"nodes/proxy"}, Verbs: []string{"*"}}},
				PodsOnNode:  []v1alpha1.PodRule{{Resources: []string{"pods/exec"}, Verbs: []string{"create"}}}, Anywhere: anywhere,
			},
		},
		{
			rules: []rbacv1.PolicyRule{
				rule([]string{"update", "patch"}, "pods", "pods/status"), rule(read, "pods", "secrets"),
			},
			spec: v1alpha1.NodeScopeSpec{
				PodsOnNode: []v1alpha1.PodRule{{Resources: []string{"pods/*"}, Verbs: []string{"*"}}},
				SelectsNode: []v1alpha1.SelectedRule{
					{APIGroups: core, Resources: []string{"pods", "secrets"}, Verbs: []string{"list", "watch"}, Field: "spec.nodeName"},
				},
				Anywhere: anywhere,
			},
		},
	}
}

// addAgents gives the agents their rights, and returns their NodeScopes.
func addAgents(state *source.State) (*nodescope.Policy, error) {
	var scopes []*nodescope.Scope
	for i, a := range agentsOfPaths() {
		meta := metav1.ObjectMeta{Name: fmt.Sprint("agent-", i)}
		state.RBAC.SetClusterRole(&rbacv1.ClusterRole{ObjectMeta: meta, Rules: a.rules})
		state.RBAC.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: daemonNamespace, Name: daemonName(i)}},
		})
		object := &v1alpha1.NodeScope{ObjectMeta: meta, Spec: a.spec}
		object.Spec.Mode, object.Spec.Subjects = v1alpha1.Enforce, []v1alpha1.Subject{{Namespace: daemonNamespace, Name: daemonName(i)}}
		scope, errs := nodescope.Compile(object)
		if len(errs) > 0 {
			return nil, errs.ToAggregate()
		}
		scopes = append(scopes, scope)
	}
	policy, _ := nodescope.NewPolicy(scopes)
	return policy, nil
}

// pathsScopes measures the cost of NodeScopes in making the graph.
func (b *bench) pathsScopes(s *section, l pathsCluster, file string) error {
	state, err := source.LoadFiles(b.ctx, []string{file}, source.FileOptions{Inventory: true})
	if err != nil {
		return err
	}
	policy, err := addAgents(state)
	if err != nil {
		return err
	}
	c := &attackpaths.Cluster{
		Inventory: state.Inventory, Relations: state.Graph, RBAC: state.RBAC, Features: kubeversion.For(kubeversion.Latest),
	}
	var without, with, ratios []float64
	for i := range b.fillRounds {
		b.log("paths: NodeScopes, round %d", i+1)
		for _, scopes := range []*nodescope.Policy{nil, policy} {
			c.NodeScopes = scopes
			settle()
			took, err := spent(func() error { _, err := attackpaths.New(c); return err })
			if err != nil {
				return err
			}
			if scopes == nil {
				without = append(without, took)
			} else {
				with = append(with, took)
				ratios = append(ratios, took/without[i])
			}
		}
	}
	t := table{
		caption: fmt.Sprintf(
			"**Making the graph with NodeScopes of three agents, %s nodes,** processor time.",
			thousands(float64(l.nodes)),
		),
		header: []string{"without", "with", "ratio"},
	}
	t.add(nanoseconds(median(without)), nanoseconds(median(with)), spreadOf(ratios).String())
	s.tables = append(s.tables, t)
	s.remarks = append(s.remarks, pathsScopesRemark)
	s.targets = append(s.targets, atMost("making the graph with NodeScopes of three agents, against without", 1.5,
		spreadOf(ratios).median, times, whyPathsScopes))
	return b.ctx.Err()
}

const whyPathsScopes = `Without NodeScopes all tokens of an agent are one vertex. With them, each token of each agent on each node is one,
with edges to what the node's pods and secrets give.`
