package source

import (
	"hash/maphash"
	"maps"
	"slices"
	"unique"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/graph"
)

// interned is a string that many objects share.
type interned = unique.Handle[string]

// objectKey names an object of a known kind. Cluster-scoped objects have the
// empty namespace.
type objectKey struct {
	namespace interned
	name      string
}

func keyOf(namespace, objectName string) objectKey {
	return objectKey{unique.Make(namespace), objectName}
}

// objects holds the kept objects, except for the graph and the policy. The maps of
// pods and volumes may have hundreds of thousands of entries, so they hold small
// records.
type objects struct {
	pods        map[objectKey]podRecord
	volumes     map[objectKey]volumeRecord
	nodes       map[objectKey]stamped[NodeInfo]
	claims      map[objectKey]stamped[string] // the volume's name
	accounts    map[objectKey]stamped[types.UID]
	drivers     map[objectKey]stamped[[]storagev1.TokenRequest]
	apiServices map[objectKey]stamped[apiServiceSpec]
	// scopes and quarantines are kept whole. They are few.
	scopes      map[objectKey]stamped[*policyv1alpha1.NodeScope]
	quarantines map[objectKey]stamped[*policyv1alpha1.Quarantine]
	// unnamedClaims has the node of each pod with a resource claim from a template
	// whose name is not in the pod's status.
	unnamedClaims map[objectKey]interned
	// namesOnly are the kinds of which only names are kept here.
	namesOnly [kindCount]map[objectKey]stamp
	// seed makes stamps unpredictable.
	seed maphash.Seed
}

// stamp identifies a version of an object: a hash of its UID and resource version. It
// is 0 for objects from files.
type stamp uint32

// stampOf returns the stamp of an object that the API server sent.
func (o *objects) stampOf(object metav1.Object) stamp {
	var h maphash.Hash
	h.SetSeed(o.seed)
	_, _ = h.WriteString(string(object.GetUID()))
	_ = h.WriteByte('/')
	_, _ = h.WriteString(object.GetResourceVersion())
	return stamp(h.Sum64())
}

// stamped is a record with the stamp of its object.
type stamped[R any] struct {
	record R
	stamp  stamp
}

// NodeInfo is the part of a Node object that commands show.
type NodeInfo struct {
	UID            types.UID
	Labels         map[string]string
	KubeletVersion string
}

func newObjects() objects {
	o := objects{
		pods:          map[objectKey]podRecord{},
		volumes:       map[objectKey]volumeRecord{},
		nodes:         map[objectKey]stamped[NodeInfo]{},
		claims:        map[objectKey]stamped[string]{},
		accounts:      map[objectKey]stamped[types.UID]{},
		drivers:       map[objectKey]stamped[[]storagev1.TokenRequest]{},
		apiServices:   map[objectKey]stamped[apiServiceSpec]{},
		scopes:        map[objectKey]stamped[*policyv1alpha1.NodeScope]{},
		quarantines:   map[objectKey]stamped[*policyv1alpha1.Quarantine]{},
		seed:          maphash.MakeSeed(),
		unnamedClaims: map[objectKey]interned{},
	}
	for k := range o.namesOnly {
		o.namesOnly[k] = map[objectKey]stamp{}
	}
	return o
}

// table is the map of one kind, with any type of record.
type table interface {
	has(objectKey) bool
	remove(objectKey)
	len() int
	keys() []objectKey
	// stamp returns the stamp of an object, and whether there is the object.
	stamp(objectKey) (stamp, bool)
}

// recorded is a record that has the stamp of its object.
type recorded interface{ version() stamp }

func (r podRecord) version() stamp    { return r.stamp }
func (r volumeRecord) version() stamp { return r.stamp }
func (r stamped[R]) version() stamp   { return r.stamp }
func (s stamp) version() stamp        { return s }

type records[R recorded] map[objectKey]R

func (r records[R]) has(k objectKey) bool { _, ok := r[k]; return ok }
func (r records[R]) remove(k objectKey)   { delete(r, k) }
func (r records[R]) len() int             { return len(r) }
func (r records[R]) keys() []objectKey    { return slices.Collect(maps.Keys(r)) }
func (r records[R]) stamp(k objectKey) (stamp, bool) {
	record, ok := r[k]
	return record.version(), ok
}

