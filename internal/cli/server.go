package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
	"github.com/node-authorizer/node-authorizer/internal/server"
)

func newServer(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "server --config FILE",
		Short: "Serve authorization and admission webhooks to an API server",
		Long: `Serves the webhooks that an API server calls: /authorize (SubjectAccessReview),
/admit (AdmissionReview, NodeRestriction) and /mutate (AdmissionReview, tolerations
for extended resources), with /livez, /readyz and, on their own port, /metrics.

It begins to listen at once and is ready when the state of the cluster has been
read. Logs go to stderr. SIGTERM drains it, a second signal ends it at once.

Exit status: 0 it was told to end, 2 it could not start or stopped on its own.`,
		Example: `  node-authorizer config defaults > server.yaml
  node-authorizer server --config server.yaml`,
		Args:              exactly(),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	file := cmd.Flags().String("config", "", "config file; node-authorizer config defaults prints one to begin with")
	must(cmd.MarkFlagFilename("config", "yaml", "yml", "json"))
	verbosity := cmd.Flags().Int32P("verbosity", "v", 0, "log verbosity, 0 to 10, instead of log.verbosity in the config file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *file == "" {
			return usagef("--config FILE is missing")
		}
		config, err := a.readConfig(*file)
		var problems v1alpha1.Problems
		if errors.As(err, &problems) {
			return fmt.Errorf("the config file is not valid: %s", strings.Join(configProblems(*file, problems), "\n"))
		}
		if err != nil {
			return err
		}
		if cmd.Flags().Changed("verbosity") {
			if config.Log.Verbosity = *verbosity; len(v1alpha1.Validate(config)) > 0 {
				return usagef("--verbosity %d: want a number from 0 to 10", *verbosity)
			}
		}
		return a.serve(cmd, config)
	}
	return cmd
}

// serve runs a server until the command's context ends.
func (a *app) serve(cmd *cobra.Command, config *v1alpha1.ServerConfiguration) error {
	logger := server.NewLogger(config.Log, a.errOut)
	klog.SetLogger(logger)
	version := currentVersion()
	s, err := server.New(config, server.Options{Logger: logger, Version: version.Version, Commit: version.Revision})
	if err != nil {
		return err
	}
	logger.Info("starting", "version", version.Version, "commit", version.Revision, "go", version.GoVersion)
	return s.Run(cmd.Context())
}
