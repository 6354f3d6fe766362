package noderestriction_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// mirrorPod is one that worker-1 may create.
func mirrorPod() *corev1.Pod {
	yes, no := true, false
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "proxy-worker-1",
			Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "hash"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Node", Name: "worker-1", UID: "uid-of-worker-1", Controller: &yes, BlockOwnerDeletion: &no,
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: "worker-1",
			Containers: []corev1.Container{
				{
					Name: "proxy",
					Env: []corev1.EnvVar{
						{Name: "A", Value: "b"},
						{Name: "IP", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}},
					},
				},
			},
			Volumes: []corev1.Volume{
				volume("logs", corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/var/log"}}),
				volume("labels", corev1.VolumeSource{
					Projected: &corev1.ProjectedVolumeSource{
						Sources: []corev1.VolumeProjection{{DownwardAPI: &corev1.DownwardAPIProjection{}}},
					},
				}),
				volume("none", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}),
			},
		},
	}
}

// createPod is worker-1's request to create a mirror pod with a change.
func createPod(change func(*corev1.Pod)) *noderestriction.Request {
	return from("worker-1", noderestriction.Request{
		Operation: noderestriction.Create, Version: "v1", Resource: "pods", Namespace: "kube-system",
		Object: changed(mirrorPod(), change),
	})
}

func createOwned(change func(*metav1.OwnerReference)) *noderestriction.Request {
	return createPod(func(p *corev1.Pod) { change(&p.OwnerReferences[0]) })
}

func TestCreatePod(t *testing.T) {
	no, yes := false, true
	checkAll(t, shop(), []expectation{
		{rule: "a mirror pod of the node", request: createPod(func(*corev1.Pod) {}), code: noderestriction.RestrictionsMet},
		{
			rule:    "the annotation counts, not its value",
			request: createPod(func(p *corev1.Pod) { p.Annotations[corev1.MirrorPodAnnotationKey] = "" }),
			code:    noderestriction.RestrictionsMet,
		},
		{rule: "an ordinary pod", request: createPod(func(p *corev1.Pod) { p.Annotations = nil }), code: noderestriction.NotAMirrorPod},
		{rule: "an ordinary pod with annotations", request: createPod(func(p *corev1.Pod) {
			p.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		}), code: noderestriction.NotAMirrorPod},
		{rule: "a pod on no node", request: createPod(func(p *corev1.Pod) { p.Spec.NodeName = "" }), code: noderestriction.PodNotOnNode},
		{
			rule: "a pod on another node", request: createPod(func(p *corev1.Pod) { p.Spec.NodeName = "worker-2" }),
			code: noderestriction.PodNotOnNode,
		},
		{rule: "no owner", request: createPod(func(p *corev1.Pod) { p.OwnerReferences = nil }), code: noderestriction.OwnerNotThisNode},
		{
			rule:    "two owners",
			request: createPod(func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences[0]) }),
			code:    noderestriction.OwnerNotThisNode,
		},
		{
			rule: "another node as owner", request: createOwned(func(o *metav1.OwnerReference) { o.Name = "worker-2" }),
			code: noderestriction.OwnerNotThisNode,
		},
		{
			rule: "an owner of another kind", request: createOwned(func(o *metav1.OwnerReference) { o.Kind = "Pod" }),
			code: noderestriction.OwnerNotThisNode,
		},
		{
			rule: "an owner of another version", request: createOwned(func(o *metav1.OwnerReference) { o.APIVersion = "v2" }),
			code: noderestriction.OwnerNotThisNode,
		},
		{
			rule:    "an owner that says nothing of controlling",
			request: createOwned(func(o *metav1.OwnerReference) { o.Controller = nil }), code: noderestriction.OwnerNotController,
		},
		{
			rule: "an owner that does not control", request: createOwned(func(o *metav1.OwnerReference) { o.Controller = &no }),
			code: noderestriction.OwnerNotController,
		},
		{
			rule:    "an owner whose deletion is blocked",
			request: createOwned(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = &yes }),
			code:    noderestriction.OwnerBlocksDeletion,
		},
		{
			rule:    "an owner that says nothing of blocking",
			request: createOwned(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = nil }),
			code:    noderestriction.RestrictionsMet,
		},
		{
			rule: "an owner with another uid", request: createOwned(func(o *metav1.OwnerReference) { o.UID = "uid-of-worker-2" }),
			code: noderestriction.NodeUIDMismatch, stale: true,
		},
		{
			rule: "an owner without uid", request: createOwned(func(o *metav1.OwnerReference) { o.UID = "" }),
			code: noderestriction.NodeUIDMismatch, stale: true,
		},
		{
			rule: "no object", request: from("worker-1", noderestriction.Request{Operation: noderestriction.Create, Resource: "pods"}),
			code: noderestriction.UnexpectedObject,
		},
		{
			rule: "an object of another type", request: from("worker-1", noderestriction.Request{
				Operation: noderestriction.Create, Resource: "pods", Object: &corev1.Node{},
			}),
			code: noderestriction.UnexpectedObject,
		},
		{
			rule: "an object that points nowhere", request: from("worker-1", noderestriction.Request{
				Operation: noderestriction.Create, Resource: "pods", Object: (*corev1.Pod)(nil),
			}),
			code: noderestriction.UnexpectedObject,
		},
	})
	t.Run("unknown node", func(t *testing.T) {
		c := shop()
		delete(c.nodes, "worker-1")
		checkAll(t, c, []expectation{
			{rule: "is not found", request: createPod(func(*corev1.Pod) {}), code: noderestriction.NodeNotFound, status: 404, stale: true},
		})
	})
}

