package paths

import (
	"github.com/node-authorizer/node-authorizer/attackpaths"
	"github.com/node-authorizer/node-authorizer/docs/reference"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/output/report"
)

// The structs of this file are the JSON and YAML of diff. The report for browsers is made from the
// same document, so fields are only added.

// DiffResult is what nodes and service accounts reach in one state of a cluster and not in the
// other.
type DiffResult struct {
	// Verdict is "Widened" if there are findings, and else "NotWidened" or, if something is missing, "Undecided".
	Verdict string `json:"verdict"`
	// Before and After are the two states.
	Before command.StateInfo `json:"before"`
	After  command.StateInfo `json:"after"`
	// Changes are the objects of --with and --without, in the order in which they were applied; empty
	// for two states of --from and --to.
	Changes []diffChange `json:"changes,omitempty"`
	// Widened is what is reached after that was not before, or was only possible: findings. Narrowed is the
	// other way round. Both begin with workloads that are new or changed, then with cluster-admin, nodes, secrets,
	// service accounts, namespaces, users, groups and pods. Neither is null.
	Widened  []diffRow `json:"widened"`
	Narrowed []diffRow `json:"narrowed"`
	// Expected is reached more too, and is no finding, for the reason of each row: what is new itself and is reached as
	// all of its kind were before, what accounts of the control plane come to reach, what a workload itself names, and
	// what only a new or changed workload brings and that gives nothing else.
	Expected []diffRow `json:"expected,omitempty"`
	// Suppressed are findings that a baseline has, with its reason, and Baseline is what to say about the file.
	Suppressed []diffRow              `json:"suppressed,omitempty"`
	Baseline   *doctor.BaselineResult `json:"baseline,omitempty"`
	// FailOn is which findings fail, and Failing how many do: the exit status is 1 then, 2 if none does and something is
	// missing, and else 0.
	FailOn  string `json:"failOn"`
	Failing int    `json:"failing"`
	// Totals count starts by what changes for them.
	Totals diffTotals `json:"totals"`
	// Notes are facts about the changes that a reader should know, one line each.
	Notes []string `json:"notes,omitempty"`
	// Missing is what could not be read, or neither state has: more may widen.
	Missing []command.Missing `json:"missing,omitempty"`

	custom []attackpaths.CustomTechnique
	// report has the findings as findings of doctor, for baselines.
	report    *doctor.Report
	showKnown bool
}

// The verdicts.
const (
	DiffWidened    = "Widened"
	DiffNotWidened = "NotWidened"
	DiffUndecided  = "Undecided"
)

// diffChange is one object that the second state has in another form than the first.
type diffChange struct {
	// Action is Added, Replaced or Removed.
	Action string `json:"action"`
	// Object is the object that changes.
	Object changedObject `json:"object"`
	// File and Line are the place in the manifest; absent for what --without removes.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Because says for an object that was not named why it changes: "owned by deployments.apps web".
	Because string `json:"because,omitempty"`
	// Objects is how many objects this stands for, if more than one: the pods of a workload.
	Objects int `json:"objects,omitempty"`
}

// changedObject names an object of any kind.
type changedObject struct {
	// Kind is the kind of the object.
	Kind string `json:"kind"`
	// Group is the API group; absent for the core group.
	Group string `json:"group,omitempty"`
	// Namespace and Name are the namespace and name of the object.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// diffRow is starts that reach the same holdings of one kind in one state and not in the other.
type diffRow struct {
	// ID is the same for the same row of another run: a permalink.
	ID string `json:"id"`
	// Kind is the kind of the holdings: ClusterAdmin, Node, Secret, ServiceAccount, Namespace, User,
	// Group or Pod.
	Kind string `json:"kind"`
	// Before and After are No, Possible or Certain.
	Before attackpaths.Certainty `json:"before"`
	After  attackpaths.Certainty `json:"after"`
	// StartKind is Node, ServiceAccount, or the kind of a workload: who breaks into one of its pods. Starts
	// are StartCount many. The path begins at the first of them; the others are sorted. A start that is
	// among the holdings too does not reach itself, but the others.
	StartKind  string                `json:"startKind"`
	StartCount int                   `json:"startCount"`
	Starts     []attackpaths.Holding `json:"starts"`
	// Reached are the holdings, sorted, and ReachedCount is how many there are.
	ReachedCount int                   `json:"reachedCount"`
	Reached      []attackpaths.Holding `json:"reached"`
	// Unchanged counts pairs of a start and a holding of the row that are reached in the other state
	// too, or are in another row: a node that had mounted one of the secrets before.
	Unchanged int `json:"unchanged,omitempty"`
	// Reason is why a row is no finding; absent for findings.
	Reason string `json:"reason,omitempty"`
	// Path leads from the first start, or a pod of it, to one of the holdings: in the second state if the row is
	// widened, else in the first.
	Path []attackpaths.Step `json:"path"`
	// Places are the changed objects that steps of the path need.
	Places []diffPlace `json:"places,omitempty"`
}

// diffPlace is a changed object that makes a step possible.
type diffPlace struct {
	// Step is the step of the path, from 1.
	Step int `json:"step"`
	// Action is Added, Replaced or Removed, if the object itself changed.
	Action string `json:"action,omitempty"`
	// Object is the object that makes the step possible.
	Object changedObject `json:"object"`
	// File and Line are absent where the object is in no file.
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// diffTotals count nodes, service accounts and workloads.
type diffTotals struct {
	// Workloads counts workloads that are new or changed, and reach what their pods did not before.
	Workloads diffWorkloads `json:"workloads"`
	// Nodes counts nodes, and ServiceAccounts counts service accounts.
	Nodes           diffTotal `json:"nodes"`
	ServiceAccounts diffTotal `json:"serviceAccounts"`
}

// diffTotal counts starts of one kind.
type diffTotal struct {
	// Before and After are how many there are.
	Before int `json:"before"`
	After  int `json:"after"`
	// Widened reach more, Narrowed less; a start may do both.
	Widened  int `json:"widened"`
	Narrowed int `json:"narrowed"`
	// GainClusterAdmin and LoseClusterAdmin change how they reach cluster-admin.
	GainClusterAdmin int `json:"gainClusterAdmin"`
	LoseClusterAdmin int `json:"loseClusterAdmin"`
}

// diffWorkloads counts workloads.
type diffWorkloads struct {
	// Widened reach more, and GainClusterAdmin of them the whole cluster.
	Widened          int `json:"widened"`
	GainClusterAdmin int `json:"gainClusterAdmin"`
}

func (r *DiffResult) Page() report.Page {
	data := struct {
		*DiffResult
		Headline   string                      `json:"headline"`
		TotalLines []string                    `json:"totalLines"`
		Techniques map[attackpaths.Code]string `json:"techniques"`
		Links      map[attackpaths.Code]string `json:"links"`
		Attack     map[attackpaths.Code]string `json:"attack"`
	}{r, r.verdictText(), r.totalLines(false), techniqueSummaries(r.custom), map[attackpaths.Code]string{}, map[attackpaths.Code]string{}}
	for _, t := range attackpaths.Techniques() {
		data.Links[t.Code], data.Attack[t.Code] = reference.Link(reference.Technique, string(t.Code)), t.ATTACK
	}
	return report.Page{Kind: report.KindDiff, Title: "Diff: " + r.After.Origin, Data: data}
}

func (*DiffResult) DocumentKind() string { return "Diff" }
