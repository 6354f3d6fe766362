package replay

import (
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/audit/auditlog"
)

func TestRequestOfRestoresWhatAuthorizersSaw(t *testing.T) {
	object := func(group, resource, subresource, namespace, name string) *auditlog.Object {
		return &auditlog.Object{Group: group, Version: "v1", Resource: resource, Subresource: subresource, Namespace: namespace, Name: name}
	}
	for name, test := range map[string]struct {
		verb, uri       string
		object          *auditlog.Object
		wantName        string
		fields, labels  int
		path, namespace string
		resource        string // if it differs from the object's
	}{
		"a name in the path": {
			verb: "get", uri: "/api/v1/nodes/worker-1", object: object("", "nodes", "", "", "worker-1"), wantName: "worker-1",
		},
		"a create has no name, though the log has one": {
			verb: "create", uri: "/api/v1/nodes", object: object("", "nodes", "", "", "worker-1"),
		},
		"a create in a namespace": {
			verb: "create", uri: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases?timeout=10s",
			object: object("coordination.k8s.io", "leases", "", "kube-node-lease", "worker-1"), namespace: "kube-node-lease",
		},
		"a create with the name in the path": {
			verb: "create", uri: "/api/v1/namespaces/shop/pods/a%2Db", object: object("", "pods", "", "shop", "a-b"), wantName: "a-b",
			namespace: "shop",
		},
		"a namespace that only the logged object has": {
			verb: "create", uri: "/api/v1/nodes", object: object("", "nodes", "", "shop", "worker-1"),
		},
		"an update of a cluster-scoped object whose body has a namespace": {
			verb: "update", uri: "/api/v1/nodes/worker-1/status", object: object("", "nodes", "status", "shop", "worker-1"),
			wantName: "worker-1",
		},
		"a patch without a namespace": {
			verb: "patch", uri: "/apis/coordination.k8s.io/v1/leases",
			object: object("coordination.k8s.io", "leases", "", "kube-node-lease", "worker-1"),
		},
		"an escaped slash is a slash": {
			verb: "create", uri: "/api/v1/namespaces/shop/pods/api%2Feviction", object: object("", "pods", "eviction", "shop", "api"),
			wantName: "api", namespace: "shop",
		},
		"an escaped slash before a name": {
			verb: "create", uri: "/api/v1/namespaces/shop/pods%2Feviction", object: object("", "pods", "", "shop", "eviction"),
			wantName: "eviction", namespace: "shop",
		},
		"an escaped slash within a namespace's name": {
			verb: "create", uri: "/api/v1/namespaces/shop%2Fpods", object: object("", "pods", "", "shop", "api"), namespace: "shop",
		},
		"an escaped percent sign is not a slash": {
			verb: "create", uri: "/api/v1/namespaces/shop/pods/api%252Feviction", object: object("", "pods", "", "shop", "api%2Feviction"),
			wantName: "api%2Feviction", namespace: "shop",
		},
		"the status of a namespace": {
			verb: "update", uri: "/api/v1/namespaces/shop/status", object: object("", "namespaces", "status", "shop", "shop"),
			wantName: "shop", namespace: "shop",
		},
		"a missing path": {
			verb: "create", object: object("", "pods", "", "shop", "api"), namespace: "shop",
		},
		"a create of a namespace has no name": {
			verb: "create", uri: "/api/v1/namespaces", object: object("", "namespaces", "", "shop", "shop"),
		},
		"a create of a subresource has a name": {
			verb: "create", uri: "/api/v1/namespaces/shop/serviceaccounts/api/token",
			object: object("", "serviceaccounts", "token", "shop", "api"), wantName: "api", namespace: "shop",
		},
		"the selectors of a list": {
			verb: "list", uri: "/api/v1/pods?fieldSelector=spec.nodeName%3Dworker-1%2Cstatus.phase%21%3DFailed&labelSelector=a%3Db",
			object: object("", "pods", "", "", ""), fields: 2, labels: 1,
		},
		"a selector that cannot be parsed is ignored": {
			verb: "watch", uri: "/api/v1/pods?fieldSelector=spec.nodeName&watch=true", object: object("", "pods", "", "", ""),
		},
		"an escaped field selector": {
			verb: "list", uri: "/api/v1/pods?field%53elector=spec.nodeName%3Dworker-1", object: object("", "pods", "", "", ""), fields: 1,
		},
		"the old form of a watch, escaped": {
			verb: "watch", uri: "/api/v1/w%61tch/pods?fieldSelector=spec.nodeName%3Dworker-1", object: object("", "pods", "", "", ""),
		},
		"a get has no selectors": {
			verb: "get", uri: "/api/v1/nodes/worker-1?fieldSelector=spec.nodeName%3Dworker-1",
			object: object("", "nodes", "", "", "worker-1"), wantName: "worker-1",
		},
		"the old form of a watch has no selectors": {
			verb: "watch", uri: "/api/v1/watch/pods?fieldSelector=spec.nodeName%3Dworker-1", object: object("", "pods", "", "", ""),
		},
		"a read with another logged object": {
			verb: "get", uri: "/api/v1/namespaces/shop/secrets/db", object: object("", "secrets", "", "other", "x"), wantName: "db",
			namespace: "shop",
		},
		"a read by an escaped name": {
			verb: "get", uri: "/api/v1/namespaces/shop/secrets/d%62", object: object("", "secrets", "", "shop", "d%62"), wantName: "db",
			namespace: "shop",
		},
		"a read of a subresource behind an escaped slash": {
			verb: "get", uri: "/api/v1/namespaces/shop/pods/api%2Flog", object: object("", "pods", "log", "shop", "api"), wantName: "api",
			namespace: "shop",
		},
		"an escaped slash in the read of a name": {
			verb: "get", uri: "/api/v1/namespaces/shop/secrets%2Fdb", object: object("", "secrets", "", "shop", ""), wantName: "db",
			namespace: "shop",
		},
		"a list of one namespace": {
			verb: "list", uri: "/api/v1/namespaces/shop/secrets?limit=500", object: object("", "secrets", "", "", ""), namespace: "shop",
		},
		"a list of all namespaces with another logged object": {
			verb: "list", uri: "/api/v1/secrets", object: object("", "secrets", "", "shop", "db"),
		},
		"a list of one name": {
			verb: "list", uri: "/api/v1/namespaces/shop/secrets?fieldSelector=metadata.name%3Ddb",
			object:   object("", "secrets", "", "shop", ""),
			wantName: "db", namespace: "shop", fields: 1,
		},
		"a watch of one name": {
			verb: "watch", uri: "/api/v1/namespaces/shop/secrets?fieldSelector=metadata.name=db&watch=true",
			object:   object("", "secrets", "", "shop", "x"),
			wantName: "db", namespace: "shop", fields: 1,
		},
		"a list of one name with an invalid option": {
			verb: "list", uri: "/api/v1/namespaces/shop/secrets?fieldSelector=metadata.name%3Ddb&limit=many",
			object:    object("", "secrets", "", "shop", "db"),
			namespace: "shop", fields: 1,
		},
		"a list of an invalid name": {
			verb: "list", uri: "/api/v1/namespaces/shop/secrets?fieldSelector=metadata.name%3D..",
			object:    object("", "secrets", "", "shop", "db"),
			namespace: "shop", fields: 1,
		},
		"all but one name": {
			verb: "list", uri: "/api/v1/namespaces/shop/secrets?fieldSelector=metadata.name%21%3Ddb",
			object:    object("", "secrets", "", "shop", "db"),
			namespace: "shop", fields: 1,
		},
		"the old form of the watch of a name": {
			verb: "watch", uri: "/api/v1/watch/namespaces/shop/secrets/db", object: object("", "secrets", "", "shop", ""), wantName: "db",
			namespace: "shop",
		},
		"a deletion": {
			verb: "delete", uri: "/api/v1/namespaces/shop/pods/api", object: object("", "pods", "", "other", "x"), wantName: "api",
			namespace: "shop",
		},
		"a deletecollection without a name": {
			verb: "deletecollection", uri: "/apis/resource.k8s.io/v1/resourceslices?fieldSelector=spec.nodeName%3Dworker-1",
			object: object("resource.k8s.io", "resourceslices", "", "shop", "x"), fields: 1,
		},
		"a deletecollection with a name selector has no name": {
			verb: "deletecollection", uri: "/api/v1/namespaces/shop/pods?fieldSelector=metadata.name%3Dapi",
			object:    object("", "pods", "", "shop", "api"),
			namespace: "shop", fields: 1,
		},
		"a read with a missing path": {
			verb: "get", object: object("", "secrets", "", "shop", "db"), wantName: "db", namespace: "shop",
		},
		"a read without a logged object": {
			verb: "get", uri: "/api/v1/namespaces/shop/secrets/db", wantName: "db", namespace: "shop", resource: "secrets",
		},
		"a path without a resource, with a logged object": {
			verb: "get", uri: "/healthz", object: object("", "secrets", "", "shop", "db"), path: "/healthz",
		},
		"a request without a resource has a path": {verb: "get", uri: "/heal%74hz?verbose", path: "/healthz"},
	} {
		t.Run(name, func(t *testing.T) {
			var got request
			newPaths().requestOf(
				&auditlog.Event{Verb: test.verb, RequestURI: test.uri, Object: test.object, User: auditlog.User{Name: "ada"}}, &got,
			)
			want := auditlog.Object{Resource: test.resource}
			if test.object != nil && test.path == "" {
				want = *test.object
			}
			if got.Name != test.wantName || got.Namespace != test.namespace || got.Path != test.path || got.Verb != test.verb ||
				got.User != "ada" ||
				got.Subresource != want.Subresource || got.Resource != want.Resource || got.Group != want.Group ||
				got.ResourceRequest != (test.path == "") || len(got.FieldSelector) != test.fields || len(got.LabelSelector) != test.labels {
				t.Errorf("got %+v", got)
			}
		})
	}
}
