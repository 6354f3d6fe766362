// Package finding holds the words in which node-authorizer says what it found in
// a cluster's configuration: what is there, where, what will happen because of it,
// and what to change.
//
// A Finding is typed. Its Code is stable and documented in docs/findings.md, so
// that the log, metrics, events, reports and people can key on it. Unlike a
// verdict.Reason it is not about one request, but about what is written down.
package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Code names a kind of finding. Codes are stable across releases: CamelCase, and
// only ever added.
type Code string

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	// Error is for what does not work, or gives more rights than anybody wants.
	Error Severity = "error"
	// Warning is for what works and should be changed.
	Warning Severity = "warning"
	// Info is for what is good to know.
	Info Severity = "info"
)

// Severities lists them, the gravest first.
func Severities() []Severity { return []Severity{Error, Warning, Info} }

// AtLeast reports whether a severity is as grave as another, or graver.
func (s Severity) AtLeast(other Severity) bool { return s.rank() <= other.rank() }

func (s Severity) rank() int {
	if i := slices.Index(Severities(), s); i >= 0 {
		return i
	}
	return len(Severities())
}

// Place is where something is written. What is not known is empty.
type Place struct {
	// File is a path as it was given; empty for what is in a cluster.
	File string `json:"file,omitempty"`
	// Line is that of the file, from 1.
	Line int `json:"line,omitempty"`
	// Object is the API object, as verdict.Object and people write it with its
	// kind: "ConfigMap kube-system/aws-auth".
	Object string `json:"object,omitempty"`
	// Key is the path within the object or file: "data.mapRoles[2].rolearn".
	Key string `json:"key,omitempty"`
	// KeyLine is the line, from 1, of a text of several lines that Key holds, such
	// as the YAML in a key of a ConfigMap.
	KeyLine int `json:"keyLine,omitempty"`
}

// String renders "aws-auth.yaml:12: ConfigMap kube-system/aws-auth: data.mapRoles[0].rolearn",
// or, without a file, "ConfigMap kube-system/aws-auth: data.mapRoles[0].rolearn, line 3".
func (p Place) String() string {
	var parts []string
	if p.File != "" {
		file := p.File
		if p.Line > 0 {
			file = fmt.Sprintf("%s:%d", file, p.Line)
		}
		parts = append(parts, file)
	}
	if p.Object != "" {
		parts = append(parts, p.Object)
	}
	if key := p.Key; key != "" {
		if p.KeyLine > 0 && p.File == "" {
			key = fmt.Sprintf("%s, line %d", key, p.KeyLine)
		}
		parts = append(parts, key)
	}
	return strings.Join(parts, ": ")
}

// Finding is one thing that was found.
type Finding struct {
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	Place    Place    `json:"place"`
	// Subject is what it is about, where that is not the place: the ARN of a role,
	// the name of a node.
	Subject string `json:"subject,omitempty"`
	// Message is what is there, one line without a trailing full stop.
	Message string `json:"message"`
	// Consequence is what will happen because of it, one line.
	Consequence string `json:"consequence,omitempty"`
	// Remedy is the change that mends it, one line or a piece of a file.
	Remedy string `json:"remedy,omitempty"`
}

// String is one line: place, message and code.
func (f Finding) String() string {
	text := f.Message
	if place := f.Place.String(); place != "" {
		text = place + ": " + text
	}
	return fmt.Sprintf("%s: %s [%s]", f.Severity, text, f.Code)
}

// Compare orders findings: the gravest first, then by place, code and subject.
func Compare(a, b Finding) int {
	return cmp.Or(
		cmp.Compare(a.Severity.rank(), b.Severity.rank()),
		cmp.Compare(a.Place.File, b.Place.File),
		cmp.Compare(a.Place.Line, b.Place.Line),
		cmp.Compare(a.Place.Object, b.Place.Object),
		cmp.Compare(a.Place.KeyLine, b.Place.KeyLine),
		cmp.Compare(a.Place.Key, b.Place.Key),
		cmp.Compare(a.Code, b.Code),
		cmp.Compare(a.Subject, b.Subject),
		cmp.Compare(a.Message, b.Message),
	)
}

// Sort puts findings in order.
func Sort(findings []Finding) { slices.SortStableFunc(findings, Compare) }
