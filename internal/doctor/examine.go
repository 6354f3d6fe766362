package doctor

import (
	"cmp"
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
}

// Report is what was found. It is complete and sorted, the same for the same Cluster.
type Report struct {
	// Origin says what was examined.
	Origin string `json:"origin"`
	// Summary counts the findings.
	Summary Summary `json:"summary"`
	// Roles are the mapped AWS principals that give a node its identity, or were meant
	// to, each with what will happen to a node that uses it.
	Roles    []RoleFate        `json:"roles"`
	Findings []finding.Finding `json:"findings"`
	// Missing is what could not be read, or was not there, with what is left unchecked
	// for that.
	Missing []Missing `json:"missing,omitempty"`

	// Version is that of the program, for SARIF.
	Version string `json:"-"`
}

// Summary counts findings by their severity.
type Summary struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	Infos    int `json:"infos"`
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
}

// found adds a finding.
func (e *examination) found(f finding.Finding) {
	e.report.Findings = append(e.report.Findings, f)
}

// missing says that something was not there to be checked.
func (e *examination) missing(resource, reason string) {
	e.report.Missing = append(e.report.Missing, Missing{Resource: resource, Reason: reason})
}

// notThere says that something was not there, and what is unchecked for that.
func (e *examination) notThere(resource, why, unchecked string) {
	if e.cluster.Snapshot {
		why = "a snapshot has none, give it with --from too"
	}
	e.missing(resource, why+": "+unchecked)
}

// family is a group of checks, as docs/findings.md groups their codes.
type family struct {
	name  string
	check func(*examination)
}

// families are all of them. Their order is of no account: the report is sorted.
func families() []family {
	return []family{
		{"aws-auth", awsAuth},
		{"node identity", nodeIdentity},
		{"leftovers", leftovers},
		{"API server", apiServers},
	}
}

// Examine puts every check to a cluster.
func Examine(c *Cluster, o Options) *Report {
	e := &examination{cluster: c, options: o, report: &Report{
		Origin:  c.Origin,
		Roles:   []RoleFate{},
		Missing: slices.Clone(c.Missing),
	}}
	for _, f := range families() {
		f.check(e)
	}
	e.report.finish()
	return e.report
}

// finish sorts, leaves out what was found twice, and counts.
func (r *Report) finish() {
	finding.Sort(r.Findings)
	r.Findings = slices.Compact(r.Findings)
	if r.Findings == nil {
		r.Findings = []finding.Finding{}
	}
	slices.SortStableFunc(r.Missing, func(a, b Missing) int {
		return cmp.Or(cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Reason, b.Reason))
	})
	r.Missing = slices.Compact(r.Missing)
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
