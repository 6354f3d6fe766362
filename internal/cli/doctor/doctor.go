// Package doctor has the command doctor, which checks a cluster.
package doctor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/cli/paths"
	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
)

// examining holds the flags of doctor.
type examining struct {
	state   *command.StateFlags
	options doctor.Options
	failOn  string
	plan    bool
	// auditReport is the path of a report of the command audit.
	auditReport string
	// checks are the names of the checks to run, and add the files that are read in
	// addition to a cluster.
	checks []string
	add    []string
	// probe is true if the API server is asked what its flags would show.
	probe bool
	// known has the flags about findings that do not count.
	known command.KnownFlags
}

const failOnNothing = "never"

func NewDoctor(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find errors in the identities and rights of nodes, and predict what happens to the nodes",
		Long: `Reads how AWS roles are mapped (kube-system/aws-auth, IAMIdentityMappings, the
files of authenticators), and says for each role of nodes what will happen to a node
that uses it: whether it registers, becomes Ready, and serves logs and exec. Then it
looks at the user names of kubelets, the rights that RBAC gives to nodes beside the Node
authorizer, and the authorizers of the API server. Each finding has a code, its place,
what happens because of it, and the change that fixes it; node-authorizer explain-code
explains each.

The doctor reads files (--from: manifests, lists, snapshots, kubeconfigs, a bare
aws-auth, answers of aws eks list-access-entries and describe-access-entry, static pods
of kube-apiserver, an AuthorizationConfiguration, the KubeAPIServerConfig of OpenShift,
the config file of k3s or RKE2, the machine config of Talos, the unit of systemd
(NAME.service) that starts k3s, RKE2 or kube-apiserver, the access entries in templates
of CloudFormation and in configs of eksctl) or a cluster, and changes nothing. An entry
in a format that it cannot read is reported as unknown. --add names files that it reads
in addition to a cluster. A check whose input is missing or incomplete is reported as
not made, with the missing input. To leave out checks whose input you cannot give, name
the others in --checks.

--probe asks the API server what its flags would show, where a provider hides them:
whether Node authorization, NodeRestriction, the restriction of audiences and the
refusal of anonymous requests hold. The probes are access reviews and dry runs about a
node that does not exist and requests for tokens that cannot be issued. Each is listed
with its answer; nothing is changed. docs/reference/findings/README.md describes them,
and names the rights that they need.

With --plan it prints the steps that move the cluster to Node authorization and
NodeRestriction without disruption, in order, each with what shows whether it is done.
--audit-report adds what "node-authorizer audit -o json" made of an audit log.

--baseline names a file with findings that do not count: those that were there when
--write-baseline wrote it, and suppressions that people add, each with a reason. Known
findings are counted apart and shown with --show-known. A check that could not be made
stays so, and a baseline is not written then: --allow-undetermined writes one that lists
such checks.

Exit status: 0 no finding is as severe as --fail-on, and every check could be made, 1 a
finding is, 2 none is, and a check could not be made. With --plan: 0 all steps are done,
1 a step is to do, 2 none is, and of a step it is not known whether it is done. The
status is also 2 for bad usage, and if the input could not be read or has nothing to
examine.`,
		Example: `  # What will happen to nodes with this aws-auth?
  node-authorizer doctor --from aws-auth.yaml

  # Examine a cluster
  node-authorizer doctor

  # In a pipeline that has the mappings and nothing else
  node-authorizer doctor --from aws-auth.yaml --checks mappings

  # For tools that show findings beside the lines
  node-authorizer doctor --from manifests/ --checks mappings,bindings -o sarif > doctor.sarif

  # Fail only for what is new
  node-authorizer doctor --from manifests/ --checks mappings,bindings --write-baseline doctor-baseline.yaml
  node-authorizer doctor --from manifests/ --checks mappings,bindings --baseline doctor-baseline.yaml

  # A cluster whose API servers read their authorizers from a file
  node-authorizer doctor --add authorization.yaml

  # A cluster whose provider runs the API servers: EKS, GKE, AKS
  node-authorizer doctor --probe

  # The way to Node authorization, with what the audit log says
  node-authorizer audit audit.log -o json > audit.json
  node-authorizer doctor --plan --audit-report audit.json`,
		Args:              command.Exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	e := &examining{}
	e.addFlags(a, cmd)
	e.known.Add(cmd)
	e.known.LeaveOut = ", or leave them out by naming the others in --checks"
	output := command.AddFormat(cmd, render.ForRows(render.SARIF, render.JUnit, render.HTML)...)
	output.RunE(func(cmd *cobra.Command, _ []string, format render.Format) error {
		if err := e.check(cmd, format); err != nil {
			return err
		}
		audit, err := e.readAudit()
		if err != nil {
			return err
		}
		if err := e.known.Read(); err != nil {
			return err
		}
		cluster, state, err := e.read(cmd.Context())
		if err != nil {
			return err
		}
		e.state.NoteOrigin(cluster.Origin)
		if e.options.Paths == nil {
			if e.options.Paths, err = e.paths(cmd.Context(), state); err != nil {
				return err
			}
		}
		a.WarnMissing(command.Unexamined(cluster.Missing), command.ChecksNotMade)
		if !e.plan {
			e.options.Audit = audit
		}
		report := doctor.Examine(cluster, e.options)
		a.NoteNotRead(command.Unexamined(report.Missing))
		report.Version = command.CurrentVersion().Version
		if e.plan {
			return plan(a, doctor.MakePlan(cluster, report, audit), format)
		}
		if err := e.known.Apply(a, report, a.Now()); err != nil {
			return err
		}
		if err := writeReport(a, report, e.failOn, format); err != nil {
			return err
		}
		return e.known.Refused(report)
	})
	command.AddClusters(a, cmd, e.state.Connection, "plan", "add", "audit-report", "baseline", "write-baseline")
	command.AddWatch(a, cmd, "write-baseline")
	return cmd
}

