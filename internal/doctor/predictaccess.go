package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// accessPredictor predicts the rights of a user that should be a node, with the authorizers of the
// cluster's API servers, as far as they are known.
type accessPredictor struct {
	chain chain.Chain
	// restricted is true if NodeRestriction limits nodes to their own names.
	restricted bool
	// assumed describes the roles and bindings; empty for the cluster's own.
	assumed string
	// unasked is an authorizer of the API server that cannot be evaluated and may allow more;
	// empty if there is none.
	unasked string
}

// newAccessPredictor assumes the defaults of a typical cluster for what is unknown: Node before
// RBAC, NodeRestriction, and no right for system:nodes except to request certificates.
func newAccessPredictor(c *Cluster) *accessPredictor {
	p := &accessPredictor{chain: chain.Chain{chain.Masters()}, restricted: true}
	version := c.Version
	if version == 0 {
		version = kubeversion.Latest
	}
	for _, mode := range c.authorizers() {
		switch mode {
		case modeNode:
			p.chain = append(p.chain, chain.Node(nodeauthz.New(graph.New(), kubeversion.For(version))))
		case modeRBAC:
			p.chain = append(p.chain, chain.RBAC(c.RBAC))
			if !c.RBACKnown {
				p.chain = append(p.chain, chain.RBAC(usualPolicy(c.Bindings)))
				p.assumed = "a usual cluster"
			}
		case modeAlwaysAllow:
			p.chain = append(p.chain, chain.AlwaysAllow())
		case modeWebhook, modeABAC:
			p.unasked = mode
		}
	}
	if len(c.APIServers) > 0 && c.APIServers[0].Unseen == "" {
		p.restricted = c.APIServers[0].nodeRestriction()
	}
	return p
}

func (c *Cluster) authorizers() []string {
	for _, s := range c.setups() {
		if s.authorizers != nil {
			return s.authorizers
		}
	}
	return []string{modeNode, modeRBAC}
}

// usualPolicy returns what RBAC grants to nodes in a cluster of kubeadm or EKS, and the rules of
// bindings whose roles were not read.
func usualPolicy(bindings []Binding) *rbac.Policy {
	p := rbac.NewPolicy()
	csrs := allow(certificatesv1.GroupName, "certificatesigningrequests", "create", "get", "list", "watch")
	bootstrapper := rbacv1.RoleRef{Kind: "ClusterRole", Name: "system:node-bootstrapper"}
	for _, group := range []string{groupBootstrappers, nodeidentity.Group} {
		bindUsual(p, "usual for "+group, bootstrapper, []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: group}}, csrs)
	}
	for _, b := range bindings {
		rules, known := rbac.DefaultRules(rbac.Ref{Kind: b.Role.Kind, Name: b.Role.Name})
		if !known || b.Namespace != "" {
			continue
		}
		if b.Role.Name == "system:node" {
			rules = append(rules, allow(coordinationv1.GroupName, "leases", "create", "get", "update", "patch", "delete"), csrs)
		}
		bindUsual(p, b.Name, b.Role, b.Subjects, rules...)
	}
	return p
}

func bindUsual(p *rbac.Policy, name string, role rbacv1.RoleRef, subjects []rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	p.SetClusterRole(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role.Name}, Rules: rules})
	p.SetClusterRoleBinding(&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: role, Subjects: subjects})
}

func allow(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: []string{resource}}
}

// kubelet is a user that should be the kubelet of a node.
type kubelet struct {
	user   string
	groups []string
	node   string
}

func (k kubelet) identity() nodeidentity.Identity { return nodeidentity.Of(k.user, k.groups) }

// kubeletRequest is a request that kubelets make.
type kubeletRequest struct {
	// request is written as for [requests].
	request, namespace string
	// named is true if it is about the object with the node's name.
	named bool
	// phrase completes "may not …".
	phrase string
}

func keepReady() []kubeletRequest {
	const namespace = "kube-node-lease"
	return []kubeletRequest{
		{"patch nodes/status", "", true, "write its Node's status"},
		{"create leases.coordination.k8s.io", namespace, false, "create its Lease"},
		{"update leases.coordination.k8s.io", namespace, true, "renew its Lease"},
	}
}

