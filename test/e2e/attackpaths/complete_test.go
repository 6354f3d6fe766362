package attackpaths

import (
	"fmt"
	"maps"
	"slices"
)

// completed adds what the API server demands of random objects, and the objects that others
// name: namespaces, service accounts of pods, and the owners whose templates can be changed.
func completed(objects []object) []object {
	all := slices.Clone(objects)
	have := func(r resource, namespace, name string) bool {
		return slices.ContainsFunc(all, func(o object) bool { return o.path == r.at(namespace, name) })
	}
	add := func(r resource, namespace, name string, content map[string]any) {
		if name == "" || have(r, namespace, name) {
			return
		}
		content["metadata"] = map[string]any{"namespace": namespace, "name": name}
		all = append(all, object{resource: r, path: r.at(namespace, name), content: content})
	}
	for _, o := range objects {
		if o.resource.namespaced {
			add(namespaces, "", o.namespace(), map[string]any{})
		}
		switch o.resource {
		case pods:
			completePod(o)
			if node, _ := o.content["spec"].(map[string]any)["nodeName"].(string); node != "" {
				add(nodes, "", node, map[string]any{})
			}
			name, _ := o.content["spec"].(map[string]any)["serviceAccountName"].(string)
			add(serviceAccounts, o.namespace(), name, map[string]any{})
			if r, name, ok := owner(o); ok {
				w := podSpec{name: name}.workloadObject(r)
				if spec, _ := w["spec"].(map[string]any); r == daemonSets {
					spec["template"].(map[string]any)["spec"].(map[string]any)["nodeSelector"] = map[string]any{"no": "node"}
				} else if r != jobs {
					spec["replicas"] = 0
				}
				add(r, o.namespace(), name, w)
			}
		case namespaces:
			if labels, _ := o.metadata()["labels"].(map[string]any); labels[enforceLabel] == "other" {
				delete(labels, enforceLabel)
			}
		case secrets:
			completeSecret(o)
			annotations, _ := o.metadata()["annotations"].(map[string]any)
			account, _ := annotations["kubernetes.io/service-account.name"].(string)
			add(serviceAccounts, o.namespace(), account, map[string]any{})
		case volumes:
			spec, _ := o.content["spec"].(map[string]any)
			spec["capacity"], spec["accessModes"] = map[string]any{"storage": "1Gi"}, []string{"ReadWriteMany"}
		case claims:
			spec, _ := o.content["spec"].(map[string]any)
			spec["accessModes"], spec["storageClassName"] = []string{"ReadWriteMany"}, ""
			spec["resources"] = map[string]any{"requests": map[string]any{"storage": "1Gi"}}
		case validatingWebhooks:
			completeWebhooks(o)
		}
	}
	return all
}

// completePod keeps the API server from adding tokens, gives owners a UID, and fulfills the level
// restricted of Pod Security but for containers that are privileged.
func completePod(o object) {
	spec, _ := o.content["spec"].(map[string]any)
	spec["automountServiceAccountToken"] = false
	spec["terminationGracePeriodSeconds"] = 0
	delete(spec, "runtimeClassName") // there is no such class
	if spec["hostPID"] == true {
		delete(spec, "hostUsers")
	}
	plain, _ := podSpec{}.spec()["containers"].([]any)
	containers, _ := spec["containers"].([]any)
	if container, _ := containers[0].(map[string]any); container["securityContext"] == nil {
		container["securityContext"] = plain[0].(map[string]any)["securityContext"]
	}
	owners, _ := o.metadata()["ownerReferences"].([]any)
	for i, x := range owners {
		owner, _ := x.(map[string]any)
		owner["uid"] = fmt.Sprintf("00000000-0000-0000-0000-00000000000%d", i)
	}
}

// owner is the workload whose template the pod is made from.
func owner(o object) (r resource, name string, ok bool) {
	owners, _ := o.metadata()["ownerReferences"].([]any)
	if len(owners) == 0 {
		return resource{}, "", false
	}
	x, _ := owners[0].(map[string]any)
	name, _ = x["name"].(string)
	switch x["kind"] {
	case "ReplicaSet":
		if len(name) > 2 && name[len(name)-2:] == "-1" {
			return deployments, name[:len(name)-2], true
		}
		return replicaSets, name, true
	case "StatefulSet":
		return statefulSets, name, true
	case "DaemonSet":
		return daemonSets, name, true
	case "ReplicationController":
		return controllers, name, true
	}
	return resource{}, "", false
}

func completeSecret(o object) {
	if o.content["type"] == nil {
		o.content["stringData"] = map[string]any{"content": "of " + o.path}
	}
	if o.content["type"] == "bootstrap.kubernetes.io/token" {
		o.content["stringData"] = map[string]any{
			"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
		}
	}
}

// completeWebhooks makes webhooks that nobody answers and that refuse nothing then. Steps that
// they are asked about are possible only, and not carried out.
func completeWebhooks(o object) {
	hooks, _ := o.content["webhooks"].([]any)
	for _, x := range hooks {
		hook, _ := x.(map[string]any)
		hook["clientConfig"] = map[string]any{"url": "https://127.0.0.1:1"}
		hook["admissionReviewVersions"], hook["sideEffects"], hook["failurePolicy"] = []string{"v1"}, "None", "Ignore"
		hook["timeoutSeconds"] = 1
		rules, _ := hook["rules"].([]any)
		hook["rules"] = ruleForEach(rules[0].(map[string]any))
	}
}

// ruleForEach is one rule for each resource: some do not go together.
func ruleForEach(rule map[string]any) []any {
	resources, _ := rule["resources"].([]any)
	var all []any
	for _, r := range resources {
		one := maps.Clone(rule)
		one["resources"] = []any{r}
		all = append(all, one)
	}
	return all
}
