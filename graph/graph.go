package graph

import (
	"sync"
	"sync/atomic"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Graph holds the relations between nodes and objects. Create one with New; it is
// safe for concurrent use and must not be copied.
//
// Set… calls take a whole API object and replace the object of that name; setting an
// unchanged object is cheap. Delete… calls of unknown objects do nothing. API objects
// are neither kept nor changed, but strings in them are kept.
type Graph struct {
	vertices *table // read without a lock
	// extended is true once a pod had a claim for extended resources; set before the
	// relation, and never reset.
	extended atomic.Bool

	mu         sync.RWMutex // guards changes, and everything below
	entries    *entryNames
	namespaces map[string]*namespace
	nodes      []*vertex
	kinds      [kindCount]int // vertices by kind
	links      int
	scratch    references
	firsts     firsts
}

// New returns an empty graph.
func New() *Graph {
	return &Graph{
		vertices:   newTable(),
		entries:    newEntryNames(),
		namespaces: map[string]*namespace{},
	}
}

// SetPod relates the pod and, unless it is a mirror pod, all objects that it names to
// its node. A pod that is not bound to a node loses all relations.
func (g *Graph) SetPod(pod *corev1.Pod) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.set(Pod, pod.Namespace, pod.Name, podReferences(g.scratch[:0], pod))
}

// DeletePod removes the pod and its relations.
func (g *Graph) DeletePod(namespace, name string) { g.delete(Pod, namespace, name) }

// SetPersistentVolume relates the volume to its claim, and the secrets that it
// needs on a node to the volume.
func (g *Graph) SetPersistentVolume(pv *corev1.PersistentVolume) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.set(PersistentVolume, "", pv.Name, volumeReferences(g.scratch[:0], pv))
}

// DeletePersistentVolume removes the volume and its relations.
func (g *Graph) DeletePersistentVolume(name string) { g.delete(PersistentVolume, "", name) }

// SetVolumeAttachment relates the attachment to its node.
func (g *Graph) SetVolumeAttachment(attachment *storagev1.VolumeAttachment) {
	g.setOnNode(VolumeAttachment, "", attachment.Name, attachment.Spec.NodeName)
}

// DeleteVolumeAttachment removes the attachment.
func (g *Graph) DeleteVolumeAttachment(name string) { g.delete(VolumeAttachment, "", name) }

// SetResourceSlice relates the slice to its node, if it has one.
func (g *Graph) SetResourceSlice(slice *resourcev1.ResourceSlice) {
	node := ""
	if slice.Spec.NodeName != nil {
		node = *slice.Spec.NodeName
	}
	g.setOnNode(ResourceSlice, "", slice.Name, node)
}

// DeleteResourceSlice removes the slice.
func (g *Graph) DeleteResourceSlice(name string) { g.delete(ResourceSlice, "", name) }

// SetPodCertificateRequest relates the request to its node.
func (g *Graph) SetPodCertificateRequest(request *certificatesv1.PodCertificateRequest) {
	g.setOnNode(PodCertificateRequest, request.Namespace, request.Name, string(request.Spec.NodeName))
}

// DeletePodCertificateRequest removes the request.
func (g *Graph) DeletePodCertificateRequest(namespace, name string) {
	g.delete(PodCertificateRequest, namespace, name)
}

// HasPath reports whether the named object is related to the named node. It is false
// for objects and nodes without relations. Namespace is empty for cluster-scoped
// kinds. It takes no lock and allocates nothing.
func (g *Graph) HasPath(node string, kind Kind, namespace, name string) bool {
	v := g.object(kind, namespace, name)
	if v == nil {
		return false
	}
	for {
		set := v.members.Load()
		reached := g.has(set, node)
		// A volume has the set of its claim. If it moved to another claim during the
		// look-up, the answer would mix two states.
		if kind != PersistentVolume || v.members.Load() == set {
			return reached
		}
	}
}

// has reports whether the named node is in a set, which may be nil.
func (g *Graph) has(set *memberSet, node string) bool {
	switch {
	case set == nil:
		return false
	case set.sole != nil:
		return set.sole.name == node
	}
	return set.has(g.vertices.id(Node, "", node), node)
}

// object returns the vertex of an object that nodes may reach, or nil. Nodes are
// excluded: the rules decide that a node may read itself.
func (g *Graph) object(kind Kind, namespace, name string) *vertex {
	if kind == Node {
		return nil
	}
	return g.vertices.find(kind, namespace, name)
}

// HasNode reports whether anything is related to the named node.
func (g *Graph) HasNode(name string) bool { return g.vertices.find(Node, "", name) != nil }

// Has reports whether the named object has any relation.
func (g *Graph) Has(kind Kind, namespace, name string) bool {
	return g.vertices.find(kind, namespace, name) != nil
}

func (g *Graph) setOnNode(kind Kind, namespace, name, node string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	refs := g.scratch[:0]
	refs.add(Node, fieldNodeName, "", node, "")
	g.set(kind, namespace, name, refs)
}

func (g *Graph) delete(kind Kind, namespace, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.set(kind, namespace, name, g.scratch[:0])
}
