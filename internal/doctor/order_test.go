package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// configurationsIn finds every AuthorizationConfiguration below a folder of the
// repository.
func configurationsIn(t *testing.T, folder string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, ".yaml") &&
			strings.Contains(readFile(t, path), "kind: AuthorizationConfiguration") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestShippedAuthorizersAreInOrder: the doctor accepts the configurations in deploy.
func TestShippedAuthorizersAreInOrder(t *testing.T) {
	files := configurationsIn(t, "../../deploy")
	if len(files) < 3 {
		t.Fatalf("only %q are shipped", files)
	}
	for _, file := range files {
		r := Examine(readFiles(t, file), Options{Checks: []CheckID{CheckAuthorization}})
		if hasCode(r, AuthorizationOrder) || r.Summary.Errors+r.Summary.Warnings > 0 {
			t.Errorf("%s: %v", file, r.Findings)
		}
		wantUndetermined(t, r)
	}
}

// TestTheOrderOfTheInstallation follows the guides to install and to go back: the doctor accepts the order with the Node
// authorizer and without it, and it recommends the same position for Node as the commands there.
func TestTheOrderOfTheInstallation(t *testing.T) {
	const insert = "sed -i 's|^- type: RBAC|- type: Node\\n  name: node\\n&|'"
	page := readFile(t, "../../docs/guides/install-beside.md") + readFile(t, "../../docs/guides/switch-over.md")
	if n := strings.Count(page, insert); n != 2 { // to install, and to roll back
		t.Fatalf("the guides put Node in %d times", n)
	}
	both := regexp.MustCompile(`(?m)^- type: RBAC`).ReplaceAllString(
		readFile(t, "../../deploy/static-pod/apiserver/authorization.yaml"), "- type: Node\n  name: node\n- type: RBAC",
	)
	c := readText(t, both)
	s := c.setups()[0]
	if want := []string{modeWebhook, modeNode, modeRBAC}; !slices.Equal(s.authorizers, want) {
		t.Fatalf("the commands make %q", s.authorizers)
	}
	r := Examine(c, Options{Checks: []CheckID{CheckAuthorization}})
	wantFindings(t, r.Findings)
	alone := readFiles(t, "../../deploy/static-pod/apiserver/authorization.yaml").setups()[0]
	if advised := alone.withNode(); !slices.Equal(advised, s.authorizers) {
		t.Errorf("the doctor advises %q, the guides make %q", advised, s.authorizers)
	}
}

func TestWhereNodeIsPut(t *testing.T) {
	for _, test := range []struct {
		name      string
		ours      int
		is, wants string
	}{
		{"RBAC alone", -1, "RBAC", "Node,RBAC"},
		{"none", -1, "", "Node,RBAC"},
		{"a webhook before RBAC stays there", -1, "Webhook,RBAC", "Webhook,Node,RBAC"},
		{"a webhook behind RBAC stays there", -1, "RBAC,Webhook", "Node,RBAC,Webhook"},
		{"a webhook between", -1, "Node,Webhook,RBAC", "Node,Webhook,RBAC"},
		{"our server behind Node", 1, "Node,Webhook,RBAC", "Webhook,Node,RBAC"},
		{"our server behind RBAC", 2, "Node,RBAC,Webhook", "Webhook,Node,RBAC"},
		{"Node behind RBAC", -1, "RBAC,Node", "Node,RBAC"},
		{"what ends the list", -1, "AlwaysAllow,Webhook", "Webhook,Node,RBAC"},
	} {
		s := setup{ours: test.ours}
		if test.is != "" {
			s.authorizers = strings.Split(test.is, ",")
		}
		if got := strings.Join(s.withNode(), ","); got != test.wants {
			t.Errorf("%s: got %s, want %s", test.name, got, test.wants)
		}
	}
}

// TestServerAfterNodeIsReported: the server is asked only about requests that the Node authorizer
// does not allow, and so shows few of its decisions.
func TestServerAfterNodeIsReported(t *testing.T) {
	const text = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n" +
		"- {type: Node, name: node}\n- {type: Webhook, name: node-authorizer}\n- {type: RBAC, name: rbac}\n"
	r := Examine(readText(t, text), Options{Checks: []CheckID{CheckAuthorization}})
	if len(r.Findings) != 1 || r.Findings[0].Code != AuthorizationOrder || !strings.HasSuffix(r.Findings[0].Remedy, "Webhook, Node, RBAC") {
		t.Errorf("found %v", r.Findings)
	}
}

// TestPagesAdviseOneOrder: no page recommends webhooks after the Node authorizer.
func TestPagesAdviseOneOrder(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../README.md", "../../deploy/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`Node, ?Webhook`).Match(text) || strings.Contains(string(text), "webhooks between them") ||
			strings.Contains(string(text), "Webhooks stay between") {
			t.Errorf("%s puts webhooks behind Node", page)
		}
	}
}
