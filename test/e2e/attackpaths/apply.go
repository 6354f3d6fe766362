package attackpaths

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// kinds are the resources of the kinds that cases have.
var kinds = map[string]resource{
	"Pod": pods, "Secret": secrets, "ServiceAccount": serviceAccounts, "ConfigMap": configMaps, "PersistentVolume": volumes,
	"PersistentVolumeClaim": claims, "Node": nodes, "Namespace": namespaces, "Deployment": deployments, "DaemonSet": daemonSets,
	"StatefulSet": statefulSets, "ReplicaSet": replicaSets, "ReplicationController": controllers, "Job": jobs, "CronJob": cronJobs,
	"Role": roles, "RoleBinding": roleBindings, "ClusterRole": clusterRoles, "ClusterRoleBinding": clusterRoleBindings,
	"ValidatingWebhookConfiguration": validatingWebhooks, "MutatingWebhookConfiguration": mutatingWebhooks,
	"ValidatingAdmissionPolicy":        policies,
	"ValidatingAdmissionPolicyBinding": policyBindings,
	"MutatingAdmissionPolicy":          mutatingPolicies,
	"MutatingAdmissionPolicyBinding":   mutatingBindings,
	"CustomResourceDefinition":         customKinds,
	"IAMIdentityMapping":               identityMappings,
}

// decode reads the objects of a YAML text.
func decode(text string) ([]object, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader([]byte(text)), 4096)
	var all []object
	for {
		var content map[string]any
		err := decoder.Decode(&content)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(content) == 0 {
			continue
		}
		kind, _ := content["kind"].(string)
		r, ok := kinds[kind]
		if !ok {
			return nil, fmt.Errorf("%q is not a kind that cases have", kind)
		}
		o := object{resource: r, content: content}
		o.path = r.at(o.namespace(), o.name())
		all = append(all, o)
	}
}

// order is the order in which objects are made: pods need their service accounts, and a controller
// deletes the secret for a token of an account that is not there. Policies come last.
func order(o object) int {
	switch o.resource {
	case namespaces:
		return 0
	case serviceAccounts, customKinds:
		return 1
	case identityMappings, pods, deployments, daemonSets, statefulSets, replicaSets, controllers, jobs, cronJobs:
		return 3
	case validatingWebhooks, policies, policyBindings:
		return 4
	}
	return 2
}

// apply makes the objects of a case. Namespaces get their labels last, so that pods can be in
// them that Pod Security would refuse.
func (w *world) apply(ctx context.Context, objects []object) error {
	labels := map[string]any{}
	w.applied = map[string]bool{}
	for _, o := range objects {
		w.applied[o.path] = true
	}
	for rank := range 5 {
		var group errgroup.Group
		group.SetLimit(16)
		for _, o := range objects {
			if order(o) != rank {
				continue
			}
			if o.resource == namespaces {
				labels[o.name()] = o.metadata()["labels"]
				group.Go(func() error { return w.makeNamespace(ctx, o.name()) })
				continue
			}
			group.Go(func() error { return w.create(ctx, o) })
		}
		if err := group.Wait(); err != nil {
			return fmt.Errorf("apply the case: %w", err)
		}
	}
	for name, l := range labels {
		if err := w.label(ctx, name, l); err != nil {
			return fmt.Errorf("apply the case: %w", err)
		}
	}
	for _, o := range objects {
		if err := w.controlled(ctx, o, objects); err != nil {
			return fmt.Errorf("apply the case: %w", err)
		}
	}
	if err := w.end(ctx, objects); err != nil {
		return fmt.Errorf("apply the case: %w", err)
	}
	if w.hasPolicies = slices.ContainsFunc(objects, isPolicy); w.hasPolicies {
		if err := w.settlePolicies(ctx); err != nil {
			return fmt.Errorf("apply the case: %w", err)
		}
	}
	return w.settle(ctx)
}

// create makes an object. The API server serves a custom kind some time later.
func (w *world) create(ctx context.Context, o object) error {
	if err := w.admin.post(ctx, o.resource.in(o.namespace()), o.content).failure(); err != nil || o.resource != customKinds {
		return err
	}
	return until(ctx, "the API server serves "+o.name(), func(ctx context.Context) error {
		return w.admin.get(ctx, identityMappings.in("")).failure()
	})
}

