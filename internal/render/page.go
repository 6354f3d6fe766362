package render

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/node-authorizer/node-authorizer/verdict"
)

// Style marks a piece of text. On a terminal it is a colour.
type Style rune

// The styles. Each is a private-use code point that stands in the text until
// the page is encoded, so that widths can be counted without knowing whether
// colours are on.
const (
	Good Style = 0xE000 + iota
	Bad
	Unsure
	Strong
	Faint
	plain
)

var ansi = map[rune]string{
	rune(Good):   "\x1b[32m",
	rune(Bad):    "\x1b[31m",
	rune(Unsure): "\x1b[33m",
	rune(Strong): "\x1b[1m",
	rune(Faint):  "\x1b[2m",
	rune(plain):  "\x1b[0m",
}

// In returns the text in a style.
func (s Style) In(text string) string {
	if text == "" {
		return ""
	}
	return string(rune(s)) + text + string(rune(plain))
}

// Page collects text for people.
type Page struct {
	wide  bool
	lines []string
}

// Wide is true when the reader asked for more detail.
func (p *Page) Wide() bool { return p.wide }

// Line adds one line.
func (p *Page) Line(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// Section adds a heading, after an empty line unless it is the first.
func (p *Page) Section(format string, args ...any) {
	if len(p.lines) > 0 {
		p.Line("")
	}
	p.Line("%s", Strong.In(fmt.Sprintf(format, args...)))
}

// Field is a name and a value.
type Field struct{ Name, Value string }

// Fields adds indented lines of names and values, the values in one column.
// Fields without a value are left out.
func (p *Page) Fields(fields ...Field) {
	widest := 0
	for _, f := range fields {
		if f.Value != "" {
			widest = max(widest, width(f.Name))
		}
	}
	for _, f := range fields {
		if f.Value != "" {
			p.Line("  %s%s  %s", Faint.In(f.Name), spaces(widest-width(f.Name)), f.Value)
		}
	}
}

// Table adds rows under headers, in columns. Trailing empty columns take no
// room.
func (p *Page) Table(indent int, headers []string, rows [][]string) {
	styled := make([]string, len(headers))
	for i, h := range headers {
		styled[i] = Faint.In(h)
	}
	all := rows
	if len(headers) > 0 {
		all = append([][]string{styled}, rows...)
	}
	var widths []int
	for _, row := range all {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], width(cell))
		}
	}
	for _, row := range all {
		var b strings.Builder
		b.WriteString(spaces(indent))
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(spaces(widths[i] - width(cell) + 3))
			}
		}
		p.Line("%s", strings.TrimRight(b.String(), " "))
	}
}

// Path adds a path, one object a line, each with the field that leads to it.
func (p *Page) Path(indent int, path verdict.Path) {
	if len(path) == 0 {
		return
	}
	p.Line("%s%s", spaces(indent), path[0].From)
	var rows [][]string
	for _, e := range path {
		field := e.Field
		if e.Holder == e.From && e.From != e.To {
			field += " of " + e.From.String()
		}
		rows = append(rows, []string{"← " + e.To.String(), Faint.In(field)})
	}
	p.Table(indent+2, nil, rows)
}

// encode resolves styles, and shows every other control character, and what would turn
// the direction of the text around it, as one that is not known.
func (p *Page) encode(colour bool) []byte {
	var b strings.Builder
	for _, line := range p.lines {
		b.WriteString(resolve(line, colour))
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// Printable returns the text without control characters and styles, so that it
// can be shown on a terminal whatever it is made of.
func Printable(text string) string { return resolve(text, false) }

func resolve(line string, colour bool) string {
	var b strings.Builder
	for _, r := range line {
		switch code, isStyle := ansi[r]; {
		case isStyle && colour:
			b.WriteString(code)
		case isStyle:
		case unicode.IsControl(r), unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
			b.WriteRune(unicode.ReplacementChar)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// width counts the characters that a terminal shows.
func width(text string) int {
	n := 0
	for _, r := range text {
		if _, isStyle := ansi[r]; !isStyle {
			n++
		}
	}
	return n
}

func spaces(n int) string { return strings.Repeat(" ", max(0, n)) }

// Count writes a number with its noun: "1 pod", "2 pods", "12,034 pods".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	case strings.HasSuffix(noun, "y"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return Thousands(n) + " " + noun
}

// Thousands writes a number with its digits in groups of three: "12,034".
func Thousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
