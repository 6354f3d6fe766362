// Package setup has the commands setup kubeadm, setup verify and setup undo, which install the server on a control plane
// node, examine it, and remove it.
package setup

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/doctor/probe"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/setup"
)

func NewSetup(a *command.App) *cobra.Command {
	return command.NewGroup("setup", "Install the server beside kube-apiserver, examine it, and remove it",
		newKubeadm(a), newVerify(a), newUndo(a))
}

// nodeFlags say which node is meant, and how its cluster is reached.
type nodeFlags struct {
	app        *command.App
	dir, name  string
	kubeconfig string
	timeout    time.Duration
	journal    *setup.Journal
	options    setup.Options
	mode       string
}

func addNode(a *command.App, cmd *cobra.Command) *nodeFlags {
	f := &nodeFlags{app: a}
	host, _ := os.Hostname()
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "kubernetes-dir", "/etc/kubernetes", "folder of kubeadm on the node")
	flags.StringVar(&f.name, "node-name", "", "name of this node (default: the host's name)")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of an administrator (default: admin.conf in the folder of kubeadm)")
	flags.DurationVar(&f.timeout, "timeout", 3*time.Minute, "limit for each wait for the server or kube-apiserver")
	cmd.PreRun = func(*cobra.Command, []string) { f.name = cmp.Or(f.name, strings.ToLower(host)) }
	command.CompleteNothing(cmd, "node-name", "timeout")
	command.Must(cmd.MarkFlagDirname("kubernetes-dir"))
	command.Must(cmd.MarkFlagFilename("kubeconfig"))
	return f
}

func (f *nodeFlags) read() error {
	dir, err := filepath.Abs(f.dir)
	if err != nil {
		return err
	}
	f.dir = dir
	if f.journal, err = setup.ReadJournal(dir); err != nil {
		return err
	}
	f.options.Dir, f.options.Now = dir, time.Now()
	f.options.Mode = setup.Mode(cmp.Or(f.mode, string(f.journal.Mode), string(setup.Observe)))
	f.options.Port = cmp.Or(f.options.Port, f.journal.Port, 10270)
	f.options.Containment = f.options.Containment || f.journal.Containment
	return nil
}

