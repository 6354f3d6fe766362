// Package serve has the commands that run on control planes and machines: server, client, token and config.
package serve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// machineFlags configure, without a config file, a server that only lets machines join. Names,
// defaults and variables are the same as in kops' node-authorizer.
type machineFlags struct {
	set      *pflag.FlagSet
	config   *v1alpha1.ServerConfiguration
	features *features
	// defaultTTL is the default lifetime of a token.
	defaultTTL time.Duration
	// fields are the config fields that the flags set, by flag.
	fields map[string]string
	// warnings are about flags whose meaning differs from kops' node-authorizer.
	warnings []string
}

const machineFlagsHeading = "Without a config file"

func newMachineFlags(cmd *cobra.Command) *machineFlags {
	config := v1alpha1.Defaults()
	config.Webhook.Address = ""
	config.Approver.Enabled = true
	// Existing nodes have no entry in the ledger.
	config.Approver.UnattestedNodes = v1alpha1.LeaveUnattested
	b := &config.Bootstrap
	m := &machineFlags{
		defaultTTL: b.Token.TTL.Duration,
		set:        pflag.NewFlagSet("machines", pflag.ContinueOnError), config: config, fields: map[string]string{},
		features: newFeatures(b),
	}
	m.text(
		"authorizer", "bootstrap.attestor", (*string)(&b.Attestor), "",
		"attestor that checks the evidence of machines: aws, or alwaysallow, which accepts everyone",
	)
	m.text("listen", "bootstrap.address", &b.Address, ":10443", "address to listen on for machines")
	m.text(
		"tls-cert", "bootstrap.certificateFile", &b.CertificateFile, "/certs/node-authorizer.pem",
		"file with the server's certificate, PEM",
	)
	m.text("tls-private-key", "bootstrap.keyFile", &b.KeyFile, "/certs/node-authorizer-key.pem", "file with its key, PEM")
	m.text(
		"tls-client-ca", "bootstrap.clientCAFile", &b.ClientCAFile, "",
		"file with the CAs of the client certificates that machines must have, PEM (default: they need none)",
	)
	m.text(
		"client-common-name", "bootstrap.clientCommonName", &b.ClientCommonName, b.ClientCommonName,
		"common name that these certificates must have",
	)
	m.text("cluster-name", "bootstrap.aws.clusterName", &b.AWS.ClusterName, "", "name of the cluster, which its instances have in a tag")
	m.text("cluster-tag", "bootstrap.aws.clusterTag", &b.AWS.ClusterTag, b.AWS.ClusterTag, "key of that tag")
	m.duration(
		"token-ttl", "bootstrap.token.ttl", &b.Token.TTL.Duration,
		"how long a machine has to use its token; 0 means the default, not a token without an end as in kops' node-authorizer",
	)
	m.duration("authorization-timeout", "bootstrap.requestTimeout", &b.RequestTimeout.Duration, "how long an answer may take")
	m.duration(
		"certificate-ttl", "bootstrap.certificateWait", &b.CertificateWait.Duration,
		"how long certificate files are waited for that are not there at start",
	)
	m.text(
		"metrics-address", "metrics.address", &config.Metrics.Address, config.Metrics.Address,
		"address of /metrics, /livez and /readyz over plain HTTP",
	)
	m.text(
		"kubeconfig", "cluster.kubeconfig", &config.Cluster.Kubeconfig, "",
		"kubeconfig file of the cluster (default: the service account of the pod)",
	)
	m.set.Var(
		m.features, "feature",
		"NAME or NAME=false, repeatable: "+strings.Join(m.features.names(), ", ")+
			"; all but verify-iam-profile are on by default; others are ignored with a warning",
	)
	m.fields["feature"] = "bootstrap.verifyRegistration or a field of bootstrap.aws"
	m.set.VisitAll(func(f *pflag.Flag) {
		command.Must(m.set.SetAnnotation(f.Name, command.FlagHeading, []string{machineFlagsHeading}))
	})
	cmd.Flags().AddFlagSet(m.set)
	for _, name := range []string{"tls-cert", "tls-private-key", "tls-client-ca", "kubeconfig"} {
		command.Must(cmd.MarkFlagFilename(name))
	}
	attestors := func() []string { return []string{attestorAWS, attestorAlwaysAllow} }
	command.Must(cmd.RegisterFlagCompletionFunc("authorizer", command.Complete(attestors)))
	command.CompleteNothing(cmd, "authorization-timeout", "certificate-ttl", "client-common-name", "cluster-name", "cluster-tag", "listen",
		"metrics-address", "token-ttl")
	command.Must(cmd.RegisterFlagCompletionFunc("feature", command.Complete(m.features.names)))
	return m
}

