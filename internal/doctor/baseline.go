package doctor

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// Baseline is a file with findings that do not count.
type Baseline struct {
	// Path is the path of the file.
	Path string
	configv1alpha1.DoctorBaseline
	// Lines are the lines of the suppressions.
	Lines []int
}

// Suppressed is a finding that does not count.
type Suppressed struct {
	finding.Finding
	// Reason is why it does not count.
	Reason string `json:"reason"`
	// Expires is the last day on which it does not count; empty for none.
	Expires configv1alpha1.Day `json:"expires,omitempty"`
}

// BaselineResult reports on a file with findings that do not count.
type BaselineResult struct {
	// File is the path of the file.
	File string `json:"file"`
	// Expired are the suppressions that have expired: their findings count again.
	Expired []SuppressionPlace `json:"expired,omitempty"`
	// Unused are the suppressions without a finding, and Gone the number of known findings
	// that are not there any more. Both are empty if a check was not made, because it could
	// have such findings.
	Unused []SuppressionPlace `json:"unused,omitempty"`
	Gone   int                `json:"gone,omitempty"`
	// NowMade are the checks that could not be made when the file was written, and were made now: all
	// that they find is new.
	NowMade []CheckID `json:"nowMade,omitempty"`
}

// SuppressionPlace is a suppression with its place.
type SuppressionPlace struct {
	// Line is the line in the file.
	Line int `json:"line"`
	configv1alpha1.Suppression
}

// knownReason is the reason of findings that were there when the file was written.
const knownReason = "known when the baseline was written"

func (r *Report) all() []finding.Finding {
	all := slices.Clone(r.Findings)
	for _, s := range r.Suppressed {
		all = append(all, s.Finding)
	}
	return all
}

// Apply moves the findings that a baseline has to Suppressed. It changes no check: what could not be
// checked stays undetermined.
func (r *Report) Apply(b *Baseline, now time.Time) {
	r.Baseline = &BaselineResult{File: b.Path}
	known := map[configv1alpha1.KnownFinding]bool{}
	for _, k := range b.Findings {
		known[k] = false
	}
	used := make([]bool, len(b.Suppressions))
	counted := []finding.Finding{}
	for _, f := range r.Findings {
		key := knownFinding(f)
		_, isKnown := known[key]
		if isKnown {
			known[key] = true
		}
		by := -1
		for i, s := range b.Suppressions {
			if !matches(&s, f) {
				continue
			}
			used[i] = true
			if by < 0 && !s.Expires.PassedAt(now) {
				by = i
			}
		}
		switch {
		case by >= 0:
			s := &b.Suppressions[by]
			r.Suppressed = append(r.Suppressed, Suppressed{Finding: f, Reason: s.Reason, Expires: s.Expires})
		case isKnown:
			r.Suppressed = append(r.Suppressed, Suppressed{Finding: f, Reason: knownReason})
		default:
			counted = append(counted, f)
		}
	}
	r.Findings = counted
	r.count()
	r.unneeded(b, used, known, now)
}

func (r *Report) unneeded(b *Baseline, used []bool, known map[configv1alpha1.KnownFinding]bool, now time.Time) {
	for i, s := range b.Suppressions {
		at := SuppressionPlace{Suppression: s}
		if i < len(b.Lines) {
			at.Line = b.Lines[i]
		}
		switch {
		case s.Expires.PassedAt(now):
			r.Baseline.Expired = append(r.Baseline.Expired, at)
		case !used[i] && r.whole():
			r.Baseline.Unused = append(r.Baseline.Unused, at)
		}
	}
	for _, found := range known {
		if !found && r.whole() {
			r.Baseline.Gone++
		}
	}
	for _, c := range r.Checks {
		if c.Status == Made && slices.ContainsFunc(b.Undetermined, func(u configv1alpha1.UndeterminedCheck) bool {
			return u.Check == string(c.ID)
		}) {
			r.Baseline.NowMade = append(r.Baseline.NowMade, c.ID)
		}
	}
}

