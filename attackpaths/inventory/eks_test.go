package inventory_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/attackpaths/inventory"
)

func TestEKSByItsNodes(t *testing.T) {
	for rule, c := range map[string]struct {
		version, label string
		want           bool
	}{
		"no sign":                     {"v1.37.1", "kubernetes.io/os", false},
		"a kubelet of EKS":            {"v1.33.5-eks-113cf36", "kubernetes.io/os", true},
		"a managed node group":        {"v1.37.1", "eks.amazonaws.com/nodegroup", true},
		"a node of eksctl":            {"v1.37.1", "alpha.eksctl.io/cluster-name", true},
		"a label with a like name":    {"v1.37.1", "not-eks.amazonaws.com/nodegroup", false},
		"a version with another text": {"v1.37.1-eksa", "kubernetes.io/os", false},
	} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{c.label: "x"}}}
		node.Status.NodeInfo.KubeletVersion = c.version
		i := inventory.New()
		i.Set(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
		i.Set(node)
		if got := i.EKS(); got != c.want {
			t.Errorf("%s: %v, want %v", rule, got, c.want)
		}
	}
}
