// Package finding defines what node-authorizer reports about a cluster's configuration:
// what is configured, where, what happens because of it, and what to change.
//
// A Finding is typed. Its Code is stable and documented in docs/reference/findings, so that
// logs, metrics, events, reports and people can refer to it. A verdict.Reason is about
// one request; a Finding is about configuration.
package finding

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Code names a kind of finding, in CamelCase. Codes are stable across releases: new ones
// may be added, existing ones are neither renamed nor removed.
type Code string

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	// Error: it does not work, or grants far too many rights.
	Error Severity = "error"
	// Warning: it works, and should be changed.
	Warning Severity = "warning"
	// Info: no change is needed.
	Info Severity = "info"
)

// Severities returns all severities, the most severe first.
func Severities() []Severity { return []Severity{Error, Warning, Info} }

// AtLeast reports whether s is as severe as other, or more severe.
func (s Severity) AtLeast(other Severity) bool { return s.rank() <= other.rank() }

func (s Severity) rank() int {
	if i := slices.Index(Severities(), s); i >= 0 {
		return i
	}
	return len(Severities())
}

// Place is the location of a piece of configuration. Unknown fields are empty.
type Place struct {
	// File is a path as the user gave it; empty for objects read from a cluster.
	File string `json:"file,omitempty"`
	// Line is the line in File, from 1.
	Line int `json:"line,omitempty"`
	// Object is the API object with its kind, in the form of verdict.Object:
	// "ConfigMap kube-system/aws-auth".
	Object string `json:"object,omitempty"`
	// Key is the path within the object or file: "data.mapRoles[2].rolearn".
	Key string `json:"key,omitempty"`
	// KeyLine is the line, from 1, within a value of several lines at Key, such as the
	// YAML in a key of a ConfigMap.
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

// Finding is one finding about a cluster's configuration.
type Finding struct {
	// Code is what was found, as in docs/reference/findings, and Severity how much it matters.
	Code     Code     `json:"code"`
	Severity Severity `json:"severity"`
	// Place is where it is configured.
	Place Place `json:"place"`
	// Subject is what the finding is about, if that is not the place: the ARN of a
	// role, the name of a node.
	Subject string `json:"subject,omitempty"`
	// Message says what is configured: one line, without a trailing full stop.
	Message string `json:"message"`
	// Consequence says what happens because of it: one line.
	Consequence string `json:"consequence,omitempty"`
	// Remedy is the change that fixes it: one line or a fragment of a file.
	Remedy string `json:"remedy,omitempty"`
}

// String returns one line: severity, place, message and code.
func (f Finding) String() string {
	text := f.Message
	if place := f.Place.String(); place != "" {
		text = place + ": " + text
	}
	return fmt.Sprintf("%s: %s [%s]", f.Severity, text, f.Code)
}

// Compare orders findings by severity, the most severe first, then by place, code and
// subject.
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

// Sort sorts findings by Compare.
func Sort(findings []Finding) { slices.SortStableFunc(findings, Compare) }