// podOperation is a request of worker-1's for a pod of namespace shop.
func podOperation(o noderestriction.Operation, subresource, name string) *noderestriction.Request {
	return from("worker-1", noderestriction.Request{
		Operation: o, Version: "v1", Resource: "pods", Subresource: subresource, Namespace: "shop", Name: name,
	})
}

func TestOtherPodOperations(t *testing.T) {
	checkAll(t, shop(), []expectation{
		{rule: "delete a pod of the node", request: podOperation(noderestriction.Delete, "", "web"), code: noderestriction.RestrictionsMet},
		{
			rule: "delete a pod of another node", request: podOperation(noderestriction.Delete, "", "db"),
			code: noderestriction.PodNotOnNode, stale: true,
		},
		{
			rule: "delete a pod on no node", request: podOperation(noderestriction.Delete, "", "new"),
			code: noderestriction.PodNotOnNode, stale: true,
		},
		{
			rule: "delete an unknown pod", request: podOperation(noderestriction.Delete, "", "gone"),
			code: noderestriction.PodNotFound, status: 404, stale: true,
		},
		{
			rule: "delete pods without a name", request: podOperation(noderestriction.Delete, "", ""),
			code: noderestriction.PodNotFound, status: 404, stale: true,
		},
		{rule: "update a pod", request: podOperation(noderestriction.Update, "", "web"), code: noderestriction.OperationNotAllowed},
		{
			rule: "create a status", request: podOperation(noderestriction.Create, "status", "web"),
			code: noderestriction.OperationNotAllowed,
		},
		{
			rule: "delete a status", request: podOperation(noderestriction.Delete, "status", "web"),
			code: noderestriction.OperationNotAllowed,
		},
		{
			rule: "update an eviction", request: podOperation(noderestriction.Update, "eviction", "web"),
			code: noderestriction.OperationNotAllowed,
		},
		{
			rule: "delete an eviction", request: podOperation(noderestriction.Delete, "eviction", "web"),
			code: noderestriction.OperationNotAllowed,
		},
		{rule: "bind a pod", request: podOperation(noderestriction.Create, "binding", "web"), code: noderestriction.SubresourceNotAllowed},
		{
			rule: "add ephemeral containers", request: podOperation(noderestriction.Update, "ephemeralcontainers", "web"),
			code: noderestriction.SubresourceNotAllowed,
		},
		{rule: "resize a pod", request: podOperation(noderestriction.Update, "resize", "web"), code: noderestriction.SubresourceNotAllowed},
		{
			rule: "delete any other subresource", request: podOperation(noderestriction.Delete, "x", "web"),
			code: noderestriction.SubresourceNotAllowed,
		},
	})
}

// updateStatus is worker-1's update of a pod's status.
func updateStatus(old *corev1.Pod, change func(*corev1.Pod)) *noderestriction.Request {
	req := podOperation(noderestriction.Update, "status", old.Name)
	req.OldObject, req.Object = old, changed(old, change)
	return req
}

