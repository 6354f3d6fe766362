package chain

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/authorization/union"
	webhookauthorizer "k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	webhookmetrics "k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Chains and Kubernetes' own authorizers decide random requests with random
// configurations in the same way.
func TestChainsDecideAsKubernetesDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(20, 26))
	h := newHook(t)
	parts := clusterParts()
	outcomes := map[string]int{}
	for range 150 {
		authorizers := randomAuthorizers(random, h)
		ours, theirs := built(t, parts, authorizers...), kubernetesChain(t, parts, authorizers)
		for range 10 {
			req := randomRequest(random)
			want, _, wantErr := theirs.Authorize(t.Context(), req.Attributes())
			got, err := ours.Explain(t.Context(), req)
			if outcome := outcomeOf(got, err); outcome != kubernetesOutcome(want, wantErr) {
				t.Fatalf("got %s, Kubernetes %s (%v)\nrequest %+v\n%s", outcome, kubernetesOutcome(want, wantErr), wantErr, req,
					strings.Join(authorizers, ""))
			}
			brief, briefErr := ours.Brief(t.Context(), req)
			decision, by, decideErr := ours.Decide(t.Context(), req)
			if outcomeOf(brief, briefErr) != outcomeOf(got, err) || brief.DecidedBy != got.DecidedBy ||
				decision != got.Decision || by != got.DecidedBy || (decideErr == nil) != (err == nil) {
				t.Fatalf("Explain says %+v, %v; Brief %+v, %v; Decide %s by %q, %v", got, err, brief, briefErr, decision, by, decideErr)
			}
			outcomes[outcomeOf(got, err)]++
		}
	}
	for _, outcome := range []string{"Allow", "Deny", "Deny after an error", "NoOpinion", "NoOpinion after an error"} {
		if outcomes[outcome] < 20 {
			t.Errorf("only %d times %s: %v", outcomes[outcome], outcome, outcomes)
		}
	}
}

func outcomeOf(r Result, err error) string {
	last := r.Opinions[len(r.Opinions)-1]
	if err != nil || r.Decision == verdict.Deny && last.Error != "" {
		return r.Decision.String() + " after an error"
	}
	return r.Decision.String()
}

func kubernetesOutcome(d authorizer.Decision, err error) string {
	if err != nil {
		return d.String() + " after an error"
	}
	return d.String()
}

// clusterParts returns the parts of the chain of cluster.
func clusterParts() Parts {
	links := cluster()
	return Parts{Node: links[1].(node).authorizer, RBAC: links[2].(rbacLink).policy}
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func randomAuthorizers(random *rand.Rand, h *hook) []string {
	all := []string{"- {type: Node, name: node}\n", "- {type: RBAC, name: rbac}\n"}
	if random.IntN(4) == 0 {
		all = append(all, "- {type: AlwaysDeny, name: alwaysdeny}\n")
	}
	if random.IntN(8) == 0 {
		all = append(all, "- {type: AlwaysAllow, name: alwaysallow}\n")
	}
	for i := range random.IntN(4) {
		o := hookOptions{policy: pick(random, "NoOpinion", "Deny"), version: pick(random, "v1", "v1beta1"), cached: random.IntN(2) == 0}
		for range random.IntN(3) {
			condition := pick(random,
				"has(request.resourceAttributes)",
				"request.resourceAttributes.namespace == 'shop'",
				"request.resourceAttributes.verb in ['get', 'list']",
				"!('system:nodes' in request.groups)",
				"request.user.startsWith('system:node:')",
			)
			if len(o.conditions) == 0 || o.conditions[0] != condition {
				o.conditions = append(o.conditions, condition)
			}
		}
		all = append(all, h.yaml(fmt.Sprintf("webhook-%d", i), o))
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+random.IntN(len(all))]
}

func randomRequest(random *rand.Rand) *access.Request {
	req := &access.Request{
		User:   pick(random, "system:node:a", "system:node:b", "ada"),
		Groups: [][]string{nil, {"system:nodes"}, {"system:masters"}, {"system:nodes"}}[random.IntN(4)],
		Verb:   pick(random, "get", "list", "delete"),
	}
	if random.IntN(8) == 0 {
		req.Path = pick(random, "/healthz", "/metrics")
		return req
	}
	req.ResourceRequest, req.Version = true, "v1"
	req.Resource, req.Namespace = pick(random, "secrets", "pods"), pick(random, "shop", "bank")
	req.Name = pick(random, "pull", "api", "allow", "deny", "none", "both", "garbage", "500", "403")
	if random.IntN(8) == 0 {
		req.Group, req.Resource, req.Namespace, req.Name = "example.com", "gadgets", "", "one"
	}
	return req
}

// kubernetesChain returns Kubernetes' own chain of the authorizers, with our Node
// authorizer and our RBAC in it.
func kubernetesChain(t *testing.T, parts Parts, authorizers []string) authorizer.Authorizer {
	t.Helper()
	c, err := Parse([]byte(configurationHeader + strings.Join(authorizers, "")))
	if err != nil {
		t.Fatal(err)
	}
	links := []union.NamedAuthorizer{{AuthorizerName: "masters", Authorizer: authorizerfactory.NewPrivilegedGroups("system:masters")}}
	for i := range c.authorizers {
		a := &c.authorizers[i]
		links = append(links, union.NamedAuthorizer{AuthorizerName: a.Name, Authorizer: kubernetesAuthorizer(t, a, parts)})
	}
	chain, err := union.New(links...)
	if err != nil {
		t.Fatal(err)
	}
	return chain
}

func kubernetesAuthorizer(t *testing.T, a *configured, parts Parts) authorizer.Authorizer {
	t.Helper()
	switch a.displayName() {
	case NameNode:
		return parts.Node
	case NameRBAC:
		return kubernetesRBAC(parts.RBAC)
	case NameAlwaysAllow:
		return authorizerfactory.NewAlwaysAllowAuthorizer()
	case NameAlwaysDeny:
		return authorizerfactory.NewAlwaysDenyAuthorizer()
	}
	onError := authorizer.DecisionDeny
	if a.Webhook.FailurePolicy == apiserver.FailurePolicyNoOpinion {
		onError = authorizer.DecisionNoOpinion
	}
	webhook, err := webhookauthorizer.New(a.connection, a.Webhook.SubjectAccessReviewVersion, 0, 0, fastRetry(), onError,
		a.Webhook.MatchConditions, a.Name, webhookmetrics.NoopAuthorizerMetrics{}, authorizationcel.NewDefaultCompiler())
	if err != nil {
		t.Fatal(err)
	}
	return webhook
}

func kubernetesRBAC(policy *rbac.Policy) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		var req access.Request
		access.FromAttributes(a, &req)
		if policy.Evaluate(&req).Allowed {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}
