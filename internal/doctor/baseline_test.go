package doctor

import (
	"encoding/json"
	"encoding/xml"
	"slices"
	"strings"
	"testing"
	"time"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/junit"
)

func suppression(object, subject string, expires configv1alpha1.Day) configv1alpha1.Suppression {
	return configv1alpha1.Suppression{Code: "Broad", Object: object, Subject: subject, Reason: "a lab", Expires: expires}
}

// reportOf returns a report with one finding of each severity and two checks.
func reportOf(status CheckStatus) *Report {
	r := &Report{
		Checks: []CheckResult{
			{ID: CheckBindings, Title: "bindings", Status: Made},
			{ID: CheckAdmission, Title: "flags", Status: status, Missing: []Missing{{Resource: "flags", Reason: "not given"}}},
		},
		Findings: []finding.Finding{
			{
				Code: "Broad", Severity: finding.Error, Subject: "group:dev", Message: "may do all", Remedy: "remove it",
				Place: finding.Place{Object: "ClusterRoleBinding dev-all", File: "a.yaml", Line: 3},
			},
			{Code: "Old", Severity: finding.Warning, Place: finding.Place{File: "b.yaml", Line: 1}, Message: "old"},
		},
		checkOf: map[finding.Code]CheckID{"Broad": CheckBindings, "Old": CheckAdmission},
	}
	if status == Made {
		r.Checks[1].Missing = nil
	} else {
		r.Summary.Undetermined = 1
	}
	r.count()
	return r
}

var someDay = time.Date(2027, 1, 15, 12, 0, 0, 0, time.UTC)

func TestSuppressions(t *testing.T) {
	for rule, tc := range map[string]struct {
		with configv1alpha1.Suppression
		// suppresses is true if the finding does not count.
		suppresses      bool
		expired, unused int
	}{
		"the object":                      {suppression("ClusterRoleBinding dev-all", "", ""), true, 0, 0},
		"a pattern":                       {suppression("ClusterRoleBinding dev-*", "", ""), true, 0, 0},
		"a pattern in the middle":         {suppression("*Binding*all", "", ""), true, 0, 0},
		"every object":                    {suppression("*", "", ""), true, 0, 0},
		"another object":                  {suppression("ClusterRoleBinding dev", "", ""), false, 0, 1},
		"a part of the object":            {suppression("dev-all", "", ""), false, 0, 1},
		"its subject":                     {suppression("*", "group:*", ""), true, 0, 0},
		"another subject":                 {suppression("*", "group:ops", ""), false, 0, 1},
		"another code":                    {configv1alpha1.Suppression{Code: "Broader", Object: "*", Reason: "a"}, false, 0, 1},
		"its last day":                    {suppression("*", "", "2027-01-15"), true, 0, 0},
		"it expired":                      {suppression("*", "", "2027-01-14"), false, 1, 0},
		"it expired and matches nothing":  {suppression("a", "", "2027-01-14"), false, 1, 0},
		"the file of an object is no key": {suppression("a.yaml", "", ""), false, 0, 1},
	} {
		r := reportOf(Made)
		r.Apply(&Baseline{DoctorBaseline: configv1alpha1.DoctorBaseline{Suppressions: []configv1alpha1.Suppression{tc.with}}}, someDay)
		if got := len(r.Suppressed) == 1 && r.Summary.Errors == 0 && len(r.Findings) == 1; got != tc.suppresses {
			t.Errorf("%s: suppressed %+v of %+v", rule, r.Suppressed, r.Findings)
		}
		if len(r.Baseline.Expired) != tc.expired || len(r.Baseline.Unused) != tc.unused {
			t.Errorf("%s: %+v", rule, r.Baseline)
		}
	}
}

// A baseline has the findings that were there, and nothing that differs from them.
func TestABaselineHasKnownFindingsOnly(t *testing.T) {
	for rule, tc := range map[string]struct {
		change func(*finding.Finding)
		known  bool
	}{
		"the same":         {func(*finding.Finding) {}, true},
		"another line":     {func(f *finding.Finding) { f.Place.Line = 9; f.Place.Key = "subjects[1]" }, true},
		"another file":     {func(f *finding.Finding) { f.Place.File = "c.yaml" }, true},
		"another remedy":   {func(f *finding.Finding) { f.Remedy = "" }, true},
		"another object":   {func(f *finding.Finding) { f.Place.Object = "ClusterRoleBinding other" }, false},
		"another subject":  {func(f *finding.Finding) { f.Subject = "group:ops" }, false},
		"another severity": {func(f *finding.Finding) { f.Severity = finding.Info }, false},
		"another message":  {func(f *finding.Finding) { f.Message = "may do more" }, false},
		"another code":     {func(f *finding.Finding) { f.Code = "Broader" }, false},
	} {
		b := &Baseline{DoctorBaseline: *NewBaseline(reportOf(Made), nil, someDay)}
		r := reportOf(Made)
		tc.change(&r.Findings[0])
		r.Apply(b, someDay)
		if got := len(r.Findings) == 0; got != tc.known {
			t.Errorf("%s: what counts is %+v", rule, r.Findings)
		}
		if gone := r.Baseline.Gone; (gone == 0) != tc.known {
			t.Errorf("%s: gone are %d", rule, gone)
		}
	}
}

