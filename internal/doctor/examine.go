package doctor

import (
	"slices"
	"time"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/internal/probe"
)

// Options are the options of Examine.
type Options struct {
	// Region is the region of the nodes, for the names of sample nodes; empty if unknown.
	Region string
	// ClusterID is the cluster id for tokens; empty if unknown.
	ClusterID string
	// Account is the account of the nodes' roles, 12 digits; empty if unknown.
	Account string
	// Now is the current time. It is used only for a live cluster. If it is zero, findings
	// that depend on it are omitted.
	Now time.Time
	// Checks are the selected checks; empty for all.
	Checks []CheckID
	// Audit is the report of an audit log; nil without one.
	Audit *Audit
	// Paths is what the holder of each node can come to own; nil if no pods and nodes are known.
	Paths *Paths
	// Probes are what a live API server answered; nil if it was not asked.
	Probes *probe.Results
}

// Report is the result of Examine. It is sorted, and the same for the same Cluster.
type Report struct {
	// Origin describes what was examined.
	Origin string `json:"origin"`
	// Summary counts the findings and the checks.
	Summary Summary `json:"summary"`
	// Checks lists for each check whether it could be made. The absence of findings is
	// meaningful only for checks that were made.
	Checks []CheckResult `json:"checks"`
	// Roles are the mapped AWS principals that are, or may be, for nodes, each with a
	// prediction for a node that uses it.
	Roles []RolePrediction `json:"roles"`
	// Findings are sorted, the most severe first.
	Findings []finding.Finding `json:"findings"`
	// Suppressed are the findings that do not count, and Baseline what is to be said about the
	// file that suppresses them; nil without a file.
	Suppressed []Suppressed    `json:"suppressed,omitempty"`
	Baseline   *BaselineResult `json:"baseline,omitempty"`
	// Missing is what all checks lack.
	Missing []Missing `json:"missing,omitempty"`
	// Probes are the questions that a live API server was asked, with its answers.
	Probes []probe.Probe `json:"probes,omitempty"`

	// Version is the version of the program, for SARIF.
	Version string `json:"-"`
	// FailOn is the lowest severity of findings that are failures, for JUnit; empty for none.
	FailOn finding.Severity `json:"-"`
	// ShowKnown makes the text show the suppressed findings.
	ShowKnown bool `json:"-"`

	// checkOf is the check of each code that was found.
	checkOf map[finding.Code]CheckID
}

// DocumentKind implements [render.Document].
func (*Report) DocumentKind() string { return "DoctorReport" }

// Summary counts findings by their severity, and checks.
type Summary struct {
	// Errors, Warnings and Infos are how many findings have this severity.
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
	// Suppressed is the number of suppressed findings, which are not among the others.
	Suppressed int `json:"suppressed,omitempty"`
	// Checks is the number of selected checks, Undetermined the number of these that could not
	// be made, and LeftOut the number of checks that were not selected.
	Checks       int `json:"checks"`
	Undetermined int `json:"undetermined"`
	LeftOut      int `json:"leftOut,omitempty"`
}

// Worst returns the highest severity of the findings; ok is false without findings.
func (r *Report) Worst() (worst finding.Severity, ok bool) {
	if len(r.Findings) == 0 {
		return "", false
	}
	return r.Findings[0].Severity, true
}

// examination is the examination of one cluster. Each family of checks reads the cluster and adds
// findings. Families do not read each other's findings.
type examination struct {
	cluster *Cluster
	options Options
	report  *Report
	// family is the current family.
	family *family
	// checkOf is the check of each code that was found. met is the missing input that checks
	// encountered.
	checkOf map[finding.Code]CheckID
	met     map[CheckID][]Missing
}

// Examine runs the checks on a cluster.
func Examine(c *Cluster, o Options) *Report {
	r := &Report{Origin: c.Origin, Roles: []RolePrediction{}, Checks: []CheckResult{}, Findings: []finding.Finding{}}
	e := newExamination(c, o, r)
	e.examine()
	r.checkOf = e.checkOf
	finding.Sort(r.Findings)
	r.Findings = slices.Compact(r.Findings)
	r.Missing = sortMissing(r.Missing)
	r.count()
	r.Summary.Checks, r.Summary.Undetermined, r.Summary.LeftOut = len(r.Checks), len(r.Undetermined()), len(Checks())-len(r.Checks)
	for i := range r.Checks {
		for _, f := range r.Findings {
			if e.checkOf[f.Code] == r.Checks[i].ID {
				r.Checks[i].Findings++
			}
		}
	}
	return r
}

func newExamination(c *Cluster, o Options, r *Report) *examination {
	return &examination{cluster: c, options: o, report: r, checkOf: map[finding.Code]CheckID{}, met: map[CheckID][]Missing{}}
}

// count counts the findings by severity.
func (r *Report) count() {
	s := &r.Summary
	s.Errors, s.Warnings, s.Infos, s.Suppressed = 0, 0, 0, len(r.Suppressed)
	for _, f := range r.Findings {
		switch f.Severity {
		case finding.Error:
			r.Summary.Errors++
		case finding.Warning:
			r.Summary.Warnings++
		case finding.Info:
			r.Summary.Infos++
		}
	}
}
