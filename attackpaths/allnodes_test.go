package attackpaths_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// privilegedPod is a pod that can take over its node.
func privilegedPod(namespace, name, node, account string) string {
	return strings.ReplaceAll(pod(namespace, name, node, account),
		"containers: [{name: c, image: i}]", "containers: [{name: c, image: i, securityContext: {privileged: true}}]")
}

func TestAllNodes(t *testing.T) {
	shop := namespace("shop", "") + account("shop", "agent")
	agents := privilegedPod("shop", "a1", "n1", "agent") + privilegedPod("shop", "a2", "n2", "agent")
	exec := role("r", "", "shop/agent", "create pods/exec@")
	cases := []struct {
		rule, objects string
		want          []string
	}{
		{
			rule:    "nodes that reach each other are one class",
			objects: node("n1") + node("n2") + node("n3") + shop + agents + privilegedPod("shop", "a3", "n3", "agent") + exec,
			want:    []string{"No [n1 n2 n3] [{Node 2 0} {ServiceAccount 1 0}]"},
		},
		{
			rule:    "a node does not count itself",
			objects: node("n1") + node("n2") + shop + agents + exec,
			want:    []string{"No [n1 n2] [{Node 1 0} {ServiceAccount 1 0}]"},
		},
		{
			rule: "nodes of the control plane are a class of their own",
			objects: node("n1") + node("n2") + node("n3") + namespace("kube-system", "") + account("kube-system", "admin") +
				"\napiVersion: v1\nkind: Pod\n" +
				"metadata: {namespace: kube-system, name: etcd-n1, annotations: {kubernetes.io/config.mirror: x}}\n" +
				"spec: {nodeName: n1, containers: [{name: c, image: i}]}\n---" +
				pod("kube-system", "a", "n1", "admin") + pod("kube-system", "b", "n2", "admin") + pod("kube-system", "c", "n3", "admin") +
				role("r", "", "kube-system/admin", "* *@*"),
			want: []string{"Certain [n2 n3] []", "Certain [n1] []"},
		},
		{
			rule: "certain holdings are counted where cluster-admin is possible",
			objects: "\napiVersion: v1\nkind: Node\nmetadata: {name: n1, labels: {node-role.kubernetes.io/control-plane: ''}}\n---" +
				namespace("shop", restrictedLabel) + account("shop", "agent") + account("shop", "other") +
				pod("shop", "a1", "n1", "agent") + role("r", "shop", "shop/agent", "create serviceaccounts/token@"),
			want: []string{"Possible [n1] [{ServiceAccount 2 0}]"},
		},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, c.objects)
			var got []string
			for _, class := range graphOf(t, cluster).AllNodes() {
				got = append(got, fmt.Sprint(class.ClusterAdmin, " ", class.Nodes, " ", class.Counts))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("classes are\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

// The race detector checks that a Graph is safe for concurrent use.
func TestConcurrentUse(t *testing.T) {
	eachCluster(t, 30, func(t *testing.T, rc *randomCluster) {
		c := rc.cluster(t, rc.Objects)
		starts := rc.starts(newNaive(c))
		sequential := graphOf(t, c)
		var want []attackpaths.Result
		for _, start := range starts {
			want = append(want, from(t, sequential, start))
		}
		wantNodes := sequential.AllNodes()

		g := graphOf(t, c)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				for i, start := range starts {
					if got, err := g.From(start); err != nil || !reflect.DeepEqual(got, want[i]) {
						t.Errorf("from %s: %+v, %v, want %+v", start, got, err, want[i])
					}
				}
			})
			all.Go(func() {
				for _, start := range starts {
					if r, err := g.From(start); err == nil && len(r.Reached) > 0 {
						g.AddRemedies(r.Reached[0].Path)
					}
				}
			})
			all.Go(func() {
				if got := g.AllNodes(); !reflect.DeepEqual(got, wantNodes) {
					t.Errorf("all nodes: %+v, want %+v", got, wantNodes)
				}
			})
		}
		all.Wait()
	})
}
