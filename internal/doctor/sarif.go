package doctor

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/finding"
)

// The shapes below are the parts of a SARIF log that findings fill.
//
// Source: https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool struct {
		Driver sarifDriver `json:"driver"`
	} `json:"tool"`
	Invocations []sarifInvocation `json:"invocations"`
	ColumnKind  string            `json:"columnKind"`
	Results     []sarifResult     `json:"results"`
}

type sarifDriver struct {
	Name           string      `json:"name"`
	Version        string      `json:"version,omitempty"`
	InformationURI string      `json:"informationUri"`
	Rules          []sarifRule `json:"rules"`
	// Notifications describes what ToolExecutionNotifications refer to.
	Notifications []sarifNotice `json:"notifications,omitempty"`
}

type sarifNotice struct {
	ID               string       `json:"id"`
	ShortDescription sarifMessage `json:"shortDescription"`
	HelpURI          string       `json:"helpUri"`
}

type sarifRule struct {
	ID                   string             `json:"id"`
	Name                 string             `json:"name"`
	ShortDescription     sarifMessage       `json:"shortDescription"`
	FullDescription      sarifMessage       `json:"fullDescription"`
	HelpURI              string             `json:"helpUri"`
	Help                 sarifMessage       `json:"help"`
	DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
}

type sarifConfiguration struct {
	Level string `json:"level"`
}

type sarifInvocation struct {
	ExecutionSuccessful        bool                `json:"executionSuccessful"`
	ToolExecutionNotifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	// Descriptor names the check that could not be made.
	Descriptor sarifReference `json:"descriptor"`
	Level      string         `json:"level"`
	Message    sarifMessage   `json:"message"`
}

type sarifReference struct {
	ID string `json:"id"`
}

type sarifMessage struct {
	Text string `json:"text"`
}

type sarifResult struct {
	RuleID     string            `json:"ruleId"`
	RuleIndex  int               `json:"ruleIndex"`
	Level      string            `json:"level"`
	Message    sarifMessage      `json:"message"`
	Locations  []sarifLocation   `json:"locations,omitempty"`
	Properties map[string]string `json:"properties,omitempty"`
}

type sarifLocation struct {
	PhysicalLocation *sarifPhysical `json:"physicalLocation,omitempty"`
	LogicalLocations []sarifLogical `json:"logicalLocations,omitempty"`
}

type sarifPhysical struct {
	ArtifactLocation sarifArtifact `json:"artifactLocation"`
	Region           *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	StartLine int `json:"startLine"`
}

type sarifLogical struct {
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Kind               string `json:"kind"`
}

const (
	projectURL  = "https://github.com/node-authorizer/node-authorizer"
	findingsURL = projectURL + "/blob/main/docs/findings.md"
)

// SARIF returns the findings for tools that read results of static analysis. If a check could not be
// made, the execution is not successful, because the absence of results means nothing then. Each such
// check has a notification for everything that it lacks.
func (r *Report) SARIF() any {
	run := sarifRun{ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "node-authorizer", Version: r.Version, InformationURI: projectURL, Rules: r.sarifRules()}
	undetermined := r.Undetermined()
	invocation := sarifInvocation{ExecutionSuccessful: len(undetermined) == 0}
	for _, c := range undetermined {
		id := notificationOf(c.ID)
		run.Tool.Driver.Notifications = append(run.Tool.Driver.Notifications, sarifNotice{
			id, sarifMessage{"The check could not be made: " + c.Title}, findingsURL + "#checks",
		})
		for _, m := range c.Missing {
			invocation.ToolExecutionNotifications = append(invocation.ToolExecutionNotifications, sarifNotification{
				sarifReference{id},
				"error",
				sarifMessage{fmt.Sprintf("The check %s (%s) could not be made: %s", c.ID, c.Title, sentence(m.String()))},
			})
		}
	}
	run.Invocations = []sarifInvocation{invocation}
	for _, f := range r.Findings {
		run.Results = append(run.Results, sarifResult{
			RuleID:     string(f.Code),
			RuleIndex:  slices.IndexFunc(run.Tool.Driver.Rules, func(rule sarifRule) bool { return rule.ID == string(f.Code) }),
			Level:      sarifLevel(f.Severity),
			Message:    sarifMessage{sarifText(f)},
			Locations:  sarifLocations(f.Place),
			Properties: sarifProperties(f),
		})
	}
	return sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}