// Findings that a check could have made that was not made are neither unused nor gone, and stay in the file.
func TestABaselineBesideAnUndeterminedCheck(t *testing.T) {
	former := &Baseline{DoctorBaseline: configv1alpha1.DoctorBaseline{
		Suppressions: []configv1alpha1.Suppression{suppression("other", "", "")},
		Findings:     []configv1alpha1.KnownFinding{{Code: "Flag", Severity: "error", Message: "off"}},
	}}
	r := reportOf(Undetermined)
	next := NewBaseline(r, former, someDay)
	if len(next.Findings) != 3 || len(next.Suppressions) != 1 {
		t.Errorf("the next is %+v", next)
	}
	r.Apply(former, someDay)
	if len(r.Baseline.Unused) != 0 || r.Baseline.Gone != 0 || len(r.Undetermined()) != 1 {
		t.Errorf("got %+v", r.Baseline)
	}
	if next := NewBaseline(reportOf(Made), former, someDay); len(next.Findings) != 2 {
		t.Errorf("the next after all checks is %+v", next)
	}
}

// An entry of the file about a check that could not be made suppresses nothing.
func TestAnUndeterminedCheckInABaselineSuppressesNothing(t *testing.T) {
	blind := reportOf(Undetermined)
	blind.Findings = []finding.Finding{}
	b := &Baseline{DoctorBaseline: *NewBaseline(blind, nil, someDay)}
	if got := b.Undetermined; len(got) != 1 || got[0].Check != "admission" || !slices.Equal(got[0].Lacks, []string{"flags"}) {
		t.Fatalf("the file names %+v", got)
	}
	r := reportOf(Made)
	r.Apply(b, someDay)
	if len(r.Findings) != 2 || len(r.Suppressed) != 0 || !slices.Equal(r.Baseline.NowMade, []CheckID{CheckAdmission}) {
		t.Errorf("what counts is %+v, %+v", r.Findings, r.Baseline)
	}
	if next := NewBaseline(r, b, someDay); len(next.Undetermined) != 0 {
		t.Errorf("the next names %+v, which was made", next.Undetermined)
	}
	r.Checks = r.Checks[:1] // --checks leaves it out
	if next := NewBaseline(r, b, someDay); len(next.Undetermined) != 1 {
		t.Errorf("the next names %+v: the check that was left out is still open", next.Undetermined)
	}
	still := reportOf(Undetermined)
	still.Apply(b, someDay)
	if len(still.Findings) != 2 || len(still.Baseline.NowMade) != 0 {
		t.Errorf("while it is open, what counts is %+v, %+v", still.Findings, still.Baseline)
	}
}

func TestSuppressedFindingsInSARIF(t *testing.T) {
	r := reportOf(Made)
	r.Apply(&Baseline{DoctorBaseline: configv1alpha1.DoctorBaseline{
		Suppressions: []configv1alpha1.Suppression{suppression("*", "", "")},
	}}, someDay)
	text, err := json.Marshal(r.SARIF())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"suppressions":[]`, `"suppressions":[{"kind":"external","status":"accepted","justification":"a lab"}]`, `"ruleId":"Broad"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(string(text), `"ruleIndex":-1`) {
		t.Errorf("a result has no rule: %s", text)
	}
	text, _ = json.Marshal(reportOf(Made).SARIF())
	if strings.Contains(string(text), "suppressions") {
		t.Errorf("without a baseline: %s", text)
	}
}

func TestJUnitOfTheDoctor(t *testing.T) {
	for rule, tc := range map[string]struct {
		status   CheckStatus
		failOn   finding.Severity
		suppress bool
		// want is the outcome of the two checks.
		want []string
		text string
	}{
		"findings are failures": {Made, finding.Warning, false, []string{"failure", "failure"}, `type="finding"`},
		"findings below the limit are not": {
			Made, finding.Error, false,
			[]string{"failure", "passed"},
			"does not fail the run: warning: b.yaml:1",
		},
		"with no limit nothing fails": {Made, "", false, []string{"passed", "passed"}, "does not fail the run"},
		"suppressed ones pass with a note": {
			Made, finding.Error, true,
			[]string{"passed", "passed"},
			"suppressed (a lab): error: a.yaml:3",
		},
		"what could not be checked is an error, so that nobody takes it for checked": {
			Undetermined, finding.Error, false,
			[]string{"failure", "error"},
			"not checked: flags: not given",
		},
		"a finding counts more than what is open": {
			Undetermined, finding.Warning, false,
			[]string{"failure", "failure"},
			"not checked: flags",
		},
		"the remedy is in the output": {
			Made, finding.Warning, false,
			[]string{"failure", "failure"},
			"fix of Broad: remove it",
		},
	} {
		r := reportOf(tc.status)
		r.FailOn = tc.failOn
		if tc.suppress {
			r.Apply(&Baseline{DoctorBaseline: configv1alpha1.DoctorBaseline{
				Suppressions: []configv1alpha1.Suppression{suppression("*", "", "")},
			}}, someDay)
		}
		suite := r.JUnit().(junit.Suites).Suite
		var got []string
		for _, c := range suite.Cases {
			switch {
			case c.Failure != nil:
				got = append(got, "failure")
			case c.Error != nil:
				got = append(got, "error")
			default:
				got = append(got, "passed")
			}
		}
		text, err := xml.Marshal(r.JUnit())
		if err != nil || !slices.Equal(got, tc.want) || !strings.Contains(string(text), tc.text) {
			t.Errorf("%s: got %v, %v\n%s", rule, got, err, text)
		}
	}
}
