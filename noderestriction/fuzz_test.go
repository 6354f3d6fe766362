package noderestriction_test

import (
	"encoding/json"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// newObject makes an empty object of the kind that a resource takes.
func newObject(resource, subresource string) runtime.Object {
	switch resource + "/" + subresource {
	case "pods/eviction":
		return &policyv1.Eviction{}
	case "serviceaccounts/token":
		return &authenticationv1.TokenRequest{}
	}
	switch resource {
	case "pods":
		return &corev1.Pod{}
	case "nodes":
		return &corev1.Node{}
	case "persistentvolumeclaims":
		return &corev1.PersistentVolumeClaim{}
	case "leases":
		return &coordinationv1.Lease{}
	case "csinodes":
		return &storagev1.CSINode{}
	case "resourceslices":
		return &resourcev1.ResourceSlice{}
	case "podcertificaterequests":
		return &certificatesv1.PodCertificateRequest{}
	case "certificatesigningrequests":
		return &certificatesv1.CertificateSigningRequest{}
	}
	return &unstructured.Unstructured{}
}

// decoded reads JSON into an object, nil if it is none.
func decoded(o runtime.Object, text []byte) runtime.Object {
	if json.Unmarshal(text, o) != nil {
		return nil
	}
	return o
}

// FuzzDecide decides arbitrary writes of worker-1 for every minor. Decide never
// panics, always gives a reason, reads no object that Reads does not report, and
// allows no write to an object with another node's name.
func FuzzDecide(f *testing.F) {
	for i, req := range frequent() {
		object, _ := json.Marshal(req.Object)
		old, _ := json.Marshal(req.OldObject)
		f.Add(uint8(37), string(req.Operation), req.Resource, req.Subresource, req.Namespace, req.Name, object, old)
		f.Add(uint8(30+len(i)%8), "DELETE", req.Resource, req.Subresource, req.Namespace, req.Name, object, old)
	}
	mirror, _ := json.Marshal(mirrorPod())
	f.Add(uint8(37), "CREATE", "pods", "", "kube-system", "", mirror, []byte("null"))
	f.Add(uint8(33), "CREATE", "podcertificaterequests", "", "shop", "", []byte(`{"spec":{"nodeName":"worker-1"}}`), []byte("null"))
	f.Add(uint8(36), "DELETE", "resourceslices", "", "", "s", []byte("null"), []byte(`{"spec":{"nodeName":"worker-2"}}`))
	f.Fuzz(func(t *testing.T, minor uint8, operation, resource, subresource, namespace, name string, object, old []byte) {
		m := kubeversion.Minor(minor)
		if !m.Supported() {
			return
		}
		c := shop().withStorage()
		c.withVolumes(tokenVolume("vault"), claimVolume("vault"), csiVolume("vault.example.com"))
		r := noderestriction.New(c, nil, kubeversion.For(m))
		req := from("worker-1", noderestriction.Request{
			Operation: noderestriction.Operation(operation), Group: groupOf(resource), Version: "v1",
			Resource: resource, Subresource: subresource, Namespace: namespace, Name: name,
			Object: decoded(newObject(resource, subresource), object), OldObject: decoded(newObject(resource, subresource), old),
		})
		got := r.Decide(t.Context(), req)
		checkAnswer(t, got)
		checkReads(t, r, req, got)
		if got.Decision == verdict.Allow {
			checkNotForeign(t, m, req)
		}
	})
}

func groupOf(resource string) string {
	for _, known := range written() {
		if known.Resource == resource {
			return known.Group
		}
	}
	return ""
}

// checkReads decides again without the objects that the rules announce not to
// read.
func checkReads(t *testing.T, r *noderestriction.Restriction, req *noderestriction.Request, want noderestriction.Answer) {
	t.Helper()
	bare := *req
	object, oldObject := r.Reads(req)
	if !object {
		bare.Object = nil
	}
	if !oldObject {
		bare.OldObject = nil
	}
	if got := r.Decide(t.Context(), &bare); got.Decision != want.Decision || got.Code != want.Code {
		t.Errorf("without the objects that are not read: %s instead of %s", got.Code, want.Code)
	}
}

// checkNotForeign refuses writes that a node never gets, in a simpler way than the rules.
func checkNotForeign(t *testing.T, m kubeversion.Minor, req *noderestriction.Request) {
	t.Helper()
	creates := req.Operation == noderestriction.Create
	foreign := false
	switch req.Resource {
	case "nodes":
		foreign = req.Name != own
	case "leases":
		foreign = req.Namespace != "kube-node-lease" || nameOf(req) != own
	case "csinodes":
		foreign = nameOf(req) != own
	case "pods":
		foreign = foreignPod(req)
	case "resourceslices":
		foreign = creates && !sliceNames(req.Object) || m >= 31 && req.Operation == noderestriction.Delete && !sliceNames(req.OldObject)
	case "podcertificaterequests":
		o, ok := req.Object.(*certificatesv1.PodCertificateRequest)
		foreign = m >= 34 && (!ok || o.Spec.NodeName != own || o.Spec.PodUID != "uid-of-web")
	}
	if foreign && req.Operation != noderestriction.Connect {
		t.Errorf("%s %s/%s %s/%s is allowed", req.Operation, req.Resource, req.Subresource, req.Namespace, req.Name)
	}
}

const own = "worker-1"

// nameOf is the object's name where the request creates it.
func nameOf(req *noderestriction.Request) string {
	if req.Operation != noderestriction.Create {
		return req.Name
	}
	o, err := meta.Accessor(req.Object)
	if err != nil {
		return ""
	}
	return o.GetName()
}

func foreignPod(req *noderestriction.Request) bool {
	var p *corev1.Pod
	switch {
	case req.Subresource == "status":
		p, _ = req.OldObject.(*corev1.Pod)
	case req.Subresource == "" && req.Operation == noderestriction.Create:
		p, _ = req.Object.(*corev1.Pod)
	default:
		return req.Name == "db" || req.Name == "new"
	}
	return p == nil || p.Spec.NodeName != own
}

func sliceNames(o runtime.Object) bool {
	s, ok := o.(*resourcev1.ResourceSlice)
	return ok && s.Spec.NodeName != nil && *s.Spec.NodeName == own
}

// FuzzSigningRequest parses arbitrary certificate requests.
func FuzzSigningRequest(f *testing.F) {
	f.Add(signingRequest(f, "system:node:worker-2"))
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, request []byte) {
		r := noderestriction.New(shop(), nil, kubeversion.For(kubeversion.Latest))
		checkAnswer(t, r.Decide(t.Context(), requestCertificate("kubernetes.io/kubelet-serving", request)))
	})
}
