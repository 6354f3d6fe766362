// Package recording draws commands and what they print as an animated picture of a
// terminal (SVG). The picture in the README is one.
//
// The picture has no script, refers to nothing and repeats for ever. Where the reader
// prefers reduced motion, it shows one scene and does not move.
package recording

import (
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"
)

// Columns and Rows are the size of the terminal, in characters.
const (
	Columns = 110
	Rows    = 24
)

// Times are in seconds.
const (
	typing  = 0.03 // for each character of a command
	pause   = 0.5  // between a command and its output
	reading = 0.32 // for each line of output
	atLeast = 3.0  // to read one scene
)

// Sizes are in units of the picture.
const (
	charWidth  = 8.0
	lineHeight = 18.0
	margin     = 16.0
	bar        = 30.0
)

// Scene is a screen: a command is typed, then its output appears.
type Scene struct {
	// Comment is a line above the command, without "#".
	Comment string
	Command string
	// Output is the output of the command. Lines that are wider than the terminal are broken,
	// lines that do not fit are left out, and "…" says so.
	Output string
}

// lines of the output as the terminal shows them.
func (s *Scene) lines() []string {
	var all []string
	for line := range strings.SplitSeq(strings.TrimRight(s.Output, "\n"), "\n") {
		for utf8.RuneCountInString(line) > Columns {
			at := len(string([]rune(line)[:Columns]))
			all, line = append(all, line[:at]), line[at:]
		}
		all = append(all, line)
	}
	if room := Rows - 3; len(all) > room {
		all = append(all[:room-1], "…")
	}
	return all
}

// timing of a scene, in seconds from its beginning.
type timing struct{ typed, output, end float64 }

func (s *Scene) timing() timing {
	typed := 0.4 + typing*float64(utf8.RuneCountInString(s.Command))
	output := typed + pause
	return timing{typed, output, output + max(atLeast, reading*float64(len(s.lines())))}
}

// Write writes the scenes as one picture with a title, which screen readers read. Readers who
// prefer reduced motion see the scene with the number still.
func Write(w io.Writer, title string, scenes []Scene, still int) error {
	p := &picture{scenes: scenes, still: still}
	for i := range scenes {
		p.total += scenes[i].timing().end
	}
	p.head(title)
	begin := 0.0
	for i := range scenes {
		begin = p.scene(i, begin)
	}
	p.text.WriteString("</svg>\n")
	_, err := io.WriteString(w, p.text.String())
	return err
}

type picture struct {
	scenes []Scene
	still  int
	total  float64
	text   strings.Builder
}

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

func (p *picture) head(title string) {
	width, height := Columns*charWidth+2*margin, bar+Rows*lineHeight+margin
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %g %g" xml:space="preserve" `, width, height)
	p.printf(`role="img" aria-labelledby="title">` + "\n")
	p.printf("<title id=\"title\">%s</title>\n<style>\n%s", html.EscapeString(title), style)
	begin := 0.0
	for i := range p.scenes {
		begin = p.keyframes(i, begin)
	}
	p.printf("@media (prefers-reduced-motion: reduce) {\n  * { animation: none !important }\n"+
		"  #scene%d, #output%d { opacity: 1 }\n  #typed%d { opacity: 0 }\n}\n",
		p.still, p.still, p.still)
	p.printf("</style>\n<rect width=\"%g\" height=\"%g\" rx=\"8\" fill=\"#14181d\"/>\n", width, height)
	for i, color := range []string{"#e0645c", "#dfb24c", "#62b866"} {
		p.printf("<circle cx=\"%g\" cy=\"%g\" r=\"5\" fill=\"%s\"/>\n", margin+5+float64(i)*18, bar/2, color)
	}
}

const style = `text {
  font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  fill: #c9d1d9;
  white-space: pre
}
.comment { fill: #8b98a5 }
.command { fill: #ffffff; font-weight: 600 }
.scene, .output { opacity: 0 }
`

// keyframes writes when a scene and its output are seen, and how its command is typed.
func (p *picture) keyframes(i int, begin float64) (end float64) {
	scene := &p.scenes[i]
	t := scene.timing()
	p.appears(fmt.Sprintf("scene%d", i), begin, begin+t.end)
	p.appears(fmt.Sprintf("output%d", i), begin+t.output, begin+t.end)
	width := charWidth * float64(utf8.RuneCountInString(scene.Command)+2)
	p.printf("#typed%d { animation: typed%d %.2fs infinite steps(%d) }\n", i, i, p.total, utf8.RuneCountInString(scene.Command))
	p.printf("@keyframes typed%d { 0%%, %s { transform: none } %s, 100%% { transform: translateX(%gpx) } }\n",
		i, p.percent(begin+0.4), p.percent(begin+t.typed), width)
	return begin + t.end
}

// appears makes an element visible from one time to another.
func (p *picture) appears(id string, from, to float64) {
	p.printf("#%s { animation: %s %.2fs infinite step-end }\n", id, id, p.total)
	p.printf("@keyframes %s { 0%% { opacity: %d } %s { opacity: 1 } %s { opacity: 0 } }\n",
		id, map[bool]int{true: 1}[from == 0], p.percent(from), p.percent(to))
}

func (p *picture) percent(seconds float64) string {
	return fmt.Sprintf("%.3f%%", 100*seconds/p.total)
}

// scene draws a scene: the comment, the command under a cover that moves away, and the output.
func (p *picture) scene(i int, begin float64) (end float64) {
	scene := &p.scenes[i]
	p.printf("<g id=\"scene%d\" class=\"scene\">\n", i)
	p.line(0, "comment", "# "+scene.Comment)
	p.line(1, "command", "$ "+scene.Command)
	p.printf("<rect id=\"typed%d\" x=\"%g\" y=\"%g\" width=\"%g\" height=\"%g\" fill=\"#14181d\"/>\n",
		i, margin+2*charWidth, bar+lineHeight, charWidth*float64(utf8.RuneCountInString(scene.Command)+1), lineHeight)
	p.printf("<g id=\"output%d\" class=\"output\">\n", i)
	for row, line := range scene.lines() {
		p.line(row+2, "", line)
	}
	p.printf("</g>\n</g>\n")
	return begin + scene.timing().end
}

// line draws a line of text. Its length is given, so that every font keeps the columns.
func (p *picture) line(row int, class, text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	indent := len(text) - len(strings.TrimLeft(text, " "))
	text = text[indent:]
	if class != "" {
		class = fmt.Sprintf(" class=%q", class)
	}
	p.printf("<text%s x=\"%g\" y=\"%g\" textLength=\"%g\">%s</text>\n", class, margin+charWidth*float64(indent),
		bar+lineHeight*(float64(row)+0.75), charWidth*float64(utf8.RuneCountInString(text)), html.EscapeString(text))
}