func (e *examining) addFlags(a *command.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	e.state = command.AddState(a, cmd)
	e.state.Connection.Otherwise = ", or examine files with --from"
	flags.StringVar(&e.options.Region, "region", "", "AWS region of the nodes (default: taken from nodes or kubeconfigs)")
	flags.StringVar(&e.options.Account, "account", "", "AWS account of the nodes, 12 digits, to find roles of other accounts")
	flags.StringVar(
		&e.options.ClusterID, "cluster-id", "",
		"cluster id of tokens, to find credentials for other clusters (default: taken from the authenticator's configuration)",
	)
	flags.StringVar(
		&e.failOn, "fail-on", string(finding.Warning), "exit with 1 if a finding is at least this severe: error, warning, info or never",
	)
	flags.BoolVar(&e.plan, "plan", false, "print the steps to Node authorization and NodeRestriction, and which of them are done")
	flags.StringVar(&e.auditReport, "audit-report", "", "output of 'node-authorizer audit -o json', which shows the usernames of kubelets")
	flags.StringSliceVar(&e.checks, "checks", nil, "run only these checks: "+strings.Join(checkNames(), ", "))
	flags.StringArrayVar(
		&e.add, "add", nil,
		"also read this file or folder, such as the AuthorizationConfiguration of the cluster's API servers; can be repeated",
	)
	flags.BoolVar(
		&e.probe, "probe", false,
		"ask the API server whether it restricts nodes, where its flags cannot be seen, by access reviews and dry runs "+
			"about a node that does not exist",
	)
	command.Must(cmd.MarkFlagFilename("add"))
	command.Must(cmd.RegisterFlagCompletionFunc("checks", command.Complete(checkNames)))
	command.Must(cmd.MarkFlagFilename("audit-report"))
	command.Must(cmd.RegisterFlagCompletionFunc("fail-on", command.Complete(failOns)))
	command.CompleteNothing(cmd, "region", "account", "cluster-id")
}

func failOns() []string {
	var values []string
	for _, severity := range finding.Severities() {
		values = append(values, string(severity))
	}
	return append(values, failOnNothing)
}

func (e *examining) check(cmd *cobra.Command, format render.Format) error {
	switch account := e.options.Account; {
	case !slices.Contains(failOns(), e.failOn):
		return command.Usagef("--fail-on %q: want error, warning, info or never%s", e.failOn, command.DidYouMean(e.failOn, failOns()))
	case cmd.Flags().Changed("account") && (len(account) != 12 || strings.Trim(account, "0123456789") != ""):
		return command.Usagef("--account %q: an account has 12 digits", account)
	case len(e.add) > 0 && len(e.state.From) > 0:
		return command.Usagef("--add adds files to a cluster, and --from replaces the cluster: use --from for the file")
	case e.plan && len(e.checks) > 0:
		return command.Usagef("--checks has no effect with --plan, which needs all checks: remove one of them")
	case e.plan && cmd.Flags().Changed("fail-on"):
		return command.Usagef("--fail-on has no effect with --plan, which fails while there are steps to do: remove one of them")
	case e.plan && e.known.Given():
		return command.Usagef(
			"--baseline, --write-baseline and --show-known have no effect with --plan, whose steps are not findings: remove them",
		)
	case e.known.AllowUndetermined && e.known.Write == "":
		return command.Usagef("--allow-undetermined has no effect without --write-baseline: remove it")
	case e.plan && slices.Contains([]render.Format{render.SARIF, render.JUnit, render.HTML, render.Name, render.CSV}, format):
		return command.Usagef("-o %s is for findings, and --plan prints steps: use table, wide, json or yaml", format)
	}
	if err := e.checkProbe(); err != nil {
		return err
	}
	for _, name := range e.checks {
		if !slices.Contains(doctor.Checks(), doctor.CheckID(name)) {
			return command.Usagef(
				"--checks %q: want some of %s%s", name, strings.Join(checkNames(), ", "), command.DidYouMean(name, checkNames()),
			)
		}
		e.options.Checks = append(e.options.Checks, doctor.CheckID(name))
	}
	return e.state.Check(cmd)
}

