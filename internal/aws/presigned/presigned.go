// Package presigned parses and checks the query of a presigned GetCallerIdentity URL, so
// that it can be sent safely: a URL is sent with the credentials of its signer, and must
// not be another request.
//
// Parsers of queries disagree on repeated and needlessly encoded parameters, and on
// letter case, and the parser that checks is not the one that answers. So a query is
// accepted in its plain form only, and encoded again from the parsed parameters.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-authentication-methods.html
package presigned

import (
	"net/url"
	"slices"
	"strings"
)

// The parameters of a presigned GetCallerIdentity request, in lower case.
const (
	Action        = "action"
	Version       = "version"
	Algorithm     = "x-amz-algorithm"
	Credential    = "x-amz-credential"
	Date          = "x-amz-date"
	Expires       = "x-amz-expires"
	SecurityToken = "x-amz-security-token"
	Signature     = "x-amz-signature"
	SignedHeaders = "x-amz-signedheaders"
)

// spelling returns a parameter's name as AWS writes it.
func spelling(lower string) string {
	return map[string]string{
		Action: "Action", Version: "Version", Algorithm: "X-Amz-Algorithm", Credential: "X-Amz-Credential", Date: "X-Amz-Date",
		Expires: "X-Amz-Expires", SecurityToken: "X-Amz-Security-Token", Signature: "X-Amz-Signature", SignedHeaders: "X-Amz-SignedHeaders",
	}[lower]
}

// Rules are the allowed parameters of a query.
type Rules struct {
	// Required are the required parameters, and Optional the optional ones, in lower case.
	Required, Optional []string
	// Exact requires names as AWS writes them. Otherwise any letter case is accepted and
	// kept, because names are part of the signature.
	Exact bool
}

// Parameter is a parameter of a query.
type Parameter struct {
	// Name is as in the query: letters, digits and dashes.
	Name string
	// Value is decoded: printable ASCII without spaces.
	Value string

	lower string
}

// Query is a query without repeated parameters.
type Query []Parameter

// Kind is the kind of a problem of a query.
type Kind int

// The kinds of problems, in the order of the checks.
const (
	// Malformed: a parameter is not NAME=VALUE in its plain form.
	Malformed Kind = iota
	// Twice: a parameter is repeated.
	Twice
	// InTwoCases: a parameter is repeated with other letter case.
	InTwoCases
	// Empty: a parameter has no value.
	Empty
	// NotAllowed: a parameter is not in the rules.
	NotAllowed
	// Missing: a required parameter is missing.
	Missing
	// WrongValue: a parameter does not have its only allowed value.
	WrongValue
)

// Problem is a problem of a query.
type Problem struct {
	Kind Kind
	// Position is the position of a malformed parameter, from 1.
	Position int
	// Parameter is in lower case. Name is as in the query, or as AWS writes it if it is
	// missing. Both are empty for a malformed parameter.
	Parameter, Name string
	// Earlier is the earlier name with other letter case.
	Earlier string
	// Value is a wrong value, and Want the allowed one.
	Value, Want string
}

// Parse parses a query. The problem is nil if there is none.
func Parse(query string, rules Rules) (Query, *Problem) {
	var parsed Query
	if query != "" {
		for piece := range strings.SplitSeq(query, "&") {
			parameter, ok := parse(piece)
			if !ok {
				return nil, &Problem{Kind: Malformed, Position: len(parsed) + 1}
			}
			parsed = append(parsed, parameter)
		}
	}
	for _, check := range []func(Query, Rules) *Problem{Query.checkTwice, Query.checkEmpty, Query.checkAllowed, Query.checkMissing} {
		if problem := check(parsed, rules); problem != nil {
			return nil, problem
		}
	}
	return parsed, nil
}

// parse parses NAME=VALUE. It rejects everything that parsers interpret differently:
// encoded names, "+", ";", and values that are not printable ASCII after decoding.
func parse(piece string) (Parameter, bool) {
	name, encoded, ok := strings.Cut(piece, "=")
	if !ok || name == "" || strings.IndexFunc(name, notInName) >= 0 || strings.ContainsAny(encoded, "+;[]") {
		return Parameter{}, false
	}
	value, err := url.PathUnescape(encoded)
	if err != nil || strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
		return Parameter{}, false
	}
	return Parameter{Name: name, Value: value, lower: strings.ToLower(name)}, true
}

// notInName reports whether a character is not allowed in names of parameters. Of the
// allowed ones, only ASCII letters have a case.
func notInName(r rune) bool {
	return ('a' > r || r > 'z') && ('A' > r || r > 'Z') && ('0' > r || r > '9') && r != '-'
}

func (q Query) checkTwice(Rules) *Problem {
	seen := map[string]string{}
	for _, p := range q {
		switch earlier, twice := seen[p.lower]; {
		case twice && earlier == p.Name:
			return &Problem{Kind: Twice, Parameter: p.lower, Name: p.Name}
		case twice:
			return &Problem{Kind: InTwoCases, Parameter: p.lower, Name: p.Name, Earlier: earlier}
		}
		seen[p.lower] = p.Name
	}
	return nil
}

func (q Query) checkEmpty(Rules) *Problem {
	for _, p := range q {
		if p.Value == "" {
			return &Problem{Kind: Empty, Parameter: p.lower, Name: p.Name}
		}
	}
	return nil
}

func (q Query) checkAllowed(rules Rules) *Problem {
	for _, p := range q {
		known := slices.Contains(rules.Required, p.lower) || slices.Contains(rules.Optional, p.lower)
		if !known || rules.Exact && p.Name != spelling(p.lower) {
			return &Problem{Kind: NotAllowed, Parameter: p.lower, Name: p.Name}
		}
	}
	return nil
}

func (q Query) checkMissing(rules Rules) *Problem {
	for _, lower := range rules.Required {
		if !slices.ContainsFunc(q, func(p Parameter) bool { return p.lower == lower }) {
			return &Problem{Kind: Missing, Parameter: lower, Name: spelling(lower)}
		}
	}
	return nil
}

// CheckCall checks that a query is GetCallerIdentity, signed with AWS Signature Version
// 4.
func (q Query) CheckCall() *Problem {
	for _, fixed := range [][2]string{{Action, "GetCallerIdentity"}, {Version, "2011-06-15"}, {Algorithm, "AWS4-HMAC-SHA256"}} {
		if problem := q.CheckValue(fixed[0], fixed[1]); problem != nil {
			return problem
		}
	}
	return nil
}

// CheckValue checks that a parameter has a value.
func (q Query) CheckValue(lower, want string) *Problem {
	for _, p := range q {
		if p.lower == lower && p.Value == want {
			return nil
		}
	}
	return &Problem{Kind: WrongValue, Parameter: lower, Name: spelling(lower), Value: q.Value(lower), Want: want}
}

// Value returns the value of a parameter, or an empty text.
func (q Query) Value(lower string) string {
	if i := slices.IndexFunc(q, func(p Parameter) bool { return p.lower == lower }); i >= 0 {
		return q[i].Value
	}
	return ""
}

// Encode encodes the query as AWS does to compare signatures: everything except letters,
// digits and "-._~" is encoded. The order of parameters is kept.
func (q Query) Encode() string {
	var query strings.Builder
	for i, p := range q {
		if i > 0 {
			query.WriteByte('&')
		}
		query.WriteString(p.Name)
		query.WriteByte('=')
		query.WriteString(url.QueryEscape(p.Value))
	}
	return query.String()
}
