package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../.."

// workflow has the fields of GitHub's workflows that the workflows of this repository use.
type workflow struct {
	Name        string            `json:"name"`
	On          any               `json:"true"` // YAML 1.1 reads the key `on` as a boolean
	Permissions map[string]string `json:"permissions"`
	Concurrency any               `json:"concurrency"`
	Jobs        map[string]struct {
		RunsOn      string            `json:"runs-on"`
		Timeout     int               `json:"timeout-minutes"`
		Permissions map[string]string `json:"permissions"`
		Strategy    workflowStrategy  `json:"strategy"`
		Steps       []workflowStep    `json:"steps"`
	} `json:"jobs"`
}

type workflowStrategy struct {
	FailFast *bool               `json:"fail-fast"`
	Matrix   map[string][]string `json:"matrix"`
}

type workflowStep struct {
	Uses string            `json:"uses"`
	If   string            `json:"if"`
	Run  string            `json:"run"`
	With map[string]any    `json:"with"`
	Env  map[string]string `json:"env"`
}

func strictly(t *testing.T, path string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(read(t, path)), into); err != nil {
		t.Errorf("%s: %v", path, err)
	}
}

func projectFiles(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(found), err)
	}
	return found
}

// Workflows have no logic of their own: each step is an action or a target of the Makefile. They may
// only read, unless a job says more.
func TestWorkflows(t *testing.T) {
	makefile := read(t, root, "Makefile")
	for _, path := range projectFiles(t, ".github/workflows/*") {
		var w workflow
		strictly(t, path, &w)
		if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
			t.Errorf("%s: permissions are %v", path, w.Permissions)
		}
		for name, job := range w.Jobs {
			if job.Timeout == 0 {
				t.Errorf("%s: job %s has no time limit", path, name)
			}
			for _, s := range job.Steps {
				if s.Uses == "" {
					runs(t, path, makefile, s, job.Strategy)
				} else {
					checkStep(t, path, s)
				}
			}
		}
	}
}

// runs returns the targets of the Makefile that a step runs.
func runs(t *testing.T, path, makefile string, s workflowStep, strategy workflowStrategy) (targets []string) {
	t.Helper()
	commands := []string{s.Run}
	if s.Run == "make ${{ matrix.target }}" {
		commands = nil
		for _, target := range strategy.Matrix["target"] {
			commands = append(commands, "make "+target)
		}
	}
	if command, ok := strings.CutSuffix(s.Run, "${{ matrix.part }}"); ok {
		commands = nil
		for place, part := range strategy.Matrix["part"] {
			if want := fmt.Sprintf("%d/%d", place, len(strategy.Matrix["part"])); part != want {
				t.Errorf("%s: a part is %s, want %s", path, part, want)
			}
			commands = append(commands, command+part)
		}
	}
	for _, command := range commands {
		target := regexp.MustCompile(`^make ([a-z-]+)( [A-Z]+=[\w/]+)*$`).FindStringSubmatch(command)
		if target == nil || !strings.Contains(makefile, "\n"+target[1]+":") {
			t.Errorf("%s: %q is no target of the Makefile", path, command)
			continue
		}
		targets = append(targets, target[1])
	}
	return targets
}

// TestCampaignsRunEveryNight compares the workflow with the targets that CONTRIBUTING.md says run random tests
// with a large budget.
func TestCampaignsRunEveryNight(t *testing.T) {
	sentence := regexp.MustCompile("(?s)`make attack-paths`.* run them with a large one").FindString(read(t, root, "CONTRIBUTING.md"))
	var want []string
	for _, name := range regexp.MustCompile("`(?:make )?([a-z-]+)`").FindAllStringSubmatch(sentence, -1) {
		want = append(want, name[1])
	}
	path := filepath.Join(root, ".github/workflows/nightly.yml")
	var w workflow
	strictly(t, path, &w)
	var got []string
	for _, job := range w.Jobs {
		for _, s := range job.Steps {
			if s.Uses == "" {
				got = append(got, runs(t, path, read(t, root, "Makefile"), s, job.Strategy)...)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) || len(want) == 0 {
		t.Errorf("each night runs %q, CONTRIBUTING.md has %q", got, want)
	}
}

func checkStep(t *testing.T, path string, s workflowStep) {
	t.Helper()
	if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
		t.Errorf("%s: the checkout keeps credentials", path)
	}
}

// Actions are pinned by commit, with the version as a comment. The commit of one action is not known
// for certain.
func TestActionsArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	seen := map[string]string{}
	for _, path := range projectFiles(t, ".github/workflows/*") {
		for _, m := range regexp.MustCompile(`(?m)uses: (.*)$`).FindAllStringSubmatch(read(t, path), -1) {
			uses := m[1]
			if uses == "./" || uses == "actions/attest-build-provenance@v3" {
				continue
			}
			if !pinned.MatchString(uses) {
				t.Errorf("%s: %s is not pinned", path, uses)
			}
			name, rest, _ := strings.Cut(uses, "@")
			if name = strings.Join(strings.SplitN(name, "/", 3)[:2], "/"); seen[name] != "" && seen[name] != rest {
				t.Errorf("%s: %s is %s here and %s elsewhere", path, name, rest, seen[name])
			}
			seen[name] = rest
		}
	}
	if len(seen) == 0 {
		t.Error("no action is used")
	}
}

