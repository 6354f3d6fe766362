package doctor

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// Codes of findings about what bindings grant to nodes, and to everyone: all authenticated users, all
// service accounts, or unauthenticated users.
const (
	SystemNodeBinding         finding.Code = "SystemNodeBinding"
	NodesMasters              finding.Code = "NodesMasters"
	NodesWildcard             finding.Code = "NodesWildcard"
	NodesReadSecrets          finding.Code = "NodesReadSecrets"
	NodesEscalate             finding.Code = "NodesEscalate"
	NodesRunWorkloads         finding.Code = "NodesRunWorkloads"
	NodesGrantCertificates    finding.Code = "NodesGrantCertificates"
	NodesChangeNodes          finding.Code = "NodesChangeNodes"
	EveryoneMasters           finding.Code = "EveryoneMasters"
	EveryoneWildcard          finding.Code = "EveryoneWildcard"
	EveryoneReadsSecrets      finding.Code = "EveryoneReadsSecrets"
	EveryoneEscalates         finding.Code = "EveryoneEscalates"
	EveryoneRunsWorkloads     finding.Code = "EveryoneRunsWorkloads"
	EveryoneGrantsCertificate finding.Code = "EveryoneGrantsCertificates"
	EveryoneChangesNodes      finding.Code = "EveryoneChangesNodes"
)

// right is something that RBAC should grant neither to nodes nor to everyone. The Node authorizer
// grants a node what it needs.
type right struct {
	nodes, everyone finding.Code
	// phrase completes "may …".
	phrase string
	// forNodes and forEveryone complete the name of the audience: "every node reads …".
	forNodes, forEveryone string
	// requests are the requests of which a rule must allow one.
	requests []access.Request
	// matters reports whether a request matters for an audience; nil means always.
	matters func(a audience, r *access.Request) bool
	// byName is true if a rule for one name is as severe as one for all names.
	byName bool
	// mild is true if NodeRestriction limits nodes anyway.
	mild bool
}

func rights() []right {
	const anyCertificate = "can have a certificate in the name of any node, or of somebody else"
	return []right{
		{
			nodes: NodesReadSecrets, everyone: EveryoneReadsSecrets, phrase: "read secrets",
			forNodes:    "reads secrets of pods that do not run on it, and can act as whom they belong to",
			forEveryone: "reads passwords, keys and tokens, and can act as whom they belong to",
			requests:    requests("get,list,watch secrets"),
		},
		{
			nodes: NodesEscalate, everyone: EveryoneEscalates, phrase: "take rights that it was not given",
			forNodes:    "can act as somebody who has more rights, or give itself more",
			forEveryone: "can act as somebody who has more rights, or take more",
			requests: requests(
				"escalate,bind clusterroles.rbac.authorization.k8s.io", "escalate,bind roles.rbac.authorization.k8s.io",
				"impersonate users", "impersonate groups", "impersonate serviceaccounts", "create serviceaccounts/token",
				"create,update,patch mutatingwebhookconfigurations.admissionregistration.k8s.io",
			),
		},
		{
			nodes: NodesRunWorkloads, everyone: EveryoneRunsWorkloads, phrase: "run programs on nodes",
			forNodes:    "runs what it likes on other nodes, with the service accounts and secrets that it likes",
			forEveryone: "runs programs on any node, with any service account and secret",
			requests: requests(
				"create pods", "create,get pods/exec", "create,get pods/attach", "update,patch pods/ephemeralcontainers",
				"create,update,patch replicationcontrollers", "create,update,patch daemonsets.apps", "create,update,patch deployments.apps",
				"create,update,patch replicasets.apps", "create,update,patch statefulsets.apps", "create,update,patch jobs.batch",
				"create,update,patch cronjobs.batch", "create,get nodes/proxy",
			),
		},
		{
			nodes: NodesGrantCertificates, everyone: EveryoneGrantsCertificate, phrase: "have certificates approved or signed",
			forNodes: anyCertificate, forEveryone: anyCertificate,
			requests: requests(
				"approve,sign signers.certificates.k8s.io", "create certificatesigningrequests.certificates.k8s.io/nodeclient",
			),
			matters: ofKubernetesSigners, byName: true,
		},
		{
			nodes: NodesChangeNodes, everyone: EveryoneChangesNodes, phrase: "change or delete nodes", mild: true,
			forNodes:    "draws pods to itself, or drives them from other nodes, by labels, taints and conditions",
			forEveryone: "decides where pods run, by labels, taints and conditions of nodes",
			requests:    requests("update,patch,delete nodes", "update,patch nodes/status"),
			matters: func(a audience, r *access.Request) bool {
				return r.Name == "" || a.node == "" || r.Name != a.node
			},
		},
	}
}

