package generate

import (
	"math/rand/v2"
	"strconv"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// Cluster is one state of a cluster, as far as node authorization looks at it.
type Cluster struct {
	// Nodes are the node names; some have no pods.
	Nodes                  []string
	Namespaces             []string
	Pods                   []*corev1.Pod
	PersistentVolumes      []*corev1.PersistentVolume
	VolumeAttachments      []*storagev1.VolumeAttachment
	ResourceSlices         []*resourcev1.ResourceSlice
	PodCertificateRequests []*certificatesv1.PodCertificateRequest

	// mentions has the objects that each pod refers to, also by references that do not count.
	mentions map[*corev1.Pod][]Object
}

// Object names an object by its resource ("secrets"); Namespace is empty for
// cluster-scoped resources.
type Object struct{ Resource, Namespace, Name string }

// Options sizes a cluster. Every number is a count of objects.
type Options struct {
	Nodes, Namespaces int
	// Names is how many distinct names there are for the objects of one
	// namespace and kind; few names make high fan-out.
	Names                  int
	Pods                   int
	PersistentVolumes      int
	VolumeAttachments      int
	ResourceSlices         int
	PodCertificateRequests int
	// SharedPercent is the share of references, in percent, that go to the
	// first name of a namespace and kind.
	SharedPercent int
}

// RandomOptions draws the size of a cluster: mostly small ones, in which names
// collide, and now and then one whose shared objects are referenced by more
// than the 200 pods at which the in-tree authorizer starts to keep an index.
func RandomOptions(seed uint64) Options {
	r := source(seed, "options")
	o := Options{
		Nodes:                  1 + r.IntN(12),
		Namespaces:             1 + r.IntN(6),
		Names:                  2 + r.IntN(14),
		Pods:                   r.IntN(120),
		PersistentVolumes:      r.IntN(60),
		VolumeAttachments:      r.IntN(30),
		ResourceSlices:         r.IntN(20),
		PodCertificateRequests: r.IntN(20),
		SharedPercent:          r.IntN(50),
	}
	if chance(r, 15) {
		o.Pods = 500 + r.IntN(300)
		o.Namespaces = 1 + r.IntN(2)
		o.PersistentVolumes = 200 + r.IntN(200)
		o.SharedPercent = 60
	}
	return o
}

// New generates a cluster.
func New(seed uint64, o Options) *Cluster {
	g := newGenerator(seed, o)
	for i := range o.Pods {
		g.addPod(g.podKey(i))
	}
	for i := range o.PersistentVolumes {
		g.cluster.PersistentVolumes = append(g.cluster.PersistentVolumes, g.persistentVolume("pv-"+strconv.Itoa(i)))
	}
	for i := range o.VolumeAttachments {
		g.cluster.VolumeAttachments = append(g.cluster.VolumeAttachments, g.volumeAttachment("csi-"+strconv.Itoa(i)))
	}
	for i := range o.ResourceSlices {
		g.cluster.ResourceSlices = append(g.cluster.ResourceSlices, g.resourceSlice("slice-"+strconv.Itoa(i)))
	}
	for i := range o.PodCertificateRequests {
		namespace, name := pick(g.r, g.cluster.Namespaces), "req-"+strconv.Itoa(i)
		g.cluster.PodCertificateRequests = append(g.cluster.PodCertificateRequests, g.podCertificateRequest(namespace, name))
	}
	return g.cluster
}

// Objects returns every object of the cluster, kind by kind.
func (c *Cluster) Objects() []any {
	var objects []any
	for _, pod := range c.Pods {
		objects = append(objects, pod)
	}
	for _, pv := range c.PersistentVolumes {
		objects = append(objects, pv)
	}
	for _, va := range c.VolumeAttachments {
		objects = append(objects, va)
	}
	for _, slice := range c.ResourceSlices {
		objects = append(objects, slice)
	}
	for _, request := range c.PodCertificateRequests {
		objects = append(objects, request)
	}
	return objects
}

// With returns a cluster with the same names that holds the given objects.
func (c *Cluster) With(objects []any) *Cluster {
	other := &Cluster{Nodes: c.Nodes, Namespaces: c.Namespaces, mentions: c.mentions}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Pod:
			other.Pods = append(other.Pods, o)
		case *corev1.PersistentVolume:
			other.PersistentVolumes = append(other.PersistentVolumes, o)
		case *storagev1.VolumeAttachment:
			other.VolumeAttachments = append(other.VolumeAttachments, o)
		case *resourcev1.ResourceSlice:
			other.ResourceSlices = append(other.ResourceSlices, o)
		case *certificatesv1.PodCertificateRequest:
			other.PodCertificateRequests = append(other.PodCertificateRequests, o)
		}
	}
	return other
}

// generator draws objects for one cluster.
type generator struct {
	r       *rand.Rand
	o       Options
	objects []string
	cluster *Cluster
}

func newGenerator(seed uint64, o Options) *generator {
	o.Nodes, o.Namespaces, o.Names = max(o.Nodes, 1), max(o.Namespaces, 1), max(o.Names, 1)
	return &generator{
		r:       source(seed, "cluster"),
		o:       o,
		objects: pool(objectNames, "obj-", o.Names),
		cluster: &Cluster{
			Nodes:      pool(nodeNames, "node-1", o.Nodes),
			Namespaces: pool(namespaceNames, "ns-", o.Namespaces),
			mentions:   make(map[*corev1.Pod][]Object),
		},
	}
}

// source returns the random numbers of one purpose, so that drawing more of
// one thing does not change the others.
func source(seed uint64, purpose string) *rand.Rand {
	stream := uint64(14695981039346656037)
	for i := range len(purpose) {
		stream = (stream ^ uint64(purpose[i])) * 1099511628211
	}
	return rand.New(rand.NewPCG(seed, stream))
}

// podKey gives the i-th pod's namespace and name: the same names come back in
// every namespace.
func (g *generator) podKey(i int) (namespace, name string) {
	namespaces := g.cluster.Namespaces
	i, namespace = i/len(namespaces), namespaces[i%len(namespaces)]
	if i < len(objectNames) {
		return namespace, objectNames[i]
	}
	return namespace, "pod-" + strconv.Itoa(i-len(objectNames))
}

func (g *generator) addPod(namespace, name string) *corev1.Pod {
	pod, mentions := g.pod(namespace, name)
	g.cluster.Pods = append(g.cluster.Pods, pod)
	g.cluster.mentions[pod] = mentions
	return pod
}

// node draws a node name; the last fifth of the nodes never gets anything, so
// that nodes without pods exist.
func (g *generator) node() string {
	nodes := g.cluster.Nodes
	return nodes[g.r.IntN(len(nodes)-len(nodes)/5)]
}

// name draws the name of a referenced object.
func (g *generator) name() string {
	if chance(g.r, g.o.SharedPercent) {
		return g.objects[0]
	}
	return pick(g.r, g.objects)
}
