package source

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"unique"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
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
	pods    map[objectKey]podRecord
	volumes map[objectKey]volumeRecord
	// others are the objects of the other kinds.
	others [kindCount]map[objectKey]stamped
	// unnamedClaims has the node of each pod with a resource claim from a template
	// whose name is not in the pod's status.
	unnamedClaims map[objectKey]interned
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

// stamped is the kept part of an object of another kind than pods and volumes, with the object's stamp.
type stamped struct {
	// record is nil if only the name is kept here.
	record any
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
		pods: map[objectKey]podRecord{}, volumes: map[objectKey]volumeRecord{}, unnamedClaims: map[objectKey]interned{},
		seed: maphash.MakeSeed(),
	}
	for k := range o.others {
		o.others[k] = map[objectKey]stamped{}
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
func (r stamped) version() stamp      { return r.stamp }

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
	}
	return records[stamped](o.others[k])
}

func (o *objects) count(k kind) int { return o.table(k).len() }

// HasNode reports whether the state holds a Node object of that name.
func (s *State) HasNode(name string) bool {
	_, ok := s.NodeInfo(name)
	return ok
}

// lookUpRecord returns the record of an object that is neither a pod nor a volume.
func lookUpRecord[R any](s *State, k kind, namespace, name string) (R, bool) {
	s.lookUp(k, namespace, name)
	s.mu.RLock()
	defer s.mu.RUnlock()
	found, ok := s.objects.others[k][keyOf(namespace, name)]
	record, _ := found.record.(R)
	return record, ok
}

// NodeInfo returns the kept part of the named Node object.
func (s *State) NodeInfo(name string) (NodeInfo, bool) {
	return lookUpRecord[NodeInfo](s, kindNode, "", name)
}

// NodeNames lists the names of the Node objects, sorted. Nodes to which objects
// are related, whether they exist or not, are in [graph.Graph.Nodes].
func (s *State) NodeNames() []string {
	keys := s.keys(kindNode)
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.name
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
	volume, ok := lookUpRecord[string](s, kindPersistentVolumeClaim, namespace, name)
	if !ok {
		return nil, false
	}
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: volume},
	}, true
}

// CSIDriver returns the kept part of a CSI driver: its name and
// spec.tokenRequests.
func (s *State) CSIDriver(name string) (*storagev1.CSIDriver, bool) {
	requests, ok := lookUpRecord[[]storagev1.TokenRequest](s, kindCSIDriver, "", name)
	if !ok {
		return nil, false
	}
	return &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       storagev1.CSIDriverSpec{TokenRequests: slices.Clone(requests)},
	}, true
}

// ServiceAccount returns the kept part of a service account: its names and UID.
func (s *State) ServiceAccount(namespace, name string) (*corev1.ServiceAccount, bool) {
	uid, ok := lookUpRecord[types.UID](s, kindServiceAccount, namespace, name)
	if !ok {
		return nil, false
	}
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}}, true
}

// The kinds that say what a node's credentials may not do.
const (
	NodeScopes  Kinds = 1 << kindNodeScope
	Quarantines Kinds = 1 << kindQuarantine
)

// ContainmentKinds returns NodeScopes and Quarantines, which are custom resources: if a cluster does not
// serve them, there are none. With them come APIServices, where NodeScopes let less pass. All of them only take
// rights away, so that an allow is in doubt if they could not be read.
func ContainmentKinds() Kinds { return NodeScopes | Quarantines | APIServices }

// NodeScopes returns the NodeScopes by name: metadata.name, metadata.creationTimestamp and spec. They
// must not be changed. A State of [Watch] has none.
func (s *State) NodeScopes() []*policyv1alpha1.NodeScope {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return sortedRecords[*policyv1alpha1.NodeScope](s.objects.others[kindNodeScope])
}

// Quarantines returns the Quarantines by name: the same fields, without spec.reason. They must not be
// changed. A State of [Watch] has none.
func (s *State) Quarantines() []*policyv1alpha1.Quarantine {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return sortedRecords[*policyv1alpha1.Quarantine](s.objects.others[kindQuarantine])
}

func sortedRecords[O apiObject](records map[objectKey]stamped) []O {
	keys := slices.SortedFunc(maps.Keys(records), func(a, b objectKey) int { return strings.Compare(a.name, b.name) })
	all := make([]O, len(keys))
	for i, key := range keys {
		all[i] = records[key].record.(O)
	}
	return all
}

// trimContainment keeps what decides. The age decides which objects count if there are too many. The
// reason of a Quarantine is for people, and may be confidential.
func trimContainment(o apiObject) {
	switch o := o.(type) {
	case *policyv1alpha1.NodeScope:
		*o = policyv1alpha1.NodeScope{ObjectMeta: created(&o.ObjectMeta), Spec: o.Spec}
	case *policyv1alpha1.Quarantine:
		*o = policyv1alpha1.Quarantine{ObjectMeta: created(&o.ObjectMeta), Spec: o.Spec}
		o.Spec.Reason = ""
		if o.Spec.ExpirationTime.IsZero() {
			o.Spec.ExpirationTime = nil
		}
	}
}

func created(o *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := named(o)
	kept.CreationTimestamp = o.CreationTimestamp
	return kept
}

// ServiceAccountNames lists the service accounts that the state holds, by namespace and name.
func (s *State) ServiceAccountNames() []inventory.Name {
	keys := s.keys(kindServiceAccount)
	names := make([]inventory.Name, len(keys))
	for i, k := range keys {
		names[i] = inventory.Name{Namespace: k.namespace.Value(), Name: k.name}
	}
	slices.SortFunc(names, func(a, b inventory.Name) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return names
}
