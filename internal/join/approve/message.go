package approve

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of messages. The requester controls the length of the texts and lists in a request;
// messages are written to a condition and a log. Lengths are in bytes.
const (
	// mostListed is the number of list elements in a message.
	mostListed = 3
	// mostQuoted is the length of a quoted text, after escaping.
	mostQuoted = 80
	// mostName is the length of a user name that is not quoted: the prefix of a node's user
	// name and a DNS subdomain.
	mostName = 253 + len("system:node:")
	// mostMessage is the length of a message. Two names fit.
	mostMessage = 800
)

// quote quotes text from a request for a message: limited in length, and printable ASCII.
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

// printable returns the name of a node or a user unchanged if it may be a valid name, and
// quotes it otherwise.
func printable(text string) string {
	plain := func(r rune) bool { return r > ' ' && r <= '~' && r != '"' }
	if text == "" || len(text) > mostName || strings.ContainsFunc(text, func(r rune) bool { return !plain(r) }) {
		return quote(text)
	}
	return text
}

// cut limits the length of printable text.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s and %d bytes more", text[:most], len(text)-most)
}

// listed joins the first elements of a list. The count is the length of the whole list.
func listed(list []string, count int) string {
	first := list[:min(len(list), mostListed)]
	if more := count - len(first); more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(first, ", "), more)
	}
	return strings.Join(first, ", ")
}
