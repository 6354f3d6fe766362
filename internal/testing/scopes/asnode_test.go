package scopes_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/noderestriction"
)

// TestWhatAgentsMayWriteIntoTheirNode compares asNode, which limits the content of a Node object, with
// namedAsNode, which does not: the EBS CSI driver has to take a taint from its node.
func TestWhatAgentsMayWriteIntoTheirNode(t *testing.T) {
	const restricted = "node-restriction.kubernetes.io/pool"
	before := corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}}}
	tests := []struct {
		agent, write, subresource, node string
		change                          func(node *corev1.Node)
		refused                         bool
	}{
		{"virt-handler", "its heartbeat", "", own, label("kubevirt.io/schedulable"), false},
		{"virt-handler", "the heartbeat of another node", "", foreign, label("kubevirt.io/schedulable"), true},
		{"virt-handler", "cordons another node", "", foreign, func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		{"virt-handler", "a restricted label", "", own, label(restricted), true},
		{"virt-handler", "takes a taint", "", own, func(n *corev1.Node) { n.Spec.Taints = nil }, true},
		{"calico-node", "its addresses", "status", own, func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, "projectcalico.org/IPv4Address", "192.0.2.1/24")
		}, false},
		{"calico-node", "the addresses of another node", "status", foreign, func(n *corev1.Node) {
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, "projectcalico.org/IPv4Address", "192.0.2.1/24")
		}, true},
		{"calico-node", "a restricted label", "status", own, label(restricted), true},
		{"node-problem-detector", "a condition", "status", own, func(n *corev1.Node) {
			n.Status.Conditions = []corev1.NodeCondition{{Type: "KernelDeadlock", Status: corev1.ConditionFalse}}
		}, false},
		{"node-problem-detector", "a restricted label", "status", own, label(restricted), true},
		{"ebs-csi-node", "takes a taint", "", own, func(n *corev1.Node) { n.Spec.Taints = nil }, false},
		{"ebs-csi-node", "takes a taint from another node", "", foreign, func(n *corev1.Node) { n.Spec.Taints = nil }, true},
	}
	for _, test := range tests {
		t.Run(test.agent+" "+test.write, func(t *testing.T) {
			a := readAgent(t, test.agent)
			oldNode := before.DeepCopy()
			oldNode.Name = test.node
			node := oldNode.DeepCopy()
			test.change(node)
			admission := a.authorizer(t, a.scope).Admit(t.Context(), &noderestriction.Request{
				User: a.user(), Groups: a.groups(), Extra: extra(own), Operation: noderestriction.Update,
				Version: "v1", Resource: "nodes", Subresource: test.subresource, Name: test.node, Object: node, OldObject: oldNode,
			})
			if admission.Refused() != test.refused {
				t.Errorf("it gets %s by %s; refused: %t, want %t", admission.Code, admission.Rule, admission.Refused(), test.refused)
			}
		})
	}
}

func label(key string) func(node *corev1.Node) {
	return func(node *corev1.Node) { metav1.SetMetaDataLabel(&node.ObjectMeta, key, "true") }
}

// TestTokensForTheCNIPluginOfCalicoHaveNoNode: there is no scope for the account whose tokens calico-node
// requests, because these are bound to nothing.
func TestTokensForTheCNIPluginOfCalicoHaveNoNode(t *testing.T) {
	for _, a := range readAgents(t) {
		for _, s := range a.scope.Spec.Subjects {
			if s.Name == "calico-cni-plugin" || s.Name == "" {
				t.Errorf("%s is about %v, whose tokens have no node", a.name, s)
			}
		}
	}
	a := readAgent(t, "calico-node")
	answer := a.authorizer(t, a.scope).Decide(a.request(t, &dayRequest{
		Verb: "create", Resource: "serviceaccounts", Subresource: "token", Namespace: "kube-system", Name: "calico-node",
	}, own))
	if !answer.Refused() {
		t.Errorf("calico-node may request tokens of its own account by %s", answer.Rule)
	}
}
