package nodestate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/noderestriction"
	"github.com/node-authorizer/node-authorizer/nodestate"
)

// follow runs a test in a bubble with the state of a fake cluster.
func follow(
	t *testing.T, features kubeversion.Features, objects []runtime.Object, then func(*testing.T, *fake.Clientset, *nodestate.State),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(objects...)
		state := start(t, client, features)
		synctest.Wait()
		if !state.HasSynced() {
			t.Fatal("not synced")
		}
		then(t, client, state)
	})
}

// start starts a state whose informers end with the test.
func start(t *testing.T, client *fake.Clientset, features kubeversion.Features) *nodestate.State {
	t.Helper()
	factory := informers.NewSharedInformerFactory(client, 0)
	state, err := nodestate.New(factory, features)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.Start(ctx.Done())
	return state
}

func latest() kubeversion.Features { return kubeversion.For(kubeversion.Latest) }

func named(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-of-" + name)}
}

// claimed is a pod on worker-1 with a claim, whose volume needs a secret.
func claimed() []runtime.Object {
	return []runtime.Object{
		&corev1.Pod{ObjectMeta: named("shop", "api"), Spec: corev1.PodSpec{
			NodeName: "worker-1", ServiceAccountName: "api", Volumes: []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "disk"},
			}}},
		}},
		&corev1.Node{ObjectMeta: named("", "worker-1")},
		&corev1.ServiceAccount{ObjectMeta: named("shop", "api")},
		&corev1.PersistentVolumeClaim{ObjectMeta: named("shop", "disk"), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "pv-1"}},
		&corev1.PersistentVolume{ObjectMeta: named("", "pv-1"), Spec: corev1.PersistentVolumeSpec{
			ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "disk"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "csi.example", NodePublishSecretRef: &corev1.SecretReference{Namespace: "disks", Name: "key"},
			}},
		}},
		&storagev1.CSIDriver{ObjectMeta: named("", "csi.example")},
		&storagev1.VolumeAttachment{ObjectMeta: named("", "attachment-1"), Spec: storagev1.VolumeAttachmentSpec{NodeName: "worker-1"}},
		&resourcev1.ResourceSlice{ObjectMeta: named("", "slice-1"), Spec: resourcev1.ResourceSliceSpec{NodeName: new("worker-1")}},
		&resourcev1.ResourceSlice{ObjectMeta: named("", "shared")},
		&certificatesv1.PodCertificateRequest{
			ObjectMeta: named("shop", "request-1"), Spec: certificatesv1.PodCertificateRequestSpec{NodeName: "worker-1"},
		},
	}
}

// look is a look-up by name: the found object, by its UID or text, and whether there is one.
type look func(s *nodestate.State, namespace, name string) (what string, ok bool)

// object looks an object up by its UID.
func object[T metav1.Object](o T, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	return string(o.GetUID()), true
}

func TestLookUps(t *testing.T) {
	looks := map[string]look{
		"Pod":     func(s *nodestate.State, ns, name string) (string, bool) { return object(s.Pod(ns, name)) },
		"Node":    func(s *nodestate.State, _, name string) (string, bool) { return object(s.Node(name)) },
		"Account": func(s *nodestate.State, ns, name string) (string, bool) { return object(s.ServiceAccount(ns, name)) },
		"Claim": func(s *nodestate.State, ns, name string) (string, bool) {
			return object(s.PersistentVolumeClaim(ns, name))
		},
		"Volume": func(s *nodestate.State, _, name string) (string, bool) { return object(s.PersistentVolume(name)) },
		"Driver": func(s *nodestate.State, _, name string) (string, bool) { return object(s.CSIDriver(name)) },
		"Slice":  func(s *nodestate.State, _, name string) (string, bool) { return s.ResourceSliceNode(name) },
	}
	follow(t, latest(), claimed(), func(t *testing.T, _ *fake.Clientset, s *nodestate.State) {
		for _, tc := range []struct{ look, namespace, name, want string }{
			{"Pod", "shop", "api", "uid-of-api"},
			{"Pod", "shop", "web", "-"},
			{"Pod", "pay", "api", "-"},
			{"Pod", "", "api", "-"},
			{"Node", "", "worker-1", "uid-of-worker-1"},
			{"Node", "", "worker-2", "-"},
			{"Account", "shop", "api", "uid-of-api"},
			{"Account", "pay", "api", "-"},
			{"Claim", "shop", "disk", "uid-of-disk"},
			{"Claim", "pay", "disk", "-"},
			{"Volume", "", "pv-1", "uid-of-pv-1"},
			{"Volume", "", "pv-2", "-"},
			{"Driver", "", "csi.example", "uid-of-csi.example"},
			{"Driver", "", "other.example", "-"},
			{"Slice", "", "slice-1", "worker-1"},
			{"Slice", "", "shared", ""},
			{"Slice", "", "slice-2", "-"},
		} {
			got, ok := looks[tc.look](s, tc.namespace, tc.name)
			if !ok {
				got = "-"
			}
			if got != tc.want {
				t.Errorf("%s %s/%s: got %q, want %q", tc.look, tc.namespace, tc.name, got, tc.want)
			}
		}
	})
}

