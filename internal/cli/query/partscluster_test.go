package query

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/node-authorizer/node-authorizer/internal/testing/fakeapiserver"
)

// partsCluster is a random cluster on a fake API server. The pools of names are small, so that
// objects meet: volumes that claims do not name, claims of other namespaces, nodes without a Node.
type partsCluster struct {
	*rand.Rand
	t      *testing.T
	server *fakeapiserver.Server
	pods   []*corev1.Pod

	mu sync.Mutex
	// forbidden says which lists the user may not make.
	forbidden func(resource, namespace string) bool
	// broken is a resource that the server fails to list.
	broken   string
	requests []string
}

var partsResources = map[string]map[string]string{
	"v1": {
		"pods": "Pod", "nodes": "Node", "secrets": "Secret", "configmaps": "ConfigMap", "persistentvolumes": "PersistentVolume",
		"persistentvolumeclaims": "PersistentVolumeClaim", "serviceaccounts": "ServiceAccount", "services": "Service",
	},
	"storage.k8s.io/v1": {"volumeattachments": "VolumeAttachment", "csidrivers": "CSIDriver", "csinodes": "CSINode"},
	"rbac.authorization.k8s.io/v1": {
		"roles": "Role", "rolebindings": "RoleBinding", "clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding",
	},
	"resource.k8s.io/v1":     {"resourceslices": "ResourceSlice", "resourceclaims": "ResourceClaim"},
	"certificates.k8s.io/v1": {"podcertificaterequests": "PodCertificateRequest"},
	"coordination.k8s.io/v1": {"leases": "Lease"},
	"apps/v1":                {"deployments": "Deployment"},
}

func newPartsCluster(t *testing.T, seed uint64) *partsCluster {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 7))
	c := emptyPartsCluster(t, fmt.Sprintf("v1.%d.0", 30+random.IntN(8)))
	c.Rand = random
	c.fill()
	return c
}

func emptyPartsCluster(t *testing.T, version string) *partsCluster {
	t.Helper()
	c := &partsCluster{t: t}
	c.server = fakeapiserver.New(fakeapiserver.Options{
		Resources: partsResources, Version: func() string { return version }, Fault: c.fault,
	})
	t.Cleanup(c.server.Close)
	return c
}

// fault counts a request and refuses it if the user may not make it.
func (c *partsCluster) fault(r *http.Request) fakeapiserver.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests = append(c.requests, r.URL.RequestURI())
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	resource, namespace := parts[len(parts)-1], ""
	if i := slices.Index(parts, "namespaces"); i > 0 && i+1 < len(parts) {
		namespace = parts[i+1]
	}
	if resource == c.broken {
		return fakeapiserver.Internal
	}
	if c.forbidden != nil && c.forbidden(resource, namespace) {
		return fakeapiserver.Forbidden
	}
	return fakeapiserver.NoFault
}

// lists returns the lists that were requested since the last call, without discovery.
func (c *partsCluster) lists() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, request := range c.requests {
		path, _, _ := strings.Cut(request, "?")
		parts := strings.Split(strings.Trim(path, "/"), "/")
		if len(parts) > 3 || parts[0] == "api" && len(parts) > 2 {
			all = append(all, request)
		}
	}
	c.requests = nil
	slices.Sort(all)
	return all
}

