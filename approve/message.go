package approve

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of messages. Whoever makes a request chooses how long the texts and lists in it
// are; a message goes into a condition and a log. Lengths are in bytes.
const (
	// mostListed is how many elements of a list a message names.
	mostListed = 3
	// mostQuoted is how long a quoted text is, after escaping.
	mostQuoted = 80
	// mostName is how long the name of a user may be to stand in a message as it is: the
	// prefix of a node's user name and a DNS subdomain.
	mostName = 253 + len("system:node:")
	// mostMessage is how long a message is. With two names it fits.
	mostMessage = 800
)

// quote makes text from a request fit for a message: bounded, and printable ASCII.
func quote(text string) string {
	end := 0
	for length := 0; end < len(text); {
		_, size := utf8.DecodeRuneInString(text[end:])
		length += len(strconv.QuoteToASCII(text[end:end+size])) - len(`""`)
		if length > mostQuoted {
			return fmt.Sprintf("%+q and %d bytes more", text[:end], len(text)-end)
		}
		end += size
	}
	return strconv.QuoteToASCII(text)
}

// printable writes the name of a node or a user as it is, if it is one that could be meant,
// and quotes it otherwise.
func printable(text string) string {
	plain := func(r rune) bool { return r > ' ' && r <= '~' && r != '"' }
	if text == "" || len(text) > mostName || strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return quote(text)
	}
	return text
}

// cut shortens printable text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s and %d bytes more", text[:most], len(text)-most)
}

// listed joins the first elements of a list that has count of them.
func listed(list []string, count int) string {
	first := list[:min(len(list), mostListed)]
	if more := count - len(first); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(first, ", "), more)
	}
	return strings.Join(first, ", ")
}
