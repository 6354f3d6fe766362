package noderestriction_test

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// TestAttacks has known and possible attacks with a stolen kubelet credential. Node
// worker-1 attacks.
func TestAttacks(t *testing.T) {
	c := shop()
	for _, p := range c.pods {
		p.Spec.Volumes = []corev1.Volume{tokenVolume("vault")}
	}
	web, db := pod("shop", "web", "worker-1"), pod("shop", "db", "worker-2")
	mount := func(source corev1.VolumeSource) *noderestriction.Request {
		return createPod(func(p *corev1.Pod) { p.Spec.Volumes = append(p.Spec.Volumes, volume("v", source)) })
	}
	otherNode := updateNode("status", func(*corev1.Node) {})
	otherNode.Name = "worker-2"

	checkAll(t, c, []expectation{
		{
			rule:    "CVE-2025-5187: own itself by an object that does not exist, to be deleted and to register again",
			request: updateNode("", owned), code: noderestriction.OwnerReferencesChanged,
		},
		{
			rule: "CVE-2025-5187: the same through the status", request: updateNode("status", owned),
			code: noderestriction.OwnerReferencesChanged,
		},
		{
			rule:    "CVE-2025-4563: take devices with a mirror pod that has resource claims",
			request: createPod(func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }),
			code:    noderestriction.MirrorPodRefersToObject,
		},
		{
			rule:    "CVE-2021-25735: make the sent Node look as if the label had been there",
			request: updateNode("", func(n *corev1.Node) { n.Labels["node-restriction.kubernetes.io/tier"] = "payments" }),
			code:    noderestriction.LabelNotAllowed,
		},
		{
			rule:    "CVE-2021-25735: make the sent pod look as if it were on this node",
			request: updateStatus(db, func(p *corev1.Pod) { p.Spec.NodeName = "worker-1" }), code: noderestriction.PodNotOnNode,
		},
		{rule: "token for a pod on another node", request: requestToken("db", "vault"), code: noderestriction.PodNotOnNode},
		{rule: "token with another audience", request: requestToken("web", "bank"), code: noderestriction.AudienceNotAllowed},
		{rule: "token with an additional audience", request: requestToken("web", "vault", "bank"), code: noderestriction.OneAudienceOnly},
		{rule: "token that outlives its pod", request: requestBoundToken(nil, "vault"), code: noderestriction.TokenNotBoundToPod},
		{
			rule:    "eviction of another node's pod",
			request: evict("db", &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "web"}}),
			code:    noderestriction.PodNotOnNode, stale: true,
		},
		{
			rule: "deletion of another node's pod", request: podOperation(noderestriction.Delete, "", "db"),
			code: noderestriction.PodNotOnNode, stale: true,
		},
		{rule: "status of another node's pod", request: updateStatus(db, func(*corev1.Pod) {}), code: noderestriction.PodNotOnNode},
		{
			rule:    "take a pod into a service by its labels",
			request: updateStatus(web, func(p *corev1.Pod) { p.Labels["app"] = "payments" }),
			code:    noderestriction.PodLabelsChanged,
		},
		{rule: "take another pod's resource claim", request: updateStatus(web, func(p *corev1.Pod) {
			name := "of-another"
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "gpu", ResourceClaimName: &name}}
		}), code: noderestriction.ResourceClaimStatusChanged},
		{
			rule:    "relabel through nodes/status",
			request: updateNode("status", func(n *corev1.Node) { n.Labels["node-restriction.kubernetes.io/tier"] = "db" }),
			code:    noderestriction.LabelNotAllowed,
		},
		{
			rule:    "become a control plane node",
			request: updateNode("", func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }),
			code:    noderestriction.LabelNotAllowed,
		},
		{
			rule:    "register with a reserved label",
			request: createNode(func(n *corev1.Node) { n.Labels = map[string]string{"node-restriction.kubernetes.io/tier": "db"} }),
			code:    noderestriction.LabelNotAllowed,
		},
		{
			rule: "remove taints through nodes/status", request: updateNode("status", func(n *corev1.Node) { n.Spec.Taints = nil }),
			code: noderestriction.TaintsChanged,
		},
		{
			rule: "read config maps as configuration", request: updateNode("", withConfigSource(&corev1.NodeConfigSource{})),
			code: noderestriction.ConfigSourceSet,
		},
		{rule: "write another node", request: otherNode, code: noderestriction.WritesOtherNode},
		{
			rule:    "keep another node alive by its lease",
			request: lease(noderestriction.Update, "kube-node-lease", "worker-2", nil), code: noderestriction.NotOwnLease,
		},
		{
			rule: "create another node's lease under its own name in the request",
			request: lease(noderestriction.Create, "kube-node-lease", "worker-1", &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: "worker-2"},
			}),
			code: noderestriction.NotOwnLease,
		},
		{
			rule: "hold a leader's lease", request: lease(noderestriction.Update, "kube-system", "worker-1", nil),
			code: noderestriction.NotLeaseNamespace,
		},
		{
			rule:    "certificate of another node",
			request: requestCertificate("kubernetes.io/kube-apiserver-client-kubelet", signingRequest(t, "system:node:worker-2")),
			code:    noderestriction.SigningRequestForOtherName,
		},
		{
			rule: "certificate of another node after its own",
			request: requestCertificate("kubernetes.io/kube-apiserver-client-kubelet",
				signingRequest(t, "system:node:worker-1", "system:node:worker-2")),
			code: noderestriction.SigningRequestForOtherName,
		},
		{
			rule: "offer devices of another node", request: slice(noderestriction.Create, sliceVersions()["v1"]("worker-2"), nil),
			code: noderestriction.NotOwnResourceSlice,
		},
		{
			rule:    "mirror pod that mounts a secret",
			request: mount(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}}),
			code:    noderestriction.MirrorPodRefersToObject,
		},
		{
			rule:    "mirror pod that mounts a projected token",
			request: mount(projected(corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}})),
			code:    noderestriction.MirrorPodRefersToObject,
		},
		{
			rule:    "mirror pod that mounts a claim",
			request: mount(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}),
			code:    noderestriction.MirrorPodRefersToObject,
		},
		{
			rule:    "mirror pod with an image pull secret",
			request: createPod(func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{local("s")} }),
			code:    noderestriction.MirrorPodRefersToObject,
		},
		{
			rule:    "mirror pod as another's service account",
			request: createPod(func(p *corev1.Pod) { p.Spec.ServiceAccountName = "admin" }),
			code:    noderestriction.MirrorPodRefersToObject,
		},
		{
			rule:    "mirror pod owned by another node",
			request: createOwned(func(o *metav1.OwnerReference) { o.Name, o.UID = "worker-2", "uid-of-worker-2" }),
			code:    noderestriction.OwnerNotThisNode,
		},
		{
			rule:    "mirror pod with the wrong uid of its owner",
			request: createOwned(func(o *metav1.OwnerReference) { o.UID = "x" }), code: noderestriction.NodeUIDMismatch,
			stale: true,
		},
		{
			rule: "mirror pod on another node", request: createPod(func(p *corev1.Pod) { p.Spec.NodeName = "worker-2" }),
			code: noderestriction.PodNotOnNode,
		},
		{
			rule: "ordinary pod on the node", request: createPod(func(p *corev1.Pod) { p.Annotations = nil }),
			code: noderestriction.NotAMirrorPod,
		},
		{
			rule: "move a pod to itself", request: podOperation(noderestriction.Create, "binding", "new"),
			code: noderestriction.SubresourceNotAllowed,
		},
		{
			rule:    "bind a claim to another volume",
			request: updateClaim(func(p *corev1.PersistentVolumeClaim) { p.Spec.VolumeName = "pv-2" }),
			code:    noderestriction.ClaimChanged,
		},
	})
}
