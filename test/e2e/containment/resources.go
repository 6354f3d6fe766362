package containment

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/test/e2e/await"
)

// resource is how an API server serves a resource.
type resource struct {
	group, version, name, kind string
	namespaced                 bool
}

// namespacedKinds are the custom resources of agents that are in namespaces.
var namespacedKinds = []string{
	"ciliumendpoints", "ciliumnetworkpolicies", "ciliumenvoyconfigs", "ciliumlocalredirectpolicies", "ciliumnodeconfigs",
	"networkpolicies", "networksets", "stagednetworkpolicies", "stagedkubernetesnetworkpolicies", "policyendpoints", "kubevirts",
	"virtualmachineinstances", "virtualmachineinstancemigrations", "virtualmachines", "secretproviderclasses",
	"secretproviderclasspodstatuses", "volumesnapshots", "virtualmachineexports", "migrations", "securitygrouppolicies", "nodefeatures",
}

// served returns the resources that the API server serves, by group and name.
func (w *world) served(ctx context.Context) (map[[2]string]resource, error) {
	found := map[[2]string]resource{}
	var core struct{ Resources []served }
	if err := w.admin.must(ctx, get("/api/v1"), &core); err != nil {
		return nil, err
	}
	add := func(group, version string, list []served) {
		for _, r := range list {
			key := [2]string{group, r.Name}
			if _, known := found[key]; !known {
				found[key] = resource{group: group, version: version, name: r.Name, kind: r.Kind, namespaced: r.Namespaced}
			}
		}
	}
	add("", "v1", core.Resources)
	var groups struct {
		Groups []struct {
			Name     string
			Versions []struct{ Version string }
		}
	}
	if err := w.admin.must(ctx, get("/apis"), &groups); err != nil {
		return nil, err
	}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			var list struct{ Resources []served }
			if err := w.admin.must(ctx, get("/apis/"+g.Name+"/"+v.Version), &list); err != nil {
				return nil, err
			}
			add(g.Name, v.Version, list.Resources)
		}
	}
	return found, nil
}

type served struct {
	Name, Kind string
	Namespaced bool
}

// path is the path of the resource, in a namespace if it has one.
func (r resource) path(namespace string) string {
	path := "/api/" + r.version
	if r.group != "" {
		path = "/apis/" + r.group + "/" + r.version
	}
	if r.namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	name, _, _ := strings.Cut(r.name, "/")
	return path + "/" + name
}

func (r resource) apiVersion() string { return strings.TrimPrefix(r.group+"/"+r.version, "/") }

const crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// define makes custom resources that accept every object. The fields are those that lists can select by.
func (w *world) define(ctx context.Context, group, name string, fields []string) error {
	properties := object{}
	var selectable []any
	for _, field := range fields {
		parent, child, nested := strings.Cut(field, ".")
		if !nested || parent == "metadata" {
			continue
		}
		properties[parent] = object{
			"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": object{child: object{"type": "string"}},
		}
		selectable = append(selectable, object{"jsonPath": "." + field})
	}
	version := object{
		"name": "v1", "served": true, "storage": true, "subresources": object{"status": object{}},
		"schema": object{"openAPIV3Schema": object{
			"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": properties,
		}},
	}
	if selectable != nil {
		version["selectableFields"] = selectable
	}
	scope := "Cluster"
	if slices.Contains(namespacedKinds, name) {
		scope = "Namespaced"
	}
	kind := strings.ToUpper(name[:1]) + name[1:]
	return w.create(ctx, crdsPath, object{
		"metadata": object{"name": name + "." + group, "annotations": object{"api-approved.kubernetes.io": "unapproved, for tests"}},
		"spec": object{
			"group": group, "scope": scope, "versions": []any{version},
			"names": object{"plural": name, "singular": strings.ToLower(kind) + "-one", "kind": kind, "listKind": kind + "List"},
		},
	})
}

// awaitServed waits until both API servers serve the custom resources.
func (w *world) awaitServed(ctx context.Context, paths []string) error {
	other, err := newClient(w.onOther(w.AdminConfig()))
	if err != nil {
		return err
	}
	for _, c := range []*client{w.admin, other} {
		err := await.Until(ctx, "the custom resources are served", func(ctx context.Context) error {
			for _, path := range paths {
				a, err := c.do(ctx, get(path))
				if err != nil || a.status != http.StatusOK {
					return fmt.Errorf("%s: %s, %w", path, a, err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
