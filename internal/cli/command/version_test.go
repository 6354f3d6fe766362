package command

import (
	"runtime/debug"
	"testing"
)

func TestVersionOf(t *testing.T) {
	info := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	for name, c := range map[string]struct {
		version, revision string
		info              *debug.BuildInfo
		want              VersionResult
	}{
		"go install MODULE@VERSION": {info: info("v0.1.0"), want: VersionResult{Version: "v0.1.0"}},
		"what git says, if it was linked": {
			version: "v0.1.0", revision: "abc", info: info("(devel)"), want: VersionResult{Version: "v0.1.0", Revision: "abc"},
		},
		"what was linked goes before the build info": {
			version: "v0.1.0", revision: "abc", info: info("v0.2.0", debug.BuildSetting{Key: "vcs.revision", Value: "def"}),
			want: VersionResult{Version: "v0.1.0", Revision: "abc"},
		},
		"a work tree with changes, by git describe": {
			version: "v0.1.0-dirty", info: info(""), want: VersionResult{Version: "v0.1.0-dirty", Modified: true},
		},
		"a work tree with changes, by the build info": {
			info: info("v0.1.1-0.20261123040604-dae419412345+dirty",
				debug.BuildSetting{Key: "vcs.revision", Value: "dae4"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}),
			want: VersionResult{Version: "v0.1.1-0.20261123040604-dae419412345+dirty", Revision: "dae4", Modified: true},
		},
		"neither": {info: &debug.BuildInfo{}, want: VersionResult{Version: "unknown"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := versionOf(c.version, c.revision, c.info)
			if got.Version != c.want.Version || got.Revision != c.want.Revision || got.Modified != c.want.Modified {
				t.Errorf("got %s of %q, modified: %v; want %+v", got.Version, got.Revision, got.Modified, c.want)
			}
		})
	}
}
