package query

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// addRBAC adds roles and bindings. Roles of one name are in several namespaces and differ, some
// bindings name roles that do not exist, and bindings of one user are in several namespaces.
func (c *partsCluster) addRBAC() {
	const group = "/apis/rbac.authorization.k8s.io/v1/"
	for range c.IntN(4) {
		name := c.roleName()
		c.put(group+"clusterroles/"+name, &rbacv1.ClusterRole{Rules: c.rules()})
	}
	for range c.IntN(5) {
		namespace, name := c.namespace(), c.roleName()
		c.put(group+"namespaces/"+namespace+"/roles/"+name,
			&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: c.rules()})
	}
	for i := range c.IntN(3) {
		name := fmt.Sprintf("b%d", i)
		c.put(group+"clusterrolebindings/"+name, &rbacv1.ClusterRoleBinding{
			RoleRef: c.roleRef("ClusterRole", "ClusterRole", "ClusterRole", "Role"), Subjects: c.subjects(),
		})
	}
	for i := range c.IntN(6) {
		namespace, name := c.namespace(), fmt.Sprintf("b%d", i)
		c.put(group+"namespaces/"+namespace+"/rolebindings/"+name, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    c.roleRef("Role", "ClusterRole"), Subjects: c.subjects(),
		})
	}
}

func (c *partsCluster) roleName() string { return c.pick("r0", "r1", "r2") }

func (c *partsCluster) roleRef(kinds ...string) rbacv1.RoleRef {
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: c.pick(kinds...), Name: c.roleName()}
	if c.chance(8) {
		ref.Name = c.pick("gone", "")
	}
	return ref
}

func (c *partsCluster) rules() []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, c.IntN(4))
	for i := range rules {
		rules[i] = rbacv1.PolicyRule{
			APIGroups: []string{"*"}, Resources: []string{c.pick("secrets", "pods", "*", "*", "configmaps", "persistentvolumes")},
			Verbs: []string{c.pick("get", "list", "*", "*", "request-serviceaccounts-token-audience")},
		}
	}
	return rules
}

func (c *partsCluster) subjects() []rbacv1.Subject {
	return []rbacv1.Subject{
		{Kind: "Group", APIGroup: rbacv1.GroupName, Name: c.pick("system:nodes", "system:authenticated", "others", "others")},
		{Kind: "User", APIGroup: rbacv1.GroupName, Name: c.pick("ada", "system:node:n0", "system:node:n1")},
		{Kind: "ServiceAccount", Namespace: c.namespace(), Name: c.account()},
	}
}

// bind creates a role that allows to read leases, and a binding of the same name. Names of groups
// have a colon.
func (c *partsCluster) bind(kind, namespace, name, subject string) {
	c.t.Helper()
	meta, in := metav1.ObjectMeta{Namespace: namespace, Name: name}, "/apis/rbac.authorization.k8s.io/v1/"
	rules := []rbacv1.PolicyRule{{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get"}}}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: subject}}
	if strings.Contains(subject, ":") {
		subjects[0].Kind = rbacv1.GroupKind
	}
	if kind == "ClusterRole" {
		c.put(in+"clusterroles/"+name, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules})
	} else {
		c.put(in+"namespaces/"+namespace+"/roles/"+name, &rbacv1.Role{ObjectMeta: meta, Rules: rules})
	}
	if namespace == "" {
		c.put(in+"clusterrolebindings/"+name, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
		return
	}
	c.put(in+"namespaces/"+namespace+"/rolebindings/"+name, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects})
}

// A kind of roles is read whole if many of its roles are bound to the user, with the same answer.
func TestManyRolesAreReadAtOnce(t *testing.T) {
	c := exampleCluster(t)
	const many = 100
	for i := range many {
		c.bind("ClusterRole", "", fmt.Sprintf("cluster-%02d", i), "system:nodes")
		c.bind("Role", fmt.Sprintf("team-%02d", i), "config", "system:nodes")
	}
	c.bind("Role", "shop", "deployer", "system:nodes")
	whole := c.wholeSession()
	q := partsQuestion{args: []string{"get", "deployments.apps/x"}, who: command.IdentityFlags{Node: "n0"}, namespace: "shop"}
	want, _ := answered(t, whole, q)
	wantReach, _ := reachText(t, whole, "n0", command.Filter{})
	c.lists()
	got, _ := answered(t, c.partsSession(), q)
	if lists := len(c.lists()); got != want || lists > many/5 {
		t.Errorf("%d lists, by parts: %s\nwhole: %s", lists, got, want)
	}
	gotReach, _ := reachText(t, c.partsSession(), "n0", command.Filter{})
	if lists := len(c.lists()); gotReach != wantReach || lists > many/5 {
		t.Errorf("%d lists, by parts: %s\nwhole: %s", lists, gotReach, wantReach)
	}
	if n := strings.Count(wantReach, `"config"`); n < many {
		t.Errorf("reach has only %d mentions of the roles", n)
	}
}

// TestRulesOfPartsAreThoseOfTheWhole lists the rights of users, of nodes among them with groups that
// nodes do not have.
func TestRulesOfPartsAreThoseOfTheWhole(t *testing.T) {
	rules, tried := 0, clusters(t, 35)
	for seed := range tried {
		c := newPartsCluster(t, uint64(seed))
		refused := c.refuse()
		whole := c.wholeSession()
		for _, who := range []command.Identity{
			command.NewIdentity("ada", nil), command.NewIdentity("ada", []string{"others"}),
			command.NewIdentity("system:node:n0", []string{"system:nodes", "others"}),
			command.NewIdentity("system:serviceaccount:shop:api", []string{"system:authenticated"}),
		} {
			namespace := c.pick("", "shop")
			want, err := rulesOf(whole, who, namespace)
			if err != nil {
				t.Fatal(err)
			}
			got, err := rulesOf(c.partsSession(), who, namespace)
			if err != nil {
				t.Fatal(err)
			}
			rules += len(want.Rules)
			if text(t, got) != text(t, want) {
				t.Fatalf("cluster %d without %v: %+v\nby parts: %s\nwhole: %s", seed, refused, who, text(t, got), text(t, want))
			}
		}
	}
	if rules < 10*tried {
		t.Errorf("only %d rules", rules)
	}
}
