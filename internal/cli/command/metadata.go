package command

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
)

const redacted = "REDACTED"

var (
	// secretFlag matches flags whose value is a credential, with or without the value.
	secretFlag = regexp.MustCompile(`^--?(?:[a-z-]*-)?(?:token|password|secret|passwd|api-key)(=|$)`)
	// secretText matches credentials in any argument: JSON Web Tokens, tokens of AWS, and users in URLs.
	secretText = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]+|k8s-aws-v1\.[A-Za-z0-9_=-]+|(://)[^/@\s]+@`)
)

// commandLine quotes a command line for a shell, without the credentials in it.
func commandLine(args []string) string {
	words, secret, flags := make([]string, len(args)), false, true
	for i, arg := range args {
		flags = flags && arg != "--"
		found := secretFlag.FindStringSubmatch(arg)
		switch {
		case secret:
			arg, secret = redacted, false
		case !flags || found == nil:
			arg = secretText.ReplaceAllStringFunc(arg, func(s string) string {
				if strings.HasPrefix(s, "://") {
					return "://" + redacted + "@"
				}
				return redacted
			})
		case found[1] == "":
			secret = true
		default:
			name, _, _ := strings.Cut(arg, "=")
			arg = name + "=" + redacted
		}
		words[i] = render.Shell(arg)
	}
	if len(args) > 0 { // the name of a plugin of kubectl is two words
		words[0] = args[0]
	}
	return strings.Join(words, " ")
}

// noteCluster notes what was read. Where several states are, the last one counts.
func (f *StateFlags) noteCluster(s *Session) {
	f.NoteOrigin(s.State.Origin)
	if f.App.Metadata == nil {
		return
	}
	c := f.App.Metadata.Cluster
	c.ServerVersion = s.State.ServerVersion
	if i := s.State.Inventory; i != nil {
		if account, ok := s.State.ServiceAccount(metav1.NamespaceSystem, "default"); ok {
			c.UID = string(account.UID)
		}
		c.Objects = &render.ObjectCounts{Nodes: len(s.KnownNodes()), Pods: len(i.Pods()), ServiceAccounts: len(i.ServiceAccounts())}
	}
}

// NoteOrigin notes what was read, for commands whose state is not a session.
func (f *StateFlags) NoteOrigin(origin string) {
	if f.App.Metadata == nil {
		return
	}
	f.App.Metadata.Cluster = &render.Cluster{Origin: origin}
	if len(f.From) == 0 {
		f.App.Metadata.Cluster.Context = f.Connection.Context()
	}
}

// Options are the flags that were given another value than their default, except connection flags and the ones named, for
// metadata.
func (f *StateFlags) Options(cmd *cobra.Command, except ...string) map[string]string {
	options := map[string]string{}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if !slices.Contains(except, flag.Name) && !slices.Contains(f.Connection.names, flag.Name) && flag.Value.String() != flag.DefValue {
			options["--"+flag.Name] = flag.Value.String()
		}
	})
	return options
}

func (a *App) NoteOptions(options map[string]string) {
	if a.Metadata != nil {
		a.Metadata.Options = options
	}
}

// NoteNotRead notes what could not be read, each once.
func (a *App) NoteNotRead(all []Missing) {
	if a.Metadata == nil {
		return
	}
	for _, m := range all {
		n := render.NotRead{Resource: m.Resource, Reason: cmp.Or(m.refusal, m.Reason)}
		if !slices.Contains(a.Metadata.NotRead, n) {
			a.Metadata.NotRead = append(a.Metadata.NotRead, n)
		}
	}
}
