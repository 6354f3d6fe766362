package attackpaths

import "slices"

// createsAccount gives a service account that only bindings name to who may create it, and a token or a pod of it. Where
// NodeScopes matter, a token without a node is something else; tokens are bound to nodes since 1.31. Source: KEP-4193.
func (b *builder) createsAccount(v vertex, namespace, name string) {
	guards := b.guardsOf(createAccounts, namespace)
	if !b.splits(namespace) {
		b.together(PodCreate, b.anyToken(namespace, name), guards, v, b.vertex(key{kind: isNamespace, name: namespace}))
	}
	guards = allOf(guards, b.guardsOf(createToken, namespace))
	scoped := b.scopeOf(namespace, name) != nil
	for _, of := range [...]string{"", name} {
		token := b.rightVertex(createToken, namespace, of)
		if scoped {
			b.together(TokenRequest, b.accountVertex(namespace, name), guards, v, token)
		}
		if !scoped || b.cluster.Features.Minor() >= 31 {
			b.together(TokenRequest, b.anyToken(namespace, name), guards, v, token)
		}
	}
}

// missingAccounts are those that bindings name and that do not exist.
func (b *builder) missingAccounts(namespace string) []string {
	return slices.DeleteFunc(slices.Clone(b.accountNames[namespace]), func(name string) bool {
		return slices.Contains(b.accounts[namespace], name)
	})
}