// notificationOf returns the id of the notification that a check could not be made.
func notificationOf(id CheckID) string { return "undetermined/" + string(id) }

// sarifRules returns the rules of the findings, sorted by id. The most severe findings come first, so
// that a rule has the level of its most severe finding.
func (r *Report) sarifRules() []sarifRule {
	rules := []sarifRule{}
	for _, f := range r.Findings {
		if slices.ContainsFunc(rules, func(rule sarifRule) bool { return rule.ID == string(f.Code) }) {
			continue
		}
		rules = append(rules, sarifRuleOf(f))
	}
	slices.SortFunc(rules, func(a, b sarifRule) int { return strings.Compare(a.ID, b.ID) })
	return rules
}

// sarifRuleOf returns the rule for a code. The full description is in the documentation.
func sarifRuleOf(f finding.Finding) sarifRule {
	url := findingsURL + "#" + strings.ToLower(string(f.Code))
	return sarifRule{
		ID: string(f.Code), Name: string(f.Code),
		ShortDescription: sarifMessage{words(string(f.Code))},
		FullDescription:  sarifMessage{words(string(f.Code)) + ": what it means, what happens, and what to do is explained in " + url},
		HelpURI:          url, Help: sarifMessage{"See " + url},
		DefaultConfiguration: sarifConfiguration{sarifLevel(f.Severity)},
	}
}

// words splits a code into words: "NodeRoleIsAdministrator" becomes "Node role is administrator".
// Abbreviations keep their capitals.
func words(code string) string {
	var b strings.Builder
	isUpper := func(i int) bool { return i < len(code) && code[i] >= 'A' && code[i] <= 'Z' }
	for i := range len(code) {
		begins := i > 0 && isUpper(i) && (!isUpper(i-1) || i+1 < len(code) && !isUpper(i+1))
		switch {
		case begins && i+1 < len(code) && !isUpper(i+1):
			b.WriteString(" " + strings.ToLower(code[i:i+1]))
		case begins:
			b.WriteString(" " + code[i:i+1])
		default:
			b.WriteByte(code[i])
		}
	}
	return b.String()
}

func sarifLevel(s finding.Severity) string {
	if s == finding.Info {
		return "note"
	}
	return string(s)
}

func sarifText(f finding.Finding) string {
	text := sentence(f.Message)
	if f.Consequence != "" {
		text += " What happens: " + sentence(f.Consequence)
	}
	if f.Remedy != "" {
		text += " What to do: " + sentence(f.Remedy)
	}
	return text
}

func sentence(text string) string {
	if strings.Contains(text, "\n") || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}

// sarifLocations has a physical location only for files that other tools can open.
func sarifLocations(at finding.Place) []sarifLocation {
	var l sarifLocation
	if at.File != "" && at.File != "stdin" {
		l.PhysicalLocation = &sarifPhysical{ArtifactLocation: sarifArtifact{fileURI(at.File)}}
		if at.Line > 0 {
			l.PhysicalLocation.Region = &sarifRegion{StartLine: at.Line}
		}
	}
	if name := strings.Trim(at.Object+"/"+at.Key, "/"); name != "" {
		kind := "resource"
		if at.Key != "" {
			kind = "member"
		}
		l.LogicalLocations = []sarifLogical{{FullyQualifiedName: name, Kind: kind}}
	}
	if l.PhysicalLocation == nil && l.LogicalLocations == nil {
		return nil
	}
	return []sarifLocation{l}
}

// fileURI returns a path as a URI reference. Relative paths stay relative, so that tools find the file
// in their working tree.
func fileURI(path string) string {
	slashed := filepath.ToSlash(path)
	if filepath.IsAbs(path) {
		return (&url.URL{Scheme: "file", Path: slashed}).String()
	}
	return (&url.URL{Path: strings.TrimPrefix(slashed, "./")}).String()
}

func sarifProperties(f finding.Finding) map[string]string {
	if f.Subject == "" {
		return nil
	}
	return map[string]string{"subject": f.Subject}
}
