package nodeauthz_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// newCluster returns the graph of two nodes with one pod each, which use one
// object of each kind, and a static pod on worker-1. Nothing is on worker-3.
//
//	worker-1: pod shop/api: serviceaccount api, secret db, configmap settings,
//	          resourceclaim a100, claim orders -> pv-orders -> secret vault/orders-key
//	worker-2: pod shop/web: serviceaccount web, secret tls, configmap pages,
//	          resourceclaim v100, claim images -> pv-images -> secret vault/images-key
func newCluster() *graph.Graph {
	g := graph.New()
	for _, node := range []struct{ name, pod, secret, config, device, claim string }{
		{"worker-1", "api", "db", "settings", "a100", "orders"},
		{"worker-2", "web", "tls", "pages", "v100", "images"},
	} {
		g.SetPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: node.pod},
			Spec: corev1.PodSpec{
				NodeName:           node.name,
				ServiceAccountName: node.pod,
				ResourceClaims:     []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &node.device}},
				Volumes: []corev1.Volume{
					{Name: "secret", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: node.secret}}},
					{
						Name: "config",
						VolumeSource: corev1.VolumeSource{
							ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: node.config}},
						},
					},
					{
						Name: "data",
						VolumeSource: corev1.VolumeSource{
							PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: node.claim},
						},
					},
				},
			},
		})
		g.SetPersistentVolume(volume("pv-"+node.claim, node.claim, node.claim+"-key"))
		g.SetVolumeAttachment(&storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: "csi-" + node.name},
			Spec:       storagev1.VolumeAttachmentSpec{NodeName: node.name},
		})
		g.SetResourceSlice(&resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: node.name + "-gpus"},
			Spec:       resourcev1.ResourceSliceSpec{NodeName: &node.name},
		})
		g.SetPodCertificateRequest(&certificatesv1.PodCertificateRequest{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: node.pod + "-cert"},
			Spec:       certificatesv1.PodCertificateRequestSpec{NodeName: types.NodeName(node.name)},
		})
	}
	static := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "kube-system", Name: "proxy-worker-1",
		Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "1"},
	}}
	static.Spec.NodeName = "worker-1"
	g.SetPod(static)
	g.SetPersistentVolume(volume("pv-idle", "idle", "idle-key"))
	return g
}

func volume(name, claim, secret string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				NodeStageSecretRef: &corev1.SecretReference{Namespace: "vault", Name: secret},
			}},
		},
	}
}

// from returns a request of the kubelet of a node in a short notation: the verb, the
// resource as kubectl qualifies it (csinodes.storage.k8s.io/status), the object as
// NAMESPACE/NAME (shop/db, shop/ for all in a namespace, worker-1 for an object
// without one, "" for all), and the field selector, if any.
func from(node, verb, resource, object string, selector ...string) *access.Request {
	req := &access.Request{Verb: verb, ResourceRequest: true, Name: object}
	req.User, req.Groups = nodeidentity.User(node)
	qualified, subresource, _ := strings.Cut(resource, "/")
	req.Subresource = subresource
	req.Resource, req.Group, _ = strings.Cut(qualified, ".")
	if namespace, name, namespaced := strings.Cut(object, "/"); namespaced {
		req.Namespace, req.Name = namespace, name
	}
	for _, s := range selector {
		req.FieldSelector = fields.ParseSelectorOrDie(s).Requirements()
	}
	return req
}

// by1 is from for worker-1, which most tests use.
func by1(verb, resource, object string, selector ...string) *access.Request {
	return from("worker-1", verb, resource, object, selector...)
}

// whole is by1 with a slash in the name of the resource.
func whole(verb, group, resource, object string) *access.Request {
	req := by1(verb, "", object)
	req.Group, req.Resource = group, resource
	return req
}

// latest returns the authorizer of the cluster at the newest version.
func latest(opts ...nodeauthz.Option) *nodeauthz.Authorizer {
	return nodeauthz.New(newCluster(), kubeversion.For(kubeversion.Latest), opts...)
}

// rule is one line of a table: its name, a request, and the code of the
// answer.
type rule struct {
	shows   string
	request *access.Request
	code    verdict.Code
}

func check(t *testing.T, a *nodeauthz.Authorizer, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.shows, func(t *testing.T) {
			answer := a.Decide(r.request)
			if answer.Code != r.code {
				t.Errorf("%s %s %s/%s: got %s, want %s", r.request.Verb, r.request.Resource, r.request.Namespace, r.request.Name,
					answer.Code, r.code)
			}
			if allowed := answer.Decision == verdict.Allow; allowed != allowing(answer.Code) || answer.Decision == verdict.Deny {
				t.Errorf("decision is %v with code %s", answer.Decision, answer.Code)
			}
			if e := a.Explain(r.request); e.Answer != answer || e.Reason.Code != answer.Code || e.Reason.Message == "" {
				t.Errorf("Explain says %+v, Decide %+v", e, answer)
			}
		})
	}
}

func allowing(code verdict.Code) bool {
	switch code {
	case nodeauthz.PathToObject, nodeauthz.OwnName, nodeauthz.OwnFieldSelector, nodeauthz.GrantedToNodes:
		return true
	}
	return false
}

// compareGolden compares with a file under testdata, which it writes when
// UPDATE_GOLDEN is set.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading what is wanted (UPDATE_GOLDEN=1 writes it): %v", err)
	}
	if got != string(want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", path, got, want)
	}
}
