package noderestriction

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/node-authorizer/node-authorizer/access"
)

func boundToPod(_ *question, token *authenticationv1.TokenRequest) *refusal {
	ref := token.Spec.BoundObjectRef
	switch {
	case ref == nil:
		return forbid(TokenNotBoundToPod, "spec.boundObjectRef is missing")
	case ref.APIVersion != "v1" || ref.Kind != "Pod":
		return forbid(TokenNotBoundToPod, "spec.boundObjectRef is a %q of %q, not a Pod of v1", ref.Kind, ref.APIVersion)
	case ref.Name == "" || ref.UID == "":
		return forbid(TokenNotBoundToPod, "spec.boundObjectRef lacks the pod's name or uid")
	}
	return nil
}

func boundPodExists(q *question, token *authenticationv1.TokenRequest) *refusal {
	return q.findPod(token.Spec.BoundObjectRef.Name, statusNotFound)
}

func boundPodUID(q *question, token *authenticationv1.TokenRequest) *refusal {
	if uid := token.Spec.BoundObjectRef.UID; uid != q.pod.UID {
		return forbid(PodUIDMismatch, "pod %s/%s has another uid than %q: it may have been deleted and created again",
			q.req.Namespace, q.pod.Name, uid).lagging(true)
	}
	return nil
}

// boundPodOnNode comes after a check of the uid. The pod is the one that is
// meant, and once bound, it stays where it is.
func boundPodOnNode(q *question) *refusal {
	if q.pod.Spec.NodeName != q.node {
		return forbid(PodNotOnNode, "pod %s/%s is not on node %s", q.req.Namespace, q.pod.Name, q.node).lagging(q.pod.Spec.NodeName == "")
	}
	return nil
}

// audienceOfPodOrDriver is audienceAllowed in Kubernetes 1.32, which did not
// follow volumes that migrate to CSI and asked no authorizer.
func audienceOfPodOrDriver(q *question, token *authenticationv1.TokenRequest) *refusal {
	audience, refusal := oneAudience(token)
	if refusal != nil {
		return refusal
	}
	s := audienceSearch{volumes: q.state, audience: audience}
	if s.inPod(q.pod) {
		return nil
	}
	if refusal := s.failed(); refusal != nil {
		return refusal
	}
	return forbid(AudienceNotAllowed, "no volume of pod %s/%s uses tokens for audience %q", q.req.Namespace, q.pod.Name,
		audience).lagging(s.drivers > 0)
}

func audienceAllowed(q *question, token *authenticationv1.TokenRequest) *refusal {
	audience, refusal := oneAudience(token)
	if refusal != nil {
		return refusal
	}
	s := audienceSearch{volumes: q.state, audience: audience, migrate: true}
	if s.inPod(q.pod) {
		return nil
	}
	if refusal := s.failed(); refusal != nil {
		return refusal
	}
	allowed, err := q.ask("request-serviceaccounts-token-audience", audience, q.req.Name)
	switch {
	case allowed:
		return nil
	case err != nil:
		return forbid(AuthorizationFailed, "whether node %s may request tokens for audience %q could not be decided", q.node,
			audience).because(err)
	}
	return forbid(AudienceNotAllowed, "no volume of pod %s/%s uses tokens for audience %q, and no authorizer lets node %s request them",
		q.req.Namespace, q.pod.Name, audience, q.node).lagging(s.drivers > 0)
}

// oneAudience returns the audience that is asked for; empty stands for the
// audience of the API server.
func oneAudience(token *authenticationv1.TokenRequest) (string, *refusal) {
	switch audiences := token.Spec.Audiences; len(audiences) {
	case 0:
		return "", nil
	case 1:
		return audiences[0], nil
	default:
		return "", forbid(OneAudienceOnly, "the token is for %d audiences, and a node may request one at a time", len(audiences))
	}
}

// ask puts a question of the node's to the cluster's authorizers.
func (q *question) ask(verb, resource, serviceAccount string) (bool, error) {
	if q.authorizer == nil {
		return false, nil
	}
	allowed, _, err := q.authorizer.Authorize(q.ctx, &access.Request{
		User: q.req.User, UID: q.req.UID, Groups: q.req.Groups, Extra: q.req.Extra,
		Verb: verb, ResourceRequest: true, Group: q.req.Group, Version: q.req.Version, Resource: resource,
		Namespace: q.req.Namespace, Name: serviceAccount,
	})
	return allowed, err
}
