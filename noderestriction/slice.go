package noderestriction

import (
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func newSliceOfNode(q *question) *refusal {
	return q.sliceNamesNode("object", q.req.Object)
}

// sliceOfNode also checks each slice of a deletecollection.
func sliceOfNode(q *question) *refusal {
	return q.sliceNamesNode("old object", q.req.OldObject)
}

// storedSliceOfNode checks the slice in the state, if the stored slice is not part of
// the request.
func storedSliceOfNode(q *question) (r *refusal, known bool) {
	slices, ok := q.state.(ResourceSlices)
	if !ok {
		return nil, false
	}
	node, ok := slices.ResourceSliceNode(q.req.Name)
	if !ok {
		return nil, false
	}
	return q.sliceIsOf(node), true
}

func (q *question) sliceNamesNode(which string, slice runtime.Object) *refusal {
	name, ok := nodeOfSlice(slice)
	if !ok {
		return unexpected(which, slice)
	}
	return q.sliceIsOf(name)
}

func (q *question) sliceIsOf(node string) *refusal {
	if node != q.node {
		return forbid(NotOwnResourceSlice, "the resource slice has spec.nodeName %q, not %s", node, q.node)
	}
	return nil
}

// nodeOfSlice returns the node of a slice, empty if it has none, and false for an
// object of another kind. Kubernetes 1.30 has the field outside of spec.
func nodeOfSlice(o runtime.Object) (string, bool) {
	switch slice := o.(type) {
	case *resourcev1.ResourceSlice:
		if slice != nil {
			return valueOf(slice.Spec.NodeName), true
		}
	case *resourcev1beta2.ResourceSlice:
		if slice != nil {
			return valueOf(slice.Spec.NodeName), true
		}
	case *resourcev1beta1.ResourceSlice:
		if slice != nil {
			return slice.Spec.NodeName, true
		}
	case *unstructured.Unstructured:
		if isOfKind(slice, "resource.k8s.io/v1alpha3", "ResourceSlice") {
			name, _, err := unstructured.NestedString(slice.Object, "spec", "nodeName")
			return name, err == nil
		}
		if isOfKind(slice, "resource.k8s.io/v1alpha2", "ResourceSlice") {
			name, _, err := unstructured.NestedString(slice.Object, "nodeName")
			return name, err == nil
		}
	}
	return "", false
}

// isOfKind is for versions without a Go type.
func isOfKind(o *unstructured.Unstructured, apiVersion, kind string) bool {
	return o != nil && o.GetAPIVersion() == apiVersion && o.GetKind() == kind
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
