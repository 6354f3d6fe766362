package serve

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/node-authorizer/node-authorizer/attest"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/join/client"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/alwaysallow"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/aws"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/exec"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/key"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/oidc"
	"github.com/node-authorizer/node-authorizer/internal/join/providers/tpm"
)

// kind is a kind of evidence: a value of --authorizer.
type kind struct {
	name string
	// flags are the flags that belong to this kind, and not to all.
	flags     []string
	collector func(j *joining, ctx context.Context) (attest.Collector, error)
}

const (
	// attestorAWS is the default.
	attestorAWS         = "aws"
	attestorAlwaysAllow = "alwaysallow"
)

func kinds() []kind {
	return []kind{
		{attestorAWS, []string{"node-naming"}, (*joining).aws},
		{"oidc", []string{"identity-token-file", "cluster-id"}, (*joining).oidc},
		{"tpm", []string{"tpm-device", "tpm-event-log"}, (*joining).tpm},
		{"key", []string{"key-file", "certificate-file", "cluster-id"}, (*joining).key},
		{exec.Name, []string{"collector-command"}, (*joining).exec},
		{attestorAlwaysAllow, nil, (*joining).alwaysAllow},
	}
}

// attestors are the values of --authorizer.
func attestors() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// newCollector returns the collector of --authorizer, and refuses flags that belong to others.
func (j *joining) newCollector(ctx context.Context, flags *pflag.FlagSet) (attest.Collector, error) {
	at := slices.Index(attestors(), j.attestor)
	if at < 0 {
		return nil, command.Usagef("--authorizer %q: want %s%s", j.attestor, strings.Join(attestors(), " or "),
			command.DidYouMean(j.attestor, attestors()))
	}
	users := map[string][]string{}
	for _, k := range kinds() {
		for _, flag := range k.flags {
			users[flag] = append(users[flag], k.name)
		}
	}
	chosen := kinds()[at]
	var err error
	flags.Visit(func(f *pflag.Flag) {
		if of := users[f.Name]; err == nil && of != nil && !slices.Contains(chosen.flags, f.Name) {
			err = command.Usagef("--%s goes with --authorizer=%s", f.Name, strings.Join(of, " or "))
		}
	})
	if err != nil {
		return nil, err
	}
	return chosen.collector(j, ctx)
}

func (j *joining) alwaysAllow(context.Context) (attest.Collector, error) {
	return alwaysallow.NewCollector(), nil
}

func (j *joining) oidc(context.Context) (attest.Collector, error) {
	collector, err := oidc.NewCollector(oidc.CollectorOptions{TokenFile: j.tokenFile, ClusterID: j.clusterID})
	if err != nil {
		return nil, command.Usagef("--authorizer=oidc: %v: give --identity-token-file or --cluster-id", err)
	}
	return collector, nil
}

func (j *joining) tpm(context.Context) (attest.Collector, error) {
	return tpm.NewCollector(j.tpmOptions), nil
}

func (j *joining) aws(ctx context.Context) (attest.Collector, error) {
	if j.naming != "" && !slices.Contains(namings(), j.naming) {
		return nil, command.Usagef("--node-naming %q: want %s; for a template, give the name itself with --node-name", j.naming,
			strings.Join(namings(), ", "))
	}
	collector, err := aws.NewCollector(ctx, aws.CollectorOptions{Naming: j.naming})
	if err != nil {
		return nil, err
	}
	return collector, nil
}

// exec returns the collector that runs a program. The words of --collector-command are its path and its arguments: no
// shell reads them, and none of them can contain a space.
func (j *joining) exec(context.Context) (attest.Collector, error) {
	words := strings.Fields(j.collectorCommand)
	if len(words) == 0 || !filepath.IsAbs(words[0]) {
		return nil, command.Usagef("--authorizer=exec needs --collector-command with the absolute path of a program, and its arguments")
	}
	return exec.NewCollector(exec.Program{Command: words, Timeout: client.LastTry, MaxConcurrent: 1}), nil
}

func (j *joining) key(context.Context) (attest.Collector, error) {
	collector, err := key.NewCollector(key.CollectorOptions{
		KeyFile: j.keyFile, CertificateFile: j.certificateFile, ClusterID: j.clusterID, NodeName: j.NodeName,
	})
	if err != nil {
		return nil, command.Usagef("--authorizer=key: %v: give --key-file and --cluster-id", err)
	}
	return collector, nil
}