// all evaluates several requests. It returns the first that is refused, or who allows them.
func (p *accessPredictor) all(k kubelet, list ...kubeletRequest) (refused, by string) {
	for _, a := range list {
		for _, request := range requests(a.request) {
			request.User, request.Groups, request.Namespace, request.Version = k.user, k.groups, a.namespace, "v1"
			if a.named {
				request.Name = k.node
			}
			decision, who, err := p.chain.Decide(context.Background(), &request)
			if err != nil || decision != verdict.Allow {
				return a.phrase, ""
			}
			by = who
		}
	}
	return "", by
}

func (p *accessPredictor) registers(k kubelet) Outcome {
	refused, by := p.all(k, kubeletRequest{request: "create nodes", phrase: "create its Node"})
	identity := k.identity()
	switch {
	case refused != "":
		return p.refused(p.refusal(k, refused))
	case identity.IsNode && identity.Name != k.node && p.restricted:
		return Outcome{No, fmt.Sprintf("to NodeRestriction it is node %q, and may not create Node %q", identity.Name, k.node)}
	}
	return Outcome{Yes, allowedBy(by)}
}

func (p *accessPredictor) ready(k kubelet, registers Outcome) Outcome {
	refused, by := p.all(k, keepReady()...)
	lease, _ := p.all(k, keepReady()[2])
	switch {
	case registers.Value == No && lease != "":
		return Outcome{No, "NotReady: it may not " + lease + " either"}
	case registers.Value == Unknown && lease != "":
		return p.refused("NotReady: it may not " + lease + " either")
	case registers.Value == No:
		return Outcome{No, "it does not register"}
	case refused != "":
		return p.refused("NotReady: " + p.refusal(k, refused))
	}
	return Outcome{Yes, allowedBy(by)}
}

// serving predicts whether the kubelet gets its serving certificate. Kubernetes itself approves
// none; approvers compare the requester with the subject.
func (p *accessPredictor) serving(k kubelet) Outcome {
	commonName := nodeidentity.UserPrefix + k.node
	refused, _ := p.all(k, kubeletRequest{
		request: "create certificatesigningrequests.certificates.k8s.io", phrase: "ask for a certificate",
	})
	switch {
	case refused != "" && k.user == commonName:
		return p.refused(p.refusal(k, refused))
	case refused != "":
		return Outcome{No, p.refusal(k, refused)}
	case k.user != commonName:
		return Outcome{No, fmt.Sprintf("it asks for the certificate of %s as %s, and is not approved", commonName, k.user)}
	case !slices.Contains(k.groups, nodeidentity.Group):
		return Outcome{Yes, fmt.Sprintf(
			"it asks for its certificate in its own name; an approver that wants %s too, as node-authorizer's does, leaves it alone",
			nodeidentity.Group,
		)}
	}
	return Outcome{Yes, "it asks for its certificate in its own name"}
}

func (p *accessPredictor) refused(why string) Outcome {
	if p.unasked == "" {
		return Outcome{No, why}
	}
	return Outcome{Unknown, why + "; whether authorizer " + p.unasked + " does cannot be seen here"}
}

func (p *accessPredictor) refusal(k kubelet, phrase string) string {
	rbac := "RBAC does not let it"
	if p.assumed != "" {
		rbac = "the RBAC of " + p.assumed + " does not let it"
	}
	switch identity := k.identity(); {
	case identity.IsNode && identity.Name != k.node:
		return fmt.Sprintf("to the Node authorizer it is node %q, which may not %s", identity.Name, phrase)
	case identity.IsNode:
		return fmt.Sprintf("%s may not %s", k.user, phrase)
	case strings.HasPrefix(k.user, nodeidentity.UserPrefix):
		return fmt.Sprintf("without group %s it is not a node, and %s %s", nodeidentity.Group, rbac, phrase)
	}
	return fmt.Sprintf("as %s it is not a node, and %s %s", k.user, rbac, phrase)
}

func allowedBy(authorizer string) string {
	switch authorizer {
	case chain.NameMasters:
		return "allowed everything, as a member of " + groupMasters
	case chain.NameNode:
		return "allowed by the Node authorizer"
	}
	return "allowed by " + authorizer
}
