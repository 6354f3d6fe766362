package attackpaths_test

import (
	"strings"
	"testing"
)

// Who may request audiences that no pod names is a node: its pods need no token then.
func TestAudiencesThatNodesMayRequest(t *testing.T) {
	const verb = "request-serviceaccounts-token-audience "
	base := node("n1") + namespace("shop", restrictedLabel) + account("shop", "web") + account("shop", "db")
	withoutToken := func(name, on, of string) string {
		head, _, _ := strings.Cut(pod("shop", name, on, of), "  volumes:")
		return head + "\n---"
	}
	base += node("n2") + withoutToken("db-1", "n1", "db") + withoutToken("db-2", "n2", "web")
	on := "Certain Pod shop/db-1: PodOnNode"
	testReach(t, base, []reachCase{
		{start: nodeN1, rule: "not without the right", want: []string{on}},
		{
			start: nodeN1, rule: "every audience, by all nodes", add: role("a", "", "group system:nodes", verb+"*@"),
			want: []string{on, "Certain ServiceAccount shop/db: TokenOfPodOnNode"},
		},
		{
			start: nodeN1, rule: "every audience of one account, by one node", add: role("a", "shop", "user system:node:n1", verb+"*@ db"),
			want: []string{on, "Certain ServiceAccount shop/db: TokenOfPodOnNode"},
		},
		{start: nodeN1, rule: "not of another account", add: role("a", "shop", "group system:nodes", verb+"*@ web"), want: []string{on}},
		{start: nodeN1, rule: "not by another node", add: role("a", "", "user system:node:n2", verb+"*@"), want: []string{on}},
		{start: nodeN1, rule: "not by who is no node", add: role("a", "", "shop/db", verb+"*@"), want: []string{on}},
		{
			start: nodeN1, rule: "an audience that may be the API server's",
			add:  role("a", "", "group system:nodes", verb+"https://kubernetes.default.svc@"),
			want: []string{on, "Possible ServiceAccount shop/db: TokenOfPodOnNode"},
		},
		{
			start: nodeN1, rule: "every verb on a resource is about no audience",
			add: role("a", "", "group system:nodes", "* pods/status@"), want: []string{on},
		},
	})
}
