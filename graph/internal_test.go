package graph

import (
	"fmt"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEmptiedGraphKeepsNothing fills a graph with unique names, and removes all
// objects again.
func TestEmptiedGraphKeepsNothing(t *testing.T) {
	g := New()
	const pods = 500
	key := func(i int) (namespace, name string) { return fmt.Sprint("namespace-", i), fmt.Sprint("pod-", i) }
	for range 2 {
		for i := range pods {
			pod := &corev1.Pod{}
			pod.Namespace, pod.Name = key(i)
			pod.Spec.NodeName = fmt.Sprint("worker-", i)
			pod.Spec.ServiceAccountName = "default"
			pod.Spec.Volumes = []corev1.Volume{{Name: fmt.Sprint("volume-", i), VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			}}}
			g.SetPod(pod)
			g.SetPersistentVolume(&corev1.PersistentVolume{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pv-", i)},
				Spec: corev1.PersistentVolumeSpec{
					ClaimRef: &corev1.ObjectReference{Namespace: pod.Namespace, Name: "data"},
					PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
						NodeStageSecretRef: &corev1.SecretReference{Namespace: "vault", Name: "shared"},
					}},
				},
			})
		}
		for i := range pods {
			g.DeletePod(key(pods - 1 - i))
			g.DeletePersistentVolume(fmt.Sprint("pv-", i))
		}

		if n := len(*g.vertices.buckets.Load()); n != minBuckets || g.vertices.live != 0 {
			t.Errorf("the table has %d buckets and %d vertices", n, g.vertices.live)
		}
		g.vertices.each(func(v *vertex) { t.Errorf("%v is left", v.object()) })
		if len(g.nodes) != 0 {
			t.Errorf("%d nodes are left", len(g.nodes))
		}
		if len(g.namespaces) != 0 {
			t.Errorf("%d namespaces are left", len(g.namespaces))
		}
		if len(g.entries.numbers) != 0 {
			t.Errorf("%d names of list entries are left", len(g.entries.numbers))
		}
		for number, entry := range g.entries.names {
			if entry != (entryName{}) {
				t.Errorf("entry %d is still %q, used %d times", number, entry.name, entry.refs)
			}
		}
		if named := len(g.entries.names) - 1; named != pods || len(g.entries.free) != named {
			t.Errorf("of %d numbers of entries %d are free, want all of %d", named, len(g.entries.free), pods)
		}
		if g.kinds != [kindCount]int{} || g.links != 0 {
			t.Errorf("counted are %v vertices and %d links", g.kinds, g.links)
		}
	}
}

// Nodes are added to and removed from one object for a long time, around sizes at
// which its set is just full. The number of copied members must depend on these
// changes, not on the nodes that stay.
func TestChangingMembersDoesNotCopyAll(t *testing.T) {
	for _, base := range []int{0, 1, 2, 3, 7, 15, 16, 63, 1023} {
		secret := &vertex{id: newVertexID(Secret, 0)}
		nodes := make([]*vertex, base+16)
		for i := range nodes {
			nodes[i] = newNode(i, uint64(i)*0x9e3779b9)
		}
		for _, node := range nodes[:base] {
			secret.gain(node)
		}
		copied := 0 // slots
		set := secret.members.Load()
		for i := range 1000 {
			node := nodes[base+i%16]
			secret.gain(node)
			if !reaches(secret, node) || secret.nodeCount() != base+1 {
				t.Fatalf("with %d others, the node that came is missing", base)
			}
			secret.lose(node)
			if reaches(secret, node) || secret.nodeCount() != base {
				t.Fatalf("with %d others, the node that left is still there", base)
			}
			if now := secret.members.Load(); now != set && now != nil {
				set = now
				copied += len(set.slots)
			}
		}
		if copied > 8*1000 {
			t.Errorf("with %d others, 1,000 comings and goings copied %d slots", base, copied)
		}
		if set != nil && len(set.slots) > slotsFor(4*(base+1)) {
			t.Errorf("the set for %d nodes has %d slots", base, len(set.slots))
		}
	}
}

func TestSetOfNodesShrinks(t *testing.T) {
	secret := &vertex{id: newVertexID(Secret, 0)}
	nodes := make([]*vertex, 1000)
	for i := range nodes {
		nodes[i] = newNode(i, uint64(i)*0x9e3779b9)
		secret.gain(nodes[i])
	}
	for i, node := range nodes {
		secret.lose(node)
		for _, left := range nodes[i+1:] {
			if !reaches(secret, left) {
				t.Fatalf("with %d left, one of them is missing", len(nodes)-i-1)
			}
		}
		if set := secret.members.Load(); set != nil && len(set.slots) > max(minMemberSlots, 8*int(set.live)) {
			t.Fatalf("the set for %d nodes has %d slots", set.live, len(set.slots))
		}
	}
	if secret.members.Load() != nil {
		t.Error("a secret that no node reaches still has a set")
	}
}

