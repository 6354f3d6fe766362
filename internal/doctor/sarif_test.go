package doctor

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/sarif"
)

// sarifOf returns the decoded SARIF log of a report.
func sarifOf(t *testing.T, r *Report) map[string]any {
	t.Helper()
	text, err := json.Marshal(r.SARIF())
	if err != nil {
		t.Fatal(err)
	}
	var log map[string]any
	if err := json.Unmarshal(text, &log); err != nil {
		t.Fatal(err)
	}
	return log
}

// at returns a value within decoded JSON.
func at(t *testing.T, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, ok := value.(map[string]any)
			if !ok {
				t.Fatalf("no object at %v of %v", step, path)
			}
			value = object[step]
		case int:
			list, ok := value.([]any)
			if !ok || step >= len(list) {
				t.Fatalf("no item at %v of %v", step, path)
			}
			value = list[step]
		}
	}
	return value
}

// TestSARIFHasTheRequiredProperties checks the required properties of SARIF 2.1.0 (sections 3.13,
// 3.14, 3.18, 3.19, 3.27, 3.49), and that indices and ids match.
func TestSARIFHasTheRequiredProperties(t *testing.T) {
	report := Examine(readFiles(t, "testdata/awsauth/list.yaml"), Options{})
	report.Findings = append(report.Findings, finding.Finding{
		Code: "Second", Severity: finding.Info, Message: "it is in the cluster", Place: finding.Place{Object: "Node worker-1"},
	}, finding.Finding{
		Code: "Third", Severity: finding.Warning, Message: "it came from stdin", Place: finding.Place{File: "stdin", Line: 3},
	})
	log := sarifOf(t, report)
	if log["version"] != "2.1.0" || !strings.Contains(log["$schema"].(string), "sarif-2.1.0") {
		t.Errorf("version %v, schema %v", log["version"], log["$schema"])
	}
	if name := at(t, log, "runs", 0, "tool", "driver", "name"); name != "node-authorizer" {
		t.Errorf("the tool is %v", name)
	}
	rules := at(t, log, "runs", 0, "tool", "driver", "rules").([]any)
	var ids []string
	for _, rule := range rules {
		id := at(t, rule, "id").(string)
		ids = append(ids, id)
		if help, want := at(t, rule, "helpUri"), reference.Link(reference.Finding, id); help != want {
			t.Errorf("help for %s is at %v, want %s", id, help, want)
		}
		if at(t, rule, "shortDescription", "text") == "" {
			t.Errorf("%s has no description", id)
		}
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("rules are %v", ids)
	}
	results := at(t, log, "runs", 0, "results").([]any)
	if len(results) != len(report.Findings) {
		t.Fatalf("%d results of %d findings", len(results), len(report.Findings))
	}
	for i, result := range results {
		f := report.Findings[i]
		if ids[int(at(t, result, "ruleIndex").(float64))] != at(t, result, "ruleId") || at(t, result, "ruleId") != string(f.Code) {
			t.Errorf("result %d points to rule %v", i, at(t, result, "ruleIndex"))
		}
		if level := at(t, result, "level").(string); !slices.Contains([]string{"error", "warning", "note"}, level) {
			t.Errorf("level %s", level)
		}
		if text := at(t, result, "message", "text").(string); !strings.HasPrefix(text, f.Message) {
			t.Errorf("message %s", text)
		}
		checkSARIFPlace(t, result, f.Place)
	}
}

func checkSARIFPlace(t *testing.T, result any, place finding.Place) {
	t.Helper()
	var location map[string]any
	if at(t, result, "locations") != nil {
		location = at(t, result, "locations", 0).(map[string]any)
	}
	_, physical := location["physicalLocation"]
	if want := place.File != "" && place.File != "stdin"; physical != want {
		t.Errorf("%v has a file in %v", place, location)
	} else if want {
		if uri := at(t, location, "physicalLocation", "artifactLocation", "uri"); uri != place.File {
			t.Errorf("the file of %v is %v", place, uri)
		}
		if line := at(t, location, "physicalLocation", "region", "startLine"); line != float64(place.Line) {
			t.Errorf("the line of %v is %v", place, line)
		}
	}
	_, logical := location["logicalLocations"]
	if logical != (place.Object != "") {
		t.Errorf("%v has an object in %v", place, location)
	}
}

func TestSARIFOfNothing(t *testing.T) {
	log := sarifOf(t, Examine(clusterOf(), Options{}))
	if results := at(t, log, "runs", 0, "results").([]any); len(results) != 0 {
		t.Errorf("results %v", results)
	}
	if rules := at(t, log, "runs", 0, "tool", "driver", "rules").([]any); len(rules) != 0 {
		t.Errorf("rules %v", rules)
	}
	if notes := at(t, log, "runs", 0, "invocations", 0, "toolExecutionNotifications").([]any); len(notes) == 0 {
		t.Error("missing input is not reported")
	}
}

func TestFileURI(t *testing.T) {
	for path, want := range map[string]string{
		"manifests/aws-auth.yaml": "manifests/aws-auth.yaml",
		"./aws auth.yaml":         "aws%20auth.yaml",
		"/srv/aws-auth.yaml":      "file:///srv/aws-auth.yaml",
	} {
		if got := sarif.FileURI(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}

func TestWordsOfCodes(t *testing.T) {
	for code, want := range map[string]string{
		"NodeRoleIsAdministrator": "Node role is administrator",
		"CSRPending":              "CSR pending",
		"STSHostMismatch":         "STS host mismatch",
		"FargateProfileARN":       "Fargate profile ARN",
		"AWSAuthNotRead":          "AWS auth not read",
		"NodeWithoutRBAC":         "Node without RBAC",
	} {
		if got := words(code); got != want {
			t.Errorf("%s: got %q, want %q", code, got, want)
		}
	}
}