// relations are the objects that worker-1 reaches in the cluster of claimed.
var relations = []struct {
	kind            graph.Kind
	namespace, name string
}{
	{graph.Pod, "shop", "api"},
	{graph.ServiceAccount, "shop", "api"},
	{graph.PersistentVolumeClaim, "shop", "disk"},
	{graph.PersistentVolume, "", "pv-1"},
	{graph.Secret, "disks", "key"},
	{graph.VolumeAttachment, "", "attachment-1"},
	{graph.ResourceSlice, "", "slice-1"},
	{graph.PodCertificateRequest, "shop", "request-1"},
}

func TestRelationsFollowTheObjects(t *testing.T) {
	follow(t, latest(), claimed(), func(t *testing.T, client *fake.Clientset, s *nodestate.State) {
		reached := func(node string) (n int) {
			synctest.Wait()
			for _, r := range relations {
				if s.Graph().HasPath(node, r.kind, r.namespace, r.name) {
					n++
				}
			}
			return n
		}
		if got := reached("worker-1"); got != len(relations) {
			t.Errorf("at the start: %d relations of %d", got, len(relations))
		}
		attachment, err := client.StorageV1().VolumeAttachments().Get(t.Context(), "attachment-1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		attachment.Spec.NodeName = "worker-2"
		if _, err := client.StorageV1().VolumeAttachments().Update(t.Context(), attachment, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if one, other := reached("worker-1"), reached("worker-2"); one != len(relations)-1 || other != 1 {
			t.Errorf("after a change: %d relations and %d", one, other)
		}
		if err := errors.Join(
			client.CoreV1().Pods("shop").Delete(t.Context(), "api", metav1.DeleteOptions{}),
			client.CoreV1().PersistentVolumes().Delete(t.Context(), "pv-1", metav1.DeleteOptions{}),
			client.StorageV1().VolumeAttachments().Delete(t.Context(), "attachment-1", metav1.DeleteOptions{}),
			client.ResourceV1().ResourceSlices().Delete(t.Context(), "slice-1", metav1.DeleteOptions{}),
			client.CertificatesV1().PodCertificateRequests("shop").Delete(t.Context(), "request-1", metav1.DeleteOptions{}),
		); err != nil {
			t.Fatal(err)
		}
		if one, other := reached("worker-1"), reached("worker-2"); one+other > 0 {
			t.Errorf("after the end: %d relations and %d", one, other)
		}
		if _, ok := s.Pod("shop", "api"); ok {
			t.Error("the pod is still found")
		}
	})
}

// TestVersionsOfAPIs compares, for each minor, the resources that are read with and without the gates.
func TestVersionsOfAPIs(t *testing.T) {
	always := []string{
		"core/v1 nodes", "core/v1 persistentvolumeclaims", "core/v1 persistentvolumes", "core/v1 pods", "core/v1 serviceaccounts",
		"storage.k8s.io/v1 csidrivers", "storage.k8s.io/v1 volumeattachments",
	}
	const alpha = "alpha"
	for minor, want := range map[kubeversion.Minor]struct{ slices, requests string }{
		30: {alpha, ""}, 31: {alpha, ""}, 32: {"v1beta1", ""}, 33: {"v1beta2", ""},
		34: {"v1", alpha}, 35: {"v1", "v1beta1"}, 36: {"v1", "v1beta1"}, 37: {"v1", "v1"},
	} {
		for _, gate := range []struct {
			gate              kubeversion.Gate
			resource, version string
		}{
			{kubeversion.DynamicResourceAllocation, "resource.k8s.io/%s resourceslices", want.slices},
			{kubeversion.PodCertificateRequest, "certificates.k8s.io/%s podcertificaterequests", want.requests},
		} {
			t.Run(fmt.Sprintf("%v %s", minor, gate.gate), func(t *testing.T) {
				on, err := kubeversion.For(minor).With(gate.gate, true)
				if (err != nil) != (gate.version == "") {
					t.Fatalf("enabled: %v", err)
				}
				if gate.version == "" {
					return
				}
				if gate.version == alpha {
					_, err := nodestate.New(informers.NewSharedInformerFactory(fake.NewClientset(), 0), on)
					if err == nil || !strings.Contains(err.Error(), "leave the feature gate "+string(gate.gate)+" off") {
						t.Errorf("got %v", err)
					}
					return
				}
				resource := fmt.Sprintf(gate.resource, gate.version)
				if got := listed(t, on); !slices.Contains(got, resource) || !containsAll(got, always) {
					t.Errorf("with the gate: %q, want %q too", got, resource)
				}
				off, err := kubeversion.For(minor).With(gate.gate, false)
				if err != nil {
					return // locked
				}
				if got := listed(t, off); slices.Contains(got, resource) || !containsAll(got, always) {
					t.Errorf("without the gate: %q", got)
				}
			})
		}
	}
}

func containsAll(all, some []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// listed returns the resources that the informers of a state list.
func listed(t *testing.T, features kubeversion.Features) (all []string) {
	t.Helper()
	follow(t, features, nil, func(_ *testing.T, client *fake.Clientset, _ *nodestate.State) {
		for _, a := range client.Actions() {
			group := a.GetResource().Group
			if group == "" {
				group = "core"
			}
			all = append(all, fmt.Sprintf("%s/%s %s", group, a.GetResource().Version, a.GetResource().Resource))
		}
	})
	slices.Sort(all)
	return slices.Compact(all)
}

func TestBetaVersionsHaveTheSameRelations(t *testing.T) {
	for _, tc := range []struct {
		minor  kubeversion.Minor
		gate   kubeversion.Gate
		object runtime.Object
		kind   graph.Kind
		in     string
	}{
		{32, kubeversion.DynamicResourceAllocation, &resourcev1beta1.ResourceSlice{
			ObjectMeta: named("", "x"), Spec: resourcev1beta1.ResourceSliceSpec{NodeName: "worker-1"},
		}, graph.ResourceSlice, ""},
		{33, kubeversion.DynamicResourceAllocation, &resourcev1beta2.ResourceSlice{
			ObjectMeta: named("", "x"), Spec: resourcev1beta2.ResourceSliceSpec{NodeName: new("worker-1")},
		}, graph.ResourceSlice, ""},
		{35, kubeversion.PodCertificateRequest, &certificatesv1beta1.PodCertificateRequest{
			ObjectMeta: named("shop", "x"), Spec: certificatesv1beta1.PodCertificateRequestSpec{NodeName: "worker-1"},
		}, graph.PodCertificateRequest, "shop"},
	} {
		features, err := kubeversion.For(tc.minor).With(tc.gate, true)
		if err != nil {
			t.Fatal(err)
		}
		follow(t, features, []runtime.Object{tc.object}, func(t *testing.T, _ *fake.Clientset, s *nodestate.State) {
			if !s.Graph().HasPath("worker-1", tc.kind, tc.in, "x") {
				t.Errorf("%v: no relation of %T", tc.minor, tc.object)
			}
			if node, ok := s.ResourceSliceNode("x"); ok != (tc.kind == graph.ResourceSlice) || ok && node != "worker-1" {
				t.Errorf("%v: the slice is of %q, %v", tc.minor, node, ok)
			}
		})
	}
}

// TestUntilAllIsReadMissingIsAnError: while one resource cannot be read, both kinds of decisions that miss
// something are errors, also with all others read.
func TestUntilAllIsReadMissingIsAnError(t *testing.T) {
	for _, resource := range []string{
		"pods", "nodes", "serviceaccounts", "persistentvolumeclaims", "persistentvolumes", "csidrivers", "volumeattachments",
		"resourceslices", "podcertificaterequests",
	} {
		t.Run(resource, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := fake.NewClientset()
				client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, errors.New("not now")
				})
				state := start(t, client, latest())
				synctest.Wait()
				reads, writes := decide(t, state)
				if state.HasSynced() || !errors.Is(reads, nodeauthz.ErrNotSynced) || !errors.Is(writes, noderestriction.ErrNotSynced) {
					t.Errorf("before: synced %v, %v, %v", state.HasSynced(), reads, writes)
				}
			})
		})
	}
	follow(t, latest(), nil, func(t *testing.T, _ *fake.Clientset, s *nodestate.State) {
		if reads, writes := decide(t, s); reads != nil || writes != nil {
			t.Errorf("after: %v, %v", reads, writes)
		}
	})
}

// decide reads a secret and deletes a pod that do not exist, and returns the errors.
func decide(t *testing.T, state *nodestate.State) (reads, writes error) {
	t.Helper()
	user, groups := nodeidentity.User("worker-1")
	request := &access.Request{
		User: user, Groups: groups, ResourceRequest: true, Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db",
	}
	_, _, reads = nodeauthz.New(state.Graph(), latest(), nodeauthz.WithSynced(state.HasSynced)).Authorize(t.Context(), request.Attributes())
	answer := noderestriction.New(state, nil, latest()).Decide(t.Context(), &noderestriction.Request{
		User: user, Groups: groups, Operation: noderestriction.Delete,
		Version: "v1", Resource: "pods", Namespace: "shop", Name: "api",
	})
	return reads, answer.Err
}

func TestInformersThatHaveEndedAreAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
		factory.Core().V1().Pods().Informer()
		ctx, cancel := context.WithCancel(t.Context())
		factory.Start(ctx.Done())
		synctest.Wait()
		cancel()
		factory.Shutdown()
		if _, err := nodestate.New(factory, latest()); err == nil || !strings.Contains(err.Error(), "have ended") {
			t.Errorf("got %v", err)
		}
	})
}
