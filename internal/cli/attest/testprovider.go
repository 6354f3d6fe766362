// Package attest has the commands about attesting machines: the registration of one, and tests for the program of a provider.
package attest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/v1alpha1"
	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/exec"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/exec/conformance"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/key"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/tpm"
	"github.com/node-authorizer/node-authorizer/internal/output/junit"
	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/strictjson"
)

func NewAttest(a *command.App) *cobra.Command {
	return command.NewGroup("attest", "Register this machine, or test the program of a provider", newMachine(a), newTestProvider(a))
}

type testing struct {
	command, collector, evidence, other, address string
	environment                                  []string
	timeout                                      time.Duration
}

func newTestProvider(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test-provider --command PROGRAM (--evidence FILE | --collector-command PROGRAM)",
		Short: "Put changed and broken requests to the program of a provider",
		Long: `Runs the program that the attestor exec would run, with a request of a machine that may
join, and then with requests in which one thing is changed: what the evidence is about, each field and many bits of
the evidence, the version, the length. A changed request may be refused, may not be decided, or may still be accepted as the
same machine. It must never be accepted as another one. What the program cannot read, it must not decide.

--evidence is a file with an AttestRequest. With --collector-command, the other half of the provider makes the evidence, on
this machine, and answers the program's challenges. Without --other-evidence, nothing is known about a second machine. A
program passes these tests without proving that its evidence proves anything.

The results are Passed, Failed, NotBound (accepted as the same machine, although the challenge, the public key, the address
or a field of the evidence was changed: the provider's page should say why that is right) and NotTried.

Exit status: 0 nothing failed, 1 something failed, 2 a case was not tried or could not be run.`,
		Example: `  node-authorizer attest test-provider --command "/usr/local/bin/machine-evidence attest" \
    --evidence machine-1.json --other-evidence machine-2.json`,
	}
	var f testing
	flags := cmd.Flags()
	flags.StringVar(&f.command, "command", "", "program on the service, and its arguments, separated by spaces")
	flags.StringVar(&f.collector, "collector-command", "", "program on the machine, and its arguments, separated by spaces")
	flags.StringVar(&f.evidence, "evidence", "", "file with an AttestRequest of a machine that may join, JSON")
	flags.StringVar(&f.other, "other-evidence", "", "file with an AttestRequest of another machine, JSON")
	flags.StringVar(&f.address, "remote-address", "127.0.0.1", "source address of requests, with --collector-command")
	flags.StringArrayVar(&f.environment, "environment", nil, "variable of the program on the service: NAME=VALUE, or NAME of one here")
	flags.DurationVar(&f.timeout, "timeout", exec.DefaultTimeout, "how long a program may run")
	for _, name := range []string{"evidence", "other-evidence"} {
		command.Must(cmd.MarkFlagFilename(name))
	}
	command.CompleteNothing(cmd, "command", "collector-command", "remote-address", "environment", "timeout")
	output := command.AddFormat(cmd, render.Table, render.JSON, render.YAML, render.JUnit)
	output.RunE(func(cmd *cobra.Command, _ []string, format render.Format) error {
		result, err := f.run(cmd.Context())
		if err != nil {
			return err
		}
		a.Status = result.status()
		return a.Write(result, format)
	})
	return cmd
}

func (f *testing) run(ctx context.Context) (*Result, error) {
	if (f.evidence == "") == (f.collector == "") {
		return nil, command.Usagef("want either --evidence or --collector-command, which makes the evidence")
	}
	program, err := f.program("command", f.command)
	if err != nil {
		return nil, err
	}
	program.Environment = exec.Environ(f.environment, os.LookupEnv)
	options := conformance.Options{Program: program}
	if f.collector != "" {
		half, err := f.program("collector-command", f.collector)
		if err != nil {
			return nil, err
		}
		collector := exec.NewCollector(half)
		options.Machine = collector
		options.Good, err = f.collect(ctx, collector)
		if err != nil {
			return nil, err
		}
	} else if options.Good, err = readRequest(f.evidence); err != nil {
		return nil, err
	}
	if f.other != "" {
		if options.Other, err = readRequest(f.other); err != nil {
			return nil, err
		}
	}
	return &Result{Program: program.Command, Cases: conformance.Run(ctx, options)}, nil
}

func (f *testing) program(flag, text string) (exec.Program, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return exec.Program{}, command.Usagef("--%s PROGRAM is missing", flag)
	}
	found, err := osexec.LookPath(words[0])
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		return exec.Program{}, command.Usagef("--%s: %v", flag, err)
	}
	words[0] = found
	return exec.Program{Command: words, Timeout: f.timeout, MaxConcurrent: exec.DefaultMaxConcurrent}, nil
}

// collect makes a request with the other half of the provider.
func (f *testing) collect(ctx context.Context, collector *exec.Collector) (*v1alpha1.AttestRequest, error) {
	about := attest.Binding{Challenge: "a-challenge-of-test-provider", PublicKey: "sha256:" + strings.Repeat("a5", 32)}
	name, err := collector.NodeName(ctx)
	if err != nil {
		return nil, fmt.Errorf("find the node's name: %w", err)
	}
	body, err := collector.Collect(ctx, about)
	if err != nil {
		return nil, fmt.Errorf("collect evidence: %w", err)
	}
	request := &v1alpha1.AttestRequest{
		TypeMeta: exec.Header(v1alpha1.AttestRequestKind), NodeName: name, RemoteAddress: f.address,
		Challenge: about.Challenge, PublicKey: about.PublicKey,
	}
	var collected struct{ Evidence json.RawMessage }
	err = json.Unmarshal(body, &collected)
	request.Evidence = collected.Evidence
	return request, err
}