func TestNodesWithTheSameHashAreDistinguished(t *testing.T) {
	secret := &vertex{id: newVertexID(Secret, 0)}
	nodes := make([]*vertex, 20)
	for i := range nodes {
		nodes[i] = newNode(i, 3)
		secret.gain(nodes[i])
	}
	for i := 0; i < len(nodes); i += 2 {
		secret.lose(nodes[i])
	}
	for i, node := range nodes {
		if got := reaches(secret, node); got != (i%2 == 1) {
			t.Errorf("node %d: %v", i, got)
		}
	}
}

// A volume moves to another claim while a reader searches the nodes of the previous
// claim. There are a million of them, all with the same hash, so that the reader is
// most likely still searching when the wanted node starts to use that claim.
func TestVolumeAnswersFromOneState(t *testing.T) {
	const manyNodes = 1 << 20
	g := New()
	mount := func(pod, claim, node string) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: pod}}
		p.Spec.NodeName = node
		p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}}}
		return p
	}
	bind := func(claim string) {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk"}}
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: claim}
		g.SetPersistentVolume(pv)
	}
	g.SetPod(mount("first", "left", "worker-1"))
	g.SetPod(mount("second", "left", "worker-2"))
	g.SetPod(mount("third", "taken", "worker-3"))

	id := g.vertices.id(Node, "", "wanted")
	wanted := &vertex{name: "wanted", id: id}
	set := newMemberSet(2 * manyNodes)
	other := &vertex{name: "other", id: id}
	for i := range manyNodes {
		set.slots[(id.hash()+uint32(i))&uint32(len(set.slots)-1)].Store(other)
	}
	last := &set.slots[(id.hash()+manyNodes)&uint32(len(set.slots)-1)]

	for round := range 20 {
		bind("left")
		g.vertices.find(PersistentVolumeClaim, "shop", "left").setMembers(set)
		var looking atomic.Bool
		answer := make(chan bool)
		go func() {
			looking.Store(true)
			answer <- g.HasPath("wanted", PersistentVolume, "", "disk")
		}()
		for spin := 0; !looking.Load() || spin < 200*round; {
			if looking.Load() {
				spin++
			}
		}
		bind("taken")
		last.Store(wanted)
		if <-answer {
			t.Fatal("a node reaches a volume that had left its claim before the node came to use it")
		}
		last.Store(nil)
	}
}

// The table contains one of two keys with equal hashes, and a look-up of the other
// finds nothing.
func TestKeysAreComparedNotHashes(t *testing.T) {
	type key struct {
		kind            Kind
		namespace, name string
	}
	for _, tc := range []struct {
		differ string
		key    func(i int) key
		mark   func(id vertexID) uint32 // the hash of a look-up
	}{
		{"names", func(i int) key { return key{Secret, "shop", fmt.Sprint("secret-", i)} }, func(id vertexID) uint32 { return uint32(id) }},
		{
			"namespaces", func(i int) key { return key{Secret, fmt.Sprint("namespace-", i), "db"} },
			func(id vertexID) uint32 { return uint32(id) },
		},
		{"kinds", func(i int) key { return key{Kind(1 + i%2), "shop", fmt.Sprint("object-", i/2)} }, func(id vertexID) uint32 {
			return uint32(id.tag())<<8 | id.hash()%minBuckets
		}},
	} {
		t.Run(tc.differ, func(t *testing.T) {
			names := newTable()
			seen := map[uint32]key{}
			for i := 0; ; i++ {
				k := tc.key(i)
				id := names.id(k.kind, k.namespace, k.name)
				twin, known := seen[tc.mark(id)]
				seen[tc.mark(id)] = k
				if !known || tc.differ == "kinds" && (twin.name != k.name || twin.kind == k.kind) {
					continue
				}
				names.insert(&vertex{name: k.name, namespace: &namespace{name: k.namespace}, id: id})
				if names.find(k.kind, k.namespace, k.name) == nil || names.find(twin.kind, twin.namespace, twin.name) != nil {
					t.Errorf("%v is taken for %v", twin, k)
				}
				return
			}
		})
	}
}

// newNode returns the vertex of a node with a given hash.
func newNode(i int, hash uint64) *vertex {
	node := &vertex{name: fmt.Sprint("node-", i), id: newVertexID(Node, hash)}
	node.members.Store(&memberSet{sole: node, live: 1})
	return node
}

func reaches(v, node *vertex) bool {
	set := v.members.Load()
	return set != nil && (set.sole == node || set.sole == nil && set.has(node.id, node.name))
}
