package attackpaths

import (
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// right is a kind of request that techniques need.
type right uint16

// The rights that techniques need. Those from bindClusterRole on count for the identity that
// has them: the API server checks them together with another right of the same requester. The requests of
// custom techniques follow, see Graph.kinds.
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
	createMutatingPolicies
	changeMutatingPolicies
	createMutatingPolicyBindings
	changeMutatingPolicyBindings
	writeAPIServices
	createConfigMaps
	patchConfigMaps
	writeIdentityMappings
	deletePods
	deleteVolumes
	deleteClusterRoles
	deleteRoles
	deleteClusterRoleBindings
	deleteRoleBindings

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
	// namespace and name are the only objects that a request of a custom technique is about; empty for all.
	namespace, name string
	// namespaced is true if roles in a namespace can grant it.
	namespaced bool
	// unnamed is true for creates, which carry no name.
	unnamed bool
	// hasName is true for creates by a request that has a name.
	hasName bool
	// refused is true if NodeRestriction refuses to nodes what RBAC would allow: pods other than mirror pods, claims,
	// tokens of others, other nodes and labels that no node may set on itself, and requests for certificates in other names.
	refused bool
	// beside is true if the API server or a controller checks the right of the one who makes another request, so that
	// no request has its verb.
	beside bool
	// mode is the mode of constrained impersonation in which the right lets an identity be impersonated. A right to make
	// requests while a mode is used, `impersonate-on:MODE:VERB`, has the mode in on, and is for the requests of the right in
	// of with one verb, or for every request if whole is true.
	mode, on mode
	whole    bool
	of       right
	// custom is true for requests of custom techniques. Technique is the place of the technique, and with that in its list
	// With; -1 for a request of AllowedBy.
	custom          bool
	technique, with int32
	// otherAudience is true for the right to request tokens for an audience that a rule names.
	otherAudience bool
}

// holdsIn reports whether a role that is held in a scope can allow the request.
func (k *requestKind) holdsIn(scope string) bool {
	return scope == "" || k.namespaced && (k.namespace == "" || k.namespace == scope)
}

// operation is what admission is asked about; empty if it is not asked.
func (k *requestKind) operation() admissionv1.OperationType {
	switch k.group + "/" + k.resource + "/" + k.subresource {
	case "/pods/exec", "/pods/attach", "/pods/portforward", "/pods/proxy", "/services/proxy", "/nodes/proxy":
		return admissionv1.Connect
	}
	return admissionv1.OperationType(noderestriction.OperationOf(k.verbs[0]))
}

// write is the write that a right allows.
func (k *requestKind) write() inventory.Write {
	return inventory.Write{
		Operation: k.operation(), Group: k.group, Resource: k.resource, Subresource: k.subresource,
		Namespaced: k.namespaced && k.resource != "namespaces",
	}
}

// refusedToNodes reports whether NodeRestriction refuses a request of a custom technique to nodes.
func (k *requestKind) refusedToNodes() bool {
	create, change := k.operation() == admissionv1.Create, k.operation() == admissionv1.Update
	switch k.group + "/" + k.resource + "/" + k.subresource {
	case "/pods/":
		return create || change
	case "/pods/ephemeralcontainers":
		return change
	case "/persistentvolumeclaims/", "/serviceaccounts/token", certG + "/certificatesigningrequests/":
		return create
	}
	return false
}

// impersonates reports whether requests let others be impersonated.
func (k *requestKind) impersonates() bool {
	return k.on != 0 || strings.HasPrefix(k.verbs[0], "impersonate")
}

const (
	apps  = "apps"
	batch = "batch"
	rbacG = rbacv1.GroupName
	certG = certificatesv1.GroupName
	admis = "admissionregistration.k8s.io"
	extns = "apiextensions.k8s.io"
	authn = authenticationv1.GroupName
)

