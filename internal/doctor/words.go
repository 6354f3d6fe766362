package doctor

import (
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/render"
)

// shown is the maximum number of list entries in a line.
const shown = 3

// some returns the first entries, and the number of the others.
func some(list []string) string { return render.Names(list, shown) }

// shell quotes a command for a shell: names in a cluster may contain special characters.
func shell(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}

func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:=,@+", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
