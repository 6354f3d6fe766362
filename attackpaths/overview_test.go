package attackpaths_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/attackpaths"
)

// cellsText is a line for each cell of a row: what it has, and the path of the first.
func cellsText(cells []attackpaths.Cell) []string {
	var all []string
	for _, c := range cells {
		line := fmt.Sprintf("%s %s %d %d", c.Namespace, c.Kind, c.Certain, c.Possible)
		for _, x := range c.Listed {
			line += fmt.Sprintf(" %s(%d)", x.Name, len(x.Path))
		}
		all = append(all, line)
	}
	return all
}

func rowCells(o *attackpaths.Overview, row int) []attackpaths.Cell {
	var cells []attackpaths.Cell
	for _, at := range o.Rows[row].Cells {
		cells = append(cells, o.Cells[at])
	}
	return cells
}

func TestOverview(t *testing.T) {
	nodes := node("n1") + node("n2") + node("n3")
	shop := namespace("shop", restrictedLabel) + account("shop", "agent") + account("shop", "other")
	agents := pod("shop", "a1", "n1", "agent") + pod("shop", "a2", "n2", "agent")
	for _, c := range []struct {
		rule, objects string
		options       attackpaths.OverviewOptions
		rows          []string
		cells         int
	}{
		{
			rule:    "rows share what they reach by pods of the same account",
			objects: nodes + shop + agents + account("mail", "sender") + pod("mail", "s2", "n2", "sender"),
			rows: []string{
				"No [n1] 0 [shop ServiceAccount 1 0 agent(1)] [shop Pod 1 0]",
				"No [n2] 0 [mail ServiceAccount 1 0 sender(1)] [mail Pod 1 0] [shop ServiceAccount 1 0 agent(1)] [shop Pod 1 0]",
				"No [n3] 0",
			},
			cells: 4,
		},
		{
			rule: "nodes that reach cluster-admin in different ways are different rows",
			objects: nodes + shop + agents + pod("shop", "o3", "n3", "other") +
				role("all", "", "shop/agent", "* *@*") + role("impersonator", "", "shop/other", "impersonate serviceaccounts@"),
			rows: []string{"Certain [n1 n2] 2", "Certain [n3] 3"},
		},
		{
			rule: "a cell lists no more names than asked for, and counts all",
			objects: nodes + shop + agents + pod("shop", "o1", "n1", "other") +
				role("r", "shop", "shop/agent", "create serviceaccounts/token@"),
			options: attackpaths.OverviewOptions{Names: 1},
			rows: []string{
				"No [n1 n2] 0 [shop ServiceAccount 2 0 agent(1)] [shop Pod 2 0]",
				"No [n3] 0",
			},
			cells: 2,
		},
	} {
		t.Run(c.rule, func(t *testing.T) {
			cluster := newCluster()
			parse(t, cluster, c.objects)
			g := graphOf(t, cluster)
			o := g.Overview(g.AllNodes(), c.options)
			var got []string
			for i, row := range o.Rows {
				line := fmt.Sprintf("%s %v %d", row.ClusterAdmin, row.Nodes, len(row.Path))
				for _, cell := range cellsText(rowCells(o, i)) {
					line += " [" + cell + "]"
				}
				got = append(got, line)
			}
			if !slices.Equal(got, c.rows) || len(o.Cells) != c.cells {
				t.Errorf("got %d cells\n%s\nwant %d\n%s", len(o.Cells), strings.Join(got, "\n"), c.cells, strings.Join(c.rows, "\n"))
			}
		})
	}
}

func TestOverviewOfWhatIsCertain(t *testing.T) {
	for seed := range uint64(100) {
		rc := newRandomCluster(seed)
		g := graphOf(t, rc.cluster(t, rc.Objects))
		o := g.Overview(g.AllNodes(), attackpaths.OverviewOptions{CertainCells: true})
		for _, cell := range o.Cells {
			if cell.Possible > 0 {
				t.Errorf("seed %d: %q is possible", seed, cellsText([]attackpaths.Cell{cell}))
			}
		}
	}
}

