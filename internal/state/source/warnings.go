package source

import "fmt"

// warningLimit is how many warnings of one class are kept; further ones are counted.
const warningLimit = 10

// warnings collects warnings. Input can repeat the same problem a million times, so
// each class of warnings is limited to warningLimit lines.
type warnings struct {
	classes []*warningClass
}

type warningClass struct {
	name  string // what the class counts: "objects given twice"
	lines []string
	total int
}

func (w *warnings) add(class, line string) {
	var c *warningClass
	for _, known := range w.classes {
		if known.name == class {
			c = known
		}
	}
	if c == nil {
		c = &warningClass{name: class}
		w.classes = append(w.classes, c)
	}
	c.total++
	if len(c.lines) < warningLimit {
		c.lines = append(c.lines, line)
	}
}

func (w *warnings) lines() []string {
	var lines []string
	for _, c := range w.classes {
		lines = append(lines, c.lines...)
		if more := c.total - len(c.lines); more > 0 {
			lines = append(lines, fmt.Sprintf("and %d more %s", more, c.name))
		}
	}
	return lines
}
