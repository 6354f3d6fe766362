// Package presigned reads the query of a URL for GetCallerIdentity that somebody else has
// signed, so that it can be sent: a URL is sent with the credentials of who signed it, and
// must ask for nothing else.
//
// Readers of queries disagree on what is doubled, encoded in vain, or written in another
// case, and the one that checks is not the one that answers. So a query is taken in its
// plain form only, and written anew from what was read.
//
// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-authentication-methods.html
package presigned

import (
	"net/url"
	"slices"
	"strings"
)

// The parameters of a signed request for GetCallerIdentity, in lower case.
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

// spelling is how AWS writes a parameter.
func spelling(lower string) string {
	return map[string]string{
		Action: "Action", Version: "Version", Algorithm: "X-Amz-Algorithm", Credential: "X-Amz-Credential", Date: "X-Amz-Date",
		Expires: "X-Amz-Expires", SecurityToken: "X-Amz-Security-Token", Signature: "X-Amz-Signature", SignedHeaders: "X-Amz-SignedHeaders",
	}[lower]
}

// Rules say which parameters a query has.
type Rules struct {
	// Required are the parameters that have to be there, and Optional those that may, in
	// lower case.
	Required, Optional []string
	// Exact takes names only as AWS writes them. Otherwise they are known in any case, and
	// sent as they are written, because the signature is about that.
	Exact bool
}

// Parameter is one of a query.
type Parameter struct {
	// Name is as it is written: letters, digits and dashes.
	Name string
	// Value is decoded: printable ASCII without spaces.
	Value string

	lower string
}

// Query has each of its parameters once.
type Query []Parameter

// Kind is what is wrong with a query.
type Kind int

// The kinds of problems, in the order in which they are looked for.
const (
	// Malformed: a parameter is not NAME=VALUE in its plain form.
	Malformed Kind = iota
	// Twice: a parameter is there twice.
	Twice
	// InTwoCases: a parameter is there twice, in upper and lower case.
	InTwoCases
	// Empty: a parameter has no value.
	Empty
	// NotAllowed: no such request has a parameter of this name.
	NotAllowed
	// Missing: a required parameter is missing.
	Missing
	// WrongValue: the value is not the only one that the parameter may have.
	WrongValue
)

// Problem is what is wrong with a query.
type Problem struct {
	Kind Kind
	// Position is that of a malformed parameter, from 1.
	Position int
	// Parameter is in lower case, and Name as it is written, or as AWS writes it if it is
	// missing; both empty for a malformed one.
	Parameter, Name string
	// Earlier is the name that is there before, in another case.
	Earlier string
	// Value is a wrong one, and Want what it must be.
	Value, Want string
}

// Parse reads a query. The problem is nil if there is none.
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

// parse reads NAME=VALUE. Of what readers of queries understand in different ways, it
// takes nothing: encoded names, "+", ";", and values that are not printable ASCII when
// they are decoded.
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

// notInName reports whether a character is in no parameter's name. Of those that are,
// only ASCII letters have a case.
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

// CheckCall finds a query that asks for something else than GetCallerIdentity, or is
// signed in another way than with AWS Signature Version 4.
func (q Query) CheckCall() *Problem {
	for _, fixed := range [][2]string{{Action, "GetCallerIdentity"}, {Version, "2011-06-15"}, {Algorithm, "AWS4-HMAC-SHA256"}} {
		if problem := q.CheckValue(fixed[0], fixed[1]); problem != nil {
			return problem
		}
	}
	return nil
}

// CheckValue finds a parameter that has another value than it must have.
func (q Query) CheckValue(lower, want string) *Problem {
	for _, p := range q {
		if p.lower == lower && p.Value == want {
			return nil
		}
	}
	return &Problem{Kind: WrongValue, Parameter: lower, Name: spelling(lower), Value: q.Value(lower), Want: want}
}

// Value returns the value of a parameter, or nothing.
func (q Query) Value(lower string) string {
	if i := slices.IndexFunc(q, func(p Parameter) bool { return p.lower == lower }); i >= 0 {
		return q[i].Value
	}
	return ""
}

// Encode writes the query as AWS does before it compares signatures: all but letters,
// digits and "-._~" is encoded. Parameters stay in their order.
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
