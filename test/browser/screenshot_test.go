package browser

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestScreenshots makes the pictures of the documentation. They are written with UPDATE_SCREENSHOTS=1.
func TestScreenshots(t *testing.T) {
	page := careless(t)
	const limit = 240 << 10
	for _, c := range []struct {
		file, fragment string
		view           view
		scrollTo       string
	}{
		{"report-path.png", "#row=web-3", view{width: 1200, height: 760}, ".top"},
		{"report-matrix.png", "", view{width: 1200, height: 640, dark: true}, "#matrix"},
	} {
		t.Run(c.file, func(t *testing.T) {
			p := open(t, page, c.fragment, c.view)
			eval[bool](p, "(document.querySelector('"+c.scrollTo+"').scrollIntoView(), document.activeElement.blur(), true)")
			p.wait("true")
			picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
			if err != nil {
				t.Fatal(err)
			}
			if len(picture) > limit {
				t.Errorf("%s has %d bytes, want at most %d", c.file, len(picture), limit)
			}
			file := filepath.Join("../../docs/images", c.file)
			if os.Getenv("UPDATE_SCREENSHOTS") != "" {
				if err := os.WriteFile(file, picture, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("make screenshots writes it: %v", err)
			}
		})
	}
}
