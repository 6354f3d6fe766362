package render

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/node-authorizer/node-authorizer/docs/reference"
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
	wide bool
	// width is the number of columns of the terminal; 0 if lines can be of any length.
	width int
	// program puts the program's name as the user writes it into texts; nil leaves them.
	program func(string) string
	lines   []line
	// links are the codes that a wide page names, with the addresses of their sections.
	links []Field
}

// Wide is true when the reader asked for more detail.
func (p *Page) Wide() bool { return p.wide }

// Code returns a code to print. A wide page ends with the addresses of the sections about its codes. Codes without a section, such
// as techniques of a file, are left out.
func (p *Page) Code(kind reference.Kind, code string) string {
	if p.wide && !slices.ContainsFunc(p.links, func(f Field) bool { return f.Name == code }) {
		if link := reference.Link(kind, code); link != "" {
			p.links = append(p.links, Field{code, link})
		}
	}
	return code
}

func (p *Page) linkCodes() {
	if len(p.links) > 0 {
		slices.SortFunc(p.links, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
		p.Section("Codes")
		p.Fields(p.links...)
	}
}

// Shown returns the first rows of a list, and all of them on a wide page.
func Shown[T any](p *Page, most int, rows []T) []T {
	if p.Wide() {
		return rows
	}
	return rows[:min(most, len(rows))]
}

// Line adds one line. On a terminal it wraps, and what follows is indented as its beginning.
func (p *Page) Line(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	p.lines = append(p.lines, line{text: text, hang: hanging(text)})
}

// Hanging adds a line of which the parts after the first are indented by so many columns.
func (p *Page) Hanging(columns int, format string, args ...any) {
	p.lines = append(p.lines, line{text: fmt.Sprintf(format, args...), hang: columns})
}

// Command adds a line that people copy into a shell. It does not wrap.
func (p *Page) Command(format string, args ...any) {
	p.lines = append(p.lines, line{text: fmt.Sprintf(format, args...), kind: commandLine})
}

// Script adds a line of a shell script, as it is.
func (p *Page) Script(format string, args ...any) {
	p.lines = append(p.lines, line{text: fmt.Sprintf(format, args...), kind: scriptLine})
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
			p.Hanging(widest+4, "  %s%s  %s", Faint.In(f.Name), spaces(widest-width(f.Name)), f.Value)
		}
	}
}

// Table adds rows under headers, in columns. Trailing empty columns take no room. On a terminal,
// columns are shortened so that a row takes one line, unless the page is wide.
func (p *Page) Table(indent int, headers []string, rows [][]string) {
	styled := make([]string, len(headers))
	for i, h := range headers {
		styled[i] = Faint.In(h)
	}
	all := rows
	if len(headers) > 0 {
		all = append([][]string{styled}, rows...)
	}
	columns := measure(headers, all)
	if p.width >= minWidth && !p.wide {
		fit(columns, p.width-indent)
	}
	for _, cells := range all {
		var b strings.Builder
		b.WriteString(spaces(indent))
		for i, cell := range cells {
			cell = shortened(cell, columns[i].width)
			b.WriteString(cell)
			if i < len(cells)-1 {
				b.WriteString(spaces(columns[i].width - width(cell) + columnGap))
			}
		}
		p.lines = append(p.lines, line{text: strings.TrimRight(b.String(), " "), kind: tableRow})
	}
}

// TableOf adds a table with a row for each of the first of a list, and for all of it on a wide page. It returns how many are left out.
func TableOf[T any](p *Page, indent, most int, headers []string, all []T, row func(T) []string) int {
	shown := Shown(p, most, all)
	rows := make([][]string, len(shown))
	for i, x := range shown {
		rows[i] = row(x)
	}
	p.Table(indent, headers, rows)
	return len(all) - len(shown)
}

// Steps adds steps, each a number, a name, what it leads to and why. Where rows do not fit the
// terminal, they are not shortened: why stands in lines of its own below each step.
func (p *Page) Steps(indent int, steps [][4]string) {
	rows := make([][]string, len(steps))
	for i := range steps {
		rows[i] = steps[i][:]
	}
	columns := measure(nil, rows)
	if p.width < minWidth || p.wide || indent+tableWidth(columns) <= p.width {
		p.Table(indent, nil, rows)
		return
	}
	text := indent + columns[0].width + columnGap
	target := text + columns[1].width + columnGap
	for _, step := range steps {
		number, name := step[0]+spaces(columns[0].width-width(step[0])), step[1]+spaces(columns[1].width-width(step[1]))
		p.Hanging(target, "%s%s%s%s%s%s", spaces(indent), number, spaces(columnGap), name, spaces(columnGap), step[2])
		p.Hanging(text, "%s%s", spaces(text), step[3])
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
	for _, l := range p.lines {
		for _, text := range p.fitted(l) {
			b.WriteString(resolve(text, colour))
			b.WriteByte('\n')
		}
	}
	return []byte(b.String())
}

// Plain returns the text that a function writes, without styles.
func Plain(write func(*Page)) string {
	p := &Page{}
	write(p)
	return string(p.encode(false))
}

// Printable returns the text without control characters and styles, so that any
// text can be shown on a terminal.
func Printable(text string) string { return resolve(text, false) }

func resolve(line string, colour bool) string {
	var b strings.Builder
	for _, r := range line {
		switch code, isStyle := ansi[r]; {
		case isStyle && colour:
			b.WriteString(code)
		case isStyle:
		case unreadable(r):
			b.WriteRune(unicode.ReplacementChar)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
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

// Plural returns the word that agrees with a number: a verb, or a noun without the number.
func Plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Thousands writes a number with its digits in groups of three: "12,034".
func Thousands(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Names lists the first names, and counts the others: "a, b", "a, b, c and 4 more".
func Names(all []string, most int) string {
	if len(all) <= most {
		return strings.Join(all, ", ")
	}
	return strings.Join(all[:most], ", ") + " and " + Thousands(len(all)-most) + " more"
}

// mostFiles is how many files a sentence names.
const mostFiles = 3

// Files names files in a sentence: "file a.yaml", "files a.yaml, b.yaml, c.yaml and 4 more". It stands behind a
// preposition, so that no verb has to agree with the number of files.
func Files(names []string) string {
	if len(names) == 1 {
		return "file " + names[0]
	}
	return "files " + Names(names, mostFiles)
}

// Join joins words, with another one before the last: "a, b or c".
func Join(words []string, before string) string {
	last := len(words) - 1
	if last <= 0 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " " + before + " " + words[last]
}
