package attackpaths_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
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

// The right to request tokens ends what a node does with it, and no mount does. The pod of the step has a place that no binding has.
func TestAdviceAboutAudiencesThatNodesMayRequest(t *testing.T) {
	objects := node("n1") + node("n2") + namespace("shop", restrictedLabel) + account("shop", "web") + account("shop", "db") +
		role("a", "", "group system:nodes", "request-serviceaccounts-token-audience *@") + role("root", "", "shop/db", "* *@*")
	for _, p := range []string{pod("shop", "a-1", "n2", "web"), pod("shop", "a-2", "n2", "web"), pod("shop", "db-1", "n1", "db")} {
		head, _, _ := strings.Cut(p, "  volumes:")
		objects += head + "\n---"
	}
	cluster := newCluster()
	parse(t, cluster, objects)
	advice, err := attackpaths.WhatToChange(cluster, attackpaths.AdviceOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, change := range advice.Alone {
		got = append(got, change.String())
	}
	want := []string{
		`remove the subjects of ClusterRoleBinding "a"`, `remove the subjects of ClusterRoleBinding "root"`,
		`remove rule 1 (request-serviceaccounts-token-audience *) from ClusterRole "a"`, `remove rule 1 (* * of *) from ClusterRole "root"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("the changes are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}
