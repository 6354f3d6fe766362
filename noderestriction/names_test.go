package noderestriction_test

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
)

func lease(o noderestriction.Operation, namespace, name string, object runtime.Object) *noderestriction.Request {
	return from("worker-1", noderestriction.Request{
		Operation: o, Group: "coordination.k8s.io", Version: "v1", Resource: "leases", Namespace: namespace, Name: name, Object: object,
	})
}

func TestLeases(t *testing.T) {
	named := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	const leases = "kube-node-lease"
	checkAll(t, shop(), []expectation{
		{
			rule: "create the node's own", request: lease(noderestriction.Create, leases, "", named("worker-1")),
			code: noderestriction.RestrictionsMet,
		},
		{
			rule: "create another node's", request: lease(noderestriction.Create, leases, "", named("worker-2")),
			code: noderestriction.NotOwnLease,
		},
		{
			rule:    "on create the object's name counts",
			request: lease(noderestriction.Create, leases, "worker-1", named("worker-2")), code: noderestriction.NotOwnLease,
		},
		{
			rule:    "create one of another type",
			request: lease(noderestriction.Create, leases, "worker-1", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1"}}),
			code:    noderestriction.UnexpectedObject,
		},
		{rule: "create nothing", request: lease(noderestriction.Create, leases, "worker-1", nil), code: noderestriction.UnexpectedObject},
		{
			rule: "create in another namespace", request: lease(noderestriction.Create, "kube-system", "", named("worker-1")),
			code: noderestriction.NotLeaseNamespace,
		},
		{
			rule: "update the node's own", request: lease(noderestriction.Update, leases, "worker-1", nil),
			code: noderestriction.RestrictionsMet,
		},
		{rule: "update another node's", request: lease(noderestriction.Update, leases, "worker-2", nil), code: noderestriction.NotOwnLease},
		{
			rule: "update in another namespace", request: lease(noderestriction.Update, "kube-system", "worker-1", nil),
			code: noderestriction.NotLeaseNamespace,
		},
		{
			rule: "delete the node's own", request: lease(noderestriction.Delete, leases, "worker-1", nil),
			code: noderestriction.RestrictionsMet,
		},
		{rule: "delete another node's", request: lease(noderestriction.Delete, leases, "worker-2", nil), code: noderestriction.NotOwnLease},
		{rule: "delete all", request: lease(noderestriction.Delete, leases, "", nil), code: noderestriction.NotOwnLease},
	})
}

func csiNode(o noderestriction.Operation, subresource, name string, object, old runtime.Object) *noderestriction.Request {
	return from("worker-1", noderestriction.Request{
		Operation: o, Group: "storage.k8s.io", Version: "v1", Resource: "csinodes", Subresource: subresource, Name: name,
		Object: object, OldObject: old,
	})
}

func TestCSINodes(t *testing.T) {
	own, other := &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: "worker-1"},
	}, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "worker-2"}}
	withDriver := changed(own, func(n *storagev1.CSINode) { n.Spec.Drivers = []storagev1.CSINodeDriver{{Name: "d"}} })
	moved := changed(withDriver, func(n *storagev1.CSINode) { n.Spec.Drivers[0].NodeID = "elsewhere" })
	labeled := changed(own, func(n *storagev1.CSINode) { n.Labels = map[string]string{"a": "b"} })
	checkAll(t, shop(), []expectation{
		{rule: "create the node's own", request: csiNode(noderestriction.Create, "", "", own, nil), code: noderestriction.RestrictionsMet},
		{rule: "create another node's", request: csiNode(noderestriction.Create, "", "", other, nil), code: noderestriction.NotOwnCSINode},
		{
			rule: "on create the object's name counts", request: csiNode(noderestriction.Create, "", "worker-1", other, nil),
			code: noderestriction.NotOwnCSINode,
		},
		{
			rule: "create looks at nothing but the name", request: csiNode(noderestriction.Create, "", "", worker(), nil),
			code: noderestriction.RestrictionsMet,
		},
		{
			rule: "create nothing", request: csiNode(noderestriction.Create, "", "worker-1", nil, nil),
			code: noderestriction.UnexpectedObject,
		},
		{
			rule: "create what has no name", request: csiNode(noderestriction.Create, "", "worker-1", &metav1.Status{}, nil),
			code: noderestriction.UnexpectedObject,
		},
		{
			rule: "update the node's own", request: csiNode(noderestriction.Update, "", "worker-1", withDriver, own),
			code: noderestriction.RestrictionsMet,
		},
		{
			rule: "update another node's", request: csiNode(noderestriction.Update, "", "worker-2", other, other),
			code: noderestriction.NotOwnCSINode,
		},
		{
			rule: "delete the node's own", request: csiNode(noderestriction.Delete, "", "worker-1", nil, own),
			code: noderestriction.RestrictionsMet,
		},
		{
			rule: "delete another node's", request: csiNode(noderestriction.Delete, "", "worker-2", nil, other),
			code: noderestriction.NotOwnCSINode,
		},
		{
			rule: "a status without the gate", request: csiNode(noderestriction.Update, "status", "worker-1", own, own),
			code: noderestriction.FeatureDisabled,
		},
		{
			rule:    "another node's status without the gate",
			request: csiNode(noderestriction.Update, "status", "worker-2", other, other), code: noderestriction.NotOwnCSINode,
		},
		{
			rule: "another subresource", request: csiNode(noderestriction.Update, "x", "worker-1", own, own),
			code: noderestriction.RestrictionsMet,
		},
	})
	t.Run("with CSIVolumeHealth", func(t *testing.T) {
		r := noderestriction.New(shop(), nil, latest(t, "CSIVolumeHealth=true"))
		for _, e := range []expectation{
			{
				rule: "the node's own status", request: csiNode(noderestriction.Update, "status", "worker-1", own, own),
				code: noderestriction.RestrictionsMet,
			},
			{
				rule:    "metadata may change with the status",
				request: csiNode(noderestriction.Update, "status", "worker-1", labeled, own), code: noderestriction.RestrictionsMet,
			},
			{
				rule: "spec may not", request: csiNode(noderestriction.Update, "status", "worker-1", withDriver, own),
				code: noderestriction.CSINodeSpecChanged,
			},
			{
				rule:    "what a driver says may not",
				request: csiNode(noderestriction.Update, "status", "worker-1", moved, withDriver),
				code:    noderestriction.CSINodeSpecChanged,
			},
			{
				rule: "another node's status", request: csiNode(noderestriction.Update, "status", "worker-2", other, other),
				code: noderestriction.NotOwnCSINode,
			},
			{
				rule: "create a status", request: csiNode(noderestriction.Create, "status", "worker-1", own, nil),
				code: noderestriction.OperationNotAllowed,
			},
			{
				rule: "create another node's status", request: csiNode(noderestriction.Create, "status", "worker-1", other, nil),
				code: noderestriction.NotOwnCSINode,
			},
			{
				rule: "delete a status", request: csiNode(noderestriction.Delete, "status", "worker-1", nil, own),
				code: noderestriction.OperationNotAllowed,
			},
			{
				rule: "no old object", request: csiNode(noderestriction.Update, "status", "worker-1", own, nil),
				code: noderestriction.UnexpectedObject,
			},
			{
				rule: "no object", request: csiNode(noderestriction.Update, "status", "worker-1", nil, own),
				code: noderestriction.UnexpectedObject,
			},
		} {
			e.check(t, r)
		}
	})
}

