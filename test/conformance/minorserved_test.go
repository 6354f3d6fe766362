package conformance

import (
	"math/rand/v2"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
)

// writeServed returns a write as an API server of a minor would receive it: with objects
// in a version that the minor serves. Unknown kinds are omitted.
func writeServed(t *testing.T, r *rand.Rand, w *generate.Write, m kubeversion.Minor) *generate.Write {
	t.Helper()
	version := sliceVersion(r, m)
	w.Object, w.OldObject = objectServed(t, w.Object, m, version), objectServed(t, w.OldObject, m, version)
	for _, o := range []runtime.Object{w.Object, w.OldObject} {
		if o != nil && o.GetObjectKind().GroupVersionKind().Version != "" {
			w.Version = o.GetObjectKind().GroupVersionKind().Version
		}
	}
	return w
}

// sliceVersion draws a version in which a minor serves resource slices.
func sliceVersion(r *rand.Rand, m kubeversion.Minor) string {
	versions := map[kubeversion.Minor][]string{
		30: {"v1alpha2"}, 31: {"v1alpha3"}, 32: {"v1alpha3", "v1beta1"}, 33: {"v1alpha3", "v1beta1", "v1beta2"},
	}
	if served := versions[m]; served != nil {
		return oneOf(r, served...)
	}
	return oneOf(r, "v1beta1", "v1beta2", "v1")
}

func objectServed(t *testing.T, o runtime.Object, m kubeversion.Minor, sliceVersion string) runtime.Object {
	t.Helper()
	switch o := o.(type) {
	case *resourcev1.ResourceSlice:
		return sliceServed(t, o, sliceVersion)
	case *resourcev1beta2.ResourceSlice:
		return sliceServed(t, &resourcev1.ResourceSlice{ObjectMeta: o.ObjectMeta, Spec: resourcev1.ResourceSliceSpec{
			Driver: o.Spec.Driver, NodeName: o.Spec.NodeName,
		}}, sliceVersion)
	case *resourcev1beta1.ResourceSlice:
		return sliceServed(t, &resourcev1.ResourceSlice{ObjectMeta: o.ObjectMeta, Spec: resourcev1.ResourceSliceSpec{
			Driver: o.Spec.Driver, NodeName: &o.Spec.NodeName,
		}}, sliceVersion)
	case *certificatesv1.PodCertificateRequest:
		spec := certificatesv1beta1.PodCertificateRequestSpec{
			SignerName: o.Spec.SignerName, PodName: o.Spec.PodName, PodUID: o.Spec.PodUID, ServiceAccountName: o.Spec.ServiceAccountName,
			ServiceAccountUID: o.Spec.ServiceAccountUID, NodeName: o.Spec.NodeName, NodeUID: o.Spec.NodeUID,
		}
		return certificateServed(&certificatesv1beta1.PodCertificateRequest{ObjectMeta: o.ObjectMeta, Spec: spec}, m)
	case *certificatesv1beta1.PodCertificateRequest:
		return certificateServed(o, m)
	}
	return o
}

// sliceServed returns a slice in a version. In the first, the node is in the same object
// as the resources, without a spec. The alpha versions have no Go type any more.
func sliceServed(t *testing.T, o *resourcev1.ResourceSlice, version string) runtime.Object {
	t.Helper()
	node := ""
	if o.Spec.NodeName != nil {
		node = *o.Spec.NodeName
	}
	switch version {
	case "v1":
		return o
	case "v1beta2":
		return &resourcev1beta2.ResourceSlice{
			ObjectMeta: o.ObjectMeta,
			Spec:       resourcev1beta2.ResourceSliceSpec{Driver: o.Spec.Driver, NodeName: o.Spec.NodeName},
		}
	}
	beta := &resourcev1beta1.ResourceSlice{
		ObjectMeta: o.ObjectMeta, Spec: resourcev1beta1.ResourceSliceSpec{Driver: o.Spec.Driver, NodeName: node},
	}
	if version == "v1beta1" {
		return beta
	}
	u := untyped(t, beta, "resource.k8s.io/"+version, "ResourceSlice")
	if version == "v1alpha2" {
		delete(u.Object, "spec")
		u.Object["driverName"] = o.Spec.Driver
		if node != "" {
			u.Object["nodeName"] = node
		}
	}
	return u
}

// certificateServed returns a request in the version of the minor; nil where
// there are no such requests.
func certificateServed(o *certificatesv1beta1.PodCertificateRequest, m kubeversion.Minor) runtime.Object {
	switch {
	case m < 34:
		return nil
	case m == 34: // the same fields, so that the same Go type will do
		o.TypeMeta = metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1alpha1", Kind: "PodCertificateRequest"}
	}
	return o
}

func untyped(t *testing.T, o runtime.Object, version, kind string) *unstructured.Unstructured {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetAPIVersion(version)
	u.SetKind(kind)
	return u
}
