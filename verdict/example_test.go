package verdict_test

import (
	"encoding/json"
	"fmt"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// A reason has a code for programs, and a message and a path for people.
func Example() {
	pod := verdict.Object{Kind: "pod", Namespace: "shop", Name: "api"}
	secret := verdict.Object{Kind: "secret", Namespace: "shop", Name: "db"}
	node := verdict.Object{Kind: "node", Name: "worker-1"}
	reason := verdict.Reason{
		Code:    "PathToObject",
		Message: `secret "shop/db" is referenced by a pod of node "worker-1"`,
		Path: verdict.Path{
			{From: secret, To: pod, Holder: pod, Field: "spec.volumes[name=credentials]"},
			{From: pod, To: node, Holder: pod, Field: "spec.nodeName"},
		},
	}
	fmt.Println(reason.Path)

	text, err := json.Marshal(verdict.Allow)
	fmt.Println(string(text), err)
	// Output:
	// secret shop/db <- pod shop/api (spec.volumes[name=credentials]) <- node worker-1
	// "Allow" <nil>
}
