package randomcluster

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// template is the input for a random rule. A rule may be limited to some of the names.
type template struct {
	verbs, group string
	resources    []string
	names        []string
}

// The resources and names of requests that are made as impersonated identities.
var (
	impersonatedOn = []string{
		"secrets", "pods", "pods/exec", "serviceaccounts/token", "deployments", "clusterrolebindings", "rolebindings", "roles",
		"clusterroles", "nodes/proxy", "namespaces", "*",
	}
	impersonatedOnNodes = []string{
		"secrets", "serviceaccounts/token", "certificatesigningrequests", "certificatesigningrequests/approval",
	}
	impersonatedNames = []string{"", "s1", "s2", "x", "p1", "p2", "a", "r1", "b1", "n1", "q1"}
)

// Objects that can be created by a name, and names: some objects do not exist.
var (
	named          = []string{"pods", "secrets", "serviceaccounts", "persistentvolumeclaims"}
	configurations = []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}
	newNames       = []string{"s1", "z", "p1", "new", "hook", "bootstrap-token-abcdef"}
)

// requestsAs are the verbs of some requests while a mode is used.
func requestsAs(mode string) string {
	return strings.ReplaceAll(",get,list,create,update,patch,delete", ",", ",impersonate-on:"+mode+":")[1:]
}