// awsAuth is the ConfigMap with the identity mappings of EKS.
const awsAuth = "aws-auth"

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
	createToken:                  {verbs: create, resource: "serviceaccounts", subresource: "token", namespaced: true, refused: true},
	createAccounts:               {verbs: create, resource: "serviceaccounts", namespaced: true, unnamed: true},
	createPods:                   {verbs: create, resource: "pods", namespaced: true, unnamed: true, refused: true},
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
	patchPods:                    {verbs: write, resource: "pods", namespaced: true, refused: true},
	execPods:                     {verbs: create, resource: "pods", subresource: "exec", namespaced: true},
	attachPods:                   {verbs: create, resource: "pods", subresource: "attach", namespaced: true},
	addContainers:                {verbs: write, resource: "pods", subresource: "ephemeralcontainers", namespaced: true, refused: true},
	createClaims:                 {verbs: create, resource: "persistentvolumeclaims", namespaced: true, unnamed: true, refused: true},
	createVolumes:                {verbs: create, resource: "persistentvolumes", unnamed: true},
	proxyNodes:                   {verbs: []string{"get", "create"}, resource: "nodes", subresource: "proxy"},
	changeNodes:                  {verbs: write, resource: "nodes", refused: true},
	changeNodeStatus:             {verbs: write, resource: "nodes", subresource: "status", refused: true},
	readNodeLogs:                 {verbs: []string{"get"}, resource: "nodes", subresource: "log"},
	readPodLogs:                  {verbs: []string{"get"}, resource: "pods", subresource: "log", namespaced: true},
	labelNamespaces:              {verbs: write, resource: "namespaces", namespaced: true},
	createNamespaces:             {verbs: create, resource: "namespaces", unnamed: true},
	labelByStatus:                {verbs: write, resource: "namespaces", subresource: "status", namespaced: true},
	finalizeNamespaces:           {verbs: []string{"update"}, resource: "namespaces", subresource: "finalize", namespaced: true},
	createSigningRequests:        {verbs: create, group: certG, resource: "certificatesigningrequests", unnamed: true, refused: true},
	readSigningRequests:          {verbs: read, group: certG, resource: "certificatesigningrequests"},
	writeSigningRequests:         {verbs: write, group: certG, resource: "certificatesigningrequests"},
	deleteSigningRequests:        {verbs: remove, group: certG, resource: "certificatesigningrequests"},
	getApprovals: {
		verbs: []string{"get"}, group: certG, resource: "certificatesigningrequests", subresource: "approval",
	},
	getSigningStatus: {
		verbs: []string{"get"}, group: certG, resource: "certificatesigningrequests", subresource: "status",
	},
	createMutatingWebhooks:       {verbs: create, group: admis, resource: "mutatingwebhookconfigurations", unnamed: true},
	changeMutatingWebhooks:       {verbs: write, group: admis, resource: "mutatingwebhookconfigurations"},
	createValidatingWebhooks:     {verbs: create, group: admis, resource: "validatingwebhookconfigurations", unnamed: true},
	changeValidatingWebhooks:     {verbs: write, group: admis, resource: "validatingwebhookconfigurations"},
	createMutatingPolicies:       {verbs: create, group: admis, resource: "mutatingadmissionpolicies", unnamed: true},
	changeMutatingPolicies:       {verbs: write, group: admis, resource: "mutatingadmissionpolicies"},
	createMutatingPolicyBindings: {verbs: create, group: admis, resource: "mutatingadmissionpolicybindings", unnamed: true},
	changeMutatingPolicyBindings: {verbs: write, group: admis, resource: "mutatingadmissionpolicybindings"},
	writeAPIServices:             {verbs: put, group: "apiregistration.k8s.io", resource: "apiservices"},
	createConfigMaps:             {verbs: create, resource: "configmaps", namespaced: true, unnamed: true},
	patchConfigMaps:              {verbs: write, resource: "configmaps", namespaced: true},
	writeIdentityMappings:        {verbs: put, group: "iamauthenticator.k8s.aws", resource: "iamidentitymappings"},
	deletePods:                   {verbs: remove, resource: "pods", namespaced: true, refused: true},
	deleteVolumes:                {verbs: remove, resource: "persistentvolumes"},
	deleteClusterRoles:           {verbs: remove, group: rbacG, resource: "clusterroles"},
	deleteRoles:                  {verbs: remove, group: rbacG, resource: "roles", namespaced: true},
	deleteClusterRoleBindings:    {verbs: remove, group: rbacG, resource: "clusterrolebindings"},
	deleteRoleBindings:           {verbs: remove, group: rbacG, resource: "rolebindings", namespaced: true},
	impersonateServiceAccounts:   {verbs: []string{"impersonate"}, resource: "serviceaccounts", namespaced: true},

	bindClusterRoles:          {verbs: []string{"bind"}, group: rbacG, resource: "clusterroles", namespaced: true, beside: true},
	bindRoles:                 {verbs: []string{"bind"}, group: rbacG, resource: "roles", namespaced: true, beside: true},
	createClusterRoleBindings: {verbs: create, group: rbacG, resource: "clusterrolebindings", unnamed: true},
	updateClusterRoleBindings: {verbs: write, group: rbacG, resource: "clusterrolebindings"},
	createRoleBindings:        {verbs: create, group: rbacG, resource: "rolebindings", namespaced: true, unnamed: true},
	updateRoleBindings:        {verbs: write, group: rbacG, resource: "rolebindings", namespaced: true},
	escalateClusterRoles:      {verbs: []string{"escalate"}, group: rbacG, resource: "clusterroles", beside: true},
	escalateRoles:             {verbs: []string{"escalate"}, group: rbacG, resource: "roles", namespaced: true, beside: true},
	createClusterRoles:        {verbs: create, group: rbacG, resource: "clusterroles", unnamed: true},
	createRoles:               {verbs: create, group: rbacG, resource: "roles", namespaced: true, unnamed: true},
	updateClusterRoles:        {verbs: write, group: rbacG, resource: "clusterroles"},
	updateRoles:               {verbs: write, group: rbacG, resource: "roles", namespaced: true},
	impersonateUsers:          {verbs: []string{"impersonate"}, resource: "users"},
	impersonateGroups:         {verbs: []string{"impersonate"}, resource: "groups"},
	impersonateNodeNames:      {verbs: []string{"impersonate"}, group: authn, resource: "userextras", subresource: nodeidentity.ExtraNode},
	impersonateAssociatedNode: {verbs: []string{"impersonate:associated-node"}, group: authn, resource: "nodes", mode: associatedNode},
	impersonateArbitraryNodes: {verbs: []string{"impersonate:arbitrary-node"}, group: authn, resource: "nodes", mode: arbitraryNode},
	impersonateAccountsOnly: {
		verbs: []string{"impersonate:serviceaccount"}, group: authn, resource: "serviceaccounts", namespaced: true,
		mode: serviceAccountMode,
	},
	impersonateUserInfo:  {verbs: []string{"impersonate:user-info"}, group: authn, resource: "users", mode: userInfoMode},
	impersonateGroupInfo: {verbs: []string{"impersonate:user-info"}, group: authn, resource: "groups", mode: userInfoMode},
	approveSigners:       {verbs: []string{"approve"}, group: certG, resource: "signers", beside: true},
	signSigners:          {verbs: []string{"sign"}, group: certG, resource: "signers", beside: true},
	updateApprovals:      {verbs: write, group: certG, resource: "certificatesigningrequests", subresource: "approval"},
	updateSigningStatus:  {verbs: []string{"update"}, group: certG, resource: "certificatesigningrequests", subresource: "status"},
	patchSigningStatus:   {verbs: []string{"patch"}, group: certG, resource: "certificatesigningrequests", subresource: "status"},
	autoApprove: {
		verbs: create, group: certG, resource: "certificatesigningrequests", subresource: "nodeclient", unnamed: true, beside: true,
	},
	requestAudience:      {verbs: []string{audienceVerb}, resource: anyAudience, namespaced: true, beside: true},
	requestOtherAudience: {verbs: []string{audienceVerb}, resource: anyAudience, namespaced: true, beside: true, otherAudience: true},
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

