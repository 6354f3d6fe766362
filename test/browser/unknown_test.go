package browser

import (
	"testing"
)

// Objects that could not be read make "not reached" unknown, everywhere.
func TestUnknownIsNotSafe(t *testing.T) {
	p := open(t, html(t, "attack-paths", "--all-nodes", "--what-to-change", "--from", "testdata/blind.yaml"), "", light)
	p.is("headline", p.text("h1"), "It is not known which nodes own the cluster")
	p.has(p.text("#missing"), "Not everything could be read", "it is not safe", "no roles and bindings")
	p.has(p.text(".figures"), "0 own the cluster", "2 not known")
	p.has(p.text("#advice"), "there may be other paths")
	p.is("ranking", p.text("#ranking-grid .badge"), "?unknown")
	p.is("safe", eval[string](p, "String(document.querySelectorAll('.badge.no, .square.nothing, .figures .no').length)"), "0")
}

func TestNothingIsOwned(t *testing.T) {
	p := open(t, html(t, "attack-paths", "--all-nodes", "--what-to-change", "--from", "../../examples/shop.snapshot"), "", light)
	p.is("headline", p.text("h1"), "No node owns the cluster")
	p.is("what is missing", p.text("#missing"), "no such element")
	p.has(p.text("#advice"), "no node outside the control plane owns the cluster")
}

// Rights that may give more than paths are counted beside the headline, and listed.
func TestWhatIsNotFollowed(t *testing.T) {
	p := open(t, html(t, "attack-paths", "--all-nodes", "--certain-only", "--from", "testdata/open.yaml"), "", light)
	p.has(p.text(".top"), "Not followed: 1 right and folders of nodes.", "Only certain paths are shown. No possible ones were left out.")
	p.has(p.text("#not-followed"), "get configmaps (shop), granted by RoleBinding", "/srv/data", "the pods that mount it", "decides")
}
