package doctor

import (
	"slices"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// CheckID names a check. It is stable across releases.
type CheckID string

// The checks.
const (
	// CheckMappings is about the mappings of AWS roles, and their effect on a typical AWS
	// node.
	CheckMappings CheckID = "mappings"
	// CheckNodes compares the mappings with the cluster's own nodes and roles.
	CheckNodes CheckID = "nodes"
	// CheckTokens compares the cluster ids and regions of tokens with the accepted ones.
	CheckTokens CheckID = "tokens"
	// CheckKubelets is about the names and groups of kubelets.
	CheckKubelets CheckID = "kubelets"
	// CheckBindings is about what bindings grant to nodes and to everyone.
	CheckBindings CheckID = "bindings"
	// CheckAuthorization is about the authorizers of the API servers, and CheckAdmission
	// about the other flags that restrict nodes.
	CheckAuthorization CheckID = "authorization"
	CheckAdmission     CheckID = "admission"
	// CheckPaths is about the nodes that lead to cluster-admin.
	CheckPaths CheckID = "paths"
)

// CheckStatus says whether a check could be made.
type CheckStatus string

// The statuses of a check.
const (
	// Made: the check had everything that it needs. Its findings are complete.
	Made CheckStatus = "made"
	// Undetermined: something that the check needs could not be read, was not given or
	// is incomplete. Its findings may be incomplete.
	Undetermined CheckStatus = "undetermined"
)

// CheckResult says whether one check could be made, and how much it found.
type CheckResult struct {
	// ID names the check, as in --checks.
	ID CheckID `json:"id"`
	// Title describes the check in a few words.
	Title string `json:"title"`
	// Status says whether the check could be made.
	Status CheckStatus `json:"status"`
	// Findings counts what the check found, of every severity.
	Findings int `json:"findings"`
	// Missing is the input that an undetermined check lacks.
	Missing []Missing `json:"missing,omitempty"`
}

func (c *CheckResult) lacks() []string {
	var names []string
	for _, m := range c.Missing {
		names = append(names, m.Resource)
	}
	return slices.Compact(names)
}

// Missing is something that a check needs and that could not be read, was not given or
// is incomplete.
type Missing struct {
	// Resource is a name as in kubectl: "certificatesigningrequests.certificates.k8s.io".
	Resource string `json:"resource"`
	// Reason is the reason in one line.
	Reason string `json:"reason"`
	// Remedy says in one line how to provide it: which right, which file.
	Remedy string `json:"remedy,omitempty"`
}

func (m Missing) String() string {
	text := m.Resource + ": " + m.Reason
	if m.Remedy != "" {
		text += "; " + m.Remedy
	}
	return text
}

// check is a row of the table of checks.
type check struct {
	id    CheckID
	title string
	// codes are the codes of its findings. The first check of a family has all codes that no
	// other check of the family has.
	codes []finding.Code
	// lacks returns what the check needs and does not have. If it returns nothing, the check
	// is made.
	lacks func(*examination) []Missing
}

// family is a function that examines one part of a cluster for one or more checks.
type family struct {
	run    func(*examination)
	checks []check
}

func families() []family {
	return []family{
		{awsAuth, []check{
			{id: CheckMappings, title: "how AWS roles are mapped", lacks: (*examination).mappingsLack},
			{
				id: CheckNodes, title: "what the mappings mean for this cluster's nodes", lacks: (*examination).nodesLack,
				codes: []finding.Code{NodeRoleMissing, NoNodeRole, NodeRoleUsernameOfOtherNode, NodeRoleWithoutRequests},
			},
			{
				id: CheckTokens, title: "for which cluster AWS tokens are made", codes: []finding.Code{ClusterIDMismatch, STSHostMismatch},
				lacks: (*examination).tokensLack,
			},
		}},
		{nodeIdentity, []check{
			{id: CheckKubelets, title: "the usernames of kubelets", lacks: (*examination).kubeletsLack},
		}},
		{leftovers, []check{
			{id: CheckBindings, title: "what bindings give to nodes and to everyone", lacks: (*examination).rightsLack},
		}},
		{apiServers, []check{
			{id: CheckAuthorization, title: "which authorizers API servers ask", lacks: (*examination).authorizationLacks},
			{
				id: CheckAdmission, title: "NodeRestriction and other flags of API servers", lacks: (*examination).admissionLacks,
				codes: []finding.Code{
					NodeRestrictionOff, NodeRestrictionElsewhere, NodeIsolationGate, TokenWebhookMissing,
					NodesReadNodesAndPods, NodesRequestAnyAudience, AnonymousAccess,
				},
			},
		}},
		{attackPaths, []check{
			{id: CheckPaths, title: "which nodes lead to cluster-admin", lacks: (*examination).pathsLack},
		}},
	}
}

// Checks returns the checks in the order of reports.
func Checks() []CheckID {
	var ids []CheckID
	for _, f := range families() {
		for i := range f.checks {
			ids = append(ids, f.checks[i].id)
		}
	}
	return ids
}

func (o *Options) wanted(id CheckID) bool {
	return len(o.Checks) == 0 || slices.Contains(o.Checks, id)
}

func (f *family) checkOf(code finding.Code) CheckID {
	for _, c := range f.checks {
		if slices.Contains(c.codes, code) {
			return c.id
		}
	}
	return f.checks[0].id
}

func (e *examination) examine() {
	for _, f := range families() {
		if !slices.ContainsFunc(f.checks, func(c check) bool { return e.options.wanted(c.id) }) {
			continue
		}
		e.family = &f
		f.run(e)
		for _, c := range f.checks {
			if !e.options.wanted(c.id) {
				continue
			}
			result := CheckResult{ID: c.id, Title: c.title, Status: Made, Missing: sortMissing(append(c.lacks(e), e.met[c.id]...))}
			if len(result.Missing) > 0 {
				result.Status = Undetermined
			}
			e.report.Checks = append(e.report.Checks, result)
			e.report.Missing = append(e.report.Missing, result.Missing...)
		}
	}
	e.family = nil
}

func (e *examination) found(f finding.Finding) {
	if e.family != nil {
		id := e.family.checkOf(f.Code)
		if !e.options.wanted(id) {
			return
		}
		if _, other := e.report.checkOf[f.Code]; !other { // probes find what bindings give, too
			e.report.checkOf[f.Code] = id
		}
	}
	e.report.Findings = append(e.report.Findings, f)
}

// Undetermined returns the checks that could not be made.
func (r *Report) Undetermined() []CheckResult {
	return selected(r.Checks, func(c CheckResult) bool { return c.Status == Undetermined })
}

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
	// Paths has the attack paths from each node; nil if no pods and nodes are known.
	Paths *Paths
	// Probes are the answers of a live API server; nil if it was not asked.
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
	// Suppressed are the findings that do not count, and Baseline what to say about the file
	// that suppresses them; nil without a file.
	Suppressed []Suppressed    `json:"suppressed,omitempty"`
	Baseline   *BaselineResult `json:"baseline,omitempty"`
	// Missing is the input that any check lacks.
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
	// met is the missing input that checks encountered.
	met map[CheckID][]Missing
}

// Examine runs the checks on a cluster.
func Examine(c *Cluster, o Options) *Report {
	r := &Report{
		Origin: c.Origin, Roles: []RolePrediction{}, Checks: []CheckResult{}, Findings: []finding.Finding{},
		checkOf: map[finding.Code]CheckID{},
	}
	e := &examination{cluster: c, options: o, report: r, met: map[CheckID][]Missing{}}
	e.examine()
	finding.Sort(r.Findings)
	r.Findings = slices.Compact(r.Findings)
	r.Missing = sortMissing(r.Missing)
	r.count()
	r.Summary.Checks, r.Summary.Undetermined, r.Summary.LeftOut = len(r.Checks), len(r.Undetermined()), len(Checks())-len(r.Checks)
	for i := range r.Checks {
		for _, f := range r.Findings {
			if r.checkOf[f.Code] == r.Checks[i].ID {
				r.Checks[i].Findings++
			}
		}
	}
	return r
}

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