func (c *partsCluster) forbid(forbidden func(resource, namespace string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forbidden = forbidden
}

// breakLists makes the server fail to list a resource; none if it is empty.
func (c *partsCluster) breakLists(of string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = of
}

func (c *partsCluster) put(path string, object any) {
	c.t.Helper()
	if err := c.server.Put(path, object); err != nil {
		c.t.Fatal(err)
	}
}

func (c *partsCluster) chance(of int) bool { return c.IntN(of) == 0 }

func (c *partsCluster) pick(from ...string) string { return from[c.IntN(len(from))] }

func (c *partsCluster) namespace() string { return c.pick("shop", "pay", "kube-system") }
func (c *partsCluster) node() string      { return c.pick("n0", "n1", "n2", "bare") }
func (c *partsCluster) claim() string     { return c.pick("c0", "c1", "c2", "p0-v", "p1-v") }
func (c *partsCluster) volume() string    { return c.pick("v0", "v1", "v2", "v3") }
func (c *partsCluster) secret() string    { return c.pick("s0", "s1", "s2") }
func (c *partsCluster) account() string   { return c.pick("default", "api") }
func (c *partsCluster) driver() string    { return c.pick("csi.example.com", "other.example.com") }

func (c *partsCluster) uid(name string) types.UID {
	return types.UID("00000000-0000-4000-8000-0000000000" + fmt.Sprintf("%02d", len(name)))
}

func (c *partsCluster) fill() {
	for _, name := range []string{"n0", "n1", "n2"} {
		if !c.chance(6) {
			c.put("/api/v1/nodes/"+name, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: c.uid(name)}})
		}
	}
	for i := range c.IntN(12) {
		namespace, name := c.namespace(), fmt.Sprintf("p%d", i)
		c.pods = append(c.pods, c.pod(namespace, name))
		c.put("/api/v1/namespaces/"+namespace+"/pods/"+name, c.pods[i])
	}
	for range c.IntN(6) {
		name := c.volume()
		c.put("/api/v1/persistentvolumes/"+name, c.persistentVolume(name))
	}
	for range c.IntN(8) {
		namespace, name := c.namespace(), c.claim()
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		if !c.chance(4) {
			claim.Spec.VolumeName = c.volume()
		}
		c.put("/api/v1/namespaces/"+namespace+"/persistentvolumeclaims/"+name, claim)
	}
	for range c.IntN(5) {
		namespace, name := c.namespace(), c.account()
		c.put("/api/v1/namespaces/"+namespace+"/serviceaccounts/"+name,
			&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: c.uid(name)}})
	}
	for _, name := range []string{"csi.example.com", "other.example.com"} {
		if !c.chance(3) {
			driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}}
			driver.Spec.TokenRequests = []storagev1.TokenRequest{{Audience: c.pick("vault", "sts")}}
			c.put("/apis/storage.k8s.io/v1/csidrivers/"+name, driver)
		}
	}
	for i := range c.IntN(3) {
		name := fmt.Sprintf("o%d", i)
		c.put("/apis/storage.k8s.io/v1/volumeattachments/"+name,
			&storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{NodeName: c.node()}})
		slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if node := c.node(); !c.chance(3) {
			slice.Spec.NodeName = &node
		}
		c.put("/apis/resource.k8s.io/v1/resourceslices/"+name, slice)
		namespace := c.namespace()
		c.put("/apis/certificates.k8s.io/v1/namespaces/"+namespace+"/podcertificaterequests/"+name,
			&certificatesv1.PodCertificateRequest{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
				Spec:       certificatesv1.PodCertificateRequestSpec{NodeName: types.NodeName(c.node())},
			})
	}
	c.addRBAC()
}

func (c *partsCluster) pod(namespace, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: c.uid(name)}}
	if !c.chance(8) {
		pod.Spec.NodeName = c.node()
	}
	if c.chance(8) {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	}
	pod.Spec.ServiceAccountName = c.account()
	if c.chance(3) {
		pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: c.secret()}}
	}
	if c.chance(3) {
		pod.Spec.Containers = []corev1.Container{{Name: "c", EnvFrom: []corev1.EnvFromSource{{
			ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "m0"}},
		}}}}
	}
	add := func(source corev1.VolumeSource) {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "v", VolumeSource: source})
	}
	switch c.IntN(6) {
	case 0, 1, 2:
		add(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: c.claim()}})
	case 3:
		add(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}})
	case 4:
		add(corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
			Driver: c.driver(), NodePublishSecretRef: &corev1.LocalObjectReference{Name: c.secret()},
		}})
	}
	switch name := c.pick("r0", "r1"); c.IntN(6) {
	case 0:
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
	case 1:
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: name}
	}
	return pod
}

func (c *partsCluster) persistentVolume(name string) *corev1.PersistentVolume {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if !c.chance(6) {
		volume.Spec.ClaimRef = &corev1.ObjectReference{Namespace: c.namespace(), Name: c.claim()}
	}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: c.driver()}
	if !c.chance(3) {
		volume.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: c.namespace(), Name: c.secret()}
	}
	return volume
}

// text returns a result as indented JSON.
func text(t *testing.T, result any) string {
	t.Helper()
	out, err := json.MarshalIndent(result, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
