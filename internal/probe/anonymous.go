package probe

import (
	"bytes"
	"context"
	"net/http"

	certificatesv1 "k8s.io/api/certificates/v1"
)

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
			p.conclude(Undetermined, "GET %s without a credential: the response is not that of an API server", at.path)
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
