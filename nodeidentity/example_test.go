package nodeidentity_test

import (
	"fmt"

	"github.com/node-authorizer/node-authorizer/nodeidentity"
)

// The name alone does not identify a node: the group is required too.
func Example() {
	fmt.Printf("%+v\n", nodeidentity.Of("system:node:worker-1", []string{"system:nodes", "system:authenticated"}))
	fmt.Printf("%+v\n", nodeidentity.Of("system:node:worker-1", []string{"system:authenticated"}))
	// Output:
	// {IsNode:true Name:worker-1}
	// {IsNode:false Name:}
}
