package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	coreinformers "k8s.io/client-go/informers/core/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/auth/nodeidentifier"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/node"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
)

// implementation is an authorizer with an empty graph and the handlers that fill it:
// those that an informer would call.
type implementation struct {
	authorizer    authorizer.Authorizer
	pods, volumes cache.ResourceEventHandler
}

// side names the two implementations; pairs of figures are indexed by it.
type side int

const (
	ours side = iota
	inTree
)

var sides = [...]side{ours, inTree}

func (s side) String() string {
	if s == ours {
		return "node-authorizer"
	}
	return "in-tree"
}

// new returns a fresh implementation, with the behaviour of the newest version and
// its default feature gates.
func (s side) new() implementation {
	if s == ours {
		return newOurs()
	}
	return newInTree()
}

func newOurs() implementation {
	g := graph.New()
	return implementation{
		authorizer: nodeauthz.New(g, kubeversion.For(kubeversion.Latest)),
		pods: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(pod any) { g.SetPod(pod.(*corev1.Pod)) },
			UpdateFunc: func(_, pod any) { g.SetPod(pod.(*corev1.Pod)) },
			DeleteFunc: func(pod any) { g.DeletePod(pod.(*corev1.Pod).Namespace, pod.(*corev1.Pod).Name) },
		},
		volumes: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(pv any) { g.SetPersistentVolume(pv.(*corev1.PersistentVolume)) },
			UpdateFunc: func(_, pv any) { g.SetPersistentVolume(pv.(*corev1.PersistentVolume)) },
			DeleteFunc: func(pv any) { g.DeletePersistentVolume(pv.(*corev1.PersistentVolume).Name) },
		},
	}
}

// newInTree registers the in-tree graph's own handlers, as kube-apiserver does.
func newInTree() implementation {
	g := node.NewGraph()
	var pods, volumes, attachments informer
	node.AddGraphEventHandlers(g, nil, podInformer{informer: &pods}, volumeInformer{informer: &volumes},
		attachmentInformer{informer: &attachments}, nil, nil)
	return implementation{
		authorizer: node.NewAuthorizer(g, nodeidentifier.NewDefaultNodeIdentifier(), bootstrappolicy.NodeRules()),
		pods:       pods.handler,
		volumes:    volumes.handler,
	}
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

func (i podInformer) Informer() cache.SharedIndexInformer        { return i.informer }
func (i volumeInformer) Informer() cache.SharedIndexInformer     { return i.informer }
func (i attachmentInformer) Informer() cache.SharedIndexInformer { return i.informer }
