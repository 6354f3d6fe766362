package cli

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// manual is what the manual pages of one version have in common.
type manual struct {
	version string
	date    time.Time
}

// pageName is the name of a topic's page: node-authorizer-config-validate.
func (t *topic) pageName() string { return strings.ReplaceAll(t.name, " ", "-") }

// page returns the manual page of a topic, in the language of man(7). Parents are the topics above.
func (m manual) page(t *topic, parents ...*topic) string {
	r := &roff{}
	r.macro("TH", strings.ToUpper(t.pageName()), "1", m.date.UTC().Format(time.DateOnly), "node-authorizer "+m.version, "User Commands")
	r.b.WriteString(".nh\n")
	r.section("NAME")
	r.line(t.pageName() + ` \- ` + roffText(t.summary))
	r.section("SYNOPSIS")
	name, rest, _ := strings.Cut(t.usage[len(t.name):], " ")
	r.line(`\fB` + roffCode(t.name+name) + `\fR ` + roffCode(rest))
	r.section("DESCRIPTION")
	r.passages(t.description)
	if len(t.commands) > 0 {
		r.section("COMMANDS")
		for _, c := range t.commands {
			r.term(`\fB`+roffCode(c.name[len(t.name)+1:])+`\fR`, roffText(c.summary)+".")
		}
	}
	for _, section := range t.flags {
		r.flags(section)
	}
	r.section("EXIT STATUS")
	r.terms(t.status.values)
	if t.status.notes != "" {
		r.paragraph()
		r.line(roffText(t.status.notes))
	}
	if len(t.examples) > 0 {
		r.section("EXAMPLES")
		r.passages(t.examples)
	}
	for _, list := range []struct {
		heading string
		terms   []helpTerm
	}{{"ENVIRONMENT", t.variables}, {"FILES", t.files}} {
		if len(list.terms) > 0 {
			r.section(list.heading)
			r.terms(list.terms)
		}
	}
	r.seeAlso(append(parents, t.commands...))
	return r.b.String()
}

// roff is a page that is being written.
type roff struct {
	b strings.Builder
	// begun is true if the section has something.
	begun bool
}

// line writes a line of text that is escaped.
func (r *roff) line(text string) {
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	r.b.WriteString(text + "\n")
	r.begun = true
}

// section begins a section.
func (r *roff) section(heading string) {
	r.macro("SH", heading)
	r.begun = false
}

// paragraph begins a paragraph, unless a section begins one.
func (r *roff) paragraph() {
	if r.begun {
		r.macro("PP")
	}
}

func (r *roff) macro(name string, args ...string) {
	r.b.WriteString("." + name)
	for _, arg := range args {
		fmt.Fprintf(&r.b, ` "%s"`, roffText(arg))
	}
	r.b.WriteByte('\n')
}

func (r *roff) passages(all []passage) {
	for _, p := range all {
		if r.paragraph(); p.text != "" {
			r.line(roffText(p.text))
			continue
		}
		r.b.WriteString(".RS 4\n.nf\n")
		for _, line := range p.verbatim {
			r.line(roffCode(line))
		}
		r.b.WriteString(".fi\n.RE\n")
	}
}

func (r *roff) terms(all []helpTerm) {
	for _, t := range all {
		r.term(`\fB`+roffCode(t.name)+`\fR`, roffText(helpSentence(t.text)))
	}
}

// term writes a term and its description.
func (r *roff) term(name, text string) {
	r.b.WriteString(".TP\n")
	r.line(name)
	r.line(text)
}

func (r *roff) flags(s flagSection) {
	heading := "OPTIONS"
	if s.heading != "Flags" {
		heading = "OPTIONS: " + strings.ToUpper(s.heading)
	}
	r.section(heading)
	for _, f := range s.flags {
		name := `\fB` + roffCode("--"+f.long) + `\fR`
		if f.short != "" {
			name = `\fB` + roffCode("-"+f.short) + `\fR, ` + name
		}
		if f.value != "" {
			name += ` \fI` + roffCode(f.value) + `\fR`
		}
		text := roffText(f.text)
		if f.fallback != "" {
			text += " The default is " + roffCode(f.fallback) + "."
		}
		r.term(name, text)
	}
}

func (r *roff) seeAlso(topics []*topic) {
	if len(topics) == 0 {
		return
	}
	r.section("SEE ALSO")
	var names []string
	for _, t := range topics {
		names = append(names, `\fB`+roffCode(t.pageName())+`\fR(1)`)
	}
	r.macro("ad l") // the names are long and cannot be broken
	r.line(strings.Join(names, ", "))
}

// roffText escapes text. Dashes of flags are typed as they are, others may become hyphens.
func roffText(text string) string {
	return regexp.MustCompile(`(^|[ (])(--?)([a-zA-Z])`).ReplaceAllStringFunc(roffEscaped(text), func(flag string) string {
		return strings.ReplaceAll(flag, "-", `\-`)
	})
}

// roffCode escapes text whose dashes are typed as they are.
func roffCode(text string) string { return strings.ReplaceAll(roffEscaped(text), "-", `\-`) }

// roffEscaped escapes what is not plain text in the language of pages.
func roffEscaped(text string) string {
	names := map[rune]string{'\\': `\e`, '"': `\(dq`, '\'': `\(aq`, '`': `\(ga`, '^': `\(ha`, '~': `\(ti`}
	var b strings.Builder
	for _, c := range text {
		switch name, ok := names[c]; {
		case ok:
			b.WriteString(name)
		case c > '~':
			fmt.Fprintf(&b, `\[u%04X]`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
