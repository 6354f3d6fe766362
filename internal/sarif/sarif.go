// Package sarif has the parts of a log of the Static Analysis Results Interchange Format, version
// 2.1.0, that this project fills.
//
// Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
package sarif

import (
	"net/url"
	"path/filepath"
	"strings"
)

// Schema is that of a log.
const Schema = "https://json.schemastore.org/sarif-2.1.0.json"

// Log is a whole log.
type Log struct {
	Schema  string `json:"$schema"`
	Version string `json:"version"`
	Runs    []Run  `json:"runs"`
}

// Run is one run of a tool.
type Run struct {
	Tool struct {
		Driver Driver `json:"driver"`
	} `json:"tool"`
	Invocations []Invocation `json:"invocations"`
	ColumnKind  string       `json:"columnKind"`
	Results     []Result     `json:"results"`
}

// Driver is the tool.
type Driver struct {
	Name           string `json:"name"`
	Version        string `json:"version,omitempty"`
	InformationURI string `json:"informationUri"`
	Rules          []Rule `json:"rules"`
	// Notifications describes what ToolExecutionNotifications refer to.
	Notifications []Notice `json:"notifications,omitempty"`
}

// Notice describes a kind of notification.
type Notice struct {
	ID               string  `json:"id"`
	ShortDescription Message `json:"shortDescription"`
	HelpURI          string  `json:"helpUri"`
}

// Rule describes a kind of result.
type Rule struct {
	ID                   string        `json:"id"`
	Name                 string        `json:"name"`
	ShortDescription     Message       `json:"shortDescription"`
	FullDescription      Message       `json:"fullDescription"`
	HelpURI              string        `json:"helpUri"`
	Help                 Message       `json:"help"`
	DefaultConfiguration Configuration `json:"defaultConfiguration"`
}

// Configuration has the level of a rule: error, warning or note.
type Configuration struct {
	Level string `json:"level"`
}

// Invocation says how a run went.
type Invocation struct {
	ExecutionSuccessful        bool           `json:"executionSuccessful"`
	ToolExecutionNotifications []Notification `json:"toolExecutionNotifications,omitempty"`
}

// Notification is something that a tool could not do.
type Notification struct {
	// Descriptor names the check that could not be made.
	Descriptor Reference `json:"descriptor"`
	Level      string    `json:"level"`
	Message    Message   `json:"message"`
}

// Reference names a notice.
type Reference struct {
	ID string `json:"id"`
}

// Message is text for people.
type Message struct {
	Text string `json:"text"`
}

// Result is one finding.
type Result struct {
	RuleID     string            `json:"ruleId"`
	RuleIndex  int               `json:"ruleIndex"`
	Level      string            `json:"level"`
	Message    Message           `json:"message"`
	Locations  []Location        `json:"locations,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
	// Suppressions is nil if no result of the run is suppressed, and empty for the others if
	// some are.
	Suppressions []Suppression `json:"suppressions,omitzero"`
}

// Suppression is why a result does not count.
type Suppression struct {
	// Kind is external: it is not in the file of the result.
	Kind          string `json:"kind"`
	Status        string `json:"status"`
	Justification string `json:"justification"`
}

// Location is where a result is.
type Location struct {
	PhysicalLocation *Physical `json:"physicalLocation,omitempty"`
	LogicalLocations []Logical `json:"logicalLocations,omitempty"`
}

// Physical is a place in a file.
type Physical struct {
	ArtifactLocation Artifact `json:"artifactLocation"`
	Region           *Region  `json:"region,omitempty"`
}

// Artifact is a file.
type Artifact struct {
	URI string `json:"uri"`
}

// Region is a line of a file.
type Region struct {
	StartLine int `json:"startLine"`
}

// Logical is an object that is not a file.
type Logical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Kind               string `json:"kind"`
}

// Text makes a message.
func Text(text string) Message { return Message{Text: text} }

// FileURI returns a path as a URI reference. Relative paths stay relative, so that tools find the file
// in their working tree.
func FileURI(path string) string {
	slashed := filepath.ToSlash(path)
	if filepath.IsAbs(path) {
		return (&url.URL{Scheme: "file", Path: slashed}).String()
	}
	return (&url.URL{Path: strings.TrimPrefix(slashed, "./")}).String()
}
