package attackpaths_test

import (
	"strings"
	"testing"
)

// Whoever may escalate writes a role that nobody has, if a binding or an aggregated role makes it count.
func TestRolesThatEscalationWrites(t *testing.T) {
	const roles = "@rbac.authorization.k8s.io"
	text, rest, _ := strings.Cut(role("sum", "", "shop/web", "get configmaps@"), "---")
	aggregated := text + "aggregationRule: {clusterRoleSelectors: [{matchLabels: {to: sum}}]}\n---" + rest
	dangling := strings.ReplaceAll(rest, "sum", "gone")
	base := namespace("shop", restrictedLabel) + account("shop", "web")
	admin := []string{"Certain ClusterAdmin : EscalateRole"}
	testReach(t, base, []reachCase{
		{
			rule: "a new part of an aggregated role that is held",
			add:  aggregated + role("r", "", "shop/web", "escalate,create clusterroles"+roles), want: admin,
			because: `may add any rule to ClusterRole "sum" or to a role that it selects in the whole cluster`,
		},
		{
			rule: "the webhooks of updates are asked about the controller that adds the part",
			add:  aggregated + role("r", "", "shop/web", "escalate,create clusterroles"+roles) + webhook("clusterroles", "UPDATE"),
			want: []string{"Possible ClusterAdmin : EscalateRole"},
		},
		{
			rule: "any role becomes a part of it",
			add:  aggregated + clusterRole("other", "get pods@") + role("r", "", "shop/web", "escalate,patch clusterroles"+roles+" other"),
			want: admin,
		},
		{
			rule: "a default role that the objects lack becomes a part of it",
			add:  aggregated + role("r", "", "shop/web", "escalate,patch clusterroles"+roles+" edit"), want: admin,
		},
		{
			rule: "a role that does not exist does not",
			add:  aggregated + role("r", "", "shop/web", "escalate,patch clusterroles"+roles+" none"),
		},
		{
			rule: "a new role has no name when the right to escalate is checked",
			add:  aggregated + role("r", "", "shop/web", "escalate clusterroles"+roles+" new", "create clusterroles"+roles),
		},
		{
			rule: "an aggregated role that another has is no use",
			add: strings.ReplaceAll(aggregated, "name: web", "name: db") + account("shop", "db") +
				role("r", "", "shop/web", "escalate,create clusterroles"+roles),
		},
		{
			rule: "a role that a binding names and that does not exist",
			add:  dangling + role("r", "", "shop/web", "escalate,create clusterroles"+roles), want: admin,
			because: `may create ClusterRole "gone", which a binding names, with any rule in the whole cluster`,
		},
		{
			rule: "a role that is held is deleted and made again", want: admin,
			add: role("other", "", "shop/web", "get configmaps@") +
				role("r", "", "shop/web", "escalate,create,delete clusterroles"+roles),
			because: `may delete ClusterRole "other", which it holds, and create it again with any rule in the whole cluster`,
		},
		{
			rule: "by its name", want: admin,
			add: role("other", "", "shop/web", "get configmaps@") +
				role("r", "", "shop/web", "escalate,create clusterroles"+roles, "deletecollection,delete clusterroles"+roles+" other"),
		},
		{
			rule: "not a role that nobody holds", add: clusterRole("other", "get pods@") +
				role("r", "", "shop/web", "escalate,create clusterroles"+roles, "delete clusterroles"+roles+" other"),
		},
		{
			rule: "not without another role that gives the rights",
			add:  role("r", "", "shop/web", "escalate,create clusterroles"+roles, "delete clusterroles"+roles+" r"),
		},
		{
			rule: "the role that gives the rights, if another gives them too", want: admin,
			add: role("r", "", "shop/web", "escalate,create clusterroles"+roles, "delete clusterroles"+roles+" r") +
				role("s", "", "shop/web", "escalate,create clusterroles"+roles),
		},
		{
			rule: "each cluster has a default role that all users hold", want: []string{"Possible ClusterAdmin : EscalateRole"},
			because: `may delete ClusterRole "system:discovery", which all users hold by default, and create it again with any rule ` +
				"in the whole cluster",
			add: role("r", "", "shop/web", "escalate,create,delete clusterroles"+roles),
		},
		{rule: "not without escalate", add: dangling + aggregated + role("r", "", "shop/web", "create,update clusterroles"+roles)},
	})
}

// Every API server makes the default roles, so that their names can be bound even if the objects lack them.
func TestDefaultRolesExist(t *testing.T) {
	const roles = "@rbac.authorization.k8s.io"
	base := namespace("shop", restrictedLabel) + account("shop", "web") + secret("shop", "s", "Opaque", "")
	binds := func(name string) string {
		return role("r", "", "shop/web", "create clusterrolebindings"+roles, "bind clusterroles"+roles+name)
	}
	testReach(t, base, []reachCase{
		{rule: "cluster-admin", add: binds(" cluster-admin"), want: []string{"Certain ClusterAdmin : BindRole"}},
		{rule: "cluster-admin is one of all", add: binds(""), want: []string{"Certain ClusterAdmin : BindRole"}},
		{
			rule: "edit", add: role("r", "shop", "shop/web", "create rolebindings"+roles, "bind clusterroles"+roles+" edit"),
			want: []string{"Certain Namespace shop: BindRole PodCreate", "Certain Secret shop/s: BindRole SecretRead"},
		},
		{rule: "not a role that is none of them", add: binds(" other")},
	})
}