func (r *Report) whole() bool { return r.Summary.Undetermined == 0 && r.Summary.LeftOut == 0 }

// knownFinding returns a finding as it is in files. Lines and keys are left out, because edits
// elsewhere move them.
func knownFinding(f finding.Finding) configv1alpha1.KnownFinding {
	return configv1alpha1.KnownFinding{
		Code: string(f.Code), Severity: string(f.Severity), Object: objectOf(f), Subject: f.Subject, Message: f.Message,
	}
}

// objectOf returns the object of a finding, or its file.
func objectOf(f finding.Finding) string { return cmp.Or(f.Place.Object, f.Place.File) }

func matches(s *configv1alpha1.Suppression, f finding.Finding) bool {
	return s.Code == string(f.Code) && matchesPattern(s.Object, objectOf(f)) && (s.Subject == "" || matchesPattern(s.Subject, f.Subject))
}

// matchesPattern reports whether a text matches a pattern whose stars stand for any text.
func matchesPattern(pattern, text string) bool {
	matches, err := regexp.MatchString("(?s)^"+strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*")+"$", text)
	return err == nil && matches
}

// NewBaseline returns a baseline with the findings of a report that suppressions do not match, and the
// suppressions of a former one, which can be nil. If a check was not made, it keeps what the former
// one knows, because the check could have it, and names the check.
func NewBaseline(r *Report, former *Baseline, now time.Time) *configv1alpha1.DoctorBaseline {
	next := &configv1alpha1.DoctorBaseline{
		TypeMeta: metav1.TypeMeta{APIVersion: configv1alpha1.APIVersion, Kind: configv1alpha1.DoctorBaselineKind},
	}
	if former != nil {
		next.Suppressions = former.Suppressions
		if !r.whole() {
			next.Findings = slices.Clone(former.Findings)
		}
	}
	for _, f := range r.all() {
		suppressed := slices.ContainsFunc(next.Suppressions, func(s configv1alpha1.Suppression) bool {
			return !s.Expires.PassedAt(now) && matches(&s, f)
		})
		if !suppressed {
			next.Findings = append(next.Findings, knownFinding(f))
		}
	}
	slices.SortFunc(next.Findings, func(a, b configv1alpha1.KnownFinding) int {
		return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Subject, b.Subject),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Message, b.Message))
	})
	next.Findings = slices.Compact(next.Findings)
	for _, c := range r.Undetermined() {
		next.Undetermined = append(next.Undetermined, configv1alpha1.UndeterminedCheck{Check: string(c.ID), Lacks: c.lacks()})
	}
	if former == nil {
		return next
	}
	for _, u := range former.Undetermined { // also those that were left out now
		if !slices.ContainsFunc(r.Checks, func(c CheckResult) bool { return string(c.ID) == u.Check }) {
			next.Undetermined = append(next.Undetermined, u)
		}
	}
	return next
}

// Notes returns what a person should change in the file.
func (b *BaselineResult) Notes() []string {
	var notes []string
	for _, s := range b.Expired {
		notes = append(notes, fmt.Sprintf("%s:%d: the suppression of %s for %s expired at the end of %s, so that its findings count: "+
			"fix them, or set another day", b.File, s.Line, s.Code, s.Object, s.Expires))
	}
	for _, s := range b.Unused {
		notes = append(notes, fmt.Sprintf("%s:%d: the suppression of %s for %s matches no finding: remove it",
			b.File, s.Line, s.Code, s.Object))
	}
	if b.Gone > 0 {
		notes = append(notes, fmt.Sprintf("%s: known findings that are gone: %d; write the file again with --write-baseline",
			b.File, b.Gone))
	}
	for _, id := range b.NowMade {
		notes = append(notes, fmt.Sprintf("%s: the check %s could not be made when the baseline was written, and was made now: "+
			"its findings count as new; fix them, or write the file again with --write-baseline", b.File, id))
	}
	return notes
}
