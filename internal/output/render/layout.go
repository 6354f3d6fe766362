package render

import (
	"strings"
	"unicode"
	"unicode/utf8"

	eastasian "golang.org/x/text/width"
)

// minWidth is the width of the narrowest terminal to which text is fitted.
const minWidth = 20

// line is one line of a page.
type line struct {
	text string
	// hang is the indentation of the lines that follow when the line wraps.
	hang int
	kind lineKind
}

type lineKind uint8

const (
	// proseLine wraps.
	proseLine lineKind = iota
	// commandLine is for people to copy, so that it stays one line.
	commandLine
	// scriptLine is for a shell and is not changed at all.
	scriptLine
	// tableRow is a row of a table, which fits already.
	tableRow
)

// fitted returns the lines of a terminal for one line of a page.
func (p *Page) fitted(l line) []string {
	if l.kind != scriptLine && p.program != nil {
		l.text = p.program(l.text)
	}
	if l.kind != proseLine {
		return []string{l.text}
	}
	return Wrap(l.text, p.width, l.hang)
}

// Wrap breaks a text into lines of at most so many columns, between words. Lines after the first
// are indented by hang. A width of 0, and one that is too small for text, breaks nothing.
func Wrap(text string, columns, hang int) []string {
	if columns < minWidth || width(text) <= columns {
		return []string{text}
	}
	if hang > columns/2 {
		hang = 2
	}
	var lines []string
	indent := ""
	for {
		cut := breakAt(text, columns-len(indent))
		if cut < 0 {
			return append(lines, indent+text)
		}
		lines = append(lines, indent+strings.TrimRight(text[:cut], " "))
		text, indent = strings.TrimLeft(text[cut:], " "), spaces(hang)
	}
}

// breakAt returns the position of the last space at which a text can end within so many columns,
// or else of the first space after a word that is longer; -1 if the text need not or cannot break.
func breakAt(text string, columns int) int {
	at, last, begun := 0, -1, false
	for i, r := range text {
		if r == ' ' && begun {
			last = i
		}
		begun = begun || r != ' ' && columnsOf(r) > 0
		if at += columnsOf(r); at > columns && last >= 0 && r != ' ' {
			return last
		}
	}
	return -1
}

// hanging returns the indentation of a line's text: after spaces, and the mark of an item.
func hanging(text string) int {
	rest := strings.TrimLeft(text, " ")
	indent := len(text) - len(rest)
	for _, mark := range []string{"- ", "* ", "→ "} {
		if plain := unstyled(rest); strings.HasPrefix(plain, mark) {
			return indent + 2
		}
	}
	return indent
}

func unstyled(text string) string {
	return strings.Map(func(r rune) rune {
		if _, isStyle := ansi[r]; isStyle {
			return -1
		}
		return r
	}, text)
}

// width counts the columns that a terminal needs.
func width(text string) int {
	n := 0
	for _, r := range text {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	switch {
	case r < 0x7f:
		return 1 // a control character is replaced by a visible one
	case ansi[r] != "":
		return 0
	case unreadable(r):
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	switch eastasian.LookupRune(r).Kind() {
	case eastasian.EastAsianWide, eastasian.EastAsianFullwidth:
		return 2
	}
	return 1
}

// shortened cuts a text to so many columns, the last of which is an ellipsis.
func shortened(text string, columns int) string {
	if width(text) <= columns {
		return text
	}
	at, style := 0, false
	for i, r := range text {
		if at += columnsOf(r); at > columns-1 {
			text = text[:i] + "…"
			break
		}
		if _, isStyle := ansi[r]; isStyle {
			style = r != rune(plain)
		}
	}
	if style {
		text += string(rune(plain))
	}
	return text
}

// The gap between columns of tables, and the widths to which columns are shortened: text, then
// names, then everything. Numbers stay.
const (
	columnGap   = 3
	shortText   = 8
	shortName   = 16
	shortestAll = 4
)

// nameHeaders are the headers of columns with names, besides the first column of each table.
// People copy names, so other columns are shortened before.
var nameHeaders = map[string]bool{
	"NAME": true, "NAMES": true, "NAMESPACE": true, "NODE": true, "NODES": true, "USERNAME": true, "WORKLOAD": true,
}

// column is a column of a table that is fitted to a terminal.
type column struct {
	width int
	// name is true if people may copy what is in the column.
	name bool
	// digits is the width of the longest number: no digit may be lost.
	digits int
}

// fit reduces the widths of columns until they need no more than so many, as far as possible.
func fit(columns []column, most int) {
	total := tableWidth(columns)
	for _, pass := range []struct {
		least       int
		text, names bool
	}{{shortText, true, false}, {shortName, false, true}, {shortestAll, true, true}} {
		for total > most {
			widest := -1
			for i, c := range columns {
				may := c.name && pass.names || !c.name && pass.text
				if may && c.width > max(pass.least, c.digits) && (widest < 0 || c.width >= columns[widest].width) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			columns[widest].width--
			total--
		}
	}
}

func tableWidth(columns []column) int {
	total := columnGap * (len(columns) - 1)
	for _, c := range columns {
		total += c.width
	}
	return total
}

func isNumber(cell string) bool {
	return strings.Trim(unstyled(cell), "0123456789,.-%") == ""
}

// measure returns the columns of a table. The first row has the headers, if there are any.
func measure(headers []string, rows [][]string) []column {
	var columns []column
	for _, row := range rows {
		for j, cell := range row {
			if j == len(columns) {
				columns = append(columns, column{name: j == 0})
			}
			c := &columns[j]
			c.width = max(c.width, width(cell))
			if isNumber(cell) {
				c.digits = max(c.digits, width(cell))
			}
		}
	}
	for j, header := range headers {
		columns[j].name = columns[j].name || nameHeaders[header]
	}
	return columns
}

// unreadable reports whether a character would control a terminal, or change the direction of the
// text around it.
func unreadable(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}
