package attackpaths

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// served is a verb on a resource, or on a subresource, that the API server serves, and its row of the table of all rights.
type served struct {
	resource
	// subresource is empty for the resource itself; kind is the kind of the body of requests.
	subresource, apiVersion, kind, verb string
	right                               attackpaths.TableRight
}

func (s *served) String() string { return s.right.String() }

// serves lists the resources that the API server serves, once. All of it has to be in the table.
func (w *world) serves(ctx context.Context) ([]served, error) {
	if w.allServed != nil {
		return w.allServed, nil
	}
	rows := map[string]attackpaths.TableRight{}
	for _, r := range attackpaths.TableOfRights() {
		rows[r.String()] = r
	}
	versions := []string{"v1"}
	var groups metav1.APIGroupList
	if err := w.admin.get(ctx, "/apis").into(&groups); err != nil {
		return nil, err
	}
	for i := range groups.Groups {
		versions = append(versions, groups.Groups[i].PreferredVersion.GroupVersion)
	}
	var all []served
	for _, gv := range versions {
		more, err := w.servesIn(ctx, gv, rows)
		if err != nil {
			return nil, fmt.Errorf("what %s serves: %w", gv, err)
		}
		all = append(all, more...)
	}
	w.allServed = all
	return all, nil
}

func (w *world) servesIn(ctx context.Context, gv string, rows map[string]attackpaths.TableRight) ([]served, error) {
	path, group, version := "/api/"+gv, "", gv
	if g, v, ok := strings.Cut(gv, "/"); ok {
		path, group, version = "/apis/"+gv, g, v
	}
	var list metav1.APIResourceList
	if err := w.admin.get(ctx, path).into(&list); err != nil {
		return nil, err
	}
	var all []served
	for i := range list.APIResources {
		r := &list.APIResources[i]
		name, subresource, _ := strings.Cut(r.Name, "/")
		one := served{
			resource: resource{group, version, name, r.Namespaced}, subresource: subresource, apiVersion: gv, kind: r.Kind,
		}
		if r.Version != "" {
			one.apiVersion = strings.TrimPrefix(r.Group+"/"+r.Version, "/")
		}
		for _, verb := range r.Verbs {
			one.verb = verb
			cell := attackpaths.TableRight{Group: group, Resource: name, Subresource: subresource, Verb: verb}
			row, ok := rows[cell.String()]
			if !ok {
				return nil, fmt.Errorf("the table of all rights has no %s", cell)
			}
			one.right = row
			all = append(all, one)
		}
	}
	return all, nil
}

// request is one way to use a right.
type request struct {
	method, path, contentType string
	body                      any
	// upgrades asks for another protocol.
	upgrades bool
}

func (r *request) send(ctx context.Context, c *client) answer {
	if r.upgrades {
		if r.method == "GET" {
			return c.websocket(ctx, r.path)
		}
		return c.spdy(ctx, r.path)
	}
	return c.do(ctx, r.method, r.path, r.contentType, r.body)
}

// propagations are how a deletion treats dependents: with two of them it sets a finalizer first, and answers with the object.
var propagations = []string{"", "Background", "Foreground", "Orphan"}

