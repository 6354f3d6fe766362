package manifest

import "strconv"

// lineOf returns the line of the value at a path, or of the nearest enclosing value.
func (p part) lineOf(path []string) int {
	if p.yaml {
		_, line := p.node(p.at(path))
		return line
	}
	return p.line + p.lines + countLines(p.json[:findJSON(p.json, path)])
}

// findJSON returns where the value at a path begins, or the nearest enclosing value.
func findJSON(text []byte, path []string) int {
	at := max(skipSpace(text, 0), 0)
	for _, name := range path {
		start, found := childJSON(text, at, name)
		if !found {
			break
		}
		at = start
	}
	return at
}

// childJSON finds a member of an object, or an item of an array, that begins at p.
func childJSON(text []byte, p int, name string) (start int, found bool) {
	switch text[p] {
	case '{':
		for m, ok := nextMember(text, p+1); ok; m, ok = nextMember(text, m.end) {
			if string(m.name) == name {
				return m.start, true
			}
		}
	case '[':
		at := p + 1
		for i := 0; ; i++ {
			if at = skipSpace(text, at); at >= 0 && text[at] == ',' {
				at = skipSpace(text, at+1)
			}
			if at < 0 || text[at] == ']' {
				return 0, false
			}
			if strconv.Itoa(i) == name {
				return at, true
			}
			if at = skipValue(text, at); at < 0 {
				return 0, false
			}
		}
	}
	return 0, false
}
