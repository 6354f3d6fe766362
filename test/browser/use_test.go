package browser

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

func (p *tab) click(selector string) {
	p.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// rows are the names in the ranking, from the top.
func (p *tab) rows() string {
	p.Helper()
	return eval[string](p, `[...document.querySelectorAll('#ranking-grid .grid-body .row')]
		.sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((r) => r.querySelector('.names').innerText).join(', ')`)
}

// count is how many elements a selector names.
func (p *tab) count(selector string) string {
	p.Helper()
	return eval[string](p, fmt.Sprintf("String(document.querySelectorAll(%q).length)", selector))
}

// search puts a JSON string into the search field.
func (p *tab) search(quoted string) {
	p.Helper()
	eval[bool](p, `((field) => { field.value = `+quoted+`; return field.dispatchEvent(new Event('input')); })(
		document.querySelector('#filter-q'))`)
}

func (p *tab) is(what, got, want string) {
	p.Helper()
	if got != want {
		p.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// has checks that a text has others in it.
func (p *tab) has(text string, all ...string) {
	p.Helper()
	for _, want := range all {
		if !strings.Contains(text, want) {
			p.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

func TestWhoOwnsMostIsFirst(t *testing.T) {
	p := open(t, careless(t), "", light)
	p.is("headline", p.text("h1"), "3 of 10 nodes own the cluster")
	p.is("ranking", p.rows(), "build-1, build-2, web-3, control-1, data-1, web-4, web-1 and 1 more, data-2, edge-1")
	p.has(p.text(".lead:last-of-type, .top"), `The one change that helps most: remove the subjects of ClusterRoleBinding "deployer"`)
}

func TestThePageOfATarget(t *testing.T) {
	p := open(t, html(t, "attack-paths", "--all-nodes", "--what-to-change", "--to", "secret/shop/session-key", "--from",
		"../../examples/shop.snapshot"), "", light)
	p.has(p.text("h1"), "reach", "secret shop/session-key")
	p.has(p.text("#ranking-grid"), "Secret shop/session-key")
	p.is("tables of what else is reached", p.count("#matrix-grid"), "0")
	p.click("#ranking-grid .grid-body .row .names")
	p.wait(`!document.querySelector('#details').hidden`)
	p.has(p.text("#details"), "The way to secret shop/session-key")
}

func TestAClickShowsThePath(t *testing.T) {
	p := open(t, careless(t), "", light)
	p.click(`#ranking-grid .row[aria-rowindex="4"] .title`)
	p.wait(`document.querySelector('#details h2').innerText === 'web-3'`)
	p.has(p.text("#details"),
		"owns the cluster", "PodTokenOnNode", "pod kube-system/backup-0 runs on web-3 and mounts a token",
		"granted by ClusterRoleBinding", "certain", "Remedy: change")
	p.is("the focus", eval[string](p, "document.activeElement.id"), "details-title")
	p.is("the address", p.fragment(), "#row=web-3")
}

func TestACellOfTheMatrixShowsItsNamespace(t *testing.T) {
	p := open(t, careless(t), "", light)
	at := eval[int](p, `[...document.querySelectorAll('#matrix-grid [role=columnheader]')]
		.find((h) => h.innerText === 'payments').ariaColIndex | 0`)
	p.click(fmt.Sprintf(`#matrix-grid .row[aria-rowindex="6"] [aria-colindex="%d"]`, at))
	p.wait(`document.querySelector('#details .namespace[open] > summary')?.innerText.startsWith('payments')`)
	p.is("the address", p.fragment(), "#row=data-1&in=payments")
	p.do(chromedp.Click(chromedp.CSS("#details .namespace[open] .holding:last-of-type > summary")))
	p.wait(`document.querySelector('#details .holding[open] .fromto')`)
	p.has(p.fragment(), "in=payments&what=ServiceAccount/payments/")
}

func TestKeyboard(t *testing.T) {
	p := open(t, careless(t), "", light)
	focused := `((e) => e.closest('.grid')?.id + ' ' + e.closest('.row')?.ariaRowIndex + ' ' + e.ariaColIndex)(document.activeElement)`
	p.do(chromedp.Focus(chromedp.CSS("form.filters button")))
	p.press(kb.Tab)
	p.is("Tab goes into the grid", eval[string](p, focused), "ranking-grid 2 1")
	p.press(kb.ArrowDown, kb.ArrowDown, kb.ArrowRight)
	p.is("arrows move", eval[string](p, focused), "ranking-grid 4 2")
	p.press(kb.End)
	p.is("End goes to the last column", eval[string](p, focused), "ranking-grid 4 7")
	p.press(kb.Home, kb.PageDown)
	p.is("PageDown goes no further than the last row", eval[string](p, focused), "ranking-grid 10 1")
	p.is("one cell can be reached by Tab", p.count(`#ranking-grid [tabindex="0"]`), "1")
	p.press(kb.Enter)
	p.wait(`document.activeElement.id === 'details-title'`)
	p.press(kb.Escape)
	p.is("Escape gives the focus back", eval[string](p, focused), "ranking-grid 10 1")
	p.is("the details are closed", eval[string](p, "String(document.querySelector('#details').hidden)"), "true")
	p.press(kb.Tab, kb.Tab)
	p.is("Tab leaves the grid, past the button for CSV", eval[string](p, focused), "matrix-grid 2 1")
}

func TestTheFocusCanBeSeen(t *testing.T) {
	p := open(t, careless(t), "", light)
	p.do(chromedp.Focus(chromedp.CSS("form.filters button")))
	p.press(kb.Tab)
	style := "((s) => s.outlineStyle + ' ' + s.outlineWidth)(getComputedStyle(document.activeElement))"
	p.is("outline", eval[string](p, style), "solid 3px")
}

func TestSearchAndFilters(t *testing.T) {
	page := careless(t)
	for _, c := range []struct{ rule, fragment, rows, columns string }{
		{"by the name of a node", "#q=edge-1", "edge-1", "build, edge, kube-system, mail, monitoring, payments, search, shop"},
		{"case does not matter", "#q=EDGE-1", "edge-1", ""},
		{"by the name of a secret: who reaches it", "#q=dkim", "data-1, web-4, web-1 and 1 more, data-2, edge-1", ""},
		{"by namespace", "#namespace=search", "data-1, web-4, web-1 and 1 more, data-2, edge-1", "search"},
		{"by certainty", "#certainty=certain&namespace=mail", "web-4", "mail"},
		{"by technique", "#technique=NamespaceRelabel", "", ""},
		{"all together", "#q=ledger-db&certainty=certain&namespace=payments", "data-1, data-2", "payments"},
		{"nothing is found", "#q=no-such-name", "", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			p := open(t, page, c.fragment, light)
			p.is("rows", p.rows(), c.rows)
			columns := eval[string](p, `[...document.querySelectorAll('#matrix-grid [role=columnheader]')].slice(1)
				.map((h) => h.innerText).sort().join(', ')`)
			if c.columns != "" && columns != c.columns {
				t.Errorf("columns: got %q, want %q", columns, c.columns)
			}
		})
	}
}

func TestSearchIsTyped(t *testing.T) {
	p := open(t, careless(t), "", light)
	p.do(chromedp.SendKeys(chromedp.CSS("#filter-q"), "web-"))
	p.wait(`document.querySelector('[role=status]').innerText.includes('4 nodes in 3 rows')`)
	p.is("rows", p.rows(), "web-3, web-4, web-1 and 1 more")
	p.is("the address", p.fragment(), "#q=web-")
	p.click("form.filters button")
	p.wait(`document.querySelector('[role=status]').innerText === '9 rows'`)
	p.is("the address", p.fragment(), "")
}

func TestALinkRestoresTheView(t *testing.T) {
	p := open(t, careless(t), "#q=data&certainty=certain&row=data-2&in=payments&what=Secret%2Fpayments%2Fledger-db", light)
	shown := func() string {
		return p.rows() + "; " + p.text("#details h2") + "; " + p.text("#details .holding[open] > summary")
	}
	want := "data-1, data-2; data-2; ledger-db "
	p.has(shown(), want)
	p.do(chromedp.Reload(), chromedp.WaitReady(chromedp.CSS("html[data-ready]")))
	p.has(shown(), want)
	p.has(p.text("#details .holding[open]"), "SecretOnNode")
}

func TestBackClosesTheDetails(t *testing.T) {
	p := open(t, careless(t), "", light)
	p.click(`#ranking-grid .row[aria-rowindex="2"] .title`)
	p.wait(`!document.querySelector('#details').hidden`)
	p.click(`#details .close`)
	p.wait(`document.querySelector('#details').hidden`)
	eval[bool](p, "history.back() ?? true")
	p.wait(`!document.querySelector('#details').hidden && document.querySelector('#details h2').innerText === 'build-1'`)
	eval[bool](p, "history.back() ?? true")
	p.wait(`document.querySelector('#details').hidden`)
}

func TestOnAPhone(t *testing.T) {
	p := open(t, careless(t), "", phone)
	if wide := eval[bool](p, "document.documentElement.scrollWidth > innerWidth"); wide {
		t.Error("the page is wider than the phone")
	}
	p.click(`#ranking-grid .row[aria-rowindex="2"] .title`)
	p.wait(`!document.querySelector('#details').hidden`)
	if eval[bool](p, "document.querySelector('#details').offsetWidth < innerWidth") {
		t.Error("the details do not take the whole width")
	}
	p.is("what is behind is out of reach", eval[string](p, "String(document.querySelector('main').inert)"), "true")
	p.click("#details .close")
	p.wait(`!document.querySelector('main').inert`)
}
