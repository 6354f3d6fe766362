package attackpaths

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
)

// object is an object of the cluster.
type object struct {
	resource resource
	path     string
	content  map[string]any
}

func (o object) metadata() map[string]any {
	m, _ := o.content["metadata"].(map[string]any)
	return m
}

func (o object) text(field string) string {
	text, _ := o.metadata()[field].(string)
	return text
}

func (o object) name() string      { return o.text("name") }
func (o object) namespace() string { return o.text("namespace") }

// list returns the objects of a kind; none if it is not served.
func (w *world) list(ctx context.Context, r resource) []object {
	var list struct{ Items []map[string]any }
	if w.admin.get(ctx, r.in("")).into(&list) != nil {
		return nil
	}
	var all []object
	for _, item := range list.Items {
		o := object{resource: r, content: item}
		o.path = r.at(o.namespace(), o.name())
		all = append(all, o)
	}
	return all
}

// listAll returns all objects that a case can make or change.
func (w *world) listAll(ctx context.Context) []object {
	var mu sync.Mutex
	var all []object
	var group errgroup.Group
	for _, r := range changing {
		group.Go(func() error {
			found := w.list(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, found...)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return all
}

// remember takes the present objects for those that a reset keeps.
func (w *world) remember(ctx context.Context) error {
	w.baseline = map[string]object{}
	for _, o := range w.listAll(ctx) {
		w.baseline[o.path] = o
	}
	if len(w.baseline) == 0 {
		return fmt.Errorf("the cluster has no objects")
	}
	return nil
}

// reset removes objects that a case made, restores objects that it changed, and waits until that is done.
func (w *world) reset(ctx context.Context) error {
	if err := w.removeAll(ctx); err != nil {
		return err
	}
	if !w.hasPolicies {
		return nil
	}
	w.hasPolicies = false
	return w.settlePolicies(ctx)
}

// removeAll removes and restores until nothing is left to do.
func (w *world) removeAll(ctx context.Context) error {
	return until(ctx, "the case's objects are gone", func(ctx context.Context) error {
		all := w.listAll(ctx)
		lost := w.lost(all)
		left := slices.DeleteFunc(all, w.unchanged)
		if len(left)+len(lost) == 0 {
			return nil
		}
		var group errgroup.Group
		group.SetLimit(16)
		for _, o := range left {
			group.Go(func() error { return w.undo(ctx, o, left) })
		}
		for _, o := range lost {
			group.Go(func() error { return w.restore(ctx, o) })
		}
		if err := group.Wait(); err != nil {
			return err
		}
		return fmt.Errorf("%d objects are left, and %d lost, one of them %s", len(left), len(lost), append(left, lost...)[0].path)
	})
}

// lost are the roles and bindings that a case has deleted.
func (w *world) lost(all []object) []object {
	found := map[string]bool{}
	for _, o := range all {
		found[o.path] = true
	}
	var lost []object
	for path, o := range w.baseline {
		if o.resource.group == rbacGroup && !found[path] {
			lost = append(lost, o)
		}
	}
	return lost
}

// restored are the kinds of which a reset compares the content.
var restored = []resource{clusterRoles, clusterRoleBindings, roles, roleBindings, namespaces}

// unchanged reports whether an object is as it was.
func (w *world) unchanged(o object) bool {
	before, ok := w.baseline[o.path]
	switch {
	case !ok:
		// A controller that starts late makes its account late. Those of cases that only bindings
		// name have short names.
		return o.resource == serviceAccounts && o.namespace() == "kube-system" && !w.applied[o.path] && len(o.name()) > 1
	case slices.Contains(restored, o.resource):
		return comparable(before) == comparable(o)
	}
	return true
}

// comparable has the fields of an object that a case can change.
func comparable(o object) string {
	text, err := json.Marshal([]any{
		o.content["rules"], o.content["aggregationRule"], o.content["subjects"], o.metadata()["labels"],
	})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// immediately deletes without waiting for a kubelet.
var immediately = map[string]any{"gracePeriodSeconds": 0, "propagationPolicy": "Background"}

// undo takes one step to remove or restore an object.
func (w *world) undo(ctx context.Context, o object, left []object) error {
	if before, ok := w.baseline[o.path]; ok {
		return w.restore(ctx, before)
	}
	if o.metadata()["finalizers"] != nil {
		finalizers := map[string]any{"metadata": map[string]any{"finalizers": nil}}
		if a := w.admin.patch(ctx, o.path, mergePatch, finalizers); a.status != http.StatusNotFound && !a.ok() {
			return a.failure()
		}
	}
	a := w.admin.delete(ctx, o.path, immediately)
	if !a.ok() && a.status != http.StatusNotFound && a.status != http.StatusConflict {
		return a.failure()
	}
	if o.resource != namespaces {
		return nil
	}
	inside := func(other object) bool { return other.namespace() == o.name() }
	if slices.ContainsFunc(left, inside) {
		return nil // the namespace goes when it is empty
	}
	final := map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{"name": o.name()}}
	if a := w.admin.put(ctx, namespaces.at("", o.name(), "finalize"), final); !a.ok() &&
		a.status != http.StatusNotFound && a.status != http.StatusConflict {
		return a.failure()
	}
	return nil
}

// restore writes an object as it was.
func (w *world) restore(ctx context.Context, before object) error {
	content := map[string]any{}
	for k, v := range before.content {
		content[k] = v
	}
	metadata := map[string]any{}
	for _, k := range []string{"name", "namespace", "labels", "annotations"} {
		if v, ok := before.metadata()[k]; ok {
			metadata[k] = v
		}
	}
	content["metadata"] = metadata
	if err := w.admin.put(ctx, before.path, content).failure(); err != nil || before.resource != namespaces {
		return err
	}
	return w.untilPrivileged(ctx, before.name(), true)
}