func TestPodStatus(t *testing.T) {
	claim, other := "claim-1", "claim-2"
	one, two := resource.MustParse("1000m"), resource.MustParse("2")
	sameAsOne := resource.MustParse("1")
	web := pod("shop", "web", "worker-1")
	web.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &claim}, {Name: "none"}}
	web.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
		ResourceClaimName: claim, RequestMappings: []corev1.ContainerExtendedResourceRequest{
			{ContainerName: "app", ResourceName: "example.com/gpu", RequestName: "r"},
		},
	}
	web.Status.NodeAllocatableResourceClaimStatuses = []corev1.NodeAllocatableResourceClaimStatus{{
		ResourceClaimName: claim, Containers: []string{"app"},
		Mapping:  []corev1.NodeAllocatableMappedResources{{Name: "cpu", Quantity: &one}},
		Overhead: []corev1.NodeAllocatableOverheadResources{{Name: "cpu", PerPod: &one}},
	}}
	allocatable := func(change func(*corev1.NodeAllocatableResourceClaimStatus)) *noderestriction.Request {
		return updateStatus(web, func(p *corev1.Pod) { change(&p.Status.NodeAllocatableResourceClaimStatuses[0]) })
	}
	onlyOld := updateStatus(web, func(*corev1.Pod) {})
	onlyOld.Object = nil
	onlyNew := updateStatus(web, func(*corev1.Pod) {})
	onlyNew.OldObject = nil

	checkAll(t, shop(), []expectation{
		{
			rule:    "the status of a pod of the node",
			request: updateStatus(web, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }),
			code:    noderestriction.RestrictionsMet,
		},
		{
			rule:    "a pod that is not known yet, since the stored one counts",
			request: updateStatus(pod("shop", "unknown", "worker-1"), func(*corev1.Pod) {}), code: noderestriction.RestrictionsMet,
		},
		{
			rule: "a pod of another node", request: updateStatus(pod("shop", "db", "worker-2"), func(*corev1.Pod) {}),
			code: noderestriction.PodNotOnNode,
		},
		{
			rule:    "a pod of another node that the node claims",
			request: updateStatus(pod("shop", "db", "worker-2"), func(p *corev1.Pod) { p.Spec.NodeName = "worker-1" }),
			code:    noderestriction.PodNotOnNode,
		},
		{rule: "a pod on no node", request: updateStatus(pod("shop", "new", ""), func(*corev1.Pod) {}), code: noderestriction.PodNotOnNode},
		{
			rule: "a label that changes", request: updateStatus(web, func(p *corev1.Pod) { p.Labels["app"] = "db" }),
			code: noderestriction.PodLabelsChanged,
		},
		{
			rule: "a label that is added", request: updateStatus(web, func(p *corev1.Pod) { p.Labels["x"] = "" }),
			code: noderestriction.PodLabelsChanged,
		},
		{
			rule: "a label that goes", request: updateStatus(web, func(p *corev1.Pod) { p.Labels = nil }),
			code: noderestriction.PodLabelsChanged,
		},
		{
			rule: "annotations", request: updateStatus(web, func(p *corev1.Pod) { p.Annotations = map[string]string{"a": "b"} }),
			code: noderestriction.RestrictionsMet,
		},
		{
			rule:    "a claim status with another name",
			request: updateStatus(web, func(p *corev1.Pod) { p.Status.ResourceClaimStatuses[0].Name = "x" }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{
			rule:    "a claim status with another claim",
			request: updateStatus(web, func(p *corev1.Pod) { p.Status.ResourceClaimStatuses[0].ResourceClaimName = &other }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{
			rule:    "a claim status that loses its claim",
			request: updateStatus(web, func(p *corev1.Pod) { p.Status.ResourceClaimStatuses[0].ResourceClaimName = nil }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{
			rule:    "a claim status that gets a claim",
			request: updateStatus(web, func(p *corev1.Pod) { p.Status.ResourceClaimStatuses[1].ResourceClaimName = &claim }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{rule: "a claim status more", request: updateStatus(web, func(p *corev1.Pod) {
			p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, corev1.PodResourceClaimStatus{Name: "x"})
		}), code: noderestriction.ResourceClaimStatusChanged},
		{rule: "claim statuses in another order", request: updateStatus(web, func(p *corev1.Pod) {
			s := p.Status.ResourceClaimStatuses
			s[0], s[1] = s[1], s[0]
		}), code: noderestriction.ResourceClaimStatusChanged},
		{
			rule:    "extended claims that go",
			request: updateStatus(web, func(p *corev1.Pod) { p.Status.ExtendedResourceClaimStatus = nil }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{rule: "extended claims that come", request: updateStatus(pod("shop", "web", "worker-1"), func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{}
		}), code: noderestriction.ResourceClaimStatusChanged},
		{
			rule:    "another extended claim",
			request: updateStatus(web, func(p *corev1.Pod) { p.Status.ExtendedResourceClaimStatus.ResourceClaimName = other }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{
			rule:    "another extended mapping",
			request: updateStatus(web, func(p *corev1.Pod) { p.Status.ExtendedResourceClaimStatus.RequestMappings[0].RequestName = "x" }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{
			rule:    "an allocatable claim with another name",
			request: allocatable(func(s *corev1.NodeAllocatableResourceClaimStatus) { s.ResourceClaimName = other }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{
			rule:    "an allocatable claim of another container",
			request: allocatable(func(s *corev1.NodeAllocatableResourceClaimStatus) { s.Containers[0] = "x" }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{
			rule:    "an allocatable mapping of another quantity",
			request: allocatable(func(s *corev1.NodeAllocatableResourceClaimStatus) { s.Mapping[0].Quantity = &two }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{
			rule:    "an allocatable mapping of another name",
			request: allocatable(func(s *corev1.NodeAllocatableResourceClaimStatus) { s.Mapping[0].Name = "memory" }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{
			rule:    "an overhead per container",
			request: allocatable(func(s *corev1.NodeAllocatableResourceClaimStatus) { s.Overhead[0].PerContainer = &one }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{
			rule:    "an overhead that goes",
			request: allocatable(func(s *corev1.NodeAllocatableResourceClaimStatus) { s.Overhead = nil }),
			code:    noderestriction.ResourceClaimStatusChanged,
		},
		{rule: "quantities count by value", request: allocatable(func(s *corev1.NodeAllocatableResourceClaimStatus) {
			s.Mapping[0].Quantity, s.Overhead[0].PerPod = &sameAsOne, &sameAsOne
		}), code: noderestriction.RestrictionsMet},
		{rule: "no new object", request: onlyOld, code: noderestriction.UnexpectedObject},
		{rule: "no old object", request: onlyNew, code: noderestriction.UnexpectedObject},
	})
}

// evict is worker-1's eviction of a pod of namespace shop.
func evict(name string, object runtime.Object) *noderestriction.Request {
	req := podOperation(noderestriction.Create, "eviction", name)
	req.Object = object
	return req
}

func TestEviction(t *testing.T) {
	named := func(name string) *policyv1.Eviction {
		return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	checkAll(t, shop(), []expectation{
		{rule: "a pod of the node", request: evict("web", &policyv1.Eviction{}), code: noderestriction.RestrictionsMet},
		{rule: "in the older version", request: evict("web", &policyv1beta1.Eviction{}), code: noderestriction.RestrictionsMet},
		{rule: "a pod of another node", request: evict("db", &policyv1.Eviction{}), code: noderestriction.PodNotOnNode, stale: true},
		{
			rule: "the request's name counts before the object's", request: evict("db", named("web")),
			code: noderestriction.PodNotOnNode, stale: true,
		},
		{rule: "the object's name counts if the request has none", request: evict("", named("web")), code: noderestriction.RestrictionsMet},
		{rule: "another node's pod by the object's name", request: evict("", named("db")), code: noderestriction.PodNotOnNode, stale: true},
		{rule: "no name at all", request: evict("", &policyv1.Eviction{}), code: noderestriction.PodNameRequired},
		{rule: "an unknown pod", request: evict("gone", &policyv1.Eviction{}), code: noderestriction.PodNotFound, status: 404, stale: true},
		{rule: "an object of another type", request: evict("web", &corev1.Pod{}), code: noderestriction.UnexpectedObject},
		{rule: "no object", request: evict("web", nil), code: noderestriction.UnexpectedObject},
		{rule: "an object that points nowhere", request: evict("web", (*policyv1.Eviction)(nil)), code: noderestriction.UnexpectedObject},
	})
}
