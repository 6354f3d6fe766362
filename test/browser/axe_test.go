package browser

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

const (
	axeFile = "testdata/axe-core-4.14.1/axe.min.js"
	axeSum  = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
)

// axe is the source of axe-core.
func axe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(axeFile)
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(source); hex.EncodeToString(sum[:]) != axeSum {
		t.Fatalf("%s is not axe-core 4.14.1", axeFile)
	}
	return string(source)
}

// violation is a rule that a page breaks, and the elements that break it.
type violation struct {
	ID    string   `json:"id"`
	Help  string   `json:"help"`
	Nodes []string `json:"nodes"`
}

// violations runs all rules of axe-core.
func (p *tab) violations(axe string) []violation {
	p.Helper()
	eval[int](p, axe+";0")
	return eval[[]violation](p, `axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => ({
		id: v.id, help: v.help, nodes: v.nodes.slice(0, 5).map((n) => n.html.slice(0, 200) + ' ' + n.failureSummary) })))`)
}

func TestAccessibility(t *testing.T) {
	source := axe(t)
	node := filepath.Join(t.TempDir(), "node.yaml")
	if err := os.WriteFile(node, []byte("apiVersion: v1\nkind: Node\nmetadata: {name: web-1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pages := map[string][]byte{
		"all nodes": careless(t),
		"start":     html(t, "attack-paths", "node/web-1", "--from", "../../examples/shop.snapshot"),
		"reach":     reachPage(t),
		"doctor":    doctorPage(t),
		"diff":      diffPage(t),
		"unknown":   html(t, "attack-paths", "--all-nodes", "--from", "../../examples/shop", "--from", node),
	}
	fragments := map[string][]string{
		"all nodes": {"", "#row=web-3", "#row=data-1&in=search&what=Secret/search/index-credentials", "#q=nothing-like-this"},
		"start":     {"", "#row=node+web-1&in=shop"},
		"reach":     {"", "#open=secret+shop%2Fsession-key"},
		"doctor":    {""},
		"diff":      {""},
		"unknown":   {""},
	}
	for name, page := range pages {
		for _, v := range []view{light, dark, phone} {
			t.Run(name+" "+v.name, func(t *testing.T) {
				for _, fragment := range fragments[name] {
					for _, broken := range open(t, page, fragment, v).violations(source) {
						t.Errorf("%s: %s: %s\n%q", fragment, broken.ID, broken.Help, broken.Nodes)
					}
				}
			})
		}
	}
}
