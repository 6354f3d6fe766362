package attackpaths

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// everyoneIs reports whether each identity, or each request without one, is in a group.
func everyoneIs(name string) bool {
	return name == "system:authenticated" || name == "system:unauthenticated" || name == "system:anonymous"
}

func accountName(user string) bool { return strings.HasPrefix(user, "system:serviceaccount:") }

func (t *attempts) planSecrets(ctx context.Context, a *actor) {
	t.tries(attackpaths.SecretRead, attackpaths.BootstrapToken)
	for _, o := range t.objects(ctx, secrets) {
		if !t.known[o.path] {
			continue // the executor made it
		}
		h := holding{Kind: attackpaths.Secret, Namespace: o.namespace(), Name: o.name()}
		t.add(h, attackpaths.SecretRead, a, func(ctx context.Context) answer { return readSecret(ctx, a, h) })
		t.add(h, attackpaths.SecretRead, a, func(ctx context.Context) answer {
			return a.post(ctx, dry(validatingWebhooks.in("")), mutatingWebhook())
		})
	}
	bootstrap := map[string]any{"metadata": map[string]any{"name": "bootstrap-token-654321"}, "type": "bootstrap.kubernetes.io/token"}
	t.add(holding{Kind: attackpaths.Group, Name: "system:bootstrappers"}, attackpaths.BootstrapToken, a,
		func(ctx context.Context) answer { return a.post(ctx, dry(secrets.in("kube-system")), bootstrap) })
}

func (t *attempts) planNamespaces(ctx context.Context, a *actor) {
	t.tries(attackpaths.PodCreate, attackpaths.BindRole, attackpaths.PodUpdate)
	for _, o := range t.objects(ctx, namespaces) {
		namespace := o.name()
		h := holding{Kind: attackpaths.Namespace, Name: namespace}
		p := podSpec{name: "attempt", node: web1}
		t.add(h, attackpaths.PodCreate, a, func(ctx context.Context) answer { return a.post(ctx, dry(pods.in(namespace)), p.object()) })
		for _, kind := range workloads {
			t.add(h, attackpaths.PodCreate, a, func(ctx context.Context) answer {
				return a.post(ctx, dry(kind.in(namespace)), p.workloadObject(kind))
			})
		}
		everything := t.everythingBinding()
		t.add(h, attackpaths.BindRole, a, func(ctx context.Context) answer {
			return a.post(ctx, dry(roleBindings.in(namespace)), everything)
		})
	}
	for _, kind := range workloads {
		if kind == jobs {
			continue // the template of a job does not change
		}
		for _, o := range t.objects(ctx, kind) {
			h := holding{Kind: attackpaths.Namespace, Name: o.namespace()}
			if t.terminates(ctx, h.Name) {
				continue // no controller makes pods of it
			}
			change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"attempt": "x"}}}
			t.add(h, attackpaths.PodUpdate, a, func(ctx context.Context) answer { return replaceDry(ctx, a, o.path, o.content, change) })
		}
	}
}

// terminates reports whether a namespace is deleted and not gone yet.
func (t *attempts) terminates(ctx context.Context, namespace string) bool {
	return slices.ContainsFunc(t.objects(ctx, namespaces), func(o object) bool {
		return o.name() == namespace && o.text("deletionTimestamp") != ""
	})
}

func (t *attempts) everythingBinding() map[string]any {
	return map[string]any{
		"metadata": map[string]any{"name": fmt.Sprint("attempt-", t.counter.Add(1))}, "subjects": everybody,
		"roleRef": map[string]any{"apiGroup": rbacGroup, "kind": "ClusterRole", "name": "cluster-admin"},
	}
}

// replaceDry is replace without effect.
func replaceDry(ctx context.Context, a *actor, path string, whole, change map[string]any) answer {
	if patched := a.patch(ctx, dry(path), mergePatch, change); !patched.refused() {
		return patched
	}
	return a.put(ctx, dry(path), unversioned(whole))
}

