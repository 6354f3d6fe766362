package graph_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/graph"
)

// checkRelated checks one relation with every method.
func checkRelated(t *testing.T, g *graph.Graph, node string, kind graph.Kind, namespace, name string) {
	t.Helper()
	if !g.HasPath(node, kind, namespace, name) {
		t.Errorf("want %v %s/%s related to %s", kind, namespace, name, node)
	}
	if !g.Has(kind, namespace, name) || !g.HasNode(node) {
		t.Errorf("want %v %s/%s and %s known", kind, namespace, name, node)
	}
	if !slices.Contains(g.NodesReaching(kind, namespace, name), node) {
		t.Errorf("want %s among the nodes that reach %v %s/%s", node, kind, namespace, name)
	}
	if paths := g.Paths(node, kind, namespace, name); len(paths) == 0 {
		t.Errorf("want a path from %v %s/%s to %s", kind, namespace, name, node)
	}
	if !slices.ContainsFunc(g.Reach(node), func(r graph.Reached) bool {
		return r.Kind == kind && r.Namespace == namespace && r.Name == name
	}) {
		t.Errorf("want %v %s/%s within reach of %s", kind, namespace, name, node)
	}
}

func checkUnrelated(t *testing.T, g *graph.Graph, node string, kind graph.Kind, namespace, name string) {
	t.Helper()
	if g.HasPath(node, kind, namespace, name) {
		t.Errorf("want %v %s/%s not related to %s", kind, namespace, name, node)
	}
	if paths := g.Paths(node, kind, namespace, name); paths != nil {
		t.Errorf("want no path from %v %s/%s to %s, got %v", kind, namespace, name, node, paths)
	}
	if slices.Contains(g.NodesReaching(kind, namespace, name), node) {
		t.Errorf("want %s not among the nodes that reach %v %s/%s", node, kind, namespace, name)
	}
	if slices.ContainsFunc(g.Reach(node), func(r graph.Reached) bool {
		return r.Kind == kind && r.Namespace == namespace && r.Name == name
	}) {
		t.Errorf("want %v %s/%s out of reach of %s", kind, namespace, name, node)
	}
}

func checkEmpty(t *testing.T, g *graph.Graph) {
	t.Helper()
	if stats := g.Stats(); len(stats.Vertices) != 0 || stats.Links != 0 || len(g.Nodes()) != 0 {
		t.Errorf("want an empty graph, got %+v", stats)
	}
}

// reached returns the objects that a node is related to, one "kind namespace/name" each.
func reached(g *graph.Graph, node string) []string {
	var objects []string
	for _, r := range g.Reach(node) {
		objects = append(objects, r.Paths[0][0].From.String())
	}
	return objects
}

// dump prints the content of a graph.
func dump(g *graph.Graph) string {
	var b strings.Builder
	fmt.Fprintln(&b, g.Stats())
	for _, node := range g.Nodes() {
		for _, r := range g.Reach(node) {
			fmt.Fprintln(&b, g.NodesReaching(r.Kind, r.Namespace, r.Name))
			for _, path := range g.Paths(node, r.Kind, r.Namespace, r.Name) {
				fmt.Fprintln(&b, path)
			}
		}
	}
	return b.String()
}

// compareGolden compares with a file under testdata, which it writes when
// UPDATE_GOLDEN is set.
func compareGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading what is wanted (UPDATE_GOLDEN=1 writes it): %v", err)
	}
	if got != string(want) {
		t.Errorf("%s: got:\n%s\nwant:\n%s", path, got, want)
	}
}
