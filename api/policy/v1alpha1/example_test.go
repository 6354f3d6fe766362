package v1alpha1_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
)

// An agent may read every Service, and write only the Node object and the pods of its own node.
func Example() {
	scope := &v1alpha1.NodeScope{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.NodeScopeKind},
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: v1alpha1.NodeScopeSpec{
			Subjects: []v1alpha1.Subject{{Namespace: "kube-system", Name: "agent"}},
			Mode:     v1alpha1.Enforce,
			NamedAsNode: []v1alpha1.NamedRule{
				{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"get", "patch"}},
			},
			SelectsNode: []v1alpha1.SelectedRule{
				{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}, Field: "spec.nodeName"},
			},
			PodsOnNode: []v1alpha1.PodRule{{Resources: []string{"pods", "pods/status"}, Verbs: []string{"get", "patch"}}},
			Anywhere: []v1alpha1.AnywhereRule{
				{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"get", "list", "watch"}},
			},
		},
	}
	text, err := yaml.Marshal(scope.Spec.NamedAsNode)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s %s\n%s", scope.APIVersion, scope.Kind, text)

	// Clients know the type by its group, version and kind.
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(scheme.Recognizes(v1alpha1.GroupVersion().WithKind(v1alpha1.QuarantineKind)))
	// Output:
	// policy.node-authorizer.io/v1alpha1 NodeScope
	// - apiGroups:
	//   - ""
	//   resources:
	//   - nodes
	//   - nodes/status
	//   verbs:
	//   - get
	//   - patch
	// true
}