// requests are the ways to use the verb for an object, with each option that changes the answer. Whole is the object, or nil.
// Nothing changes if they are only tried.
func (s *served) requests(namespace, name string, whole map[string]any, try bool) []request {
	path := func(parts []string, options ...string) string {
		if try && !slices.Contains([]string{"get", "list", "watch"}, s.verb) {
			options = append(options, "dryRun=All")
		}
		text := strings.Join(parts, "/")
		if options = slices.DeleteFunc(options, func(o string) bool { return o == "" }); len(options) > 0 {
			text += "?" + strings.Join(options, "&")
		}
		return text
	}
	all, one := []string{s.in(namespace)}, []string{s.at(namespace, name)}
	if s.subresource != "" {
		one = append(one, s.subresource)
	}
	named := "fieldSelector=metadata.name%3D" + name
	if connecting[s.subresource] {
		return s.connections(strings.Join(one, "/"))
	}
	switch s.verb {
	case "get":
		return []request{{method: "GET", path: path(one)}}
	case "list":
		return []request{{method: "GET", path: path(all)}, {method: "GET", path: path(all, named)}}
	case "watch":
		const watched = "watch=1&resourceVersion=0&timeoutSeconds=1"
		return []request{{method: "GET", path: path(all, watched)}, {method: "GET", path: path(all, watched, named)}}
	case "create":
		at := all
		if s.subresource != "" {
			at = one
		}
		return []request{{method: "POST", path: path(at), contentType: "application/json", body: s.created(name, whole)}}
	case "update":
		return []request{{method: "PUT", path: path(one), contentType: "application/json", body: s.changed(namespace, name, whole)}}
	case "patch":
		list := []request{
			{"PATCH", path(one), mergePatch, map[string]any{}, false},
			{"PATCH", path(one), "application/json-patch+json", []any{}, false},
			{"PATCH", path(one), strategicPatch, map[string]any{}, false},
			{"PATCH", path(one), mergePatch, annotated(), false},
		}
		if whole != nil { // one that does not exist takes a right to create it
			applied := map[string]any{"apiVersion": s.apiVersion, "kind": s.kind, "metadata": map[string]any{"name": name}}
			list = append(list, request{"PATCH", path(one, "fieldManager=attempt", "force=true"), applyPatch, applied, false})
		}
		return list
	}
	at := all
	if s.verb == "delete" {
		at = one
	}
	var list []request
	for _, p := range propagations {
		if p != "" {
			p = "propagationPolicy=" + p
		}
		list = append(list, request{method: "DELETE", path: path(at, p)})
	}
	return list
}

// connecting are the subresources that connect to a pod or a node.
var connecting = map[string]bool{"exec": true, "attach": true, "portforward": true, "proxy": true}

func (s *served) connections(path string) []request {
	if s.subresource == "proxy" {
		method := map[string]string{"get": "GET", "create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}[s.verb]
		return []request{{method: method, path: path + "/"}}
	}
	method := map[string]string{"get": "GET", "create": "POST"}[s.verb]
	return []request{{method: method, path: path + "?stdin=true&stdout=true&command=id&ports=80", upgrades: true}}
}

// annotated is a change that means nothing.
func annotated() map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{"attempt": "x"}}}
}

// created is the body of a request that makes an object like another one.
func (s *served) created(name string, whole map[string]any) map[string]any {
	metadata := map[string]any{"generateName": "attempt-"}
	body := map[string]any{"metadata": metadata}
	switch {
	case s.name == "bindings" || s.subresource == "binding":
		body["target"] = map[string]any{"kind": "Node", "name": web1}
		delete(metadata, "generateName")
		metadata["name"] = name
	case s.subresource == "eviction":
		delete(metadata, "generateName")
		metadata["name"] = name
	case s.subresource == "":
		for k, v := range whole {
			body[k] = v
		}
		body["metadata"] = metadata
	}
	return s.withoutContent(body)
}

// changed is the body of a request that changes an object a little.
func (s *served) changed(namespace, name string, whole map[string]any) map[string]any {
	body := map[string]any{}
	for k, v := range whole {
		body[k] = v
	}
	metadata := map[string]any{"name": name, "annotations": map[string]any{"attempt": "x"}}
	if s.namespaced {
		metadata["namespace"] = namespace
	}
	if old, ok := whole["metadata"].(map[string]any); ok && old["resourceVersion"] != nil {
		metadata["resourceVersion"] = old["resourceVersion"]
	}
	body["metadata"] = metadata
	return s.withoutContent(body)
}

// withoutContent leaves out the content of a secret, which the attacker does not know.
func (s *served) withoutContent(body map[string]any) map[string]any {
	body["apiVersion"], body["kind"] = s.apiVersion, s.kind
	if s.resource.name == secrets.name {
		body["data"] = map[string]any{"attempt": []byte("x")}
		delete(body, "type")
	}
	return body
}