func (e *examining) checkProbe() error {
	answered := []string{string(doctor.CheckAuthorization), string(doctor.CheckAdmission)}
	switch {
	case !e.probe:
		return nil
	case len(e.state.From) > 0:
		return command.Usagef("--probe asks an API server, and --from examines files: remove one of them")
	case len(e.checks) > 0 && !slices.ContainsFunc(e.checks, func(name string) bool { return slices.Contains(answered, name) }):
		return command.Usagef("--probe answers the checks %s and %s, and --checks has neither: add one of them, or remove --probe",
			answered[0], answered[1])
	}
	return nil
}

func checkNames() []string {
	var names []string
	for _, id := range doctor.Checks() {
		names = append(names, string(id))
	}
	return names
}

// readAudit returns nil without a report.
func (e *examining) readAudit() (*doctor.Audit, error) {
	if e.auditReport == "" {
		return nil, nil
	}
	text, err := os.ReadFile(e.auditReport)
	if err != nil {
		return nil, fmt.Errorf("reading the audit report: %w", err)
	}
	audit, err := doctor.ReadAudit(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.auditReport, err)
	}
	return audit, nil
}

// read reads what the checks need. The state is nil if no check needs it or nothing is known of it.
func (e *examining) read(ctx context.Context) (*doctor.Cluster, *source.State, error) {
	progress := command.NewProgress(e.state.App.Streams)
	defer progress.Done()
	options := doctor.ReadOptions{Stdin: e.state.App.In, Progress: progress.Callback()}
	if len(e.state.From) > 0 {
		if e.wantsPaths() {
			options.State = source.NewReader(source.FileOptions{Inventory: true})
		}
		cluster, err := doctor.Read(ctx, e.state.From, options)
		if err != nil || options.State == nil {
			return cluster, nil, err
		}
		state, err := options.State.State(cluster.Origin)
		if err != nil { // the other checks do not read it
			e.options.Paths = &doctor.Paths{Missing: []doctor.Missing{{
				Resource: "pods", Reason: "the objects for attack paths could not be read: " + err.Error(),
				Remedy: "fix the object, or leave the check out (--checks)",
			}}}
		}
		return cluster, state, nil
	}
	config, err := e.state.Connection.Config()
	if err != nil {
		return nil, nil, err
	}
	e.options.Now = e.state.App.Now()
	cluster, err := doctor.List(ctx, config, progress.Callback())
	if err != nil {
		return nil, nil, err
	}
	if len(e.add) > 0 {
		if err := cluster.Add(ctx, e.add, options); err != nil {
			return nil, nil, err
		}
	}
	if e.probe {
		options := probe.Options{Minor: cluster.Version, Progress: probes(progress)}
		if e.options.Probes, err = probe.Run(ctx, config, options); err != nil {
			return nil, nil, err
		}
	}
	if !e.wantsPaths() {
		return cluster, nil, nil
	}
	state, err := source.List(ctx, config, source.LiveOptions{Progress: progress.Callback(), Inventory: true})
	return cluster, state, err
}

// probes returns nil if no bar is drawn.
func probes(p *command.Progress) func(done, total int) {
	if p == nil {
		return nil
	}
	return func(done, total int) {
		p.Draw("answers", int64(done), int64(total), func() string { return render.Count(done, "probe") })
	}
}

// wantsPaths reports whether attack paths are examined. The plan does not need them.
func (e *examining) wantsPaths() bool {
	return !e.plan && (len(e.options.Checks) == 0 || slices.Contains(e.options.Checks, doctor.CheckPaths))
}

// paths returns what the check about attack paths needs; nil without pods or nodes.
func (e *examining) paths(ctx context.Context, state *source.State) (*doctor.Paths, error) {
	if state == nil || len(state.Inventory.Pods())+len(state.Inventory.Nodes()) == 0 && !state.Complete() {
		return nil, nil
	}
	s, err := e.state.NewSession(ctx, state, nil)
	if err != nil {
		return nil, err
	}
	g, err := paths.AttackGraph(s, &paths.AttackPathsFlags{})
	if err != nil {
		return nil, err
	}
	nodes := s.KnownNodes()
	followed := &doctor.Paths{Graph: g, Nodes: len(nodes)}
	for _, m := range paths.MissingForPaths(s, nodes...) {
		followed.Missing = append(followed.Missing, doctor.Missing{Resource: m.Resource, Reason: m.Reason})
	}
	return followed, nil
}

// report writes findings. Findings take precedence over undetermined checks in the exit
// status, because they are certain.
func writeReport(a *command.App, report *doctor.Report, failOn string, format render.Format) error {
	if failOn != failOnNothing {
		report.FailOn = finding.Severity(failOn)
	}
	worst, found := report.Worst()
	switch {
	case found && failOn != failOnNothing && worst.AtLeast(finding.Severity(failOn)):
		a.Status = command.StatusDenied
	case len(report.Undetermined()) > 0:
		a.Status = command.StatusUndecided
	}
	return a.Write(report, format)
}

func plan(a *command.App, plan *doctor.Plan, format render.Format) error {
	switch {
	case plan.Open():
		a.Status = command.StatusDenied
	case !plan.Complete():
		a.Status = command.StatusUndecided
	}
	return a.Write(plan, format)
}
