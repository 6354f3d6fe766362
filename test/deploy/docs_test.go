package deploy

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// pages are the pages for operators, as paths in the folder of documentation.
func pages(t *testing.T) (all []string) {
	for _, folder := range []string{"guides", "reference", "reference/commands", "reference/platforms"} {
		for _, page := range projectFiles(t, "docs/"+folder+"/*.md") {
			all = append(all, folder+"/"+filepath.Base(page))
		}
	}
	return all
}

// block is a fenced block of a page.
type block struct {
	page, language, text string
}

func blocks(t *testing.T) (all []block) {
	t.Helper()
	fence := regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")
	for _, page := range pages(t) {
		for _, m := range fence.FindAllStringSubmatch(read(t, docsFolder, page), -1) {
			all = append(all, block{page, m[2], regexp.MustCompile("(?m)^"+m[1]).ReplaceAllString(m[3], "")})
		}
	}
	return all
}

func TestYAMLInThePagesIsValid(t *testing.T) {
	seen := 0
	for _, b := range blocks(t) {
		if b.language != "yaml" {
			continue
		}
		seen++
		var content any
		if err := yaml.UnmarshalStrict([]byte(b.text), &content); err != nil {
			t.Errorf("%s: %v\n%s", b.page, err, b.text)
			continue
		}
		document, _ := content.(map[string]any) // or a part of one
		switch document["kind"] {
		case "AuthorizationConfiguration":
			authorization(t, b.text)
		case "ServerConfiguration":
			config, err := v1alpha1.Parse([]byte(b.text))
			if err != nil {
				t.Errorf("%s: %v", b.page, err)
				continue
			}
			checkCallers(t, config)
		}
	}
	if seen == 0 {
		t.Error("the pages have no YAML")
	}
}

// The syntax of commands is checked.
func TestCommandsInThePagesParse(t *testing.T) {
	seen := 0
	for _, b := range blocks(t) {
		if b.language != "sh" {
			continue
		}
		seen++
		shell := exec.Command("bash", "-n")
		shell.Stdin = strings.NewReader(b.text)
		if output, err := shell.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s\n%s", b.page, err, output, b.text)
		}
	}
	if seen == 0 {
		t.Error("the pages have no commands")
	}
}

// The repository has the files that the pages name.
func TestFilesInThePagesExist(t *testing.T) {
	named := regexp.MustCompile(`(?:deploy|charts|docs)/[a-z0-9_./-]*[a-z0-9]`)
	address := regexp.MustCompile(`https://[^) ]+`)
	seen := 0
	for _, page := range append(pages(t), "../deploy/README.md") {
		content := address.ReplaceAllString(read(t, docsFolder, page), "https:")
		found := named.FindAllString(content, -1)
		seen += len(found)
		for _, path := range found {
			if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
		for _, link := range regexp.MustCompile(`\]\(([^):#]+)[#)]`).FindAllStringSubmatch(content, -1) {
			if _, err := os.Stat(filepath.Join(docsFolder, filepath.Dir(page), link[1])); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if seen == 0 {
		t.Error("the pages name no file")
	}
}

// The repository has the tests that a page names.
func TestTestsInThePagesExist(t *testing.T) {
	declared := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`).FindAllStringSubmatch(read(t, path), -1) {
			declared[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test[A-Za-z0-9_]+)[`/]").FindAllStringSubmatch(read(t, docsFolder, "reference/bootstrap.md"), -1)
	if len(named) == 0 {
		t.Error("reference/bootstrap.md names no test")
	}
	for _, m := range named {
		if !declared[m[1]] {
			t.Errorf("reference/bootstrap.md names %s, which is not there", m[1])
		}
	}
}
