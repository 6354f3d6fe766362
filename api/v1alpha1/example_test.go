package v1alpha1_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
)

// The name of an entry follows from the machine, so that creating it a second time fails.
func Example() {
	entry := v1alpha1.NodeAttestation{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.EntryName("aws", "i-0123456789abcdef0")},
		Spec: v1alpha1.NodeAttestationSpec{
			Provider: "aws", InstanceID: "i-0123456789abcdef0", NodeName: "worker-1", TokenID: "abcdef",
		},
	}
	fmt.Println(entry.Name)

	// The API server authenticates a kubelet with the entry's token under this name.
	user := v1alpha1.TokenUser(entry.Spec.TokenID)
	id, ok := v1alpha1.TokenIDOf(user)
	fmt.Println(user, id, ok)
	// Output:
	// aws-i-0123456789abcdef0
	// system:bootstrap:abcdef abcdef true
}