// sliceVersions makes a slice for a node in each version; no name is nil where
// the field is a pointer.
func sliceVersions() map[string]func(node string) runtime.Object {
	pointer := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	return map[string]func(node string) runtime.Object{
		"v1": func(n string) runtime.Object {
			return &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{NodeName: pointer(n)}}
		},
		"v1beta2": func(n string) runtime.Object {
			return &resourcev1beta2.ResourceSlice{Spec: resourcev1beta2.ResourceSliceSpec{NodeName: pointer(n)}}
		},
		"v1beta1": func(n string) runtime.Object {
			return &resourcev1beta1.ResourceSlice{Spec: resourcev1beta1.ResourceSliceSpec{NodeName: n}}
		},
		"v1alpha3": func(n string) runtime.Object {
			return &unstructured.Unstructured{
				Object: map[string]any{
					"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourceSlice", "spec": map[string]any{"nodeName": n},
				},
			}
		},
		"v1alpha2": func(n string) runtime.Object {
			return &unstructured.Unstructured{
				Object: map[string]any{"apiVersion": "resource.k8s.io/v1alpha2", "kind": "ResourceSlice", "nodeName": n},
			}
		},
	}
}

func slice(o noderestriction.Operation, object, old runtime.Object) *noderestriction.Request {
	return from("worker-1", noderestriction.Request{
		Operation: o, Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices", Name: "s", Object: object, OldObject: old,
	})
}

