package iam

import (
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/node-authorizer/node-authorizer/internal/yamltext"
)

// maxMappingText is the size, in bytes, of the largest text with mappings that is
// read. The API server takes no ConfigMap of that size.
const maxMappingText = 2 << 20

// parseYAML parses a text, of which only the first document counts, as for
// aws-iam-authenticator. More is the line on which something follows it; 0 if nothing
// does. The error is about the first document.
func parseYAML(text string) (parsed *yamltext.Text, more int, err *yamltext.Error) {
	parsed, err = yamltext.Parse([]byte(text))
	if err != nil && len(parsed.Documents) == 0 {
		return nil, 0, err
	}
	for _, next := range parsed.Documents[min(1, len(parsed.Documents)):] {
		if !isNull(next) {
			return parsed, parsed.Line(next), nil
		}
	}
	if err != nil {
		return parsed, err.Line, nil
	}
	return parsed, 0, nil
}

// firstOf is the first document of a text; nil if there is nothing in it.
func firstOf(text *yamltext.Text) *yaml.Node {
	if len(text.Documents) == 0 {
		return nil
	}
	return text.Documents[0]
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
