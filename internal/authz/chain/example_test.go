package chain_test

import (
	"context"
	"fmt"

	"github.com/node-authorizer/node-authorizer/access"
	"github.com/node-authorizer/node-authorizer/graph"
	"github.com/node-authorizer/node-authorizer/internal/authz/chain"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodeauthz"
	"github.com/node-authorizer/node-authorizer/nodeidentity"
	"github.com/node-authorizer/node-authorizer/rbac"
)

// The Node authorizer is first and RBAC second, as kubeadm configures an API server.
// Masters precedes them in every API server.
func Example() {
	authorizers := chain.Chain{
		chain.Masters(),
		chain.Node(nodeauthz.New(graph.New(), kubeversion.For(kubeversion.Latest))),
		chain.RBAC(rbac.NewPolicy()),
	}
	user, groups := nodeidentity.User("worker-1")
	for _, object := range []struct{ resource, namespace, name string }{
		{"nodes", "", "worker-1"},
		{"secrets", "shop", "db"},
	} {
		result, err := authorizers.Explain(context.Background(), &access.Request{
			User: user, Groups: groups, ResourceRequest: true,
			Verb: "get", Resource: object.resource, Namespace: object.namespace, Name: object.name,
		})
		if err != nil {
			fmt.Println("undecided:", err)
			continue
		}
		fmt.Println(result.Decision, result.DecidedBy, result.NotAsked)
	}
	// Output:
	// Allow Node [RBAC]
	// NoOpinion  []
}

// An API server's own file describes the same chain.
func ExampleParse() {
	configuration, err := chain.Parse([]byte(`
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Node
  name: node
- type: RBAC
  name: rbac
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	authorizers, err := configuration.Build(context.Background(), chain.Parts{
		Node: nodeauthz.New(graph.New(), kubeversion.For(kubeversion.Latest)),
		RBAC: rbac.NewPolicy(),
	})
	fmt.Println(authorizers.Names(), err)
	// Output: [system:masters Node RBAC] <nil>
}
