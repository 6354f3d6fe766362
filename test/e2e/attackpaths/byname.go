package attackpaths

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// byName are the names of rules, by which objects are created.
type byName struct {
	admin *client
	names []string
	// made are the paths of objects that one step has made and that the next one makes again.
	made map[string]bool
}

// createByName applies or puts an object that a POST may not create, under the names of rules. It changes none that exists.
func (c *client) createByName(ctx context.Context, path string, body any, refused answer) answer {
	collection, isDry := strings.CutSuffix(path, "?dryRun=All")
	kind, ok := kindAt(collection)
	if !ok {
		return refused
	}
	for _, name := range c.byName.names {
		if path := collection + "/" + name; c.byName.made[path] {
			c.byName.admin.delete(ctx, path, immediately)
			delete(c.byName.made, path)
		}
		content := withName(body, kind, name)
		for _, method := range []string{http.MethodPatch, http.MethodPut} {
			contentType := map[string]string{http.MethodPatch: applyPatch, http.MethodPut: "application/json"}[method]
			at := collection + "/" + name + "?fieldManager=executor"
			made := c.do(ctx, method, at+"&dryRun=All", contentType, content)
			if made.status != http.StatusCreated {
				continue
			}
			if !isDry {
				made = c.do(ctx, method, at, contentType, content)
				c.byName.made[collection+"/"+name] = kind.resource.group != rbacGroup
			}
			return made
		}
	}
	return refused
}

// kindAt is the kind of the objects at a path.
func kindAt(path string) (object, bool) {
	for name, r := range kinds {
		namespace, _, _ := strings.Cut(strings.TrimPrefix(path, strings.TrimSuffix(r.in(""), r.name)+"namespaces/"), "/")
		if path == r.in("") || r.namespaced && path == r.in(namespace) {
			version := strings.TrimPrefix(r.group+"/"+r.version, "/")
			return object{resource: r, content: map[string]any{"apiVersion": version, "kind": name}}, true
		}
	}
	return object{}, false
}

// withName is an object of a kind under another name.
func withName(body any, kind object, name string) map[string]any {
	content := map[string]any{}
	if text, err := json.Marshal(body); err == nil {
		_ = json.Unmarshal(text, &content) // what is no object is refused
	}
	maps.Copy(content, kind.content)
	metadata, _ := content["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	metadata["name"] = name
	delete(metadata, "generateName")
	content["metadata"] = metadata
	return content
}

// ruleNames are the names of objects in the rules of the case.
func (w *world) ruleNames(ctx context.Context) []string {
	var names []string
	for _, o := range slices.Concat(w.list(ctx, roles), w.list(ctx, clusterRoles)) {
		if _, old := w.baseline[o.path]; old {
			continue
		}
		var role rbacv1.ClusterRole
		if text, err := json.Marshal(o.content); err != nil || json.Unmarshal(text, &role) != nil {
			continue
		}
		for _, rule := range role.Rules {
			names = append(names, rule.ResourceNames...)
		}
	}
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" || strings.ContainsAny(name, "/:") })
}