// ofKubernetesSigners excludes other signers, and the first client certificate of machines that join,
// which they have to request.
func ofKubernetesSigners(a audience, r *access.Request) bool {
	if r.Subresource == "nodeclient" {
		return !a.joining
	}
	domain, _, _ := strings.Cut(r.Name, "/")
	return r.Name == "" || domain == "*" || domain == "kubernetes.io"
}

// nodesOwn returns requests that kubelets make all the time. A role of any name that allows all of them
// grants the rights that nodes had before the Node authorizer.
func nodesOwn() []access.Request {
	return requests("create nodes", "patch nodes/status", "list,watch pods", "patch pods/status", "get secrets", "get configmaps")
}

// requests returns requests that are written as "VERB,VERB RESOURCE.GROUP/SUBRESOURCE".
func requests(written ...string) []access.Request {
	var all []access.Request
	for _, text := range written {
		verbs, object, _ := strings.Cut(text, " ")
		object, subresource, _ := strings.Cut(object, "/")
		resource, group, _ := strings.Cut(object, ".")
		for verb := range strings.SplitSeq(verbs, ",") {
			all = append(all, access.Request{
				Verb: verb, ResourceRequest: true, Group: group, Resource: resource, Subresource: subresource,
			})
		}
	}
	return all
}

// allowedBy reports whether a rule grants the right to an audience, and whether only for objects of
// certain names. A role binding grants no access to cluster-scoped objects.
func (r *right) allowedBy(rule *rbacv1.PolicyRule, a audience, namespace string) (allowed, named bool) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, request := range r.requests {
		if namespace != "" && ofCluster(&request) {
			continue
		}
		for _, name := range names {
			request.Name = name
			if rbac.RuleAllows(rule, &request) && (r.matters == nil || r.matters(a, &request)) {
				return true, name != "" && !r.byName
			}
		}
	}
	return false, false
}

// ofCluster reports whether a request is about a cluster-scoped object. A cluster role is not, because
// it can be bound in a namespace.
func ofCluster(r *access.Request) bool {
	switch r.Resource {
	case "nodes", "users", "groups", "signers", "certificatesigningrequests", "mutatingwebhookconfigurations":
		return true
	case "clusterroles":
		return r.Verb != "bind"
	}
	return false
}

// everything reports whether a rule allows all verbs on all resources.
func everything(rule *rbacv1.PolicyRule) bool {
	return wildcard(rule) && slices.Contains(rule.Verbs, "*")
}

// wildcard reports whether a rule also applies to resources that are added later.
func wildcard(rule *rbacv1.PolicyRule) bool {
	return len(rule.ResourceNames) == 0 && slices.Contains(rule.APIGroups, "*") && slices.Contains(rule.Resources, "*")
}

// allowsAll reports whether the rules together allow every request.
func allowsAll(rules []heldRule, requests []access.Request) bool {
	return !slices.ContainsFunc(requests, func(request access.Request) bool {
		return !slices.ContainsFunc(rules, func(r heldRule) bool { return rbac.RuleAllows(r.PolicyRule, &request) })
	})
}
