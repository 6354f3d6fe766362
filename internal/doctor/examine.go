package doctor

import (
	"slices"
	"time"

	"github.com/node-authorizer/node-authorizer/finding"
)

// Options says how a cluster is examined.
type Options struct {
	// Region is where the nodes are, for the names of sample nodes; empty if unknown.
	Region string
	// ClusterID is the cluster's own for its tokens; empty if unknown.
	ClusterID string
	// Account is that of the nodes' roles, 12 digits; empty if unknown.
	Account string
	// Now is the time; it matters for a live cluster only. Zero leaves out what would
	// depend on it.
	Now time.Time
	// Checks are those to make; empty for all.
	Checks []CheckID
	// Audit is what an audit log showed of kubelets; nil if that is not known.
	Audit *Audit
}

// Report is what was found. It is complete and sorted, the same for the same Cluster.
type Report struct {
	// Origin says what was examined.
	Origin string `json:"origin"`
	// Summary counts the findings and the checks.
	Summary Summary `json:"summary"`
	// Checks says of each check whether it could be made. That nothing was found means
	// something for those only that were made.
	Checks []CheckResult `json:"checks"`
	// Roles are the mapped AWS principals that give a node its identity, or were meant
	// to, each with what will happen to a node that uses it.
	Roles    []RolePrediction  `json:"roles"`
	Findings []finding.Finding `json:"findings"`
	// Missing is what the checks lack, all together.
	Missing []Missing `json:"missing,omitempty"`

	// Version is that of the program, for SARIF.
	Version string `json:"-"`
}

// Summary counts findings by their severity, and checks.
type Summary struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
	// Checks is how many were asked for, Undetermined how many of these could not be
	// made, and LeftOut how many were not asked for.
	Checks       int `json:"checks"`
	Undetermined int `json:"undetermined"`
	LeftOut      int `json:"leftOut,omitempty"`
}

// Worst returns the gravest severity found; ok is false if nothing was.
func (r *Report) Worst() (worst finding.Severity, ok bool) {
	if len(r.Findings) == 0 {
		return "", false
	}
	return r.Findings[0].Severity, true
}

// examination is one cluster under examination. A family of checks reads the cluster
// and says what it found; families do not see each other's findings.
type examination struct {
	cluster *Cluster
	options Options
	report  *Report
	// family is the one that looks at the cluster at the moment.
	family *family
	// checkOf is the check of each code that was found, and met what the checks met that
	// is missing.
	checkOf map[finding.Code]CheckID
	met     map[CheckID][]Missing
}

// Examine makes the checks on a cluster.
func Examine(c *Cluster, o Options) *Report {
	e := &examination{cluster: c, options: o, report: &Report{Origin: c.Origin, Roles: []RolePrediction{}, Checks: []CheckResult{}}}
	e.examine()
	e.finish()
	return e.report
}

// finish sorts what was found and counts it by its checks.
func (e *examination) finish() {
	r := e.report
	r.finish()
	r.Summary.Checks = len(r.Checks)
	r.Summary.Undetermined = len(r.Undetermined())
	r.Summary.LeftOut = len(Checks()) - len(r.Checks)
	for i := range r.Checks {
		for _, f := range r.Findings {
			if e.checkOf[f.Code] == r.Checks[i].ID {
				r.Checks[i].Findings++
			}
		}
	}
}

// finish sorts, leaves out what was found twice, and counts.
func (r *Report) finish() {
	finding.Sort(r.Findings)
	r.Findings = slices.Compact(r.Findings)
	if r.Findings == nil {
		r.Findings = []finding.Finding{}
	}
	r.Missing = sortMissing(r.Missing)
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
