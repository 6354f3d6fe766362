package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/rbac"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// small is a result in which everything occurs, some of it twice.
func small() AttackPaths {
	node := attackpaths.Holding{Kind: attackpaths.Node, Name: "n1"}
	agent := attackpaths.Holding{Kind: attackpaths.ServiceAccount, Namespace: "shop", Name: "agent"}
	secret := attackpaths.Holding{Kind: attackpaths.Secret, Namespace: "shop", Name: "db"}
	admin := attackpaths.Holding{Kind: attackpaths.ClusterAdmin}
	token := attackpaths.Step{
		Technique: attackpaths.PodTokenOnNode, From: node, To: agent, Because: "pod shop/a runs on n1", Certainty: attackpaths.Certain,
	}
	read := attackpaths.Step{
		Technique: attackpaths.SecretRead, From: agent, To: secret, Because: "may get secrets", Certainty: attackpaths.Possible,
		GrantedBy: &rbac.Ref{Kind: "RoleBinding", Namespace: "shop", Name: "agent"}, DependsOn: "webhook w",
		Remedy: &verdict.Remedy{None: "nothing helps"},
	}
	masters := attackpaths.Step{
		Technique: attackpaths.Impersonate, From: agent, To: admin, Impersonates: &agent, Because: "may do everything",
		Certainty: attackpaths.Certain,
	}
	change := attackpaths.Change{
		Kind: attackpaths.RemoveBinding, Object: attackpaths.Holding{Kind: "ClusterRoleBinding", Name: "all"}, Certain: 1, Entirely: 1,
	}
	return AttackPaths{
		AllNodes: true,
		Rows: []attackpaths.OverviewRow{
			{Nodes: []string{"n1"}, ClusterAdmin: attackpaths.Certain, Path: []attackpaths.Step{token, masters}},
			{Nodes: []string{"n2", "n3"}, ClusterAdmin: attackpaths.No, Cells: []int32{1, 0}},
			{Nodes: []string{"n4"}, ClusterAdmin: attackpaths.No, Cells: []int32{1}, ControlPlane: true},
		},
		Cells: []attackpaths.Cell{
			{
				Namespace: "shop", Kind: attackpaths.Secret, Possible: 1, From: node,
				Listed: []attackpaths.Reached{{Holding: secret, Certainty: attackpaths.Possible, Path: []attackpaths.Step{token, read}}},
			},
			{
				Namespace: "shop", Kind: attackpaths.ServiceAccount, Certain: 2, From: node,
				Listed: []attackpaths.Reached{{Holding: agent, Certainty: attackpaths.Certain, Path: []attackpaths.Step{token}}},
			},
		},
		State:   State{Origin: "file x.yaml", KubernetesVersion: "1.37"},
		Missing: []Missing{{Resource: "secrets", Reason: "forbidden"}},
		Advice: &attackpaths.Advice{
			Nodes: attackpaths.NodesThatReach{Certain: 1}, Alone: []attackpaths.Change{change}, Set: []attackpaths.Change{change},
			Remaining: []attackpaths.Step{token}, Left: attackpaths.NodesThatReach{Possible: 1},
		},
		Summaries: map[attackpaths.Code]string{attackpaths.PodTokenOnNode: "reads tokens", attackpaths.Masters: "is not used"},
	}
}

func TestDataOfAttackPaths(t *testing.T) {
	var data map[string]json.RawMessage
	if err := json.Unmarshal(dataOf(t, write(t, small().Page())), &data); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, key := range slices.Sorted(maps.Keys(data)) {
		lines = append(lines, fmt.Sprintf("%q: %s", key, data[key]))
	}
	golden(t, "testdata/attackpaths.json", []byte("{"+strings.Join(lines, ",\n")+"}\n"))
}

func TestTheSameResultIsTheSamePage(t *testing.T) {
	if !bytes.Equal(write(t, small().Page()), write(t, small().Page())) {
		t.Error("two pages of one result differ")
	}
}
