package attackpaths_test

import (
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// NodeRestriction holds nodes and not accounts, so that an account labels any node, and takes its taints.
func TestAccountsThatLabelNodes(t *testing.T) {
	base := node("n1") + namespace("shop", restrictedLabel) + account("shop", "web") + account("shop", "db") +
		pod("shop", "agent", "n1", "web") + pod("shop", "p", "''", "db", "  nodeSelector: {node-restriction.kubernetes.io/pool: a}\n")
	agent := []string{"Certain Pod shop/agent: PodOnNode", "Certain ServiceAccount shop/web: PodTokenOnNode"}
	stolen := append([]string{agent[0], "Possible ServiceAccount shop/db: PodTokenOnNode StealPods"}, agent[1])
	stolen[1], stolen[2] = stolen[2], stolen[1]
	testReach(t, base, []reachCase{
		{rule: "a node alone", start: nodeN1, want: agent},
		{rule: "with an account that may patch nodes", start: nodeN1, add: role("r", "", "shop/web", "patch nodes@"), want: stolen},
		{rule: "or their status", start: nodeN1, add: role("r", "", "shop/web", "update nodes/status@ n1"), want: stolen},
		{rule: "not the status of another", start: nodeN1, add: role("r", "", "shop/web", "update nodes/status@ n2"), want: agent},
		{rule: "a node with the same right", start: nodeN1, add: role("r", "", "group system:nodes", "patch nodes@"), want: agent},
		{rule: "an account without a node", add: role("r", "", "shop/web", "patch nodes@")},
	})
}

// A pool rests on labels and taints of nodes, so that no account outside it may change them.
func TestPoolsThatAccountsOutsideChange(t *testing.T) {
	const owner = "metadata: {ownerReferences: [{apiVersion: apps/v1, kind: StatefulSet, name: db, uid: u, controller: true}], namespace"
	objects := node("n1") + node("n2") + node("n3") + account("shop", "web") + account("shop", "db") +
		role("every", "", "shop/db", "* *@*") +
		strings.ReplaceAll(pod("shop", "db-0", "n1", "db")+pod("shop", "db-1", "n2", "db"), "metadata: {namespace", owner)
	agents := pod("shop", "agent-1", "n1", "web") + pod("shop", "agent-3", "n3", "web")
	for _, c := range []struct {
		rule, rights string
		pool         bool
	}{
		{"no account", "get nodes@", true},
		{"an account on a node outside", "patch nodes/status@", false},
	} {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, objects+agents+role("agent", "", "shop/web", c.rights))
			advice, err := attackpaths.WhatToChange(cluster, attackpaths.AdviceOptions{Possible: true})
			if err != nil {
				t.Fatal(err)
			}
			p := advice.Placing
			if p == nil || (len(p.Nodes) > 0) != c.pool || (len(p.Unplaced) == 0) != c.pool {
				t.Errorf("the advice is %+v", p)
			}
		})
	}
}
