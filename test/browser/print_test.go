package browser

import (
	"bytes"
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
