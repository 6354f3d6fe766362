package probe

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

const (
	// tooShort is an expiration that no API server accepts: tokens are valid for 10 minutes at least.
	tooShort = 1
	// The pods that are looked through for one with a token.
	podsPerPage = 50
	podPages    = 4

	audienceVerb = "request-serviceaccounts-token-audience"
)

// audience asks for tokens as the node of a pod, because no node that does not exist has a pod. The API
// server does not read dryRun there. It cannot issue these tokens, because it refuses their expiration.
// It does so after the mutating admission plugins, of which NodeRestriction is one.
func (p *prober) audience(ctx context.Context) error {
	pod, found := p.podWithToken(ctx)
	if !found {
		return nil
	}
	p.names.podNode = pod.Spec.NodeName
	bound := &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	unbound, done, err := p.token(ctx, pod, "a token that is bound to no pod", nil, nil)
	if done || err != nil {
		return err
	}
	foreign, done, err := p.token(ctx, pod, "a token for an audience that the pod does not name", bound, []string{p.names.audience})
	if done || err != nil {
		return err
	}
	switch {
	case foreign.passed && unbound.passed:
		p.conclude(DoesNotHold, "a node may request a token for any audience, and one that is bound to no pod")
	case foreign.passed && unbound.admission:
		p.unrestricted(ctx, pod)
	case foreign.says("is not authorized to request tokens for audience", p.names.audience):
		p.conclude(Holds, "admission refuses it: %s", foreign.answer.line)
	case foreign.admission:
		return p.ownAudience(ctx, pod, bound, foreign)
	default:
		p.conclude(Undetermined, "%s", foreign.answer.String())
	}
	return nil
}

func (p *prober) ownAudience(ctx context.Context, pod *corev1.Pod, bound *authenticationv1.BoundObjectReference, foreign refusal) error {
	own, done, err := p.token(ctx, pod, "a token as the pod has it", bound, nil)
	if done || err != nil {
		return err
	}
	if own.passed {
		p.conclude(Holds, "admission refuses it, and allows a token as the pod has it: %s", foreign.answer.line)
		return nil
	}
	p.conclude(Undetermined, "admission refuses it, and a token as the pod has it too: %s", own.answer.String())
	return nil
}

func (p *prober) unrestricted(ctx context.Context, pod *corev1.Pod) {
	user, groups := nodeidentity.User(pod.Spec.NodeName)
	r := p.review(ctx, identity{user, groups}, action{
		verb: audienceVerb, resource: p.names.audience, namespace: pod.Namespace, name: pod.Spec.ServiceAccountName,
	})
	const any = "a node may request a token for any audience"
	switch {
	case p.undecided(r):
	case r.allowed:
		p.breaks(ByAudience, any+": an authorizer lets it%s", r.because())
	case p.lacksGate(kubeversion.ServiceAccountNodeAudienceRestriction):
		p.breaks(ByVersion, any+": Kubernetes %s has that unless the feature gate %s is on", p.minor,
			kubeversion.ServiceAccountNodeAudienceRestriction)
	default:
		p.conclude(DoesNotHold, any)
	}
}

func (p *prober) token(
	ctx context.Context, pod *corev1.Pod, about string, bound *authenticationv1.BoundObjectReference, audiences []string,
) (refusal, bool, error) {
	account := pod.Spec.ServiceAccountName
	expires := int64(tooShort)
	got, done, err := p.try(ctx, pod.Spec.NodeName, &write{
		path:  "/api/v1/namespaces/" + url.PathEscape(pod.Namespace) + "/serviceaccounts/" + url.PathEscape(account) + "/token",
		what:  action{verb: "create", resource: "serviceaccounts", subresource: "token", namespace: pod.Namespace, name: account},
		about: about + ", valid for one second, which no API server issues",
		object: authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: authenticationv1.SchemeGroupVersion.String(), Kind: "TokenRequest"},
			Spec:     authenticationv1.TokenRequestSpec{Audiences: audiences, ExpirationSeconds: &expires, BoundObjectRef: bound},
		},
	})
	if got.answer != nil && got.answer.refused(http.StatusUnprocessableEntity) && expiresTooSoon(got.answer) {
		got.passed = true
	}
	return got, done, err
}

// expiresTooSoon reports whether an answer refuses the expiration, and nothing else.
func expiresTooSoon(a *answer) bool {
	d := a.status.Details
	return d != nil && d.Kind == "TokenRequest" && len(d.Causes) == 1 && d.Causes[0].Field == "spec.expirationSeconds"
}

func (p *prober) podWithToken(ctx context.Context) (*corev1.Pod, bool) {
	query := url.Values{"limit": {strconv.Itoa(podsPerPage)}, "fieldSelector": {"status.phase=Running"}}
	for range podPages {
		a := p.do(ctx, request{method: http.MethodGet, path: "/api/v1/pods", query: query, max: maxList})
		if !a.ok() {
			p.conclude(Undetermined, "no pod with a token is known: %s", a)
			if a.refused(http.StatusForbidden) {
				p.lacking("pods", "bind a role with the verb list on pods to the user", "no pod with a token is known: %s", a.line)
			}
			return nil, false
		}
		var list corev1.PodList
		if err := json.Unmarshal(a.body, &list); err != nil {
			p.conclude(Undetermined, "no pod with a token is known: the answer is not a list of pods")
			return nil, false
		}
		for i := range list.Items {
			if hasToken(&list.Items[i]) {
				return &list.Items[i], true
			}
		}
		if list.Continue == "" {
			break
		}
		query.Set("continue", list.Continue)
	}
	p.lacking("pods", "", "of the first %d pods that run on a node, none has a token", podsPerPage*podPages)
	return nil, false
}

func hasToken(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return false
	}
	if pod.Spec.NodeName == "" || pod.Spec.ServiceAccountName == "" || pod.DeletionTimestamp != nil {
		return false
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Projected == nil {
			continue
		}
		for _, source := range volume.Projected.Sources {
			if source.ServiceAccountToken != nil && source.ServiceAccountToken.Audience == "" {
				return true
			}
		}
	}
	return false
}