func (m *machineFlags) text(name, field string, into *string, value, usage string) {
	m.set.StringVar(into, name, value, usage)
	m.fields[name] = field
}

func (m *machineFlags) duration(name, field string, into *time.Duration, usage string) {
	m.set.DurationVar(into, name, *into, usage)
	m.fields[name] = field
}

func (m *machineFlags) variables() map[string]string {
	names := map[string]string{}
	for name := range m.fields {
		if name != "feature" && name != "kubeconfig" {
			names[name] = strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		}
	}
	return names
}

func (m *machineFlags) given(cmd *cobra.Command) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(m.fields)) {
		if cmd.Flags().Changed(name) {
			return name, true
		}
	}
	return "", false
}

func (m *machineFlags) configuration(cmd *cobra.Command) (*v1alpha1.ServerConfiguration, error) {
	if err := command.FromEnvironment(cmd, m.variables()); err != nil {
		return nil, err
	}
	b := &m.config.Bootstrap
	if b.Attestor == "" {
		return nil, command.Usagef("--config FILE or --authorizer NAME is missing")
	}
	if b.Token.TTL.Duration == 0 {
		m.warnings = append(m.warnings, fmt.Sprintf(
			"--token-ttl=%s: tokens without an expiration are not supported; they expire after %s", b.Token.TTL.Duration, m.defaultTTL,
		))
		b.Token.TTL.Duration = m.defaultTTL
	}
	m.warnings = append(m.warnings, m.features.warnings...)
	// There is no default attestor, so the user has named this one.
	b.AcceptAlwaysAllow = b.Attestor == v1alpha1.AlwaysAllowAttestor
	if m.features.verifyProfile {
		b.AWS.InstanceProfiles = []string{"nodes." + b.AWS.ClusterName}
	}
	problems := v1alpha1.Validate(m.config)
	if len(problems) == 0 {
		return m.config, nil
	}
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = m.flagOf(p.Field) + ": " + p.Message
	}
	return nil, command.Usagef("%s", strings.Join(lines, "\n"))
}

// flagOf returns the flag that sets a field, or else the field.
func (m *machineFlags) flagOf(field string) string {
	for name, its := range m.fields {
		if its == field {
			return "--" + name
		}
	}
	return field
}

// features are the checks that the flag --feature enables and disables.
type features struct {
	switches map[string]*bool
	// verifyProfile requires the instance profile that kops gives to nodes.
	verifyProfile bool
	given         []string
	warnings      []string
}

func newFeatures(b *v1alpha1.Bootstrap) *features {
	f := &features{}
	f.switches = map[string]*bool{
		"verify-registration": &b.VerifyRegistration,
		"verify-signature":    &b.AWS.VerifySignature,
		"verify-ip":           &b.AWS.VerifySourceAddress,
		"verify-iam-profile":  &f.verifyProfile,
	}
	return f
}

func (f *features) names() []string { return slices.Sorted(maps.Keys(f.switches)) }

// Set implements pflag.Value. Like kops' node-authorizer it ignores unknown features, so that
// its manifests work, but it warns about them. An invalid value does not change the default,
// which is the safe value.
func (f *features) Set(text string) error {
	f.given = append(f.given, text)
	name, value, valued := strings.Cut(text, "=")
	target, known := f.switches[name]
	if !known {
		f.warnings = append(f.warnings, fmt.Sprintf(
			"--feature %q is ignored: there is no such feature%s", text, command.DidYouMean(name, f.names()),
		))
		return nil
	}
	on := true
	if valued {
		var err error
		if on, err = strconv.ParseBool(value); err != nil {
			f.warnings = append(f.warnings, fmt.Sprintf(
				"--feature %q is ignored, and %s is %v: want %s=true or %s=false", text, name, *target, name, name,
			))
			return nil
		}
	}
	*target = on
	return nil
}

// String implements pflag.Value.
func (f *features) String() string { return strings.Join(f.given, ",") }

// Type implements pflag.Value.
func (f *features) Type() string { return "name" }