// namesBy lists the names for which a rule allows a request by any of the verbs; the empty name is all.
func (k *requestKind) namesBy(rule *rbacv1.PolicyRule) []string {
	if k.on != 0 {
		return k.namesIn(rule, k.verbs[0])
	}
	var all []string
	for _, verb := range k.verbs {
		for _, name := range k.namesIn(rule, verb) {
			if name == unnamed || name == "" {
				return []string{""}
			}
			all = append(all, name)
		}
	}
	return all
}

// namesIn lists the names for which a rule allows a request. The empty name is all, or the only object, and
// unnamed stands for requests without a name where the rule limits others.
func (k *requestKind) namesIn(rule *rbacv1.PolicyRule, verb string) []string {
	if k.whole {
		if coversWhole(rule, k.on) {
			return []string{""}
		}
		return nil
	}
	req := access.Request{
		ResourceRequest: true, Verb: k.on.verbOn(verb), Group: k.group, Resource: k.resource, Subresource: k.subresource, Name: k.name,
	}
	if verb == audienceVerb {
		audience, ok := k.audienceIn(rule)
		if !ok {
			return nil
		}
		req.Resource = audience
	}
	if len(rule.ResourceNames) == 0 {
		if rbac.RuleAllows(rule, &req) {
			return []string{""}
		}
		return nil
	}
	var all []string
	nameless, named := k.byName(verb)
	// RBAC compares the empty name of a request without a name with the names of the rule.
	if req.Name = ""; nameless && rbac.RuleAllows(rule, &req) {
		all = append(all, unnamed)
	}
	for _, name := range rule.ResourceNames {
		req.Name = name
		switch {
		case !named || name == "" || name == unnamed || k.name != "" && name != k.name || !rbac.RuleAllows(rule, &req):
		case k.name != "":
			all = append(all, "")
		default:
			all = append(all, name)
		}
	}
	return all
}

// byName reports whether requests with a verb may have no name, and whether they may have one. A list or watch has one
// if it selects an object by its name; a deletecollection has none even then.
func (k *requestKind) byName(verb string) (nameless, named bool) {
	never := verb == "create" && k.subresource == "" && !k.hasName || verb == "deletecollection" || k.unnamed
	return never || verb == "list" || verb == "watch", !never
}
