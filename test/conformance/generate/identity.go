package generate

// identity draws a user and groups for a node: mostly the node's own, else one
// of the forms that resemble it.
func (a *Asker) identity(node string) (user string, groups []string) {
	own := "system:node:" + node
	if chance(a.r, 90) {
		return own, pick(a.r, [][]string{
			{"system:nodes", "system:authenticated"},
			{"system:nodes"},
			{"system:authenticated", "system:nodes", "system:nodes"},
			{"", "system:masters", "system:nodes"},
		})
	}
	nodes := []string{"system:nodes", "system:authenticated"}
	forms := []struct {
		user   string
		groups []string
	}{
		{own, nil},
		{own, []string{"system:authenticated"}},
		{own, []string{"system:node", "system:nodes ", "System:nodes", "system:nodes:" + node}},
		{"system:node:", nodes},
		{"system:node:", nil},
		{"system:node", nodes},
		{"system:nodes:" + node, nodes},
		{"System:node:" + node, nodes},
		{" " + own, nodes},
		{own + " ", nodes},
		{"system:node:system:node:" + node, nodes},
		{node, nodes},
		{"", nodes},
		{"system:serviceaccount:kube-system:" + node, nodes},
		{"system:node:" + nearly(a.r, node), nodes},
		{"system:anonymous", []string{"system:unauthenticated"}},
	}
	form := pick(a.r, forms)
	return form.user, form.groups
}
