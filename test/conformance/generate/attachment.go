package generate

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// volumeAttachment draws an attachment; an empty node name attaches it nowhere.
func (g *generator) volumeAttachment(name string) *storagev1.VolumeAttachment {
	volume := g.name()
	va := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	va.Spec.Attacher = "csi.example.com"
	va.Spec.Source.PersistentVolumeName = &volume
	if chance(g.r, 95) {
		va.Spec.NodeName = g.node()
	}
	return va
}

// resourceSlice draws a slice: of one node, or of many.
func (g *generator) resourceSlice(name string) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
	slice.Spec.Driver = "gpu.example.com"
	slice.Spec.Pool.Name = g.node()
	switch g.r.IntN(8) {
	case 0:
		all := true
		slice.Spec.AllNodes = &all
	case 1:
		empty := ""
		slice.Spec.NodeName = &empty
	default:
		node := g.node()
		slice.Spec.NodeName = &node
	}
	return slice
}

// podCertificateRequest draws a request of a pod on a node, which need not be
// the node that the pod of that name is on.
func (g *generator) podCertificateRequest(namespace, name string) *certificatesv1.PodCertificateRequest {
	request := &certificatesv1.PodCertificateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request.Spec.SignerName = "example.com/signer"
	request.Spec.PodName = g.name()
	request.Spec.ServiceAccountName = g.name()
	if chance(g.r, 95) {
		request.Spec.NodeName = types.NodeName(g.node())
	}
	return request
}
