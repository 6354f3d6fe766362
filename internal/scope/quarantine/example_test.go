package quarantine_test

import (
	"fmt"
	"time"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/api/policy/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/scope/quarantine"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// A quarantined node is cut off together with the tokens of its pods.
func Example() {
	now := time.Now()
	set, _ := quarantine.NewSet([]*v1alpha1.Quarantine{{Spec: v1alpha1.QuarantineSpec{Node: "worker-1"}}}, quarantine.Limit{Nodes: 1}, now)
	user, groups := nodeidentity.User("worker-1")
	fmt.Println(set.Decide(&access.Request{User: user, Groups: groups, Verb: "get", Path: "/healthz"}, now).Code)
	for _, node := range []string{"worker-1", "worker-2"} {
		fmt.Println(node, set.Decide(&access.Request{
			User: nodeidentity.ServiceAccountUser("kube-system", "cilium"), Extra: map[string][]string{nodeidentity.ExtraNode: {node}},
		}, now).Code)
	}
	// Output:
	// NodeQuarantined
	// worker-1 NodeQuarantined
	// worker-2 NotQuarantined
}
