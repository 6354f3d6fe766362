package access_test

import (
	"fmt"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/node-authorizer/node-authorizer/access"
)

// An API server passes attributes to its authorizers; ours decide about a Request.
func Example() {
	attributes := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "system:node:worker-1", Groups: []string{"system:nodes"}},
		Verb: "get", Resource: "secrets", Namespace: "shop", Name: "db", ResourceRequest: true,
	}
	var req access.Request
	access.FromAttributes(attributes, &req)
	fmt.Println(req.User, req.Verb, req.Resource, req.Namespace, req.Name)
	// Output: system:node:worker-1 get secrets shop db
}
