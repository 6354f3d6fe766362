package containment

// testScope names the accounts of tests whose tokens may have no node. Those with a node are sent for quarantines.
const testScope = `
apiVersion: policy.node-authorizer.io/v1alpha1
kind: NodeScope
metadata: {name: of-tests}
spec: {mode: Observe, subjects: [{namespace: ` + bypassNamespace + `}]}
`

// bypassNamespace has the accounts that try to get around NodeScopes.
const bypassNamespace = "bypass"
