package generate

import (
	"math/rand/v2"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// State has the objects that admission of a node's writes looks at.
type State struct {
	// NodeNames are the nodes that write; not all of them have a Node object.
	NodeNames  []string
	Namespaces []string

	Nodes                  []*corev1.Node
	Pods                   []*corev1.Pod
	ServiceAccounts        []*corev1.ServiceAccount
	PersistentVolumeClaims []*corev1.PersistentVolumeClaim
	PersistentVolumes      []*corev1.PersistentVolume
	CSIDrivers             []*storagev1.CSIDriver
	// Policy grants nodes audiences and signers.
	Policy *Policy
}

// The words of states and of the writes about them.
var (
	accountNames = []string{"default", "builder", "build", "token", "a"}
	audiences    = []string{"", "vault", "vaul", "sts.amazonaws.com", "https://issuer.example/a", "api", "*", "vault/x"}
	signers      = []string{"example.com/pod", "example.com/po", "example.com:pod", "kubernetes.io/pod", "signer"}
	// drivers are the ones that in-tree volumes migrate to, and two others.
	drivers = []string{
		"ebs.csi.aws.com", "pd.csi.storage.gke.io", "cinder.csi.openstack.org", "disk.csi.azure.com", "file.csi.azure.com",
		"csi.vsphere.vmware.com", "pxd.portworx.com", "csi.example.com", "secrets.example.com",
	}
)

// stateBuilder draws one state.
type stateBuilder struct {
	r     *rand.Rand
	state *State
	uids  int
}

// NewState generates a state: a few nodes and namespaces in which names
// collide, with pods whose volumes take every route to an audience.
func NewState(seed uint64) *State {
	r := source(seed, "state")
	b := &stateBuilder{r: r, state: &State{
		NodeNames:  pool(nodeNames, "node-1", 2+r.IntN(4)),
		Namespaces: pool(namespaceNames, "ns-", 2+r.IntN(3)),
	}}
	for _, name := range some(r, b.state.NodeNames, 85) {
		b.state.Nodes = append(b.state.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: b.uid(), Labels: nodeLabels(r)}})
	}
	for _, namespace := range b.state.Namespaces {
		for _, name := range some(r, accountNames, 85) {
			b.state.ServiceAccounts = append(b.state.ServiceAccounts,
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: b.uid()}})
		}
		for _, name := range some(r, objectNames, 75) {
			b.state.Pods = append(b.state.Pods, b.pod(namespace, name))
		}
	}
	b.volumes()
	b.claims()
	b.drivers()
	b.state.Policy = grants(seed, b.state)
	return b.state
}

func (b *stateBuilder) uid() types.UID {
	b.uids++
	return types.UID("uid-" + strconv.Itoa(b.uids))
}

func (b *stateBuilder) pod(namespace, name string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: b.uid(), ResourceVersion: "7"}}
	if chance(b.r, 90) {
		pod.Spec.NodeName = pick(b.r, b.state.NodeNames)
	}
	if chance(b.r, 12) {
		pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: pick(b.r, []string{"", "6c9d"})}
	}
	if chance(b.r, 92) {
		pod.Spec.ServiceAccountName = pick(b.r, accountNames)
	}
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "registry.example/main"}}
	for _, i := range b.r.Perm(len(volumeNames))[:b.r.IntN(4)] {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: volumeNames[i], VolumeSource: b.routeToAudience()})
	}
	b.status(pod)
	return pod
}

// status draws the parts of a pod's status that a node may not change.
func (b *stateBuilder) status(pod *corev1.Pod) {
	if chance(b.r, 60) {
		pod.Labels = map[string]string{"app": pick(b.r, objectNames), "tier": "front"}
	}
	for range b.r.IntN(3) {
		status := corev1.PodResourceClaimStatus{Name: pick(b.r, volumeNames)}
		if chance(b.r, 70) {
			status.ResourceClaimName = new(pick(b.r, objectNames))
		}
		pod.Status.ResourceClaimStatuses = append(pod.Status.ResourceClaimStatuses, status)
	}
	if chance(b.r, 40) {
		pod.Status.ExtendedResourceClaimStatus = extendedClaimStatus(b.r)
	}
	for range b.r.IntN(3) {
		pod.Status.NodeAllocatableResourceClaimStatuses = append(pod.Status.NodeAllocatableResourceClaimStatuses,
			allocatableClaimStatus(b.r))
	}
}

// volumes adds persistent volumes of every source.
func (b *stateBuilder) volumes() {
	for i := range 14 + b.r.IntN(10) {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + strconv.Itoa(i), UID: b.uid()}}
		pv.Spec.PersistentVolumeSource = b.migratedVolume()
		if chance(b.r, 70) {
			pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: pick(b.r, b.state.Namespaces), Name: pick(b.r, objectNames)}
		}
		if chance(b.r, 60) {
			pv.Labels = map[string]string{
				corev1.LabelTopologyZone: pick(b.r,
					[]string{"us-east1-a", "us-east1-a__us-east1-b", "nozone__x", "us-east1-a__us-west1-b"}),
			}
		}
		b.state.PersistentVolumes = append(b.state.PersistentVolumes, pv)
	}
}

// claims adds the claims that pods name, and the claims of their generic ephemeral
// volumes, most of them bound to a volume.
func (b *stateBuilder) claims() {
	seen := make(map[types.NamespacedName]bool)
	add := func(namespace, name string) {
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if name == "" || seen[key] || !chance(b.r, 88) {
			return
		}
		seen[key] = true
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: b.uid()}}
		if chance(b.r, 90) {
			claim.Spec.VolumeName = pick(b.r, b.state.PersistentVolumes).Name
		} else if chance(b.r, 50) {
			claim.Spec.VolumeName = "pv-gone"
		}
		b.state.PersistentVolumeClaims = append(b.state.PersistentVolumeClaims, claim)
	}
	for _, pod := range b.state.Pods {
		for _, v := range pod.Spec.Volumes {
			switch {
			case v.PersistentVolumeClaim != nil:
				add(pod.Namespace, v.PersistentVolumeClaim.ClaimName)
			case v.Ephemeral != nil:
				add(pod.Namespace, pod.Name+"-"+v.Name)
			}
		}
	}
}

func (b *stateBuilder) drivers() {
	for _, name := range some(b.r, drivers, 88) {
		driver := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name, UID: b.uid()}}
		for range b.r.IntN(4) {
			driver.Spec.TokenRequests = append(driver.Spec.TokenRequests, storagev1.TokenRequest{Audience: pick(b.r, audiences)})
		}
		b.state.CSIDrivers = append(b.state.CSIDrivers, driver)
	}
}
