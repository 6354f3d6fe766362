package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// job is a job of GitHub Actions that installs the program from a server with files of releases.
type job struct {
	dir  string
	path string // GITHUB_PATH
	env  []string
}

func newJob(t *testing.T, releases http.Handler) *job {
	t.Helper()
	server := httptest.NewServer(releases)
	t.Cleanup(server.Close)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	j := &job{dir: t.TempDir()}
	j.path = filepath.Join(j.dir, "path")
	j.env = append(os.Environ(), "NODE_AUTHORIZER_RELEASES="+server.URL, "GITHUB_ACTION_PATH="+root, "GITHUB_PATH="+j.path,
		"RUNNER_TEMP="+j.dir, "RUNNER_OS=Linux", "RUNNER_ARCH="+map[string]string{"amd64": "X64", "arm64": "ARM64"}[runtime.GOARCH])
	return j
}

// install runs the action's first step.
func (j *job) install(t *testing.T, env ...string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "../action/install.sh")
	cmd.Env = append(j.env, env...)
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// served serves the built files under the version, with replacements.
func served(replaced map[string]string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/"+built.version+"/", http.StripPrefix("/"+built.version, http.FileServer(http.Dir(built.out))))
	for name, content := range replaced {
		mux.HandleFunc("/"+built.version+"/"+name, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(content)) // the client shows what is missing
		})
	}
	return mux
}

func TestActionInstallsARelease(t *testing.T) {
	j := newJob(t, served(nil))
	if output, err := j.install(t, "VERSION="+built.version); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	dir := strings.TrimSpace(string(read(t, j.path)))
	if got := command(t, dir, nil, "./node-authorizer", "--version"); !strings.Contains(got, built.version) {
		t.Errorf("installed is %s", got)
	}
}

func TestActionRefusesToInstall(t *testing.T) {
	archive := built.fileName(platform{"linux", runtime.GOARCH}, ".tar.gz")
	sums := string(read(t, built.out, checksumsName))
	for name, c := range map[string]struct {
		replaced map[string]string
		env      []string
		want     string
	}{
		"an archive with another checksum": {
			map[string]string{archive: "changed"}, nil, "the checksum of " + archive + " is not that of release",
		},
		"an archive without a checksum": {map[string]string{checksumsName: "\n"}, nil, "does not have one line about " + archive},
		"an archive with two checksums": {map[string]string{checksumsName: sums + sums}, nil, "does not have one line about " + archive},
		"a release that is not there":   {nil, []string{"VERSION=v9.9.9"}, "checksums.txt of release v9.9.9 cannot be downloaded"},
		"for an unknown system":         {nil, []string{"RUNNER_OS=Plan9"}, "no release for Plan9"},
		"for an unknown architecture":   {nil, []string{"RUNNER_ARCH=X86"}, "no release for X86"},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, served(c.replaced))
			output, err := j.install(t, append([]string{"VERSION=" + built.version}, c.env...)...)
			if err == nil || !strings.Contains(output, c.want) {
				t.Errorf("it ends with %v and\n%s\nwant %q", err, output, c.want)
			}
			if _, err := os.Stat(j.path); err == nil {
				t.Error("later steps would find the program")
			}
		})
	}
}

// A branch or a commit is not a release: its source is built.
func TestActionBuildsFromSource(t *testing.T) {
	for name, version := range map[string]string{
		"a branch": "main", "a commit": strings.Repeat("a", 40), "no name": "", "part of a tag": "v0",
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, http.NotFoundHandler())
			compiler := filepath.Join(j.dir, "go")
			script := "#!/bin/sh\necho \"$@\" >> " + j.dir + "/commands\nprintf '#!/bin/sh\\necho built' > " + j.dir +
				"/node-authorizer/node-authorizer\nchmod +x " + j.dir + "/node-authorizer/node-authorizer\n"
			if err := os.WriteFile(compiler, []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(j.dir, "node-authorizer"), 0o700); err != nil {
				t.Fatal(err)
			}
			output, err := j.install(t, "VERSION="+version, "PATH="+j.dir+":"+os.Getenv("PATH"))
			if err != nil || !strings.Contains(output, "built") {
				t.Fatalf("%v\n%s", err, output)
			}
			want := "build -trimpath -tags " + buildTags + " -ldflags " + linkerFlags + " -o " + j.dir +
				"/node-authorizer/node-authorizer ./cmd/node-authorizer"
			if got := string(read(t, j.dir, "commands")); !strings.Contains(got, want) {
				t.Errorf("go is called with %s, want %s", got, want)
			}
		})
	}
}

func TestActionNeedsGoForSource(t *testing.T) {
	j := newJob(t, http.NotFoundHandler())
	output, err := j.install(t, "VERSION=main", "PATH="+j.dir)
	if err == nil || !strings.Contains(output, "building from source needs Go: add actions/setup-go") {
		t.Errorf("it ends with %v and\n%s", err, output)
	}
}
