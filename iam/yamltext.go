package iam

import (
	"errors"
	"io"
	"regexp"
	"sort"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxMappingText is the size, in bytes, of the largest text with mappings that is
// read. The API server takes no ConfigMap of that size.
const maxMappingText = 2 << 20

// yamlText is what is in a text of YAML. Only its first document is read, as
// aws-iam-authenticator does.
type yamlText struct {
	// root is nil if there is nothing in the text.
	root *yaml.Node
	// more is the line on which something begins after the document; 0 if nothing does.
	more int
	// lines has, for each line as YAML counts them, the line as editors do; nil if these
	// are the same.
	lines []int
}

// syntaxError says that a text is not YAML.
type syntaxError struct {
	line    int
	problem string
}

func parseYAML(text string) (*yamlText, *syntaxError) {
	root, more, err := documents(text)
	if err != nil && more == 0 {
		firstOnly := func(text string) error {
			_, more, err := documents(text)
			if more > 0 {
				return nil
			}
			return err
		}
		return nil, &syntaxError{line: problemLine(text, firstOnly), problem: problemText(err)}
	}
	y := &yamlText{root: root, lines: editorLines(text)}
	if more > 0 {
		y.more = y.line(more)
	}
	if err != nil {
		y.more = problemLine(text, func(text string) error {
			_, _, err := documents(text)
			return err
		})
	}
	return y, nil
}

// documents parses the first document of a text, and looks whether there is more: on
// which line, as YAML counts them, and whether that can be parsed. An error without
// more is about the first document.
func documents(text string) (root *yaml.Node, more int, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var first yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	root = first.Content[0]
	for {
		var next yaml.Node
		if err := decoder.Decode(&next); errors.Is(err, io.EOF) {
			return root, 0, nil
		} else if err != nil {
			return root, 1, err
		}
		if content := next.Content[0]; content.ShortTag() != "!!null" {
			return root, content.Line, nil
		}
	}
}

// yamlProblem is how the decoder says what is wrong, with a line that can be that
// of the mistake, the one before, or the one on which a list begins.
var yamlProblem = regexp.MustCompile(`(?s)^yaml: (?:line \d+: )?([^\n]*)`)

func problemText(err error) string {
	if match := yamlProblem.FindStringSubmatch(err.Error()); match != nil {
		return match[1]
	}
	return err.Error()
}

// problemLine finds the line of a mistake: up to the line before, a text can be read.
// What spans lines cannot be read while it is incomplete; there it is the first line
// with which the mistake is the same as that of the whole text. The effort is bounded;
// beyond it the line is that on which what cannot be read begins.
func problemLine(text string, check func(string) error) int {
	want := check(text).Error()
	ends := lineEnds(text)
	effort := 0
	fails := func(lines int) error {
		effort -= ends[lines-1]
		return check(text[:ends[lines-1]])
	}
	good := 0
	for {
		begin := good + 1 + sort.Search(len(ends)-good-1, func(i int) bool { return fails(good+1+i) != nil })
		if good == 0 {
			effort = 4*len(text) + 1<<20 // for what spans lines
		}
		line := begin
		for ; line < len(ends) && effort > 0; line++ {
			err := fails(line)
			if err == nil {
				break
			}
			if err.Error() == want {
				return line
			}
		}
		if line == len(ends) {
			return line
		}
		if effort <= 0 {
			return begin
		}
		good = line
	}
}

// usernameEndsInColon reports whether a line, or the one before it, has a username
// without quotes that ends in a colon, which begins a field in the middle of a line.
func usernameEndsInColon(text string, line int) bool {
	lines := strings.Split(text, "\n")
	for _, i := range []int{line - 1, line - 2} {
		if i >= 0 && i < len(lines) && colonAtEnd.MatchString(lines[i]) {
			return true
		}
	}
	return false
}

var colonAtEnd = regexp.MustCompile(`(?i)^[\s-]*username:\s+[^\s"'#]*:\s*(#.*)?$`)

// lineEnds returns where each line of a text ends, its line break included.
func lineEnds(text string) []int {
	var ends []int
	for i := range len(text) {
		if text[i] == '\n' {
			ends = append(ends, i+1)
		}
	}
	if len(ends) == 0 || ends[len(ends)-1] < len(text) {
		ends = append(ends, len(text))
	}
	return ends
}

// editorLines numbers the lines of a text that has line breaks that YAML knows and
// editors do not.
func editorLines(text string) []int {
	if !strings.ContainsAny(text, "\r\u0085\u2028\u2029") {
		return nil
	}
	lines := []int{0, 1}
	line := 1
	for i, r := range text {
		switch r {
		case '\n':
			line++
			lines = append(lines, line)
		case '\r':
			if !strings.HasPrefix(text[i+1:], "\n") {
				lines = append(lines, line)
			}
		case '\u0085', '\u2028', '\u2029':
			lines = append(lines, line)
		}
	}
	return lines
}

func (y *yamlText) line(counted int) int {
	if counted < len(y.lines) {
		return y.lines[counted]
	}
	return counted
}
