package generate

import (
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// draft is an unfinished write by one node. Only the objects of the
// request's kind are set.
type draft struct {
	*Writer
	*Write
	node  string
	route string

	pod, oldPod         *corev1.Pod
	asNode, oldNode     *corev1.Node
	claim, oldClaim     *corev1.PersistentVolumeClaim
	token               *authenticationv1.TokenRequest
	request             *certificatesv1.PodCertificateRequest
	lease               *coordinationv1.Lease
	csiNode, oldCSINode *storagev1.CSINode
	slice               *resourcev1.ResourceSlice
	csr                 *certificatesv1.CertificateSigningRequest
	eviction            *policyv1.Eviction
}

// about sets the resource and the object of the request.
func (d *draft) about(operation, group, resource, subresource, namespace, name string) {
	d.Operation, d.Group, d.Resource, d.Subresource = operation, group, resource, subresource
	d.Namespace, d.Name = namespace, name
}

// otherNode draws the name of a node that is not the draft's, or resembles it.
func (d *draft) otherNode() string {
	if chance(d.r, 30) {
		return nearly(d.r, d.node)
	}
	for {
		if name := pick(d.r, nodeNames); name != d.node {
			return name
		}
	}
}

// ownPod draws a pod of the node, or any pod if the node has none.
func (d *draft) ownPod() *corev1.Pod {
	if own := d.index.pods[d.node]; len(own) > 0 {
		return pick(d.r, own)
	}
	return pick(d.r, d.state.Pods)
}

// foreignPod draws a pod that is not on the node.
func (d *draft) foreignPod() *corev1.Pod {
	start := d.r.IntN(len(d.state.Pods))
	for i := range d.state.Pods {
		if pod := d.state.Pods[(start+i)%len(d.state.Pods)]; pod.Spec.NodeName != d.node {
			return pod
		}
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.state.Namespaces[0], Name: "gone"}}
}

// stateIndex finds the objects of a state.
type stateIndex struct {
	pods     map[string][]*corev1.Pod
	nodes    map[string]*corev1.Node
	claims   map[types.NamespacedName]*corev1.PersistentVolumeClaim
	accounts map[types.NamespacedName]*corev1.ServiceAccount
	volumes  map[string]*corev1.PersistentVolume
	drivers  map[string]*storagev1.CSIDriver
	// routes are the ways to an audience that the pods of each node have.
	routes map[string]map[string][]routed
}

func newStateIndex(s *State) *stateIndex {
	x := &stateIndex{
		pods:     make(map[string][]*corev1.Pod),
		nodes:    make(map[string]*corev1.Node),
		claims:   make(map[types.NamespacedName]*corev1.PersistentVolumeClaim),
		accounts: make(map[types.NamespacedName]*corev1.ServiceAccount),
		volumes:  make(map[string]*corev1.PersistentVolume),
		drivers:  make(map[string]*storagev1.CSIDriver),
		routes:   make(map[string]map[string][]routed),
	}
	for _, pod := range s.Pods {
		x.pods[pod.Spec.NodeName] = append(x.pods[pod.Spec.NodeName], pod)
	}
	for _, node := range s.Nodes {
		x.nodes[node.Name] = node
	}
	for _, claim := range s.PersistentVolumeClaims {
		x.claims[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = claim
	}
	for _, account := range s.ServiceAccounts {
		x.accounts[types.NamespacedName{Namespace: account.Namespace, Name: account.Name}] = account
	}
	for _, pv := range s.PersistentVolumes {
		x.volumes[pv.Name] = pv
	}
	for _, driver := range s.CSIDrivers {
		x.drivers[driver.Name] = driver
	}
	for _, node := range s.NodeNames {
		x.routes[node] = x.routesOf(node)
	}
	return x
}

// nodeUID returns the uid of a node, made up if there is no Node object.
func (x *stateIndex) nodeUID(name string) types.UID {
	if node := x.nodes[name]; node != nil {
		return node.UID
	}
	return "uid-none"
}
