package attackpaths

import (
	"context"
	"fmt"
	"time"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"

	"golang.org/x/sync/errgroup"
)

// limit bounds the wait for a condition. One that never holds is a failure of many cases.
const limit = 30 * time.Second

// until waits until a condition holds.
func until(ctx context.Context, what string, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return await.Until(ctx, what, condition)
}

// settle waits until the API server's authorizers know every role, binding and pod. They learn
// of the objects of one kind in the order of the changes, so that the last one shows all.
func (w *world) settle(ctx context.Context) error {
	name := fmt.Sprint("barrier-", w.counter.Add(1))
	made := barrier(name)
	for _, o := range made {
		if err := w.admin.post(ctx, o.resource.in(o.namespace()), o.content).failure(); err != nil {
			return err
		}
	}
	user := map[string]any{"user": name}
	node := map[string]any{"user": "system:node:" + name, "groups": []string{"system:nodes"}}
	for _, review := range []struct {
		who                   map[string]any
		namespace, kind, name string
	}{
		{user, "", "barriers", name},
		{user, "default", "namespacedbarriers", name},
		{node, "default", "secrets", name},
	} {
		spec := map[string]any{"resourceAttributes": map[string]any{
			"verb": "get", "namespace": review.namespace, "resource": review.kind, "name": review.name,
		}}
		for k, v := range review.who {
			spec[k] = v
		}
		err := until(ctx, "the authorizers know the last "+review.kind, func(ctx context.Context) error {
			var got struct{ Status struct{ Allowed bool } }
			asked := w.admin.post(ctx, "/apis/authorization.k8s.io/v1/subjectaccessreviews", map[string]any{"spec": spec})
			if err := asked.into(&got); err != nil {
				return err
			}
			if !got.Status.Allowed {
				return fmt.Errorf("access is not allowed")
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := w.settleServer(ctx, name); err != nil {
		return err
	}
	var group errgroup.Group
	for _, o := range made {
		group.Go(func() error { return w.admin.delete(ctx, o.path, immediately).failure() })
	}
	return group.Wait()
}

// barrier is one object of each kind, so that access shows that they are known.
func barrier(name string) []object {
	user := []any{map[string]any{"kind": "User", "apiGroup": rbacGroup, "name": name}}
	rules := func(kind string) []any {
		return []any{map[string]any{
			"verbs": []string{"get"}, "apiGroups": []string{""}, "resources": []string{kind}, "resourceNames": []string{name},
		}}
	}
	ref := func(kind string) map[string]any {
		return map[string]any{"apiGroup": rbacGroup, "kind": kind, "name": name}
	}
	meta := map[string]any{"name": name}
	inDefault := map[string]any{"name": name, "namespace": "default"}
	pod := podSpec{name: name, node: name, secret: name}.object()
	pod["metadata"] = inDefault
	all := []object{
		{resource: clusterRoles, content: map[string]any{"metadata": meta, "rules": rules("barriers")}},
		{resource: clusterRoleBindings, content: map[string]any{"metadata": meta, "roleRef": ref("ClusterRole"), "subjects": user}},
		{resource: roles, content: map[string]any{"metadata": inDefault, "rules": rules("namespacedbarriers")}},
		{resource: roleBindings, content: map[string]any{"metadata": inDefault, "roleRef": ref("Role"), "subjects": user}},
		{resource: pods, content: pod},
	}
	for i, o := range all {
		all[i].path = o.resource.at(o.namespace(), o.name())
	}
	return all
}