// Every module is updated, but for those that stay on a minor of Kubernetes.
func TestDependencyUpdates(t *testing.T) {
	var config struct {
		Version int `json:"version"`
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directory   string   `json:"directory"`
			Directories []string `json:"directories"`
			Schedule    struct {
				Interval string `json:"interval"`
			} `json:"schedule"`
			Groups map[string]struct {
				Patterns []string `json:"patterns"`
				Exclude  []string `json:"exclude-patterns"`
			} `json:"groups"`
		} `json:"updates"`
	}
	strictly(t, filepath.Join(root, ".github/dependabot.yml"), &config)
	if config.Version != 2 || len(config.Updates) != 2 || config.Updates[1].Ecosystem != "github-actions" {
		t.Fatalf("the configuration is %+v", config)
	}
	for _, pattern := range []string{"go.mod", "*/go.mod", "*/*/go.mod", "*/*/*/go.mod"} {
		for _, path := range projectFiles(t, pattern) {
			dir := "/" + strings.TrimPrefix(strings.TrimPrefix(filepath.Dir(path), root), "/")
			if !slices.Contains(config.Updates[0].Directories, dir) {
				t.Errorf("%s is not updated", dir)
			}
		}
	}
	for _, dir := range config.Updates[0].Directories {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); err != nil {
			t.Error(err)
		}
	}
}

func TestIssueForms(t *testing.T) {
	type form struct {
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Labels      []string `json:"labels"`
		Body        []struct {
			Type       string `json:"type"`
			ID         string `json:"id"`
			Attributes struct {
				Label       string `json:"label"`
				Description string `json:"description"`
				Placeholder string `json:"placeholder"`
				Render      string `json:"render"`
				Value       string `json:"value"`
			} `json:"attributes"`
			Validations struct {
				Required bool `json:"required"`
			} `json:"validations"`
		} `json:"body"`
	}
	for _, path := range projectFiles(t, ".github/ISSUE_TEMPLATE/*") {
		if filepath.Base(path) == "config.yml" {
			var config struct {
				Blank bool                `json:"blank_issues_enabled"`
				Links []map[string]string `json:"contact_links"`
			}
			strictly(t, path, &config)
			for _, link := range config.Links {
				ours := strings.HasPrefix(link["url"], "https://github.com/node-authorizer/node-authorizer/")
				if link["name"] == "" || link["about"] == "" || !ours {
					t.Errorf("%s: a link is %v", path, link)
				}
			}
			continue
		}
		var f form
		strictly(t, path, &f)
		if f.Name == "" || f.Description == "" || len(f.Body) == 0 {
			t.Errorf("%s is %+v", path, f)
		}
		for _, field := range f.Body {
			if (field.Type == "markdown") != (field.ID == "") || (field.Type == "markdown") != (field.Attributes.Label == "") {
				t.Errorf("%s: a field is %+v", path, field)
			}
		}
	}
}

// The files, sections and commands that the project's own pages name exist.
func TestLinksOfTheProjectsPages(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^):#]*)(?:#([^)]+))?\)`)
	seen := 0
	pages := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "ROADMAP.md", "SECURITY.md"}
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(docsFolder, pattern))
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		for _, page := range found {
			pages = append(pages, strings.TrimPrefix(page, root+"/"))
		}
	}
	for _, page := range pages {
		content := read(t, root, page)
		for _, m := range link.FindAllStringSubmatch(content, -1) {
			seen++
			target, section := content, m[2]
			if m[1] != "" {
				path := filepath.Join(root, filepath.Dir(page), m[1])
				info, err := os.Stat(path)
				if err != nil {
					t.Errorf("%s: %v", page, err)
					continue
				}
				if section == "" || info.IsDir() {
					continue
				}
				target = read(t, path)
			}
			if !slices.Contains(anchors(target), section) {
				t.Errorf("%s links to the section %s of %s, which is not there", page, section, m[1])
			}
		}
	}
	if seen == 0 {
		t.Error("the pages have no link")
	}
}

// anchors returns the anchors that GitHub gives to headings.
func anchors(page string) (found []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(page, -1) {
		kept := regexp.MustCompile(`[^\w -]`).ReplaceAllString(strings.ToLower(m[1]), "")
		found = append(found, strings.ReplaceAll(kept, " ", "-"))
	}
	return found
}