func (f *nodeFlags) node(address string) (*setup.Node, error) {
	path := cmp.Or(f.kubeconfig, filepath.Join(f.dir, "admin.conf"))
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("find an administrator's kubeconfig: %w; name one with --kubeconfig", err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil { // the error may quote the file, which has a key
		return nil, fmt.Errorf("%s is not a kubeconfig with a cluster and a user; correct it, or name another one with --kubeconfig", path)
	}
	cluster, err := setup.Connect(config, address)
	if err != nil {
		return nil, err
	}
	step := func(text string) { f.app.PrintLine("", text) }
	return &setup.Node{Name: f.name, Dir: f.dir, Cluster: cluster, Timeout: f.timeout, Step: step}, nil
}

func newKubeadm(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubeadm",
		Short: "Install the server on a control plane node of kubeadm, or change its mode",
		Long: `Installs the server as a static pod beside kube-apiserver, and makes kube-apiserver ask it about nodes. It reads
kubeadm's manifests and certificates, shows everything that changes as a diff, and changes nothing until that is
confirmed on a terminal, or with --yes. Private keys are not shown. Repeat it on each control plane node, one
after the other: it refuses a node while another one is not healthy. With no change of the mode it renews
certificates after two thirds of their life.

The modes, each stronger than the one before:

  observe  no answer of the server counts: it counts and logs where it differs from the in-tree parts
  beside   a request is allowed if either authorizer allows it; a write is refused if either admission refuses it
  replace  the server decides instead of the Node authorizer and NodeRestriction

kube-apiserver's manifest is replaced last. If kube-apiserver or the server does not become ready, all files are put back.
"setup undo" puts them back later.

--output writes the files to a folder instead, with the objects in cluster.yaml and webhook.yaml. With --for it writes
them in the form that k3s, RKE2 or Talos read.
docs/guides/guard-a-cluster.md has the steps.

Exit status: 0 done or nothing to change, 2 a step failed, nothing was confirmed, or this cannot be applied now, which
--dry-run says too.`,
		Example: `  # See what would change
  node-authorizer setup kubeadm --image registry.example.com/node-authorizer:v1 --dry-run

  # Observe for a week, and then replace the in-tree parts
  node-authorizer setup kubeadm --image registry.example.com/node-authorizer:v1 --mode observe
  node-authorizer setup verify
  node-authorizer setup kubeadm --mode replace

  # Renew certificates from a timer
  node-authorizer setup kubeadm --yes`,
		Args:              command.Exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := addNode(a, cmd)
	var dryRun, yes bool
	var output, distribution, pki string
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "mode", "", "observe, beside or replace (default: the mode that is installed, else observe)")
	flags.StringVar(&f.options.Image, "image", "", "image of the server, which this node can pull (default: the image that is installed)")
	flags.IntVar(&f.options.Port, "port", 0,
		"port of the server on 127.0.0.1; the next one is for metrics (default: the port that is installed, else 10270)")
	flags.BoolVar(&f.options.Containment, "containment", false, "enable NodeScopes and Quarantines, and install their custom resources")
	flags.StringVar(&output, "output", "", "write the files below this folder, and change nothing on the node and in the cluster")
	flags.StringVar(&distribution, "for", "",
		"with --output, write the files for "+render.Join(setup.Distributions(), "or")+" instead of kubeadm")
	flags.StringVar(&pki, "pki", "", "with --for, folder of the cluster's authorities (default: the one of k3s or RKE2)")
	flags.BoolVar(&dryRun, "dry-run", false, "show what would change, and change nothing")
	flags.BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.MarkFlagsMutuallyExclusive("dry-run", "yes")
	command.Must(cmd.MarkFlagDirname("output"))
	command.Must(cmd.MarkFlagDirname("pki"))
	command.Must(cmd.RegisterFlagCompletionFunc("for", command.Complete(setup.Distributions)))
	command.Must(cmd.RegisterFlagCompletionFunc("mode", command.Complete(setup.Modes)))
	command.CompleteNothing(cmd, "image", "port")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.mode != "" && !slices.Contains(setup.Modes(), f.mode) {
			return command.Usagef("--mode %q: want %s%s",
				f.mode, render.Join(setup.Modes(), "or"), command.DidYouMean(f.mode, setup.Modes()))
		}
		if err := f.read(); err != nil {
			return err
		}
		if distribution != "" {
			return f.writeFor(distribution, pki, output, dryRun)
		}
		written := f.dir
		if output != "" {
			written = filepath.Join(output, f.dir)
		}
		plan, err := setup.Kubeadm(f.options, setup.ReadFrom(written, f.dir), f.journal)
		if err != nil {
			return err
		}
		if output != "" {
			return f.write(plan, output, dryRun)
		}
		return f.install(cmd, plan, dryRun, yes)
	}
	return cmd
}

func (f *nodeFlags) writeFor(distribution, pki, output string, dryRun bool) error {
	pki = cmp.Or(pki, setup.Authorities(distribution))
	switch {
	case !slices.Contains(setup.Distributions(), distribution):
		return command.Usagef("--for %q: want %s%s", distribution, render.Join(setup.Distributions(), "or"),
			command.DidYouMean(distribution, setup.Distributions()))
	case output == "":
		return command.Usagef("--for=%s writes files: name a folder for them with --output", distribution)
	case pki == "":
		return command.Usagef("--for=%s needs the cluster's authority: write ca.crt and ca.key to a folder, and name it with --pki",
			distribution)
	}
	plan, err := setup.For(distribution, f.options, setup.ReadFrom(filepath.Join(output, setup.DirFor(distribution)), pki))
	if err != nil {
		return err
	}
	return f.write(plan, output, dryRun)
}

func (f *nodeFlags) write(plan *setup.Plan, output string, dryRun bool) error {
	files, err := plan.Output()
	if err != nil {
		return err
	}
	text, err := setup.Diff(output, files)
	if err != nil {
		return err
	}
	f.show(text)
	if dryRun {
		return nil
	}
	return setup.WriteTo(output, files)
}

func (f *nodeFlags) show(text string) {
	if text == "" {
		text = "Nothing changes.\n"
	}
	fmt.Fprint(f.app.Out, text)
}

// install shows what changes, and applies it when that is confirmed.
func (f *nodeFlags) install(cmd *cobra.Command, plan *setup.Plan, dryRun, yes bool) error {
	node, err := f.node(plan.Address)
	if err != nil {
		return err
	}
	files, err := setup.Diff("", plan.Files)
	if err != nil {
		return err
	}
	objects, err := node.Cluster.Diff(cmd.Context(), plan, f.name)
	if err != nil {
		return fmt.Errorf("read what changes in the cluster %s: %w", node.Cluster.Config.Host, err)
	}
	f.show(files + objects)
	if err := node.Check(cmd.Context(), plan); err != nil || dryRun {
		return err
	}
	if !yes {
		if err := f.app.Confirm(cmd.Context(), "Apply this to the node "+f.name+"?"); err != nil {
			return err
		}
	}
	return node.Apply(cmd.Context(), plan, f.journal)
}