func TestResourceSlices(t *testing.T) {
	for version, of := range sliceVersions() {
		t.Run(version, func(t *testing.T) {
			checkAll(t, shop(), []expectation{
				{
					rule: "create one of the node", request: slice(noderestriction.Create, of("worker-1"), nil),
					code: noderestriction.RestrictionsMet,
				},
				{
					rule: "create one of another node", request: slice(noderestriction.Create, of("worker-2"), nil),
					code: noderestriction.NotOwnResourceSlice,
				},
				{
					rule: "create one of no node", request: slice(noderestriction.Create, of(""), nil),
					code: noderestriction.NotOwnResourceSlice,
				},
				{
					rule: "delete one of the node", request: slice(noderestriction.Delete, nil, of("worker-1")),
					code: noderestriction.RestrictionsMet,
				},
				{
					rule: "delete one of another node", request: slice(noderestriction.Delete, nil, of("worker-2")),
					code: noderestriction.NotOwnResourceSlice,
				},
				{
					rule: "delete one of no node", request: slice(noderestriction.Delete, nil, of("")),
					code: noderestriction.NotOwnResourceSlice,
				},
				{
					rule: "on delete the old object counts", request: slice(noderestriction.Delete, of("worker-1"), of("worker-2")),
					code: noderestriction.NotOwnResourceSlice,
				},
				{
					rule:    "updates are the authorizer's to decide",
					request: slice(noderestriction.Update, of("worker-2"), of("worker-2")), code: noderestriction.NotRestricted,
				},
			})
		})
	}
	foreign := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "example.com/v1", "kind": "ResourceSlice", "spec": map[string]any{"nodeName": "worker-1"}},
	}
	malformed := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "resource.k8s.io/v1alpha3", "kind": "ResourceSlice", "spec": "worker-1"},
	}
	checkAll(t, shop(), []expectation{
		{rule: "create nothing", request: slice(noderestriction.Create, nil, nil), code: noderestriction.UnexpectedObject},
		{rule: "delete nothing", request: slice(noderestriction.Delete, nil, nil), code: noderestriction.UnexpectedObject},
		{rule: "another type", request: slice(noderestriction.Create, &corev1.Pod{}, nil), code: noderestriction.UnexpectedObject},
		{rule: "a slice of another group", request: slice(noderestriction.Create, foreign, nil), code: noderestriction.UnexpectedObject},
		{rule: "a slice of another shape", request: slice(noderestriction.Create, malformed, nil), code: noderestriction.UnexpectedObject},
		{
			rule: "a slice that points nowhere", request: slice(noderestriction.Create, (*resourcev1.ResourceSlice)(nil), nil),
			code: noderestriction.UnexpectedObject,
		},
	})
}

func TestReadsNamesTheObjectsThatMatter(t *testing.T) {
	r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
	for _, tc := range []struct {
		rule           string
		request        *noderestriction.Request
		object, oldOne bool
	}{
		{"a lease's renewal needs no object", lease(noderestriction.Update, "kube-node-lease", "worker-1", nil), false, false},
		{"a lease's creation needs the object", lease(noderestriction.Create, "kube-node-lease", "worker-1", nil), true, false},
		{"a status needs both", podOperation(noderestriction.Update, "status", "web"), true, true},
		{"a pod's deletion needs neither", podOperation(noderestriction.Delete, "", "web"), false, false},
		{"a slice's deletion needs the old one", slice(noderestriction.Delete, nil, nil), false, true},
		{"what is not restricted needs neither", slice(noderestriction.Update, nil, nil), false, false},
		{"people need neither", &noderestriction.Request{User: "ada", Operation: noderestriction.Create, Resource: "pods"}, false, false},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if object, oldOne := r.Reads(tc.request); object != tc.object || oldOne != tc.oldOne {
				t.Errorf("got %v, %v, want %v, %v", object, oldOne, tc.object, tc.oldOne)
			}
		})
	}
}
