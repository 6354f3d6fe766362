package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/internal/state/source"
	"github.com/node-authorizer/node-authorizer/internal/yamltext"
)

// Connection holds kubectl's connection flags.
type Connection struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
	names     []string
	// several is true if --context takes several contexts.
	several bool
	// Otherwise is appended to errors about the connection. It says what the user can do
	// without one.
	Otherwise string
}

// The headings of the flags. Impersonation has one of its own, because not all commands with a connection have it.
const (
	ConnectionHeading    = "Connection, as in kubectl"
	impersonationHeading = "Impersonation, as in kubectl"
)

// AddConnection adds the flags, except -n, which not every command has. Flags that the command has already keep their
// meaning: in commands with AddIdentity, --as, --as-group and --as-uid name the user of the question.
func AddConnection(cmd *cobra.Command) *Connection {
	c := &Connection{
		rules:     clientcmd.NewDefaultClientConfigLoadingRules(),
		overrides: &clientcmd.ConfigOverrides{},
	}
	flags := clientcmd.RecommendedConfigOverrideFlags("")
	flags.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{}
	flags.ClusterOverrideFlags.APIServer.ShortName = "s"

	set := pflag.NewFlagSet("connection", pflag.ContinueOnError)
	set.StringVar(&c.rules.ExplicitPath, "kubeconfig", "", "path to the kubeconfig file")
	clientcmd.BindOverrideFlags(c.overrides, set, flags)
	set.VisitAll(func(f *pflag.Flag) {
		if cmd.Flags().Lookup(f.Name) != nil {
			return
		}
		f.Usage = strings.ToLower(f.Usage[:1]) + strings.TrimSuffix(f.Usage[1:], ".")
		c.names = append(c.names, f.Name)
		heading := ConnectionHeading
		if strings.HasPrefix(f.Name, "as") {
			heading = impersonationHeading
		}
		Must(set.SetAnnotation(f.Name, FlagHeading, []string{heading}))
	})
	cmd.Flags().AddFlagSet(set)
	c.addCompletions(cmd)
	return c
}

func (c *Connection) loader() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, c.overrides)
}

// Given returns the name of the first connection flag that was set on the command line.
func (c *Connection) Given(cmd *cobra.Command) (string, bool) {
	for _, name := range c.names {
		if cmd.Flags().Changed(name) {
			return name, true
		}
	}
	return "", false
}

// Config returns the client configuration from the flags and the kubeconfig.
func (c *Connection) Config() (*rest.Config, error) {
	config, err := c.loader().ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, c.unconfigured()
	case err != nil && strings.Contains(err.Error(), "without impersonating a user"):
		return nil, Usagef("--as-group and --as-uid need the user's name: add --as")
	case err != nil:
		if unknown := c.unknownName(); unknown != nil {
			return nil, unknown
		}
		return nil, fmt.Errorf("%w%s", c.unusable(err), c.Otherwise)
	}
	config.WarningHandler = rest.NoWarnings{}
	return config, nil
}

// unconfigured says which kubeconfigs have no cluster, or that there are none.
func (c *Connection) unconfigured() error {
	here := slices.DeleteFunc(c.files(), func(path string) bool {
		_, err := os.Stat(path)
		return err != nil
	})
	if len(here) == 0 {
		return fmt.Errorf("no cluster is configured: set KUBECONFIG or --kubeconfig%s", c.Otherwise)
	}
	return fmt.Errorf("no cluster in %s: want a kubeconfig, as kubectl config view prints one%s", render.Files(here), c.Otherwise)
}

// ExplainRequest wraps an error of a request. What to do is in it if the API server gave no answer, or does not
// know the user.
func ExplainRequest(ctx context.Context, host, doing string, err error) error {
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown && !apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return source.ExplainFailure(ctx, host, doing+" of", err)
}

// unusable says which kubeconfig is none, or else why those that were read give no connection. The parser's
// own error is left out, because it may quote the file.
func (c *Connection) unusable(err error) error {
	var files []string
	for _, path := range c.files() {
		text, failed := os.ReadFile(path)
		if failed != nil {
			continue
		}
		files = append(files, path)
		if _, failed := clientcmd.Load(text); failed == nil {
			continue
		}
		if _, syntax := yamltext.Parse(text); syntax != nil {
			return fmt.Errorf("%s is not a kubeconfig: line %d is not valid YAML; correct it", path, syntax.Line)
		}
		return fmt.Errorf("%s is not a kubeconfig, as kubectl config view prints one, with apiVersion v1 and kind Config; correct it", path)
	}
	if len(files) == 0 {
		return fmt.Errorf("no cluster can be connected to: %w; check the connection flags", OneLine(err))
	}
	return fmt.Errorf("kubeconfig %s: %w; check it and the connection flags", strings.Join(files, ", "), OneLine(err))
}

// unknownName is the error about a context, cluster or user of the flags that the kubeconfigs do not have; nil if they
// have all, or cannot be read.
func (c *Connection) unknownName() error {
	for _, flag := range [][2]string{
		{"context", c.overrides.CurrentContext}, {"cluster", c.overrides.Context.Cluster}, {"user", c.overrides.Context.AuthInfo},
	} {
		if err := c.unknown(flag[0], flag[1]); err != nil {
			return err
		}
	}
	return nil
}

// unknown is the error about a context, cluster or user that the kubeconfigs do not have.
func (c *Connection) unknown(kind, name string) error {
	known := c.known(kind)
	switch {
	case name == "" || len(known) == 0 || slices.Contains(known, name):
		return nil
	case kind == "context" && strings.Contains(name, ",") && !c.several:
		return Usagef("--context %q: this command asks one cluster: name one context", name)
	}
	otherwise := cmp.Or(DidYouMean(name, known), "; kubectl config view shows what it has"+c.Otherwise)
	return fmt.Errorf("no %s %q in %s%s", kind, name, render.Files(c.files()), otherwise)
}

// files returns the paths of the kubeconfigs that are read, which may not exist.
func (c *Connection) files() []string {
	if c.rules.ExplicitPath != "" {
		return []string{c.rules.ExplicitPath}
	}
	return c.rules.GetLoadingPrecedence()
}

// namespace returns the namespace of the kubeconfig's context, or else "default".
func (c *Connection) namespace() string {
	if namespace, _, err := c.loader().Namespace(); err == nil && namespace != "" {
		return namespace
	}
	return DefaultNamespace
}

// Context returns the name of the context of the kubeconfig; empty without one.
func (c *Connection) Context() string {
	config, err := c.loader().RawConfig()
	if err != nil {
		return ""
	}
	return cmp.Or(c.overrides.CurrentContext, config.CurrentContext)
}

// OneLine joins the lines of an error.
func OneLine(err error) error {
	if !strings.Contains(err.Error(), "\n") {
		return err
	}
	return errors.New(strings.Join(strings.Fields(err.Error()), " "))
}
