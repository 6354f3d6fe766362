package probe

import (
	"bytes"
	"context"
	"net/http"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// everyoneRefused asks about something that no role names.
func (p *prober) everyoneRefused(ctx context.Context) error {
	who := identity{p.names.user, []string{groupAuthenticated}}
	r := p.review(ctx, who, action{verb: "delete", group: "node-authorizer.invalid", resource: "probes", name: p.names.user})
	switch {
	case p.undecided(r):
	case r.allowed:
		p.everyone = true
		p.breaks(ByEveryone, "a made-up user may delete objects of a kind that does not exist%s", r.because())
	default:
		p.conclude(Holds, "a made-up user may not delete objects of a kind that does not exist")
	}
	return nil
}

// nodeIdentity asks about what the Node authorizer lets a node do before its Node exists. The second
// question is about something that the role system:node does not contain, so that a binding of that
// role to the group does not hide the answer.
func (p *prober) nodeIdentity(ctx context.Context) error {
	var hidden reviewed
	for _, what := range []action{
		{verb: "get", resource: "nodes", name: p.names.node}, {verb: "create", group: resourcev1.GroupName, resource: "resourceslices"},
	} {
		node, member := p.review(ctx, p.node(), what), p.review(ctx, p.member(), what)
		switch {
		case p.undecided(node, member):
			return nil
		case node.allowed && !member.allowed:
			p.conclude(Holds, "a node may %s, and another user in its groups may not", what)
			return nil
		case !node.allowed && !member.allowed && what.resource == "nodes":
			p.conclude(DoesNotHold, "a node may not even get its own Node%s", node.because())
			return nil
		case !node.allowed && member.allowed:
			p.conclude(Undetermined, "a node may not %s, and another user in its groups may%s", what, node.because())
			return nil
		case node.allowed && hidden.reason == "":
			hidden = member
		}
	}
	if p.everyone {
		p.breaks(ByEveryone, "everyone may do everything, nodes among them")
		return nil
	}
	p.namedInRefusal(ctx, hidden)
	return nil
}

// namedInRefusal looks for an authorizer that names the node when it refuses, where a right of the
// group hides what it allows.
func (p *prober) namedInRefusal(ctx context.Context, hidden reviewed) {
	what := p.ownSecret()
	node, member := p.review(ctx, p.node(), what), p.review(ctx, p.member(), what)
	switch {
	case p.undecided(node, member):
	case member.allowed:
		p.breaks(ByGroup,
			"every user in group %s may read what a node may, and secrets too: if the Node authorizer is asked, it restricts nothing%s",
			nodeidentity.Group, member.because())
	case !node.allowed && strings.Contains(node.reason, p.names.node) && !strings.Contains(member.reason, p.names.node):
		p.conclude(Holds, "an authorizer refuses a secret to a node by its name%s", node.because())
	default:
		p.conclude(Undetermined, "every user in group %s may what a node may, so that the Node authorizer does not show%s",
			nodeidentity.Group, hidden.because())
	}
}

func (p *prober) ownSecret() action {
	return action{verb: "get", resource: "secrets", namespace: "kube-system", name: p.names.secret}
}

// refusedTo returns a probe that asks whether a node may do something that it should not, and if it may, whether as a
// member of its groups. The gate is the one that has it refused; empty if it always is.
func refusedTo(what func(*prober) action, gate kubeversion.Gate) func(*prober, context.Context) error {
	return func(p *prober, ctx context.Context) error {
		p.refusedTo(ctx, what(p), gate)
		return nil
	}
}

func (p *prober) refusedTo(ctx context.Context, what action, gate kubeversion.Gate) {
	node := p.review(ctx, p.node(), what)
	switch {
	case p.undecided(node):
		return
	case !node.allowed:
		p.conclude(Holds, "a node may not %s", what)
		return
	}
	member := p.review(ctx, p.member(), what)
	switch {
	case p.undecided(member):
	case p.everyone:
		p.breaks(ByEveryone, "a node may %s, as everyone may do everything", what)
	case member.allowed:
		p.breaks(ByGroup, "every user in group %s may %s%s", nodeidentity.Group, what, member.because())
	case gate != "" && p.lacksGate(gate):
		p.breaks(ByVersion, "a node may %s: Kubernetes %s has that unless the feature gate %s is on", what, p.minor, gate)
	default:
		p.conclude(DoesNotHold, "a node may %s%s", what, node.because())
	}
}

func (p *prober) lacksGate(gate kubeversion.Gate) bool {
	return p.minor != 0 && !kubeversion.For(p.minor).Enabled(gate)
}

func (p *prober) approval(ctx context.Context) error {
	machine := identity{"system:bootstrap:probed", []string{"system:bootstrappers", groupAuthenticated}}
	for _, who := range []struct {
		name string
		identity
	}{{"a node", p.node()}, {"a machine with a bootstrap token", machine}} {
		approve := p.review(ctx, who.identity, action{
			verb: "update", group: certificatesv1.GroupName, resource: "certificatesigningrequests", subresource: "approval",
			name: p.names.user,
		})
		if p.undecided(approve) {
			return nil
		}
		if !approve.allowed {
			continue
		}
		signer := p.review(ctx, who.identity, action{
			verb: "approve", group: certificatesv1.GroupName, resource: "signers",
			name: certificatesv1.KubeAPIServerClientKubeletSignerName,
		})
		if p.undecided(signer) {
			return nil
		}
		if signer.allowed {
			var cause Cause
			if p.everyone {
				cause = ByEveryone
			}
			p.breaks(cause, "%s may approve certificates of kubelets%s", who.name, approve.because())
			return nil
		}
	}
	p.conclude(Holds, "neither may approve them; what controllers approve for them does not show")
	return nil
}

// anonymous sends requests without a credential. What a caller could read of objects is only asked,
// not read.
func (p *prober) anonymous(ctx context.Context) error {
	answers := map[string]*answer{}
	accepted := false
	for _, at := range []struct{ path, has string }{{"/version", `"gitVersion"`}, {"/healthz", ""}, {"/api", `"APIVersions"`}} {
		a := p.do(ctx, request{method: http.MethodGet, path: at.path, anonymous: true})
		answers[at.path] = a
		switch {
		case a.ok() && bytes.Contains(a.body, []byte(at.has)), a.refused(http.StatusForbidden):
			accepted = true
		case a.ok():
			p.conclude(Undetermined, "GET %s without a credential: the response is not from an API server", at.path)
			return nil
		case !a.refused(http.StatusUnauthorized):
			p.conclude(Undetermined, "GET %s without a credential: %s", at.path, a)
			return nil
		}
	}
	switch {
	case !accepted:
		p.conclude(Holds, "requests without a credential are Unauthorized (401)")
	case answers["/api"].refused(http.StatusUnauthorized):
		p.conclude(Holds, "callers without a credential read version and health; other requests are Unauthorized (401)")
	case p.grantedToAnonymous(ctx):
	case answers["/api"].ok():
		p.breaks(ByDiscovery, "callers without a credential may read the list of APIs")
	default:
		p.conclude(Holds, "callers without a credential read version and health at most")
	}
	return nil
}

// grantedToAnonymous asks for rights that no caller without a credential should have. It concludes
// the probe if there is one or if it is not known.
func (p *prober) grantedToAnonymous(ctx context.Context) bool {
	who := identity{userAnonymous, []string{groupUnauthenticated}}
	for _, what := range []action{
		{verb: "list", resource: "secrets"},
		{verb: "list", resource: "pods"},
		{verb: "list", resource: "nodes"},
		{verb: "create", resource: "pods"},
		{verb: "create", group: certificatesv1.GroupName, resource: "certificatesigningrequests"},
	} {
		r := p.review(ctx, who, what)
		if p.undecided(r) {
			return true
		}
		if r.allowed {
			p.conclude(DoesNotHold, "callers without a credential may %s%s", what, r.because())
			return true
		}
	}
	return false
}
