package attackpaths

import (
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// right is a kind of request that techniques need.
type right uint8

// The rights that techniques need. Those from bindClusterRole on count for the identity that
// has them: the API server checks them together with another right of the same requester.
const (
	readSecrets right = iota
	patchSecrets
	deleteSecrets
	createSecrets
	createToken
	createAccounts
	createPods
	createDeployments
	createDaemonSets
	createStatefulSets
	createReplicaSets
	createReplicationControllers
	createJobs
	createCronJobs
	patchDeployments
	patchDaemonSets
	patchStatefulSets
	patchReplicaSets
	patchReplicationControllers
	patchCronJobs
	patchPods
	execPods
	attachPods
	addContainers
	createClaims
	createVolumes
	proxyNodes
	changeNodes
	changeNodeStatus
	readNodeLogs
	readPodLogs
	labelNamespaces
	createNamespaces
	labelByStatus
	finalizeNamespaces
	readSigningRequests
	writeSigningRequests
	deleteSigningRequests
	getApprovals
	getSigningStatus
	createMutatingWebhooks
	changeMutatingWebhooks
	createValidatingWebhooks
	changeValidatingWebhooks
	writeMutatingPolicies
	writeMutatingPolicyBindings
	writeAPIServices
	createConfigMaps
	patchConfigMaps
	writeIdentityMappings

	bindClusterRoles
	bindRoles
	createClusterRoleBindings
	updateClusterRoleBindings
	createRoleBindings
	updateRoleBindings
	escalateClusterRoles
	escalateRoles
	createClusterRoles
	createRoles
	updateClusterRoles
	updateRoles
	impersonateServiceAccounts
	impersonateUsers
	impersonateGroups
	impersonateNodeNames
	impersonateAssociatedNode
	impersonateArbitraryNodes
	impersonateAccountsOnly
	impersonateUserInfo
	impersonateGroupInfo
	approveSigners
	signSigners
	updateApprovals
	updateSigningStatus
	patchSigningStatus
	autoApprove
	requestAudience
	requestOtherAudience
	createSigningRequests
	// declaredRights is how many rights have a row. Two parts of each right that is also had by name follow: see madeByName.
	declaredRights
	rightCount = declaredRights + 2*right(len(madeByName))
)

// firstOwn is the first right that counts together with others of the same requester.
const firstOwn = bindClusterRoles

// requestKind is a row of the table of rights: any of the verbs is enough.
type requestKind struct {
	verbs                        []string
	group, resource, subresource string
	// namespaced is true if roles in a namespace can grant it.
	namespaced bool
	// unnamed is true for creates, which carry no name.
	unnamed bool
	// hasName is true for creates by a request that has a name.
	hasName bool
}

const (
	apps  = "apps"
	batch = "batch"
	rbacG = rbacv1.GroupName
	certG = certificatesv1.GroupName
	admis = "admissionregistration.k8s.io"
	authn = authenticationv1.GroupName
)

// awsAuth is the ConfigMap with the identity mappings of EKS.
const awsAuth = "aws-auth"

// nodeNameKey is the extra value that has the node of a token.
// Source: https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/
const nodeNameKey = "authentication.kubernetes.io/node-name"

var (
	create = []string{"create"}
	write  = []string{"update", "patch"}
	read   = []string{"get", "list", "watch"}
	put    = []string{"create", "update", "patch"}
)

// requestKinds is a table and never changes.
var requestKinds = withParts([rightCount]requestKind{
	readSecrets:                  {verbs: read, resource: "secrets", namespaced: true},
	patchSecrets:                 {verbs: []string{"patch"}, resource: "secrets", namespaced: true},
	deleteSecrets:                {verbs: remove, resource: "secrets", namespaced: true},
	createSecrets:                {verbs: create, resource: "secrets", namespaced: true, unnamed: true},
	createToken:                  {verbs: create, resource: "serviceaccounts", subresource: "token", namespaced: true},
	createAccounts:               {verbs: create, resource: "serviceaccounts", namespaced: true, unnamed: true},
	createPods:                   {verbs: create, resource: "pods", namespaced: true, unnamed: true},
	createDeployments:            {verbs: create, group: apps, resource: "deployments", namespaced: true, unnamed: true},
	createDaemonSets:             {verbs: create, group: apps, resource: "daemonsets", namespaced: true, unnamed: true},
	createStatefulSets:           {verbs: create, group: apps, resource: "statefulsets", namespaced: true, unnamed: true},
	createReplicaSets:            {verbs: create, group: apps, resource: "replicasets", namespaced: true, unnamed: true},
	createReplicationControllers: {verbs: create, resource: "replicationcontrollers", namespaced: true, unnamed: true},
	createJobs:                   {verbs: create, group: batch, resource: "jobs", namespaced: true, unnamed: true},
	createCronJobs:               {verbs: create, group: batch, resource: "cronjobs", namespaced: true, unnamed: true},
	patchDeployments:             {verbs: write, group: apps, resource: "deployments", namespaced: true},
	patchDaemonSets:              {verbs: write, group: apps, resource: "daemonsets", namespaced: true},
	patchStatefulSets:            {verbs: write, group: apps, resource: "statefulsets", namespaced: true},
	patchReplicaSets:             {verbs: write, group: apps, resource: "replicasets", namespaced: true},
	patchReplicationControllers:  {verbs: write, resource: "replicationcontrollers", namespaced: true},
	patchCronJobs:                {verbs: write, group: batch, resource: "cronjobs", namespaced: true},
	patchPods:                    {verbs: write, resource: "pods", namespaced: true},
	execPods:                     {verbs: create, resource: "pods", subresource: "exec", namespaced: true},
	attachPods:                   {verbs: create, resource: "pods", subresource: "attach", namespaced: true},
	addContainers:                {verbs: write, resource: "pods", subresource: "ephemeralcontainers", namespaced: true},
	createClaims:                 {verbs: create, resource: "persistentvolumeclaims", namespaced: true, unnamed: true},
	createVolumes:                {verbs: create, resource: "persistentvolumes", unnamed: true},
	proxyNodes:                   {verbs: []string{"get", "create"}, resource: "nodes", subresource: "proxy"},
	changeNodes:                  {verbs: write, resource: "nodes"},
	changeNodeStatus:             {verbs: write, resource: "nodes", subresource: "status"},
	readNodeLogs:                 {verbs: []string{"get"}, resource: "nodes", subresource: "log"},
	readPodLogs:                  {verbs: []string{"get"}, resource: "pods", subresource: "log", namespaced: true},
	labelNamespaces:              {verbs: write, resource: "namespaces", namespaced: true},
	createNamespaces:             {verbs: create, resource: "namespaces", unnamed: true},
	labelByStatus:                {verbs: write, resource: "namespaces", subresource: "status", namespaced: true},
	finalizeNamespaces:           {verbs: []string{"update"}, resource: "namespaces", subresource: "finalize", namespaced: true},
	createSigningRequests:        {verbs: create, group: certG, resource: "certificatesigningrequests", unnamed: true},
	readSigningRequests:          {verbs: read, group: certG, resource: "certificatesigningrequests"},
	writeSigningRequests:         {verbs: write, group: certG, resource: "certificatesigningrequests"},
	deleteSigningRequests:        {verbs: remove, group: certG, resource: "certificatesigningrequests"},
	getApprovals: {
		verbs: []string{"get"}, group: certG, resource: "certificatesigningrequests", subresource: "approval",
	},
	getSigningStatus: {
		verbs: []string{"get"}, group: certG, resource: "certificatesigningrequests", subresource: "status",
	},
	createMutatingWebhooks:      {verbs: create, group: admis, resource: "mutatingwebhookconfigurations", unnamed: true},
	changeMutatingWebhooks:      {verbs: write, group: admis, resource: "mutatingwebhookconfigurations"},
	createValidatingWebhooks:    {verbs: create, group: admis, resource: "validatingwebhookconfigurations", unnamed: true},
	changeValidatingWebhooks:    {verbs: write, group: admis, resource: "validatingwebhookconfigurations"},
	writeMutatingPolicies:       {verbs: put, group: admis, resource: "mutatingadmissionpolicies"},
	writeMutatingPolicyBindings: {verbs: put, group: admis, resource: "mutatingadmissionpolicybindings"},
	writeAPIServices:            {verbs: put, group: "apiregistration.k8s.io", resource: "apiservices"},
	createConfigMaps:            {verbs: create, resource: "configmaps", namespaced: true, unnamed: true},
	patchConfigMaps:             {verbs: write, resource: "configmaps", namespaced: true},
	writeIdentityMappings:       {verbs: put, group: "iamauthenticator.k8s.aws", resource: "iamidentitymappings"},
	impersonateServiceAccounts:  {verbs: []string{"impersonate"}, resource: "serviceaccounts", namespaced: true},

	bindClusterRoles:          {verbs: []string{"bind"}, group: rbacG, resource: "clusterroles", namespaced: true},
	bindRoles:                 {verbs: []string{"bind"}, group: rbacG, resource: "roles", namespaced: true},
	createClusterRoleBindings: {verbs: create, group: rbacG, resource: "clusterrolebindings", unnamed: true},
	updateClusterRoleBindings: {verbs: write, group: rbacG, resource: "clusterrolebindings"},
	createRoleBindings:        {verbs: create, group: rbacG, resource: "rolebindings", namespaced: true, unnamed: true},
	updateRoleBindings:        {verbs: write, group: rbacG, resource: "rolebindings", namespaced: true},
	escalateClusterRoles:      {verbs: []string{"escalate"}, group: rbacG, resource: "clusterroles"},
	escalateRoles:             {verbs: []string{"escalate"}, group: rbacG, resource: "roles", namespaced: true},
	createClusterRoles:        {verbs: create, group: rbacG, resource: "clusterroles", unnamed: true},
	createRoles:               {verbs: create, group: rbacG, resource: "roles", namespaced: true, unnamed: true},
	updateClusterRoles:        {verbs: write, group: rbacG, resource: "clusterroles"},
	updateRoles:               {verbs: write, group: rbacG, resource: "roles", namespaced: true},
	impersonateUsers:          {verbs: []string{"impersonate"}, resource: "users"},
	impersonateGroups:         {verbs: []string{"impersonate"}, resource: "groups"},
	impersonateNodeNames:      {verbs: []string{"impersonate"}, group: authn, resource: "userextras", subresource: nodeNameKey},
	impersonateAssociatedNode: {verbs: []string{"impersonate:associated-node"}, group: authn, resource: "nodes"},
	impersonateArbitraryNodes: {verbs: []string{"impersonate:arbitrary-node"}, group: authn, resource: "nodes"},
	impersonateAccountsOnly: {
		verbs: []string{"impersonate:serviceaccount"}, group: authn, resource: "serviceaccounts", namespaced: true,
	},
	impersonateUserInfo:  {verbs: []string{"impersonate:user-info"}, group: authn, resource: "users"},
	impersonateGroupInfo: {verbs: []string{"impersonate:user-info"}, group: authn, resource: "groups"},
	approveSigners:       {verbs: []string{"approve"}, group: certG, resource: "signers"},
	signSigners:          {verbs: []string{"sign"}, group: certG, resource: "signers"},
	updateApprovals:      {verbs: write, group: certG, resource: "certificatesigningrequests", subresource: "approval"},
	updateSigningStatus:  {verbs: []string{"update"}, group: certG, resource: "certificatesigningrequests", subresource: "status"},
	patchSigningStatus:   {verbs: []string{"patch"}, group: certG, resource: "certificatesigningrequests", subresource: "status"},
	autoApprove: {
		verbs: create, group: certG, resource: "certificatesigningrequests", subresource: "nodeclient", unnamed: true,
	},
	requestAudience:      {verbs: []string{audienceVerb}, resource: anyAudience, namespaced: true},
	requestOtherAudience: {verbs: []string{audienceVerb}, resource: anyAudience, namespaced: true},
})

// String names the right as people write it in a role, with its first verb: "create pods/exec".
func (r right) String() string { return r.withVerb(requestKinds[r].verbs[0]) }

func (r right) withVerb(verb string) string {
	k := &requestKinds[r]
	text := verb + " " + k.resource
	if k.subresource != "" {
		text += "/" + k.subresource
	}
	return text
}

// granted is a right that a rule of a role grants, for one name or for all.
type granted struct {
	right right
	// name is empty if the rule names no objects.
	name string
	// any is true if the rule names no objects.
	any bool
}

// rightsOf lists what the rules of a role grant of the rights that techniques need, in the
// order of the table and of names, and whether a rule grants everything.
func rightsOf(rules []rbacv1.PolicyRule, namespaced bool, websocketExec bool) (all []granted, everything bool) {
	seen := map[granted]bool{}
	for i := range rules {
		rule := &rules[i]
		everything = everything || grantsEverything(rule)
		for r := range rightCount {
			if namespaced && !requestKinds[r].namespaced {
				continue
			}
			for _, g := range rightOf(r, rule, websocketExec) {
				if !seen[g] {
					seen[g] = true
					all = append(all, g)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b granted) int {
		if a.right != b.right {
			return int(a.right) - int(b.right)
		}
		if a.any != b.any {
			return map[bool]int{true: -1, false: 1}[a.any]
		}
		return compareStrings(a.name, b.name)
	})
	return all, everything
}

func rightOf(r right, rule *rbacv1.PolicyRule, websocketExec bool) []granted {
	return rightBy(r, r.verbs(websocketExec), rule)
}

// rightBy lists what a rule grants of a right by some of its verbs.
func rightBy(r right, verbs []string, rule *rbacv1.PolicyRule) []granted {
	kind := &requestKinds[r]
	req := access.Request{ResourceRequest: true, Group: kind.group, Resource: kind.resource, Subresource: kind.subresource}
	if kind.resource == anyAudience {
		audience, ok := audienceIn(r, rule)
		if !ok {
			return nil
		}
		req.Resource = audience
	}
	covered := func(verbs []string, name string) bool {
		req.Name = name
		return slices.ContainsFunc(verbs, func(verb string) bool {
			req.Verb = verb
			return rbac.RuleAllows(rule, &req)
		})
	}
	if len(rule.ResourceNames) == 0 {
		if covered(verbs, "") {
			return []granted{{right: r, any: true}}
		}
		return nil
	}
	// RBAC compares the empty name of a request without a name with the names of the rule.
	nameless, named := kind.byName(verbs)
	if covered(nameless, "") {
		return []granted{{right: r, any: true}}
	}
	var all []granted
	for _, name := range rule.ResourceNames {
		if name != "" && covered(named, name) {
			all = append(all, granted{right: r, name: name})
		}
	}
	return all
}

// byName separates the verbs of requests that have no name from those that have one. A list
// or watch has one if it selects an object by its name; a deletecollection has none even then.
func (k *requestKind) byName(verbs []string) (nameless, named []string) {
	for _, verb := range verbs {
		never := verb == "create" && k.subresource == "" && !k.hasName || verb == "deletecollection" || k.unnamed
		if never || verb == "list" || verb == "watch" {
			nameless = append(nameless, verb)
		}
		if !never {
			named = append(named, verb)
		}
	}
	return nameless, named
}

// grantsEverything reports whether a rule is `*` on `*`.
func grantsEverything(rule *rbacv1.PolicyRule) bool {
	return len(rule.ResourceNames) == 0 && slices.Contains(rule.Verbs, "*") &&
		slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*")
}
