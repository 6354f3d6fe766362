package browser

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// long replaces the names of nodes and some namespaces of testdata by names as clouds and companies make them.
var long = []struct {
	short *regexp.Regexp
	name  string
}{
	{regexp.MustCompile(`payments, name: payments\b`), "payments, name: ledger"},
	{regexp.MustCompile(`\b(web|data)-([0-9])\b`), "gke-production-cluster-europe-west3-pool-4f6a9c1e-$1-$2"},
	{regexp.MustCompile(`\b(build|edge|control)-([0-9])\b`), "ip-10-0-132-5$2.$1.eu-central-1.compute.internal"},
	{regexp.MustCompile(`\b(payments|search|monitoring)\b`), "team-$1-production-eu-central"},
}

// longNamed writes a file of testdata with long names, and returns its path.
func longNamed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range long {
		text = l.short.ReplaceAll(text, []byte(l.name))
	}
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// longPages are pages of each kind with long names.
func longPages(t *testing.T) map[string][]byte {
	t.Helper()
	state := longNamed(t, "careless.yaml")
	return map[string][]byte{
		"attack-paths": html(t, "attack-paths", "--all-nodes", "--what-to-change", "--from", state),
		"diff": html(t, "diff", "--from", state, "--with", longNamed(t, "change.yaml"),
			"--without", "namespace/shop", "--without", "node/gke-production-cluster-europe-west3-pool-4f6a9c1e-web-1"),
		"doctor": html(t, "doctor", "--from", "testdata/aws-auth.yaml"),
		"reach":  html(t, "reach", "gke-production-cluster-europe-west3-pool-4f6a9c1e-web-3", "--from", state),
	}
}

// brokenWords lists words that are in two lines although they fit into one. A word is letters and digits. Grids have
// a test of their own.
const brokenWords = `(() => {
	const broken = [], range = document.createRange();
	const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
	while (texts.nextNode()) {
		const text = texts.currentNode, parent = text.parentElement;
		if (parent.closest('.grid, .unseen, svg, pre, option') || !parent.checkVisibility()) continue;
		let block = parent;
		while (getComputedStyle(block).display.startsWith('inline')) block = block.parentElement;
		for (const part of text.data.matchAll(/[\p{L}\p{N}_]+/gu)) {
			range.setStart(text, part.index);
			range.setEnd(text, part.index + part[0].length);
			const rects = [...range.getClientRects()].filter((r) => r.width > 0);
			const width = rects.reduce((sum, r) => sum + r.width, 0);
			const lines = new Set(rects.map((r) => Math.round(r.top))).size;
			if (lines > 1 && width < block.clientWidth - 2) broken.push(part[0] + ' in: ' + text.data);
		}
	}
	return broken.join('\n');
})()`

// scrolled lists what scrolls to the side: the page, tables, and what is cut.
const scrolled = `[document.documentElement, ...document.querySelectorAll('main *')]
	.filter((e) => !e.closest('.grid, .unseen, svg, pre') && e.checkVisibility() &&
		e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 &&
		!getComputedStyle(e).display.startsWith('inline') && e.localName !== 'select' && e.localName !== 'input')
	.map((e) => e.outerHTML.slice(0, 120)).join('\n')`

// At 400 pixels nothing is cut, nothing scrolls to the side, and no word is broken; nor is a word at 1,280.
func TestWordsStayWhole(t *testing.T) {
	for name, page := range longPages(t) {
		for _, v := range []view{light, {name: "400", width: 400, height: 900, phone: true}} {
			t.Run(name+" "+v.name, func(t *testing.T) {
				p := open(t, page, "", v)
				eval[bool](p, "(document.querySelectorAll('main details').forEach((d) => { d.open = true; }), true)")
				p.wait(`![...document.querySelectorAll('details.entry')].some((d) => !d.querySelector('.row-body').firstChild)`)
				p.is("broken words", eval[string](p, brokenWords), "")
				p.is("scrolls or is cut", eval[string](p, scrolled), "")
			})
		}
	}
}

// In narrow tables each cell says the head of its column.
func TestNarrowTablesHaveHeads(t *testing.T) {
	p := open(t, doctorPage(t), "", phone)
	heads := eval[string](p, `[...document.querySelector('#checks tbody tr').cells]
		.map((c) => getComputedStyle(c, '::before').content).join()`)
	if !strings.Contains(heads, `"Check" ": "`) && !strings.Contains(heads, `"Check: "`) {
		t.Errorf("heads of cells: %s", heads)
	}
}