func (o *objects) table(k kind) table {
	switch k {
	case kindPod:
		return records[podRecord](o.pods)
	case kindPersistentVolume:
		return records[volumeRecord](o.volumes)
	case kindNode:
		return records[stamped[NodeInfo]](o.nodes)
	case kindPersistentVolumeClaim:
		return records[stamped[string]](o.claims)
	case kindServiceAccount:
		return records[stamped[types.UID]](o.accounts)
	case kindCSIDriver:
		return records[stamped[[]storagev1.TokenRequest]](o.drivers)
	case kindAPIService:
		return records[stamped[apiServiceSpec]](o.apiServices)
	case kindNodeScope:
		return records[stamped[*policyv1alpha1.NodeScope]](o.scopes)
	case kindQuarantine:
		return records[stamped[*policyv1alpha1.Quarantine]](o.quarantines)
	default:
		return records[stamp](o.namesOnly[k])
	}
}

func (o *objects) count(k kind) int { return o.table(k).len() }

// HasNode reports whether the state holds a Node object of that name.
func (s *State) HasNode(name string) bool {
	_, ok := s.NodeInfo(name)
	return ok
}

// NodeInfo returns the kept part of the named Node object.
func (s *State) NodeInfo(name string) (NodeInfo, bool) {
	s.lookUp(kindNode, "", name)
	s.mu.RLock()
	defer s.mu.RUnlock()
	info, ok := s.objects.nodes[keyOf("", name)]
	return info.record, ok
}

// NodeNames lists the names of the Node objects, sorted. Nodes to which objects
// are related, whether they exist or not, are in [graph.Graph.Nodes].
func (s *State) NodeNames() []string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	names := make([]string, 0, len(s.objects.nodes))
	for k := range s.objects.nodes {
		names = append(names, k.name)
	}
	slices.Sort(names)
	return names
}

// Node returns the kept part of a Node object: name, UID, labels and kubelet
// version.
func (s *State) Node(name string) (*corev1.Node, bool) {
	info, ok := s.NodeInfo(name)
	if !ok {
		return nil, false
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: info.UID, Labels: maps.Clone(info.Labels)},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: info.KubeletVersion}},
	}, true
}

// PersistentVolumeClaim returns the kept part of a claim: its names and
// spec.volumeName.
func (s *State) PersistentVolumeClaim(namespace, name string) (*corev1.PersistentVolumeClaim, bool) {
	s.lookUp(kindPersistentVolumeClaim, namespace, name)
	s.mu.RLock()
	defer s.mu.RUnlock()
	volume, ok := s.objects.claims[keyOf(namespace, name)]
	if !ok {
		return nil, false
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume.record},
	}, true
}

// ResourceSliceNode returns the node of a resource slice, empty for a slice without
// one.
func (s *State) ResourceSliceNode(name string) (node string, ok bool) {
	s.lookUp(kindResourceSlice, "", name)
	if !s.holds(kindResourceSlice, "", name) {
		return "", false
	}
	if nodes := s.Graph.NodesReaching(graph.ResourceSlice, "", name); len(nodes) > 0 {
		node = nodes[0]
	}
	return node, true
}

// CSIDriver returns the kept part of a CSI driver: its name and
// spec.tokenRequests.
func (s *State) CSIDriver(name string) (*storagev1.CSIDriver, bool) {
	s.lookUp(kindCSIDriver, "", name)
	s.mu.RLock()
	defer s.mu.RUnlock()
	requests, ok := s.objects.drivers[keyOf("", name)]
	if !ok {
		return nil, false
	}
	return &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.CSIDriverSpec{TokenRequests: slices.Clone(requests.record)},
	}, true
}

// ServiceAccount returns the kept part of a service account: its names and UID.
func (s *State) ServiceAccount(namespace, name string) (*corev1.ServiceAccount, bool) {
	s.lookUp(kindServiceAccount, namespace, name)
	s.mu.RLock()
	defer s.mu.RUnlock()
	uid, ok := s.objects.accounts[keyOf(namespace, name)]
	if !ok {
		return nil, false
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid.record}}, true
}
