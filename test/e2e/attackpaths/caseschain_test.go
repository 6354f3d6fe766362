package attackpaths

// impersonationChainCases are about a request that impersonates once.
var impersonationChainCases = []testCase{
	{
		rule: "Impersonate: not what only an impersonated user may impersonate",
		add: roleOf("r", "", "shop/web", "impersonate users@ alice") + roleOf("x", "", "user alice", "impersonate users@ bob") +
			roleOf("z", "shop", "user bob", "get secrets@ key") + opaque("shop", "key"),
		want: []string{"User alice"},
	},
	{
		rule: "Impersonate: what an account may impersonate whose token an impersonated user requests",
		add: roleOf("r", "", "shop/web", "impersonate users@ alice") +
			roleOf("x", "shop", "user alice", "create serviceaccounts/token@ db") +
			roleOf("d", "", "shop/db", "impersonate users@ bob") +
			roleOf("z", "shop", "user bob", "get secrets@ key") + opaque("shop", "key"),
		want: []string{"Secret shop/key", "ServiceAccount shop/db", "User alice", "User bob"},
	},
	{
		rule: "Impersonate: not what an account may impersonate that is only impersonated",
		add: roleOf("r", "shop", "shop/web", "impersonate serviceaccounts@ db") + roleOf("d", "", "shop/db", "impersonate users@ bob") +
			roleOf("z", "shop", "user bob", "get secrets@ key") + opaque("shop", "key"),
		want: []string{"ServiceAccount shop/db"},
	},
	{
		rule: "Impersonate: what an account may impersonate after it requests its own token",
		add: roleOf("r", "shop", "shop/web", "impersonate serviceaccounts@ db") +
			roleOf("d", "shop", "shop/db", "create serviceaccounts/token@ db") + roleOf("u", "", "shop/db", "impersonate users@ bob") +
			roleOf("z", "shop", "user bob", "get secrets@ key") + opaque("shop", "key"),
		want: []string{"Secret shop/key", "ServiceAccount shop/db", "User bob"},
	},
}
