package noderestriction

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// mayAllocate reports whether nodes write the allocated resources of claims.
func (d *draft) mayAllocate() bool {
	return d.features.Enabled(kubeversion.RecoverVolumeExpansionFailure)
}

// bindToken completes the reference to a pod on the node.
func (d *draft) bindToken(answer Answer) {
	token, ok := d.req.Object.(*authenticationv1.TokenRequest)
	pod, exists := d.meantPod()
	if !ok || token.Spec.BoundObjectRef == nil || !exists {
		d.none = "the token must be bound to a pod on node " + answer.Node + ", and only the caller knows for which one it is"
		return
	}
	*token.Spec.BoundObjectRef = authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
}

// oneAudience keeps an audience that is allowed, or else the first.
func (d *draft) oneAudience(answer Answer) {
	token, ok := d.req.Object.(*authenticationv1.TokenRequest)
	if !ok || len(token.Spec.Audiences) == 0 {
		return
	}
	all := token.Spec.Audiences
	for _, audience := range all {
		token.Spec.Audiences = []string{audience}
		if d.Decide(d.ctx, &d.req).Decision == verdict.Allow {
			break
		}
		token.Spec.Audiences = all[:1]
	}
	d.warnings = append(d.warnings, "the node needs one request for each audience")
}

func (d *draft) grantAudience(answer Answer) {
	token, ok := d.req.Object.(*authenticationv1.TokenRequest)
	if !ok {
		return
	}
	audience, _ := oneAudience(token)
	if d.features.Minor() < migrationSince {
		d.none = fmt.Sprintf("in Kubernetes %s only a volume of the pod allows audience %q, and the volumes of a pod stay: "+
			"create the pod again", d.features.Minor(), audience)
		return
	}
	d.grant("request-serviceaccounts-token-audience", audience, d.req.Name,
		fmt.Sprintf("whoever takes over node %s can then get tokens for audience %q", answer.Node, audience))
}

// grantAsked gives the right that an authorizer failed to decide about: an allow of another one counts.
func (d *draft) grantAsked(answer Answer) {
	if _, ok := d.req.Object.(*authenticationv1.TokenRequest); ok {
		d.grantAudience(answer)
		return
	}
	d.grantSigner(answer)
}

func (d *draft) grantSigner(answer Answer) {
	spec, ok := certificateSpecOf(d.req.Object)
	if !ok {
		return
	}
	d.grant("request-serviceaccounts-podcertificate-signer", strings.ReplaceAll(spec.signer, "/", ":"), spec.account,
		fmt.Sprintf("whoever takes over node %s can then get certificates of signer %q", answer.Node, spec.signer))
}

// grant gives the node's user the right by RBAC that [question.ask] asks for.
func (d *draft) grant(verb, resource, account, what string) {
	req := access.Request{
		User: d.req.User, Groups: d.req.Groups, Verb: verb, ResourceRequest: true, Group: d.req.Group, Version: d.req.Version,
		Resource: resource, Namespace: d.req.Namespace, Name: account,
	}
	d.Restriction = New(d.state, granted{d.authorizer, req}, d.features)
	d.changes = append(d.changes, req.Grant()...)
	d.warnings = append(d.warnings, fmt.Sprintf("%s of service account %s/%s; a projected volume of the pod would limit this to the pod",
		what, req.Namespace, account))
}

// granted is an authorizer that also allows one request.
type granted struct {
	Authorizer
	request access.Request
}

func (g granted) Authorize(ctx context.Context, req *access.Request) (allowed bool, reason string, err error) {
	of := g.request
	if req.Verb == of.Verb && req.Resource == of.Resource && req.Namespace == of.Namespace && req.Name == of.Name {
		return true, "", nil
	}
	if g.Authorizer == nil {
		return false, "", nil
	}
	return g.Authorizer.Authorize(ctx, req)
}

func (d *draft) lookupFirst(answer Answer) {
	d.none = "what leads from the pod's volumes to their CSI drivers must exist first: " + answer.Reason.Message
}

func (d *draft) signAgain(answer Answer) {
	d.none = fmt.Sprintf("the request must be made and signed again for the common name %s%s, which only the node can do with its key",
		nodeidentity.UserPrefix, answer.Node)
}
