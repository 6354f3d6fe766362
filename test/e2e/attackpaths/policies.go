package attackpaths

import (
	"context"
	"fmt"
)

func isPolicy(o object) bool { return o.resource == policies || o.resource == policyBindings }

// settlePolicies waits until admission knows every policy that was made or removed: it learns of
// policies and of bindings in the order of the changes, and uses what it learned at once. The
// last policy refuses an object of which only this function asks.
func (w *world) settlePolicies(ctx context.Context) error {
	name := fmt.Sprint("barrier-", w.counter.Add(1))
	made := policyBarrier(name)
	for _, o := range made {
		if err := w.admin.post(ctx, o.resource.in(""), o.content).failure(); err != nil {
			return err
		}
	}
	err := until(ctx, "admission knows the last policy", func(ctx context.Context) error {
		if a := w.admin.post(ctx, dry(configMaps.in("default")), named(name)); !a.refused() {
			return fmt.Errorf("%s", a)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, o := range made {
		if err := w.admin.delete(ctx, o.path, nil).failure(); err != nil {
			return err
		}
	}
	return nil
}

// policyBarrier is a policy that refuses one config map, with its binding.
func policyBarrier(name string) []object {
	rule := map[string]any{
		"operations": []string{"CREATE"}, "apiGroups": []string{""}, "apiVersions": []string{"v1"}, "resources": []string{"configmaps"},
		"resourceNames": []string{name},
	}
	return []object{
		{resource: policies, path: policies.at("", name), content: map[string]any{
			"metadata": map[string]any{"name": name},
			"spec": map[string]any{
				"matchConstraints": map[string]any{"resourceRules": []any{rule}},
				"validations":      []any{map[string]any{"expression": "false", "reason": "Forbidden"}},
			},
		}},
		{resource: policyBindings, path: policyBindings.at("", name), content: map[string]any{
			"metadata": map[string]any{"name": name},
			"spec":     map[string]any{"policyName": name, "validationActions": []string{"Deny"}},
		}},
	}
}
