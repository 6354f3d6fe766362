package intree

import (
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	certificatesinformers "k8s.io/client-go/informers/certificates/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"

	"github.com/node-authorizer/node-authorizer/test/conformance/generate"
)

// Watched is an in-tree graph that is built by events, through the handlers that
// the API server registers.
type Watched struct {
	Graph                      *node.Graph
	pods, volumes, attachments informer
	slices, requests           informer
	last                       map[string]any
}

// Watch returns an empty graph that follows events.
func Watch() *Watched {
	w := &Watched{Graph: node.NewGraph(), last: make(map[string]any)}
	node.AddGraphEventHandlers(w.Graph, nil,
		podInformer{nil, &w.pods},
		volumeInformer{nil, &w.volumes},
		attachmentInformer{nil, &w.attachments},
		sliceInformer{nil, &w.slices},
		requestInformer{nil, &w.requests})
	return w
}

// Apply hands an event to the handlers as an informer would: what exists
// already is an update, with the state before.
func (w *Watched) Apply(e generate.Event) {
	key, informer := w.route(e.Object)
	before, exists := w.last[key]
	switch {
	case e.Deleted && exists:
		delete(w.last, key)
		informer.handler.OnDelete(before)
	case e.Deleted:
	case exists:
		w.last[key] = e.Object
		informer.handler.OnUpdate(before, e.Object)
	default:
		w.last[key] = e.Object
		informer.handler.OnAdd(e.Object, false)
	}
}

func (w *Watched) route(object any) (string, *informer) {
	switch o := object.(type) {
	case *corev1.Pod:
		return "pod " + o.Namespace + "/" + o.Name, &w.pods
	case *corev1.PersistentVolume:
		return "volume " + o.Name, &w.volumes
	case *storagev1.VolumeAttachment:
		return "attachment " + o.Name, &w.attachments
	case *resourcev1.ResourceSlice:
		return "slice " + o.Name, &w.slices
	case *certificatesv1.PodCertificateRequest:
		return "request " + o.Namespace + "/" + o.Name, &w.requests
	}
	panic(fmt.Sprintf("event of unknown type %T", object))
}

// informer is the part of an informer that the in-tree graph uses.
type informer struct {
	cache.SharedIndexInformer
	handler cache.ResourceEventHandler
}

func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.handler = handler
	return synced{}, nil
}

type synced struct {
	cache.ResourceEventHandlerRegistration
}

func (synced) HasSynced() bool { return true }

type podInformer struct {
	coreinformers.PodInformer
	informer *informer
}

type volumeInformer struct {
	coreinformers.PersistentVolumeInformer
	informer *informer
}

type attachmentInformer struct {
	storageinformers.VolumeAttachmentInformer
	informer *informer
}

type sliceInformer struct {
	resourceinformers.ResourceSliceInformer
	informer *informer
}

type requestInformer struct {
	certificatesinformers.PodCertificateRequestInformer
	informer *informer
}

func (i podInformer) Informer() cache.SharedIndexInformer        { return i.informer }
func (i volumeInformer) Informer() cache.SharedIndexInformer     { return i.informer }
func (i attachmentInformer) Informer() cache.SharedIndexInformer { return i.informer }
func (i sliceInformer) Informer() cache.SharedIndexInformer      { return i.informer }
func (i requestInformer) Informer() cache.SharedIndexInformer    { return i.informer }
