package command

import (
	"cmp"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/kubeversion"
)

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
