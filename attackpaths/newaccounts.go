package attackpaths

import "slices"

// createsAccounts gives the service accounts that only bindings name to who creates them, and a
// token or a pod of them.
func (b *builder) createsAccounts(v vertex, namespace string) {
	missing := b.missingAccounts(namespace)
	if len(missing) == 0 {
		return
	}
	guards, all := b.guardsOf(createAccounts, namespace), b.fact(newAccounts, namespace)
	if !b.splits(namespace) {
		b.together(PodCreate, all, guards, v, b.vertex(key{kind: isNamespace, name: namespace}))
	}
	guards = allOf(guards, b.guardsOf(createToken, namespace))
	if b.enforced == 0 {
		b.together(TokenRequest, all, guards, v, b.rightVertex(createToken, namespace, ""))
	}
	for _, name := range missing {
		if b.enforced == 0 {
			b.together(TokenRequest, b.anyToken(namespace, name), guards, v, b.rightVertex(createToken, namespace, name))
		} else {
			b.requestsNewToken(v, namespace, name, guards)
		}
	}
}

// createsAccount gives a service account that only bindings name to who may create it, and a token or a pod of it.
func (b *builder) createsAccount(v vertex, namespace, name string) {
	guards := b.guardsOf(createAccounts, namespace)
	if !b.splits(namespace) {
		b.together(PodCreate, b.anyToken(namespace, name), guards, v, b.vertex(key{kind: isNamespace, name: namespace}))
	}
	b.requestsNewToken(v, namespace, name, allOf(guards, b.guardsOf(createToken, namespace)))
}

// requestsNewToken gives a service account that only bindings name where NodeScopes matter: a token without a
// node is something else, and tokens are bound to nodes since 1.31. Source: KEP-4193.
func (b *builder) requestsNewToken(v vertex, namespace, name, guards string) {
	for _, of := range [...]string{"", name} {
		token := b.rightVertex(createToken, namespace, of)
		scoped := b.scopeOf(namespace, name) != nil
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
