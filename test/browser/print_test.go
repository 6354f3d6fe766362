package browser

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
)

// The grids show a part only, and the paper has all rows, with the paths to cluster-admin.
func TestPrint(t *testing.T) {
	p := open(t, careless(t), "#q=web-3", light)
	eval[bool](p, `(addEventListener('beforeprint', () => { window.printed = document.querySelector('.print').textContent; }), true)`)
	pdf, err := chromedp.Run(p.ctx, chromedp.PrintToPDF())
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Error("not a PDF")
	}
	printed := eval[string](p, "window.printed ?? ''")
	p.has(printed, "The ranking, as filtered", "web-3", "to cluster-admin", "pod kube-system/backup-0 runs on web-3 and mounts a token")
	p.is("after printing", eval[string](p, "String(document.querySelectorAll('.print').length)"), "0")
}

// The paper has all rows, all names and the whole matrix.
func TestPrintIsWhole(t *testing.T) {
	const nodes = 400
	p := open(t, manyPage(t, nodes), "", light)
	eval[bool](p, `(addEventListener('beforeprint', () => {
		const names = new Set(document.querySelector('#printed').textContent.match(/ip-10-0-[0-9]+-[0-9]+/g));
		const columns = [...document.querySelectorAll('#printed-matrix thead .slanted')].map((h) => h.textContent);
		const cells = [...document.querySelectorAll('#printed-matrix td:not(.unknown, .nothing)')].length;
		window.printed = [names.size, document.querySelectorAll('#printed tbody tr').length, columns.join(), cells].join(' ');
	}), true)`)
	if _, err := chromedp.Run(p.ctx, chromedp.PrintToPDF()); err != nil {
		t.Fatal(err)
	}
	var names, rows, cells int
	var columns string
	if _, err := fmt.Sscan(eval[string](p, "window.printed ?? ''"), &names, &rows, &columns, &cells); err != nil {
		t.Fatal(err)
	}
	p.is("nodes", fmt.Sprint(names), fmt.Sprint(nodes))
	if rows <= 200 || cells < 15*rows {
		t.Errorf("%d rows and %d cells of the matrix are printed", rows, cells)
	}
	for i := range nodes / 10 {
		p.has(columns, fmt.Sprintf("team-%03d-", i))
	}
}

// Details that are closed on the screen are open on paper.
func TestPrintDiff(t *testing.T) {
	p := open(t, diffPage(t), "", light)
	eval[bool](p, `(addEventListener('beforeprint', () => { window.printed = document.querySelector('#widened').innerText; }), true)`)
	if _, err := chromedp.Run(p.ctx, chromedp.PrintToPDF()); err != nil {
		t.Fatal(err)
	}
	p.has(eval[string](p, "window.printed ?? ''"), "PodTokenOnNode", "Because of the change")
	p.is("open entries after printing", p.count("details.entry[open]"), "0")
}

func TestPrintReach(t *testing.T) {
	p := open(t, reachPage(t), "", light)
	eval[bool](p, `(addEventListener('beforeprint', () => { window.printed = document.querySelector('#kind-Secret').innerText; }), true)`)
	if _, err := chromedp.Run(p.ctx, chromedp.PrintToPDF()); err != nil {
		t.Fatal(err)
	}
	p.has(eval[string](p, "window.printed ?? ''"), "May get", "← pod shop/")
}