func newUndo(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "undo",
		Short: "Put back all files of a control plane node as they were before the first setup",
		Long: `Puts back kube-apiserver's manifest byte for byte, waits until kube-apiserver is ready, and removes the files of the
server. With the last control plane node it removes the objects of setup in the cluster; custom resources stay while
there are NodeScopes or Quarantines. From the mode replace it first goes back to beside. It also continues after
a setup or undo that was interrupted.

Exit status: 0 done, 2 a step failed or nothing was confirmed.`,
		Example:           "  node-authorizer setup undo\n  node-authorizer setup undo --yes --force",
		Args:              command.Exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := addNode(a, cmd)
	var yes, force bool
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask for confirmation")
	cmd.Flags().BoolVar(&force, "force", false, "put back the files even if kube-apiserver does not answer or others have changed them")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.read(); err != nil {
			return err
		}
		if f.journal.Mode == "" {
			return fmt.Errorf("there is nothing to undo: the server is not installed in %s", f.dir)
		}
		address, err := f.journal.Address(f.dir)
		if err != nil {
			return err
		}
		node, err := f.node(address)
		if err != nil {
			return err
		}
		if !yes {
			if err := f.app.Confirm(cmd.Context(), "Remove the server from the node "+f.name+"?"); err != nil {
				return err
			}
		}
		return node.Undo(cmd.Context(), f.options, setup.ReadFrom(f.dir, f.dir), f.journal, force)
	}
	return cmd
}

// VerifyResult has the answers of a running cluster.
type VerifyResult struct {
	// Node is the control plane node, and Mode the mode that is installed on it.
	Node string     `json:"node"`
	Mode setup.Mode `json:"mode"`
	// Checks are the questions with their answers.
	Checks []setup.Check `json:"checks"`
}

func (VerifyResult) DocumentKind() string { return "SetupVerification" }

func (r VerifyResult) Text(p *render.Page) {
	p.Line("Node %s, mode %s", r.Node, r.Mode)
	var rows [][]string
	for _, c := range r.Checks {
		answer := command.Unknown
		switch c.Answer {
		case probe.Holds:
			answer = command.Yes
		case probe.DoesNotHold:
			answer = command.No
		}
		rows = append(rows, []string{answer, c.Question, c.Why})
	}
	p.Table(0, []string{"ANSWER", "QUESTION", "WHY"}, rows)
}

func newVerify(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Ask the running cluster whether the server works as its mode says",
		Long: `Asks the server, the static pods of all control plane nodes that have one, and kube-apiserver: the probes of
doctor --probe, which change nothing, and the time of access reviews. In the mode observe it reads how many requests
the server compared with the in-tree decisions since it started, and how many differ.

Exit status: 0 all answers are yes, 1 one is no, 2 none is no and one is unknown.`,
		Example: "  node-authorizer setup verify\n" +
			"  node-authorizer setup verify -o json | jq '.checks[] | select(.answer != \"holds\")'",
		Args:              command.Exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := addNode(a, cmd)
	output := command.AddFormat(cmd, render.Table, render.JSON, render.YAML)
	output.RunE(func(cmd *cobra.Command, _ []string, format render.Format) error {
		if err := f.read(); err != nil {
			return err
		}
		if f.journal.Mode == "" {
			return fmt.Errorf("the server is not installed on this node: run node-authorizer setup kubeadm")
		}
		plan, err := setup.Kubeadm(f.options, setup.ReadFrom(f.dir, f.dir), f.journal)
		if err != nil {
			return err
		}
		node, err := f.node(plan.Address)
		if err != nil {
			return err
		}
		result := VerifyResult{Node: f.name, Mode: f.journal.Mode}
		if result.Checks, err = node.Verify(cmd.Context(), plan); err != nil {
			return err
		}
		for _, c := range result.Checks {
			switch {
			case c.Answer == probe.DoesNotHold:
				a.Status = command.StatusDenied
			case c.Answer == probe.Undetermined && a.Status == command.StatusAllowed:
				a.Status = command.StatusUndecided
			}
		}
		return a.Write(result, format)
	})
	return cmd
}