// What a row of the overview counts and lists is what the search from its first node finds, and the
// path of a cell is one that the search from the cell's own start finds.
func TestOverviewAgreesWithFrom(t *testing.T) {
	for seed := range uint64(300) {
		rc := newRandomCluster(seed)
		g := graphOf(t, rc.cluster(t, rc.Objects))
		classes := g.AllNodes()
		o := g.Overview(classes, attackpaths.OverviewOptions{Names: 2})
		listed := 0
		for i, row := range o.Rows {
			listed += len(row.Nodes)
			for n, name := range row.Nodes {
				from, err := g.From(attackpaths.Holding{Kind: attackpaths.Node, Name: name})
				if err != nil {
					t.Fatal(err)
				}
				if from.ClusterAdmin != row.ClusterAdmin {
					t.Errorf("seed %d: %s: cluster-admin is %s, want %s", seed, name, row.ClusterAdmin, from.ClusterAdmin)
				}
				checkRow(t, g, o, i, from, n == 0)
			}
		}
		nodes := 0
		for _, c := range classes {
			nodes += len(c.Nodes)
		}
		if listed != nodes {
			t.Errorf("seed %d: %d nodes are listed, want %d", seed, listed, nodes)
		}
	}
}

// checkRow compares a row of an overview with what one of its nodes reaches. What differs between the
// nodes of a row is compared for the first one only.
func checkRow(t *testing.T, g *attackpaths.Graph, o *attackpaths.Overview, row int, from attackpaths.Result, first bool) {
	t.Helper()
	var path []attackpaths.Step
	for _, x := range from.Reached {
		if x.Kind == attackpaths.ClusterAdmin {
			path = x.Path
		}
	}
	if got := o.Rows[row].Path; len(got) != len(path) || first && !slices.EqualFunc(got, path, sameStep) {
		t.Errorf("%s: the path to cluster-admin is %v, want %v", from.Start, got, path)
	}
	if from.ClusterAdmin == attackpaths.Certain {
		if len(o.Rows[row].Cells) > 0 {
			t.Errorf("%s owns everything, and cells are listed", from.Start)
		}
		return
	}
	differs := []string{attackpaths.Pod, attackpaths.Node, attackpaths.User}
	ofAll := func(c attackpaths.Cell) bool { return !first && slices.Contains(differs, c.Kind) }
	want, got := slices.DeleteFunc(from.Cells(), ofAll), slices.DeleteFunc(rowCells(o, row), ofAll)
	if len(want) != len(got) {
		t.Fatalf("%s: got %q, want %q", from.Start, cellsText(got), cellsText(want))
	}
	for j := range want {
		checkCell(t, g, got[j], want[j])
	}
}

func sameStep(a, b attackpaths.Step) bool { return reflect.DeepEqual(a, b) }

// checkCell compares a cell of an overview with one that lists all.
func checkCell(t *testing.T, g *attackpaths.Graph, got, want attackpaths.Cell) {
	t.Helper()
	if got.Namespace != want.Namespace || got.Kind != want.Kind || got.Certain != want.Certain || got.Possible != want.Possible {
		t.Fatalf("got %q, want %q", cellsText([]attackpaths.Cell{got}), cellsText([]attackpaths.Cell{want}))
	}
	if want.Kind == attackpaths.Pod {
		return
	}
	certainties := map[attackpaths.Holding]attackpaths.Certainty{}
	for _, x := range want.Listed {
		certainties[x.Holding] = x.Certainty
	}
	for _, x := range got.Listed {
		if certainties[x.Holding] != x.Certainty {
			t.Errorf("%s is %s, want %s", x.Holding, x.Certainty, certainties[x.Holding])
		}
	}
	from, err := g.From(got.From)
	if err != nil {
		t.Fatal(err)
	}
	for _, listed := range got.Listed {
		at := slices.IndexFunc(from.Reached, func(x attackpaths.Reached) bool { return x.Holding == listed.Holding })
		if at < 0 || !reflect.DeepEqual(from.Reached[at].Path, listed.Path) {
			t.Errorf("the path to %s does not start from %s", listed.Holding, got.From)
		}
	}
}