// everyRequestAs are the verbs of all requests on objects while a mode is used.
func everyRequestAs(mode string) string {
	verbs := []string{"", "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	return strings.Join(verbs, ",impersonate-on:"+mode+":")[1:]
}

// ruleTemplates are groups of rights that a technique needs together.
var ruleTemplates = [][]template{
	{{"get,list,watch", "", []string{"secrets"}, randomSecrets}},
	{{"update,patch,delete,deletecollection", "", []string{"secrets"}, append([]string{""}, randomSecrets...)}},
	{
		{"create", "", []string{"secrets"}, []string{"s1", ""}},
		{"get,list,patch,delete", "", []string{"secrets"}, []string{"s1", "s2", "new"}},
	},
	{{"create", "", []string{"serviceaccounts/token"}, randomAccounts}},
	{{"impersonate", "", []string{"serviceaccounts"}, append([]string{"z"}, randomAccounts...)}},
	{{"create", "", []string{"serviceaccounts"}, nil}, {"create", "", []string{"serviceaccounts/token", "jobs"}, []string{"z"}}},
	{{"impersonate", "", []string{"users"}, randomUsers}},
	{
		{"impersonate", "", []string{"groups"}, randomGroups},
		{"impersonate", "", []string{"users", "serviceaccounts"}, []string{"alice", "x", "nobody", "system:node:n2"}},
	},
	{{"create", "", []string{"pods", "replicationcontrollers"}, randomPods}},
	{
		{"create", "", named, newNames},
		{"patch", "", named, newNames},
		{"patch,update", "", []string{"pods", "secrets"}, nil},
		{"create,patch", "", []string{"persistentvolumes", "namespaces"}, newNames},
	},
	{{"create,patch", "apps", []string{"deployments", "daemonsets"}, newNames}, {"create,patch", admissionGroup, configurations, newNames}},
	{{"create", "apps", []string{"deployments", "daemonsets", "statefulsets", "replicasets"}, randomWorkloads}},
	{{"create", "batch", []string{"jobs", "cronjobs"}, randomWorkloads}},
	{{"update,patch", "apps", []string{"deployments", "daemonsets", "statefulsets", "replicasets"}, randomWorkloads}},
	{{"update,patch", "batch", []string{"jobs", "cronjobs"}, randomWorkloads}},
	{{"update,patch", "", []string{"pods", "replicationcontrollers"}, append([]string{"web"}, randomPods...)}},
	{{"create,get", "", []string{"pods/exec", "pods/attach"}, randomPods}},
	{
		{"update,patch", "", []string{"pods/ephemeralcontainers"}, randomPods},
		{"update,patch", "", []string{"namespaces", "namespaces/status", "namespaces/finalize"}, randomNamespaces},
	},
	{{"get,create", "", []string{"nodes/proxy"}, randomNodes}},
	{{"request-serviceaccounts-token-audience", "", []string{"*", "vault"}, randomAccounts}},
	{{"get,update,patch", "", []string{"nodes", "nodes/status"}, randomNodes}},
	{{"update,patch", "", []string{"namespaces"}, randomNamespaces}, {"create", "", []string{"pods"}, nil}},
	{{"create", "", []string{"namespaces"}, nil}, {"create", "", []string{"pods", "replicationcontrollers"}, nil}},
	{{"create", "", []string{"namespaces"}, nil}, {"create", "apps", []string{"deployments", "daemonsets"}, nil}},
	{
		{"create", "", []string{"persistentvolumes"}, nil},
		{"create", "", []string{"persistentvolumeclaims"}, nil},
		{"create", "", []string{"pods"}, nil},
	},
	{
		{"create", "", []string{"persistentvolumes"}, nil},
		{"create", "", []string{"pods"}, nil},
		{"create", "apps", []string{"statefulsets"}, nil},
	},
	{{
		"create,update,patch,get", admissionGroup,
		[]string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"},
		[]string{"w", "checks"},
	}},
	{
		{"create,update,patch", admissionGroup, []string{"mutatingadmissionpolicies"}, []string{"w"}},
		{"create,update", admissionGroup, []string{"mutatingadmissionpolicybindings"}, []string{"w"}},
	},
	{{"create,update", "apiregistration.k8s.io", []string{"apiservices"}, []string{"v1.x"}}},
	{{"create,patch", "iamauthenticator.k8s.aws", []string{"iamidentitymappings"}, []string{"m"}}},
	{{"create,update,patch", "", []string{"configmaps"}, []string{"aws-auth", "other"}}},
	{
		{"create,update,patch", rbacGroup, []string{"clusterrolebindings"}, randomBindings},
		{"bind", rbacGroup, []string{"clusterroles"}, randomRoles},
	},
	{
		{"create,update,patch", rbacGroup, []string{"rolebindings"}, randomBindings},
		{"bind", rbacGroup, []string{"roles", "clusterroles"}, randomRoles},
	},
	{
		{"escalate", rbacGroup, []string{"roles", "clusterroles"}, randomRoles},
		{"create,update,patch", rbacGroup, []string{"roles", "clusterroles"}, randomRoles},
	},
	{
		{"create", certificatesGroup, []string{"certificatesigningrequests"}, nil},
		{"get,list", certificatesGroup, []string{"certificatesigningrequests"}, randomRequests},
		{
			"update,patch", certificatesGroup,
			[]string{"certificatesigningrequests/approval", "certificatesigningrequests/status"},
			randomRequests,
		},
		{"approve,sign", certificatesGroup, []string{"signers"}, randomSigners},
	},
	{
		{"create", certificatesGroup, []string{"certificatesigningrequests", "certificatesigningrequests/nodeclient"}, []string{"q1"}},
		{"create", certificatesGroup, []string{"certificatesigningrequests/nodeclient"}, nil},
		{"watch", certificatesGroup, []string{"certificatesigningrequests"}, randomRequests},
		{
			"get,update,patch,delete,deletecollection", certificatesGroup,
			[]string{"certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"},
			randomRequests,
		},
	},
}

// impersonationTemplates are templates of rules for constrained impersonation.
var impersonationTemplates = [][]template{
	{
		{"impersonate:user-info", identityGroup, []string{"users"}, randomUsers},
		{"impersonate:user-info", identityGroup, []string{"groups"}, append([]string{"*"}, randomGroups...)},
		{requestsAs("user-info"), "*", impersonatedOn, impersonatedNames},
		{everyRequestAs("user-info"), "*", []string{"*"}, nil},
	},
	{
		{"impersonate:serviceaccount", identityGroup, []string{"serviceaccounts"}, append([]string{"z"}, randomAccounts...)},
		{requestsAs("serviceaccount"), "*", impersonatedOn, impersonatedNames},
		{everyRequestAs("serviceaccount"), "*", []string{"*"}, nil},
	},
	{
		{"impersonate:arbitrary-node", identityGroup, []string{"nodes"}, randomNodes},
		{requestsAs("arbitrary-node"), "*", impersonatedOn, impersonatedNames},
		{requestsAs("arbitrary-node"), "*", impersonatedOnNodes, impersonatedNames},
		{everyRequestAs("arbitrary-node"), "*", []string{"*"}, nil},
	},
	{
		{"impersonate:associated-node", identityGroup, []string{"nodes"}, append([]string{"*"}, randomNodes...)},
		{requestsAs("associated-node"), "*", impersonatedOn, impersonatedNames},
		{requestsAs("associated-node"), "*", impersonatedOnNodes, impersonatedNames},
		{everyRequestAs("associated-node"), "*", []string{"*"}, nil},
	},
}

// apartTemplates are parts of what one requester needs together.
var apartTemplates = [][]template{
	{{"create,update", rbacGroup, []string{"clusterrolebindings", "rolebindings"}, nil}},
	{{"bind", rbacGroup, []string{"clusterroles", "roles"}, nil}},
	{{"escalate", rbacGroup, []string{"clusterroles"}, nil}},
	{{"create,update,patch", rbacGroup, []string{"clusterroles"}, nil}},
}

// roleTemplates are templates of rules about roles, bindings and certificates.
var roleTemplates = ruleTemplates[slices.IndexFunc(ruleTemplates, func(t []template) bool {
	return t[0].resources[0] == "clusterrolebindings"
}):]

// customTemplates are rights on the resources of the random operator.
var customTemplates = [][]template{
	{{"create,update,patch,delete", operatorGroup, []string{"widgets", "stores"}, append([]string{""}, randomObjects...)}},
	{
		{"update,list,deletecollection", operatorGroup, []string{"widgets", "stores"}, append([]string{""}, randomObjects...)},
		{"create,patch", operatorGroup, []string{"widgets/finish", "stores"}, randomObjects},
	},
}

// Rules returns rules from up to three groups of templates. It leaves some of them out.
func (rc *Cluster) Rules() []rbacv1.PolicyRule {
	if rc.chance(15) {
		return []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
	}
	var rules []rbacv1.PolicyRule
	for range 1 + rc.IntN(3) {
		templates := pick(rc, ruleTemplates)
		switch {
		case rc.apart && rc.chance(2):
			templates = pick(rc, apartTemplates)
		case rc.Impersonating && rc.chance(2):
			templates = pick(rc, impersonationTemplates)
		case rc.chance(3):
			templates = pick(rc, roleTemplates)
		case rc.chance(4):
			templates = pick(rc, customTemplates)
		}
		for _, t := range templates {
			if !rc.chance(5) {
				rules = append(rules, rc.rule(t))
			}
		}
	}
	return rules
}

func (rc *Cluster) rule(t template) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{Verbs: rc.some(strings.Split(t.verbs, ",")), APIGroups: []string{t.group}, Resources: rc.some(t.resources)}
	if rc.chance(2) {
		r.Verbs = strings.Split(t.verbs, ",")
	}
	switch rc.IntN(30) {
	case 0:
		r.Verbs = []string{"*"}
	case 1:
		r.APIGroups = []string{"*"}
	case 2:
		r.Resources = []string{"*"}
	case 3:
		if _, sub, ok := strings.Cut(t.resources[0], "/"); ok {
			r.Resources = []string{"*/" + sub}
		}
	}
	if t.names != nil && rc.chance(3) {
		r.ResourceNames = rc.some(t.names)
	}
	return r
}
