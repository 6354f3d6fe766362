package graph

import "fmt"

// Kind is the kind of a vertex.
type Kind uint8

// The kinds of objects that relate to nodes, and Node itself.
const (
	Node Kind = iota
	Pod
	Secret
	ConfigMap
	ServiceAccount
	PersistentVolumeClaim
	PersistentVolume
	ResourceClaim
	VolumeAttachment
	ResourceSlice
	PodCertificateRequest
	kindCount
)

var kindNames = [kindCount]string{
	Node:                  "Node",
	Pod:                   "Pod",
	Secret:                "Secret",
	ConfigMap:             "ConfigMap",
	ServiceAccount:        "ServiceAccount",
	PersistentVolumeClaim: "PersistentVolumeClaim",
	PersistentVolume:      "PersistentVolume",
	ResourceClaim:         "ResourceClaim",
	VolumeAttachment:      "VolumeAttachment",
	ResourceSlice:         "ResourceSlice",
	PodCertificateRequest: "PodCertificateRequest",
}

// Kinds returns every kind, Node first.
func Kinds() []Kind {
	kinds := make([]Kind, kindCount)
	for k := range kinds {
		kinds[k] = Kind(k)
	}
	return kinds
}

// String returns the Kubernetes kind, for example "PersistentVolumeClaim".
func (k Kind) String() string {
	if k < kindCount {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// holds reports whether objects of this kind name others: their links lead to the
// named objects. Links of the other kinds lead back to their holders.
func (k Kind) holds() bool {
	switch k {
	case Pod, PersistentVolume, VolumeAttachment, ResourceSlice, PodCertificateRequest:
		return true
	}
	return false
}