// controlled waits for what a controller makes of an object: the pod of a workload, the rules
// of an aggregated role that has parts, the content of a token's secret.
func (w *world) controlled(ctx context.Context, o object, objects []object) error {
	switch {
	case slices.Contains(workloads, o.resource) && selectsApp(o):
		return until(ctx, "a controller makes the pods of "+o.path, func(ctx context.Context) error {
			var list corev1.PodList
			if err := w.admin.get(ctx, pods.in(o.namespace())+"?labelSelector=app%3D"+o.name()).into(&list); err != nil {
				return err
			}
			if len(list.Items) == 0 {
				return fmt.Errorf("there is none")
			}
			return nil
		})
	case slices.ContainsFunc(objects, o.aggregates):
		return w.filled(ctx, o.path, "rules")
	case o.content["type"] == string(corev1.SecretTypeServiceAccountToken):
		return w.filled(ctx, o.path, "data")
	}
	return nil
}

// selectsApp reports whether a workload is one that has pods from the beginning.
func selectsApp(o object) bool {
	spec, _ := o.content["spec"].(map[string]any)
	selector, _ := spec["selector"].(map[string]any)
	labels, _ := selector["matchLabels"].(map[string]any)
	return labels["app"] != nil
}

// aggregates reports whether a cluster role with rules is a part of the role.
func (o object) aggregates(part object) bool {
	rule, _ := o.content["aggregationRule"].(map[string]any)
	selectors, _ := rule["clusterRoleSelectors"].([]any)
	rules, _ := part.content["rules"].([]any)
	of, _ := part.metadata()["labels"].(map[string]any)
	return part.resource == clusterRoles && len(rules) > 0 && slices.ContainsFunc(selectors, func(selector any) bool {
		s, _ := selector.(map[string]any)
		wanted, _ := s["matchLabels"].(map[string]any)
		for key, value := range wanted {
			if of[key] != value {
				return false
			}
		}
		return len(wanted) > 0
	})
}

// filled waits until an object has a field.
func (w *world) filled(ctx context.Context, path, field string) error {
	return until(ctx, "a controller fills "+path, func(ctx context.Context) error {
		var content map[string]any
		if err := w.admin.get(ctx, path).into(&content); err != nil {
			return err
		}
		if content[field] == nil {
			return fmt.Errorf("it has no %s", field)
		}
		return nil
	})
}

func named(name string) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": name}}
}

// makeNamespace makes a namespace with its default service account, which a controller would
// make some time later.
func (w *world) makeNamespace(ctx context.Context, name string) error {
	if a := w.admin.post(ctx, namespaces.in(""), named(name)); !a.ok() && a.status != http.StatusConflict {
		return a.failure()
	}
	if a := w.admin.post(ctx, serviceAccounts.in(name), named("default")); !a.ok() && a.status != http.StatusConflict {
		return a.failure()
	}
	return nil
}

// label labels a namespace and waits until admission knows the labels.
func (w *world) label(ctx context.Context, name string, labels any) error {
	list, _ := labels.(map[string]any)
	if len(list) == 0 {
		return nil
	}
	patch := map[string]any{"metadata": map[string]any{"labels": list}}
	if err := w.admin.patch(ctx, namespaces.at("", name), mergePatch, patch).failure(); err != nil {
		return err
	}
	level, _ := list[enforceLabel].(string)
	if level != "baseline" && level != "restricted" {
		return nil
	}
	return w.untilPrivileged(ctx, name, false)
}

const enforceLabel = "pod-security.kubernetes.io/enforce"

// untilPrivileged waits until Pod Security refuses privileged pods in a namespace, or allows
// them.
func (w *world) untilPrivileged(ctx context.Context, namespace string, allowed bool) error {
	return until(ctx, "admission knows the labels of namespace "+namespace, func(ctx context.Context) error {
		a := w.admin.post(ctx, dry(pods.in(namespace)), podSpec{name: "barrier", privileged: true}.object())
		if a.ok() == allowed && (allowed || a.refused()) {
			return nil
		}
		return fmt.Errorf("%s", a)
	})
}
