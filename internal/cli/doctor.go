package cli

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/internal/doctor"
	"github.com/node-authorizer/node-authorizer/internal/render"
)

// examining is the flags of doctor.
type examining struct {
	state   *stateFlags
	options doctor.Options
	failOn  string
	plan    bool
	// auditReport is the path of a report of the command audit.
	auditReport string
}

const failOnNothing = "never"

func newDoctor(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Find what is wrong with nodes' identities and rights, and say what becomes of them",
		Long: `Reads how AWS roles are mapped (kube-system/aws-auth, IAMIdentityMappings, the files
of authenticators), and says for each role of nodes what will happen to a node that uses
it: whether it registers, becomes Ready, and serves logs and exec. Then it looks at the
names by which kubelets go, at what RBAC gives to nodes beside the Node authorizer, and
at how the API server decides. Each finding has a code, its place, what happens because
of it, and the change that mends it; docs/findings.md has a section on each.

It reads files (--from: manifests, lists, snapshots, kubeconfigs, a bare aws-auth, answers
of aws eks list-access-entries and describe-access-entry, static pods of kube-apiserver, an
AuthorizationConfiguration) or a cluster, and changes nothing.
What it may not read, or was not given, is listed, and not guessed.

With --plan it prints the steps that move the cluster to Node authorization and
NodeRestriction without disruption, in order, each with what shows whether it is done;
--audit-report adds what "node-authorizer audit -o json" made of an audit log.

Exit status: 0 nothing found, or all steps done; 1 findings as grave as --fail-on, or
steps to do; 2 bad usage, or the input could not be read or has nothing to examine.`,
		Example: `  # What will happen to nodes with this aws-auth?
  node-authorizer doctor --from aws-auth.yaml

  # Examine a cluster
  node-authorizer doctor

  # In a pipeline, for tools that show findings beside the lines
  node-authorizer doctor --from manifests/ --fail-on error -o sarif > doctor.sarif

  # The way to Node authorization, with what the audit log says
  node-authorizer audit audit.log -o json > audit.json
  node-authorizer doctor --plan --audit-report audit.json`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	e := &examining{}
	e.addFlags(a, cmd)
	output := addFormat(cmd, render.Table, render.Wide, render.JSON, render.YAML, render.SARIF)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		format, err := output.parse()
		if err != nil {
			return err
		}
		if err := e.check(cmd, format); err != nil {
			return err
		}
		audit, err := e.readAudit()
		if err != nil {
			return err
		}
		cluster, err := e.read(cmd.Context())
		if err != nil {
			return err
		}
		for _, m := range cluster.Missing {
			a.warn("%s: %s", m.Resource, m.Reason)
		}
		report := doctor.Examine(cluster, e.options)
		report.Version = currentVersion().Version
		if e.plan {
			return a.plan(doctor.MakePlan(cluster, report, audit), format)
		}
		return a.report(report, e.failOn, format)
	}
	return cmd
}

func (e *examining) addFlags(a *app, cmd *cobra.Command) {
	flags := cmd.Flags()
	e.state = addState(a, cmd)
	e.state.connection.otherwise = ", or examine files with --from"
	flags.StringVar(&e.options.Region, "region", "", "AWS region of the nodes (default: that which nodes or kubeconfigs show)")
	flags.StringVar(&e.options.Account, "account", "", "AWS account of the nodes, 12 digits, to find roles of others")
	flags.StringVar(&e.options.ClusterID, "cluster-id", "", "cluster id of tokens, to find credentials for another (default: that of the authenticator, where it shows)")
	flags.StringVar(&e.failOn, "fail-on", string(finding.Warning), "exit with 1 if a finding is at least this grave: error, warning, info or never")
	flags.BoolVar(&e.plan, "plan", false, "print the steps to Node authorization and NodeRestriction, and which of them are done")
	flags.StringVar(&e.auditReport, "audit-report", "", "with --plan, a file that 'node-authorizer audit -o json' made")
	must(cmd.MarkFlagFilename("audit-report"))
	must(cmd.RegisterFlagCompletionFunc("fail-on", complete(func() []string { return failOns() })))
	must(cmd.RegisterFlagCompletionFunc("region", cobra.NoFileCompletions))
	must(cmd.RegisterFlagCompletionFunc("account", cobra.NoFileCompletions))
	must(cmd.RegisterFlagCompletionFunc("cluster-id", cobra.NoFileCompletions))
}

// failOns are the values of --fail-on.
func failOns() []string {
	var values []string
	for _, severity := range finding.Severities() {
		values = append(values, string(severity))
	}
	return append(values, failOnNothing)
}

// check finds mistakes before anything is read.
func (e *examining) check(cmd *cobra.Command, format render.Format) error {
	switch account := e.options.Account; {
	case !slices.Contains(failOns(), e.failOn):
		return usagef("--fail-on %q: want error, warning, info or never%s", e.failOn, didYouMean(e.failOn, failOns()))
	case account != "" && (len(account) != 12 || strings.Trim(account, "0123456789") != ""):
		return usagef("--account %q: an account has 12 digits", account)
	case e.auditReport != "" && !e.plan:
		return usagef("--audit-report goes with --plan")
	case e.plan && cmd.Flags().Changed("fail-on"):
		return usagef("--fail-on has no effect with --plan, which fails while there are steps to do: leave one of them out")
	case e.plan && format == render.SARIF:
		return usagef("-o sarif is for findings, and --plan prints steps: use table, wide, json or yaml")
	}
	return e.state.check(cmd)
}

// readAudit is nil without a report.
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

func (e *examining) read(ctx context.Context) (*doctor.Cluster, error) {
	progress := newProgress(e.state.app.streams)
	defer progress.done()
	if len(e.state.from) > 0 {
		return doctor.Read(ctx, e.state.from, doctor.ReadOptions{Stdin: e.state.app.in, Progress: progress.callback()})
	}
	config, err := e.state.connection.config()
	if err != nil {
		return nil, err
	}
	e.options.Now = time.Now()
	return doctor.List(ctx, config, progress.callback())
}

// report writes findings.
func (a *app) report(report *doctor.Report, failOn string, format render.Format) error {
	if worst, found := report.Worst(); found && failOn != failOnNothing && worst.AtLeast(finding.Severity(failOn)) {
		a.status = statusDenied
	}
	return a.write(report, format)
}

// plan writes steps.
func (a *app) plan(plan *doctor.Plan, format render.Format) error {
	if !plan.Complete() {
		a.status = statusDenied
	}
	return a.write(plan, format)
}
