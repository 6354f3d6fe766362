package noderestriction

import (
	"cmp"
	"fmt"
	"maps"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// makeMirror sets the annotation of mirror pods, which has the hash of the static pod.
func makeMirror(pod *corev1.Pod) {
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[corev1.MirrorPodAnnotationKey] = cmp.Or(pod.Annotations["kubernetes.io/config.hash"], "mirror")
}

// ownByNode replaces the owners of a mirror pod by the node.
func (d *draft) ownByNode(answer Answer) {
	node, ok := d.state.Node(answer.Node)
	if !ok {
		d.nodeFirst(answer)
		return
	}
	if pod, ok := d.req.Object.(*corev1.Pod); ok {
		pod.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true),
		}}
	}
}

func (d *draft) useNodeUID(answer Answer) {
	node, ok := d.state.Node(answer.Node)
	if !ok {
		d.nodeFirst(answer)
		return
	}
	if pod, ok := d.req.Object.(*corev1.Pod); ok {
		pod.OwnerReferences[0].UID = node.UID
		return
	}
	d.certificateUIDs(func(_, _, nodeUID *types.UID) { *nodeUID = node.UID })
}

func (d *draft) nodeFirst(answer Answer) {
	d.none = fmt.Sprintf("node %s must exist first, and its uid is part of the object: the kubelet registers it", answer.Node)
}

// certificateUIDs changes the uids in a pod certificate request of any version.
func (d *draft) certificateUIDs(change func(pod, account, node *types.UID)) {
	switch request := d.req.Object.(type) {
	case *certificatesv1.PodCertificateRequest:
		change(&request.Spec.PodUID, &request.Spec.ServiceAccountUID, &request.Spec.NodeUID)
	case *certificatesv1beta1.PodCertificateRequest:
		change(&request.Spec.PodUID, &request.Spec.ServiceAccountUID, &request.Spec.NodeUID)
	}
}

func (d *draft) certificateHere(answer Answer) {
	switch request := d.req.Object.(type) {
	case *certificatesv1.PodCertificateRequest:
		request.Spec.NodeName = types.NodeName(answer.Node)
	case *certificatesv1beta1.PodCertificateRequest:
		request.Spec.NodeName = types.NodeName(answer.Node)
	}
}

func (d *draft) useAccount(answer Answer) {
	pod, ok := d.meantPod()
	if !ok {
		return
	}
	switch request := d.req.Object.(type) {
	case *certificatesv1.PodCertificateRequest:
		request.Spec.ServiceAccountName = pod.Spec.ServiceAccountName
	case *certificatesv1beta1.PodCertificateRequest:
		request.Spec.ServiceAccountName = pod.Spec.ServiceAccountName
	}
}

func (d *draft) useAccountUID(Answer) {
	spec, ok := certificateSpecOf(d.req.Object)
	if !ok {
		return
	}
	if account, ok := d.state.ServiceAccount(d.req.Namespace, spec.account); ok {
		d.certificateUIDs(func(_, accountUID, _ *types.UID) { *accountUID = account.UID })
	}
}

func restorePodLabels(from, to *corev1.Pod) { to.Labels = maps.Clone(from.Labels) }

func restoreClaimStatuses(from, to *corev1.Pod) {
	from = from.DeepCopy()
	to.Status.ResourceClaimStatuses = from.Status.ResourceClaimStatuses
	to.Status.ExtendedResourceClaimStatus = from.Status.ExtendedResourceClaimStatus
	to.Status.NodeAllocatableResourceClaimStatuses = from.Status.NodeAllocatableResourceClaimStatuses
}

func dropConfigSource(node *corev1.Node) {
	node.Spec.ConfigSource = nil //lint:ignore SA1019 stored nodes can have it
}

func restoreTaints(from, to *corev1.Node) { to.Spec.Taints = from.DeepCopy().Spec.Taints }

func restoreOwners(from, to *corev1.Node) { to.OwnerReferences = from.DeepCopy().OwnerReferences }

// restoreLabels takes back the changes of labels that nodes may not write.
func (d *draft) restoreLabels(Answer) {
	to, ok := d.req.Object.(*corev1.Node)
	if !ok {
		return
	}
	var before map[string]string
	if from, ok := d.req.OldObject.(*corev1.Node); ok && from != nil && d.req.Operation == Update {
		before = from.Labels
	}
	for _, key := range changedLabels(before, to.Labels) {
		if !reservedLabel(key) {
			continue
		}
		if value, ok := before[key]; !ok {
			delete(to.Labels, key)
		} else if to.Labels == nil {
			to.Labels = map[string]string{key: value}
		} else {
			to.Labels[key] = value
		}
	}
}

// restoreClaim keeps only the changes of the status that nodes may make.
func (d *draft) restoreClaim(Answer) {
	from, ok := d.req.OldObject.(*corev1.PersistentVolumeClaim)
	to, fits := d.req.Object.(*corev1.PersistentVolumeClaim)
	if !ok || !fits {
		return
	}
	status := to.Status
	meta, spec := to.TypeMeta, from.DeepCopy()
	version, managed := to.ResourceVersion, to.ManagedFields
	*to = *spec
	to.TypeMeta, to.ResourceVersion, to.ManagedFields = meta, version, managed
	to.Status.Capacity, to.Status.Conditions = status.Capacity, status.Conditions
	if d.mayAllocate() {
		to.Status.AllocatedResources, to.Status.AllocatedResourceStatuses = status.AllocatedResources, status.AllocatedResourceStatuses
	}
}

func restoreCSINodeSpec(from, to *storagev1.CSINode) { to.Spec = from.DeepCopy().Spec }

// sliceHere makes a new slice one of the node. A slice has one of nodeName, nodeSelector and allNodes.
func (d *draft) sliceHere(answer Answer) {
	if d.req.Operation != Create {
		d.none = "a node deletes only its own resource slices, with any right: use another credential"
		return
	}
	switch slice := d.req.Object.(type) {
	case *resourcev1.ResourceSlice:
		slice.Spec.NodeName, slice.Spec.NodeSelector, slice.Spec.AllNodes = &answer.Node, nil, nil
	case *resourcev1beta2.ResourceSlice:
		slice.Spec.NodeName, slice.Spec.NodeSelector, slice.Spec.AllNodes = &answer.Node, nil, nil
	case *resourcev1beta1.ResourceSlice:
		slice.Spec.NodeName, slice.Spec.NodeSelector, slice.Spec.AllNodes = answer.Node, nil, false
	case *unstructured.Unstructured:
		d.unstructuredSliceHere(slice, answer.Node)
	}
}

func (d *draft) unstructuredSliceHere(slice *unstructured.Unstructured, node string) {
	path := []string{"nodeName"}
	if slice.GetAPIVersion() == "resource.k8s.io/v1alpha3" {
		path = []string{"spec", "nodeName"}
		unstructured.RemoveNestedField(slice.Object, "spec", "nodeSelector")
		unstructured.RemoveNestedField(slice.Object, "spec", "allNodes")
	}
	if err := unstructured.SetNestedField(slice.Object, node, path...); err != nil {
		d.none = "the slice has no spec that can be changed"
	}
}

// rename gives the object that is written the name and namespace of the request.
func (d *draft) rename() {
	if d.req.Object == nil {
		return
	}
	if o, err := meta.Accessor(d.req.Object); err == nil {
		o.SetName(d.req.Name)
		if o.GetNamespace() != "" {
			o.SetNamespace(d.req.Namespace)
		}
	}
}