func readRequest(path string) (*v1alpha1.AttestRequest, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the evidence: %w", err)
	}
	request := &v1alpha1.AttestRequest{}
	if err := strictjson.Unmarshal(text, request, strictjson.Options{}); err != nil {
		return nil, fmt.Errorf("read the evidence: %s is not an AttestRequest: %w", path, err)
	}
	if request.TypeMeta != exec.Header(v1alpha1.AttestRequestKind) || len(request.Evidence) == 0 {
		return nil, errors.New("read the evidence: " + path + " is not an AttestRequest with evidence of this version")
	}
	return request, nil
}

// Result has the result of each case.
type Result struct {
	// Program is the command that was run.
	Program []string `json:"program"`
	// Cases are the cases, in the order in which they were put.
	Cases []conformance.Case `json:"cases"`
}

func (*Result) DocumentKind() string { return "ProviderTest" }

func (r *Result) count(of conformance.Result) (n int) {
	for _, c := range r.Cases {
		if c.Result == of {
			n++
		}
	}
	return n
}

// status is never 0 if a case was not tried.
func (r *Result) status() int {
	switch {
	case r.count(conformance.Failed) > 0:
		return command.StatusDenied
	case r.count(conformance.NotTried) > 0:
		return command.StatusUndecided
	}
	return command.StatusAllowed
}

func (r *Result) Text(p *render.Page) {
	var rows [][]string
	for _, c := range r.Cases {
		rows = append(rows, []string{string(c.Result), c.Name, c.Want, cmp.Or(c.Detail, "-")})
	}
	p.Table(0, []string{"RESULT", "CASE", "WANT", "THE PROGRAM"}, rows)
	p.Line("")
	p.Line("%d passed, %d failed, %d not bound, %d not tried", r.count(conformance.Passed), r.count(conformance.Failed),
		r.count(conformance.NotBound), r.count(conformance.NotTried))
}

// JUnit has a test case for each case.
func (r *Result) JUnit() any {
	s := junit.Suite{Name: "node-authorizer attest test-provider"}
	for _, c := range r.Cases {
		test := junit.Case{Class: "node-authorizer.attest.test-provider", Name: c.Name, Out: c.Detail}
		problem := &junit.Problem{Message: "want: " + c.Want, Type: string(c.Result), Text: c.Detail}
		switch c.Result {
		case conformance.Failed:
			test.Failure = problem
		case conformance.NotTried:
			test.Error = problem
		}
		s.Add(test)
	}
	return junit.Suites{Suite: s}
}

// registration holds the flags of machine.
type registration struct{ device, keyFile, nodeName string }

func newMachine(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "machine [--key-file FILE] [--node-name NAME]",
		Short: "Print the Machine that registers this machine",
		Long: `Reads the endorsement key of this machine's TPM, or with --key-file a private key, and prints the Machine that
registers it: a manifest for kubectl apply. Nothing is written, and the private key is not printed. Whoever applies the
manifest decides that this machine may join as the node.

Exit status: 0 the manifest was printed, 2 the TPM or the key could not be read.`,
		Example: `  node-authorizer attest machine --key-file /etc/ssh/ssh_host_ed25519_key --node-name worker-1

  # with the TPM, as root
  node-authorizer attest machine --node-name worker-1`,
	}
	var r registration
	flags := cmd.Flags()
	flags.StringVar(&r.device, "tpm-device", tpm.DefaultDevice, "the TPM, or the socket of an emulator")
	flags.StringVar(&r.keyFile, "key-file", "", "file with the machine's private key, instead of the TPM")
	flags.StringVar(&r.nodeName, "node-name", "", "name of the node (default: the hostname)")
	for _, name := range []string{"tpm-device", "key-file"} {
		command.Must(cmd.MarkFlagFilename(name))
	}
	command.CompleteNothing(cmd, "node-name")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if r.keyFile != "" && cmd.Flags().Changed("tpm-device") {
			return command.Usagef("want either --key-file or --tpm-device")
		}
		text, err := r.manifest(cmd.Context())
		if err != nil {
			return err
		}
		_, err = a.Out.Write(text)
		return err
	}
	return cmd
}

func (r *registration) manifest(ctx context.Context) ([]byte, error) {
	collector := tpm.NewCollector(tpm.CollectorOptions{Device: r.device})
	if r.nodeName == "" {
		var err error
		if r.nodeName, err = collector.NodeName(ctx); err != nil {
			return nil, err
		}
	}
	spec := map[string]any{"nodeName": r.nodeName}
	if r.keyFile != "" {
		hash, err := key.Hash(r.keyFile)
		if err != nil {
			return nil, err
		}
		spec["publicKeys"] = []string{hash}
	} else {
		hash, err := collector.EKHash()
		if err != nil {
			return nil, err
		}
		spec["tpm"] = map[string]any{"ekHashes": []string{hash}}
	}
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.Group + "/" + v1alpha1.Version, "kind": v1alpha1.MachineKind,
		"metadata": map[string]any{"name": r.nodeName}, "spec": spec,
	})
	if err != nil {
		return nil, fmt.Errorf("write the manifest: %w", err)
	}
	return text, nil
}
