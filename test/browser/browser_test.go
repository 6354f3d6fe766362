package browser

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/node-authorizer/node-authorizer/internal/cli"
)

// chromium is the browser of all tests; each has a tab of its own.
var chromium context.Context

func TestMain(m *testing.M) {
	os.Exit(withChromium(m.Run))
}

func withChromium(run func() int) int {
	path := findChromium()
	if path == "" {
		fmt.Fprintln(os.Stderr, "the tests of pages need Chromium: install the package chromium, as with apt-get install chromium")
		return 1
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	var cancel context.CancelFunc
	chromium, cancel = chromedp.NewContext(allocator)
	defer cancel()
	if err := chromedp.Do(chromium); err != nil {
		fmt.Fprintln(os.Stderr, "starting Chromium:", err)
		return 1
	}
	return run()
}

func findChromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// html runs the command line and returns the page that it writes.
func html(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errOut bytes.Buffer
	status := cli.Main(append(append([]string{"node-authorizer"}, args...), "-o", "html"), strings.NewReader(""), &out, &errOut)
	if out.Len() == 0 {
		t.Fatalf("node-authorizer %s: status %d: %s", strings.Join(args, " "), status, errOut.String())
	}
	return out.Bytes()
}

// careless is the page about all nodes of a cluster in which some own it.
func careless(t *testing.T) []byte {
	t.Helper()
	return html(t, "attack-paths", "--all-nodes", "--what-to-change", "--from", "testdata/careless.yaml")
}

// view is how a page is looked at.
type view struct {
	name          string
	width, height int64
	dark, phone   bool
}

var (
	light = view{name: "light", width: 1280, height: 900}
	dark  = view{name: "dark", width: 1280, height: 900, dark: true}
	phone = view{name: "phone", width: 390, height: 844, phone: true}
)

// tab is a page in the browser.
type tab struct {
	*testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	requests []string
	problems []string
}

// open opens a page with a fragment. When the test ends, the page must have asked for nothing but
// itself, and its scripts must not have failed.
func open(t *testing.T, page []byte, fragment string, v view) *tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := chromedp.NewContext(chromium)
	ctx, cancelTime := context.WithTimeout(ctx, time.Minute)
	p := &tab{T: t, ctx: ctx, url: (&url.URL{Scheme: "file", Path: file}).String()}
	t.Cleanup(func() {
		cancelTime()
		cancel()
		p.check()
	})
	if err := chromedp.Listen(ctx, p.listen); err != nil {
		t.Fatal(err)
	}
	scheme := "light"
	if v.dark {
		scheme = "dark"
	}
	call(p, network.Enable, network.EnableParams{})
	call(p, runtime.Enable, cdp.Empty{})
	call(p, log.Enable, cdp.Empty{})
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	p.do(chromedp.EmulateViewport(v.width, v.height,
		func(p *emulation.SetDeviceMetricsOverrideParams, _ *emulation.SetTouchEmulationEnabledParams) {
			p.Mobile = v.phone
		}))
	p.navigate(fragment)
	return p
}

// navigate loads the page with a fragment, and waits until it can be used.
func (p *tab) navigate(fragment string) {
	p.Helper()
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(p.url+fragment), chromedp.WaitReady(chromedp.CSS("html[data-ready]")))
}

func (p *tab) listen(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		p.requests = append(p.requests, e.Request.URL)
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		p.problems = append(p.problems, e.Entry.Text)
	case *runtime.EventConsoleAPICalled:
		p.problems = append(p.problems, fmt.Sprint("console: ", e.Type))
	}
}

func (p *tab) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if r != p.url && r != "about:blank" {
			p.Errorf("the page asks for %s", r)
		}
	}
	for _, problem := range p.problems {
		p.Errorf("in the page: %s", problem)
	}
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// call runs a command of the browser's protocol.
func call[P, R any](p *tab, command cdp.Command[P, R], params P) {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, command, params); err != nil {
		p.Fatal(err)
	}
}

// eval returns the value of an expression; if the value is a promise, the value of the promise.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return value
}

// text is the text of the first element that a selector names.
func (p *tab) text(selector string) string {
	p.Helper()
	return eval[string](p, fmt.Sprintf("document.querySelector(%q)?.innerText ?? 'no such element'", selector))
}

// wait waits until an expression is true, one frame after the other.
func (p *tab) wait(expression string) {
	p.Helper()
	const frames = 300
	if !eval[bool](p, fmt.Sprintf(`new Promise((resolve) => {
		let left = %d;
		const look = () => { if (%s) resolve(true); else if (left-- === 0) resolve(false); else requestAnimationFrame(look); };
		look();
	})`, frames, expression)) {
		p.Fatalf("never true: %s", expression)
	}
}

// press sends keys to the element with the focus.
func (p *tab) press(keys ...string) {
	p.Helper()
	for _, key := range keys {
		p.do(chromedp.KeyEvent(key))
	}
}

func (p *tab) fragment() string {
	return eval[string](p, "decodeURIComponent(location.hash.replaceAll('+', ' '))")
}
