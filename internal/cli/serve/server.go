// Package serve has the commands that run on control planes and machines: server, client, token and config.
package serve

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/cli/command"
	"github.com/node-authorizer/node-authorizer/internal/server"
)

type serving struct {
	file              string
	verbosity         int32
	acceptAlwaysAllow bool
	machines          *machineFlags
}

func NewServer(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server {--config FILE | --authorizer NAME}",
		Short: "Serve the webhooks of an API server, and let machines join the cluster",
		Long: `Serves, as its config file says, any of

  the webhooks that an API server calls: /authorize (SubjectAccessReview), /admit
  (AdmissionReview, NodeRestriction) and /mutate (AdmissionReview, tolerations for
  extended resources);
  the bootstrap service, where machines turn evidence of what they are into a token
  for their node's name (POST /authorize/NODE, /health);
  the approver of the certificates of machines that joined.

Each port has /livez and /readyz. The port of /metrics has them for all ports.

There are two ways to configure it. With --config, everything is in the file, and
nothing is taken from the environment. Without, it runs the bootstrap service and the
approver, and no webhooks, by the flags of the node-authorizer that kops
installed, so that its manifests work. A flag that is not given is taken from the
environment, under its name in capitals with underscores (--tls-cert: TLS_CERT;
--feature and --kubeconfig have none); an empty variable counts as none; what is
in neither has the default. Requests for certificates of nodes that the ledger does not
know are left to others.

The server listens at once, and is ready when it has read what it needs of the cluster.
Logs go to stderr. SIGTERM drains it, a second signal ends it at once.

Exit status: 0 it was told to end, 2 it could not start or stopped on its own.`,
		Example: `  node-authorizer config defaults > server.yaml
  node-authorizer server --config server.yaml
  node-authorizer server --authorizer aws --cluster-name shop.example.com \
    --tls-cert tls.crt --tls-private-key tls.key --tls-client-ca ca.crt`,
	}
	s := &serving{machines: newMachineFlags(cmd)}
	command.NoteVariables(cmd, s.machines.variables())
	flags := cmd.Flags()
	flags.StringVar(&s.file, "config", "", "config file; node-authorizer config defaults prints a template")
	command.Must(cmd.MarkFlagFilename("config", "yaml", "yml", "json"))
	flags.Int32VarP(&s.verbosity, "verbosity", "v", 0, "log verbosity, 0 to 10, instead of log.verbosity in the config file")
	command.CompleteNothing(cmd, "verbosity")
	flags.BoolVar(
		&s.acceptAlwaysAllow, "accept-always-allow", false,
		"accept bootstrap.attestor: alwaysallow in the config file, which gives a token to everyone who can connect",
	)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		config, err := serverConfig(a, cmd, s)
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("verbosity") {
			config.Log.Verbosity = s.verbosity
		}
		return serve(a, cmd, config, s.machines.warnings)
	}
	return cmd
}

// serverConfig returns the configuration of the file, or else of the flags for machines.
func serverConfig(a *command.App, cmd *cobra.Command, s *serving) (*v1alpha1.ServerConfiguration, error) {
	if s.file == "" {
		return s.machines.configuration(cmd)
	}
	if name, ok := s.machines.given(cmd); ok {
		return nil, command.Usagef("--%s cannot be used with --config: set %s in the file", name, s.machines.fields[name])
	}
	text, err := readConfigFile(a, s.file)
	if err != nil {
		return nil, err
	}
	config, err := v1alpha1.Parse(text, func(c *v1alpha1.ServerConfiguration) {
		c.Bootstrap.AcceptAlwaysAllow = c.Bootstrap.AcceptAlwaysAllow || s.acceptAlwaysAllow
	})
	var problems v1alpha1.Problems
	if errors.As(err, &problems) {
		return nil, fmt.Errorf("the config file is not valid: %s", strings.Join(command.ConfigProblems(s.file, problems), "\n"))
	}
	return config, err
}

// serve runs a server until the command's context ends.
func serve(a *command.App, cmd *cobra.Command, config *v1alpha1.ServerConfiguration, warnings []string) error {
	logger := server.NewLogger(config.Log, a.ErrOut)
	klog.SetLogger(logger)
	for _, warning := range warnings {
		logger.Info("WARNING: " + warning)
	}
	version := command.CurrentVersion()
	s, err := server.New(config, server.Options{Logger: logger, Version: version.Version, Commit: version.Revision})
	if err != nil {
		return err
	}
	logger.Info("starting", "version", version.Version, "commit", version.Revision, "go", version.GoVersion)
	return s.Run(cmd.Context())
}
