// Package sarif has the parts of a log of the Static Analysis Results Interchange Format, version
// 2.1.0, that this project fills.
//
// Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
package sarif

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"
)

// Schema is the schema of a log. ProjectURL is the page of the project.
const (
	Schema     = "https://json.schemastore.org/sarif-2.1.0.json"
	ProjectURL = "https://github.com/node-authorizer/node-authorizer"
)

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
	CommandLine                string         `json:"commandLine,omitempty"`
	StartTimeUTC               string         `json:"startTimeUtc,omitempty"`
	ExecutionSuccessful        bool           `json:"executionSuccessful"`
	ToolExecutionNotifications []Notification `json:"toolExecutionNotifications,omitempty"`
	// Properties are what else the tool says about the run.
	Properties map[string]any `json:"properties,omitempty"`
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

// NewRun returns a successful run without results.
func NewRun(version string, rules []Rule) *Run {
	r := &Run{ColumnKind: "unicodeCodePoints", Results: []Result{}, Invocations: []Invocation{{ExecutionSuccessful: true}}}
	r.Tool.Driver = Driver{Name: "node-authorizer", Version: version, InformationURI: ProjectURL, Rules: rules}
	return r
}

// Log returns the log of the run.
func (r *Run) Log() Log { return Log{Schema: Schema, Version: "2.1.0", Runs: []Run{*r}} }

// Notify adds a kind of notifications, and one notification for each message. Errors make the run unsuccessful: that there is no
// result says nothing then.
func (r *Run) Notify(id, title, help, level string, messages ...string) {
	r.Tool.Driver.Notifications = append(r.Tool.Driver.Notifications, Notice{id, Text(title), help})
	i := &r.Invocations[0]
	i.ExecutionSuccessful = i.ExecutionSuccessful && level != "error"
	for _, m := range messages {
		i.ToolExecutionNotifications = append(i.ToolExecutionNotifications, Notification{Reference{id}, level, Text(m)})
	}
}

// Add adds a result of one of the run's rules.
func (r *Run) Add(result Result) {
	result.RuleIndex = slices.IndexFunc(r.Tool.Driver.Rules, func(rule Rule) bool { return rule.ID == result.RuleID })
	r.Results = append(r.Results, result)
}

// CodeRule returns the rule of a code.
func CodeRule(code, short, full, help, url, level string) Rule {
	return Rule{
		ID: code, Name: code, ShortDescription: Text(short), FullDescription: Text(full), HelpURI: url, Help: Text(help),
		DefaultConfiguration: Configuration{Level: level},
	}
}

// Place returns the location of an object of a kind in a file. Either may be empty. Only files that other tools can
// open are physical locations.
func Place(file string, line int, object, kind string) Location {
	var l Location
	if file != "" && file != "stdin" {
		l.PhysicalLocation = &Physical{ArtifactLocation: Artifact{URI: FileURI(file)}}
		if line > 0 {
			l.PhysicalLocation.Region = &Region{StartLine: line}
		}
	}
	if object != "" {
		l.LogicalLocations = []Logical{{FullyQualifiedName: object, Kind: kind}}
	}
	return l
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
