package iam

import (
	"net/url"
	"slices"
	"strings"
)

// The parameters of a token, in lower case. Clients write "Action" and "X-Amz-Date";
// they are known in any case, as in the reference, and sent as they are written,
// because the signature is about that.
const (
	action           = "action"
	version          = "version"
	amzAlgorithm     = "x-amz-algorithm"
	amzCredential    = "x-amz-credential"
	amzDate          = "x-amz-date"
	amzExpires       = "x-amz-expires"
	amzSecurityToken = "x-amz-security-token"
	amzSignature     = "x-amz-signature"
	amzSignedHeaders = "x-amz-signedheaders"
)

// requiredParameters are those without which STS has nothing to answer. What is
// signed with the credentials of a user has no security token.
var requiredParameters = []string{
	action, version, amzAlgorithm, amzCredential, amzDate, amzExpires, amzSignature, amzSignedHeaders,
}

// parameter is one of a query.
type parameter struct {
	// name is as it is written: letters, digits and dashes.
	name string
	// lower is the name in lower case.
	lower string
	// value is decoded: printable ASCII without spaces.
	value string
}

type parameters []parameter

// readQuery reads a query in which each allowed parameter is once and has a value.
func readQuery(query string) (parameters, *Refusal) {
	var params parameters
	if query != "" {
		for piece := range strings.SplitSeq(query, "&") {
			param, ok := readParameter(piece)
			if !ok {
				return nil, Refuse(TokenQueryMalformed, "parameter %d of the query is not NAME=VALUE in its plain form", len(params)+1)
			}
			params = append(params, param)
		}
	}
	return params, params.check()
}

// readParameter reads NAME=VALUE. Of what readers of queries understand in different
// ways, it takes nothing: encoded names, "+", ";", and values that are not printable
// ASCII when they are decoded.
func readParameter(piece string) (parameter, bool) {
	name, encoded, ok := strings.Cut(piece, "=")
	if !ok || name == "" || strings.IndexFunc(name, notInName) >= 0 || strings.ContainsAny(encoded, "+;[]") {
		return parameter{}, false
	}
	value, err := url.PathUnescape(encoded)
	if err != nil || strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return parameter{}, false
	}
	return parameter{name: name, lower: strings.ToLower(name), value: value}, true
}

// notInName reports whether a character is in no parameter's name. Among what is left,
// nothing but ASCII letters have a case.
func notInName(r rune) bool { return !plain(r) || r == '.' }

// check finds parameters that are there twice, and those that should not, or should,
// be there.
func (p parameters) check() *Refusal {
	seen := map[string]string{}
	for _, param := range p {
		switch earlier, twice := seen[param.lower]; {
		case twice && earlier == param.name:
			return Refuse(TokenParameterTwice, "the query has %s twice", shown(param.name, longestName))
		case twice:
			return Refuse(TokenParameterInTwoCases, "the query has %s and %s", shown(earlier, longestName), shown(param.name, longestName))
		}
		seen[param.lower] = param.name
	}
	for _, param := range p {
		if param.value == "" {
			return Refuse(TokenParameterEmpty, "%s has no value", shown(param.name, longestName))
		}
	}
	for _, param := range p {
		if param.lower != amzSecurityToken && !slices.Contains(requiredParameters, param.lower) {
			return Refuse(TokenParameterNotAllowed, "no token has a parameter %s", shown(param.name, longestName))
		}
	}
	for _, name := range requiredParameters {
		if _, there := seen[name]; !there {
			return Refuse(TokenParameterMissing, "the query has no %s", name)
		}
	}
	return nil
}

// value returns the value of a parameter, or nothing.
func (p parameters) value(lower string) string {
	if i := slices.IndexFunc(p, func(param parameter) bool { return param.lower == lower }); i >= 0 {
		return p[i].value
	}
	return ""
}

// encode writes the query as AWS does before it compares signatures: all but letters,
// digits and "-._~" is encoded.
func (p parameters) encode() string {
	var query strings.Builder
	for i, param := range p {
		if i > 0 {
			query.WriteByte('&')
		}
		query.WriteString(param.name)
		query.WriteByte('=')
		query.WriteString(url.QueryEscape(param.value))
	}
	return query.String()
}
