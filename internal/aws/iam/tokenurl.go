package iam

import "strings"

// address is a token's URL without its parameters.
type address struct {
	host string
	// regions are the regions for which requests to the host may be signed.
	regions []string
	query   string
}

// readURL splits a URL of the form https://HOST/?QUERY and checks everything except the
// query. It is strict, because lenient URL parsers disagree on missing, repeated and
// needlessly encoded parts.
func readURL(text string, hosts Hosts) (*address, *Refusal) {
	if i := strings.IndexFunc(text, notInURL); i >= 0 {
		return nil, Refuse(TokenNotURL, "byte %d of the decoded text is not allowed in URLs", i)
	}
	rest, ok := strings.CutPrefix(text, "https://")
	if !ok {
		return nil, Refuse(TokenNotHTTPS, `the URL does not begin with "https://"`)
	}
	authority, rest := cutBefore(rest, "/?#")
	host, refusal := readAuthority(authority)
	regions, asked := lookUp(host, hosts)
	if !asked {
		return nil, Refuse(TokenHostNotAllowed, "%s is not an allowed host of STS", shown(host, longestHost))
	}
	if refusal != nil {
		return nil, refusal
	}
	path, rest := cutBefore(rest, "?#")
	if path != "/" {
		return nil, Refuse(TokenPath, `the URL's path is not "/"`)
	}
	query, fragment := cutBefore(rest, "#")
	if fragment != "" {
		return nil, Refuse(TokenFragment, "the URL has a fragment")
	}
	return &address{host: host, regions: regions, query: strings.TrimPrefix(query, "?")}, nil
}

// readAuthority returns the host between a URL's "//" and its path, and a refusal if there
// is a user or a port.
func readAuthority(authority string) (host string, refusal *Refusal) {
	host = authority
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host, refusal = host[i+1:], Refuse(TokenUserInfo, "the URL has a user before its host")
	}
	if i := strings.IndexByte(host, ':'); i >= 0 && host[0] != '[' {
		host = host[:i]
		if refusal == nil {
			refusal = Refuse(TokenPort, "the URL has a port")
		}
	}
	return host, refusal
}

// cutBefore cuts a text before the first of some bytes.
func cutBefore(text, any string) (before, after string) {
	if i := strings.IndexAny(text, any); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

// notInURL reports whether a character is not allowed in URLs.
//
// Source: RFC 3986, appendix A.
func notInURL(r rune) bool {
	return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r)
}

// lookUp returns the regions of a host. It accepts only host names in lower case, not IPv6
// addresses in brackets.
func lookUp(host string, hosts Hosts) (regions []string, asked bool) {
	odd := func(r rune) bool { return !plain(r) || 'A' <= r && r <= 'Z' }
	if host == "" || strings.IndexFunc(host, odd) >= 0 || strings.HasSuffix(host, ".") {
		return nil, false
	}
	return hosts.Host(host)
}

// The maximum length of a quoted host or parameter name. A signature is longer.
const (
	longestHost = 100
	longestName = 32
)

// shown quotes a text of a token if it is short and has only the characters of names. Any
// other text may be a misplaced secret.
func shown(text string, longest int) string {
	odd := func(r rune) bool { return !plain(r) }
	if text == "" || len(text) > longest || strings.IndexFunc(text, odd) >= 0 {
		return "a text that is not shown"
	}
	return `"` + text + `"`
}

// plain reports whether a character is a letter of ASCII, a digit, a dash or a dot.
func plain(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '.'
}

// notInName reports whether a character is not allowed in names of headers. Of the
// allowed ones, only ASCII letters have a case.
func notInName(r rune) bool { return !plain(r) || r == '.' }