func (t *attempts) planPods(a *actor) {
	t.tries(attackpaths.PodExec, attackpaths.NodeProxy, attackpaths.PodUpdate, attackpaths.PodEscape)
	for i := range t.pods {
		p := &t.pods[i]
		h := holding{Kind: attackpaths.Pod, Namespace: p.Namespace, Name: p.Name}
		if p.Labels["app"] != "" {
			continue // a controller replaces it when the template changes
		}
		if ended(p) {
			continue // nothing runs in it, even if the API server lets requests pass
		}
		if p.Spec.NodeName != "" && t.controlled[h] && linksLogs(p) {
			t.connect(holding{Kind: attackpaths.User, Name: "system:node:" + p.Spec.NodeName}, attackpaths.PodEscape, a,
				func(ctx context.Context) answer { return t.readLogs(ctx, a, p) })
		}
		if p.Spec.NodeName != "" { // nothing runs in others
			for _, subresource := range []string{"exec", "attach"} {
				t.connect(h, attackpaths.PodExec, a, func(ctx context.Context) answer { return connect(ctx, a, h, subresource) })
			}
			t.connect(h, attackpaths.NodeProxy, a, func(ctx context.Context) answer { return proxy(ctx, a, p) })
		}
		if isMirror(p) {
			continue // its node runs what its file says
		}
		t.add(h, attackpaths.PodUpdate, a, func(ctx context.Context) answer {
			return t.imagePatch(ctx, a, pods.at(h.Namespace, h.Name), true)
		})
		if p.Spec.NodeName == "" {
			continue
		}
		t.add(h, attackpaths.PodExec, a, func(ctx context.Context) answer { return t.addContainer(ctx, a, h, false, true) })
		t.add(holding{Kind: attackpaths.Node, Name: p.Spec.NodeName}, attackpaths.PodExec, a,
			func(ctx context.Context) answer { return t.addContainer(ctx, a, h, true, true) })
	}
}

func (t *attempts) planClusterAdmin(ctx context.Context, a *actor) {
	h := holding{Kind: attackpaths.ClusterAdmin}
	t.tries(attackpaths.EscalateRole, attackpaths.AdmissionControl, attackpaths.APIService, attackpaths.BindRole)
	tries := map[attackpaths.Code][]func(context.Context) answer{
		attackpaths.Masters: {func(ctx context.Context) answer { return a.get(ctx, "/apis/anything.example.com/v1/everything") }},
		attackpaths.BindRole: {func(ctx context.Context) answer {
			return a.post(ctx, dry(clusterRoleBindings.in("")), t.everythingBinding())
		}},
		attackpaths.APIService: {func(ctx context.Context) answer { return a.post(ctx, dry(apiServices.in("")), attackerAPI()) }},
		attackpaths.AdmissionControl: {
			func(ctx context.Context) answer { return a.post(ctx, dry(mutatingWebhooks.in("")), mutatingWebhook()) },
		},
	}
	for _, o := range t.objects(ctx, mutatingWebhooks) {
		change := map[string]any{"metadata": map[string]any{"annotations": map[string]any{"attempt": "x"}}}
		tries[attackpaths.AdmissionControl] = append(tries[attackpaths.AdmissionControl], func(ctx context.Context) answer {
			return replaceDry(ctx, a, o.path, o.content, change)
		})
	}
	for code, list := range tries {
		for _, try := range list {
			t.add(h, code, a, try)
		}
	}
	for _, o := range slices.Concat(t.objects(ctx, clusterRoleBindings), t.objects(ctx, roleBindings)) {
		ref, _ := o.content["roleRef"].(map[string]any)
		name, _ := ref["name"].(string)
		target := h
		if o.namespace() != "" {
			target = holding{Kind: attackpaths.Namespace, Name: o.namespace()}
		}
		if t.isBound(o) {
			t.add(target, attackpaths.EscalateRole, a, func(ctx context.Context) answer {
				return t.escalateBound(ctx, []*actor{a}, o, true)
			})
		}
		if o.namespace() == "" && name == "cluster-admin" {
			t.add(h, attackpaths.BindRole, a, func(ctx context.Context) answer {
				change := map[string]any{"subjects": everybody}
				return replaceDry(ctx, a, o.path, withSubjects(o.content), change)
			})
		}
	}
}

func withSubjects(content map[string]any) map[string]any {
	changed := map[string]any{}
	for k, v := range content {
		changed[k] = v
	}
	changed["subjects"] = everybody
	return changed
}
