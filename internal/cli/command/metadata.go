package command

import (
	"cmp"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

const redacted = "REDACTED"

var (
	// secretFlag matches flags whose value is a credential, with or without the value.
	secretFlag = regexp.MustCompile(`^--?(?:[a-z-]*-)?(?:token|password|secret|passwd|api-key)(=|$)`)
	// secretText matches credentials in any argument: JSON Web Tokens, tokens of AWS, and users in URLs.
	secretText = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_.-]+|k8s-aws-v1\.[A-Za-z0-9_=-]+|(://)[^/@\s]+@`)
)

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

// The linker sets these (-X): `make build` and releases to what git says. They are empty in a build
// without these flags, such as `go install MODULE@VERSION`, of which Go's build info has the version.
var (
	linkedVersion  = ""
	linkedRevision = ""
)

// VersionResult is the version of the program.
type VersionResult struct {
	// Version is the version of the program; unknown if its build does not say it.
	Version string `json:"version"`
	// Revision is the commit that the program was built from. Modified is true if the source had
	// changes that are not in this commit.
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// GoVersion is the version of Go that built the program, and Platform the operating system and the
	// architecture that it is for.
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
	// Kubernetes is the range of supported minors.
	Kubernetes kubernetesRange `json:"kubernetes"`
}

// kubernetesRange is a range of minor versions of Kubernetes.
type kubernetesRange struct {
	// Oldest and Latest are minor versions, such as 1.30.
	Oldest string `json:"oldest"`
	Latest string `json:"latest"`
}

func NewVersion(a *App) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version, and the Kubernetes versions that are supported",
		Example: "  node-authorizer version\n  node-authorizer version -o json | jq -r .version",
	}
	output := AddFormat(cmd, render.Table, render.JSON, render.YAML)
	output.RunE(func(_ *cobra.Command, _ []string, format render.Format) error {
		return a.Write(CurrentVersion(), format)
	})
	return cmd
}

// CurrentVersion is the version of the program that runs.
func CurrentVersion() VersionResult {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return versionOf(linkedVersion, linkedRevision, info)
}

// versionOf returns the version of a program from what was linked into it, else from its build info.
func versionOf(version, revision string, info *debug.BuildInfo) VersionResult {
	v := VersionResult{
		Version:    cmp.Or(version, info.Main.Version, "unknown"),
		Revision:   revision,
		Modified:   strings.HasSuffix(version, "-dirty"), // git describe --dirty
		GoVersion:  runtime.Version(),
		Platform:   runtime.GOOS + "/" + runtime.GOARCH,
		Kubernetes: kubernetesRange{Oldest: kubeversion.Oldest.String(), Latest: kubeversion.Latest.String()},
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = cmp.Or(v.Revision, s.Value)
		case "vcs.modified":
			v.Modified = v.Modified || s.Value == "true"
		}
	}
	return v
}

func (v VersionResult) Text(p *render.Page) {
	p.Line("node-authorizer %s, %s, %s", v.Version, v.GoVersion, v.Platform)
	p.Line("Kubernetes %s to %s", v.Kubernetes.Oldest, v.Kubernetes.Latest)
}

func (VersionResult) DocumentKind() string { return "Version" }
