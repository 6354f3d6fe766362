package render

import (
	"regexp"
	"strings"
	"testing"
)

// laid is a result made by a function.
type laid func(*Page)

func (l laid) Text(p *Page) { l(p) }

func lay(t *testing.T, o Options, text func(*Page)) string {
	t.Helper()
	if o.Format == "" {
		o.Format = Table
	}
	var out strings.Builder
	if err := Write(&out, laid(text), o); err != nil {
		t.Fatal(err)
	}
	return "\n" + out.String()
}

func TestProseWrapsToTheWidth(t *testing.T) {
	for _, tc := range []struct {
		rule  string
		width int
		text  func(*Page)
		want  string
	}{
		{"without a width, nothing wraps", 0, func(p *Page) { p.Line("  one two three four five six") }, `
  one two three four five six
`},
		{"a line that just fits stays", 29, func(p *Page) { p.Line("  one two three four five six") }, `
  one two three four five six
`},
		{"a line breaks between words, and hangs under its beginning", 26, func(p *Page) {
			p.Line("  one two three four five six")
		}, `
  one two three four five
  six
`},
		{"an item of a list hangs under its text", 20, func(p *Page) { p.Line("  - one two three four five six") }, `
  - one two three
    four five six
`},
		{"a value hangs under the value", 24, func(p *Page) {
			p.Fields(Field{"by", "Node"}, Field{"reason", "one two three four five"})
		}, `
  by      Node
  reason  one two three
          four five
`},
		{"what a fix says hangs under what it says", 20, func(p *Page) { p.Hanging(7, "  %s one two three four", Good.In("fix:")) }, `
  fix: one two three
       four
`},
		{"a word that is longer than the line is not broken", 20, func(p *Page) {
			p.Line("  see https://example.com/long/way for more about it")
		}, `
  see
  https://example.com/long/way
  for more about it
`},
		{"styles take no room", 20, func(p *Page) { p.Line("%s one two %s", Bad.In("no:"), Faint.In("three four")) }, `
no: one two three
four
`},
		{"wide characters take two columns", 20, func(p *Page) { p.Line("日本語 日本語 日本語 日本語") }, `
日本語 日本語 日本語
日本語
`},
		{"a terminal that is too narrow for text gets long lines", 19, func(p *Page) { p.Line("one two three four five six") }, `
one two three four five six
`},
		{"commands are in one line, to be copied", 20, func(p *Page) { p.Command("  %s", "kubectl get pods -A -o yaml") }, `
  kubectl get pods -A -o yaml
`},
		{"scripts are not changed", 20, func(p *Page) { p.Comment("a comment that is longer than the line") }, `
# a comment that is longer than the line
`},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := lay(t, Options{Width: tc.width}, tc.text); got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestTablesShortenToTheWidth(t *testing.T) {
	headers := []string{"NAME", "PODS", "THROUGH"}
	rows := [][]string{{"shop/database-password", "1,234", "pod shop/api (spec.containers[name=api].env)"}}
	for _, tc := range []struct {
		rule string
		o    Options
		text func(*Page)
		want string
	}{
		{"without a width, nothing is shortened", Options{}, func(p *Page) { p.Table(2, headers, rows) }, `
  NAME                     PODS    THROUGH
  shop/database-password   1,234   pod shop/api (spec.containers[name=api].env)
`},
		{"wide output is not shortened", Options{Width: 40, Format: Wide}, func(p *Page) { p.Table(2, headers, rows) }, `
  NAME                     PODS    THROUGH
  shop/database-password   1,234   pod shop/api (spec.containers[name=api].env)
`},
		{"the widest column that is no name is shortened first", Options{Width: 60}, func(p *Page) { p.Table(2, headers, rows) }, `
  NAME                     PODS    THROUGH
  shop/database-password   1,234   pod shop/api (spec.conta…
`},
		{"names are shortened last, and numbers never", Options{Width: 40}, func(p *Page) { p.Table(2, headers, rows) }, `
  NAME                  PODS    THROUGH
  shop/database-pass…   1,234   pod sho…
`},
		{"the widest columns are shortened to the same width", Options{Width: 40}, func(p *Page) {
			p.Table(0, nil, [][]string{{"1.", "token", "pod shop/api → account", "because it is mounted"}})
		}, `
1.   token   pod shop/ap…   because it …
`},
		{"of a column with numbers, the header is shortened", Options{Width: 30}, func(p *Page) {
			p.Table(0, []string{"NAMESPACE", "PersistentVolumeClaim"}, [][]string{{"kube-node-lease", "1,234"}})
		}, `
NAMESPACE         PersistentV…
kube-node-lease   1,234
`},
		{"styles end with the text", Options{Width: 20, Colour: true}, func(p *Page) {
			p.Table(0, nil, [][]string{{"a", Faint.In("one two three four five")}})
		}, "\na   \x1b[2mone two three f…\x1b[0m\n"},
		{"wide characters are not cut in half", Options{Width: 20}, func(p *Page) {
			p.Table(0, nil, [][]string{{"a", "日本語日本語日本語日本語"}})
		}, `
a   日本語日本語日…
`},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := lay(t, tc.o, tc.text); got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestStepsAreNeverShortened(t *testing.T) {
	steps := [][4]string{
		{"1.", "PodToken", "node web-1 → serviceaccount shop/api", "pod shop/api-1 runs on web-1 and mounts a token"},
		{"10.", "EscalateRole", "serviceaccount shop/api → cluster-admin", "may add any rule to a role"},
	}
	oneLine := `
  1.    PodToken       node web-1 → serviceaccount shop/api      pod shop/api-1 runs on web-1 and mounts a token
  10.   EscalateRole   serviceaccount shop/api → cluster-admin   may add any rule to a role
`
	for _, tc := range []struct {
		rule string
		o    Options
		want string
	}{
		{"without a width, each is one line", Options{}, oneLine},
		{"wide output has one line for each", Options{Width: 60, Format: Wide}, oneLine},
		{"steps that fit are one line each", Options{Width: 113}, oneLine},
		{"why stands below each where one does not fit", Options{Width: 62}, `
  1.    PodToken       node web-1 → serviceaccount shop/api
        pod shop/api-1 runs on web-1 and mounts a token
  10.   EscalateRole   serviceaccount shop/api → cluster-admin
        may add any rule to a role
`},
		{"both wrap on a narrow terminal", Options{Width: 48}, `
  1.    PodToken       node web-1 →
                       serviceaccount shop/api
        pod shop/api-1 runs on web-1 and mounts
        a token
  10.   EscalateRole   serviceaccount shop/api →
                       cluster-admin
        may add any rule to a role
`},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			if got := lay(t, tc.o, func(p *Page) { p.Steps(2, steps) }); got != tc.want {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestColumnsAlignByWhatATerminalShows(t *testing.T) {
	got := lay(t, Options{}, func(p *Page) { p.Table(0, nil, [][]string{{"日本", "x"}, {"e\u0301", "y"}, {"a", "z"}}) })
	if want := "\n日本   x\ne\u0301      y\na      z\n"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestPagesSayHowTheProgramIsCalled(t *testing.T) {
	o := Options{Program: func(text string) string {
		return regexp.MustCompile(`tool (\w+)`).ReplaceAllString(text, "kubectl tool $1")
	}}
	got := lay(t, o, func(p *Page) {
		p.Line("use tool x")
		p.Fields(Field{"hint", "use tool x"})
		p.Command("  tool x")
		p.Comment("tool x")
		p.Script("echo 'tool x'")
	})
	want := `
use kubectl tool x
  hint  use kubectl tool x
  kubectl tool x
# tool x
echo 'tool x'
`
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
