package cli

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/node-authorizer/node-authorizer/internal/cli/command"
)

// sweepArguments are the arguments and flags with which each command comes to look at the flag that the
// sweep adds. Commands that only have others below them are not swept.
var sweepArguments = map[string]string{
	"admission-policy":     "--from cluster.yaml",
	"approve":              "key-0",
	"attack-paths":         "--all-nodes --from cluster.yaml",
	"audit":                "audit.log --from cluster.yaml",
	"authorization-config": "--from cluster.yaml",
	"can-i":                "get nodes --node worker-1 --from cluster.yaml",
	"check":                "--audit audit.log --from cluster.yaml",
	"client": "--node-url https://127.0.0.1:1 --kubeapi-url https://127.0.0.1:1 --tls-client-ca ca.crt " +
		"--tls-cert ca.crt --tls-private-key ca.key",
	"defaults":      "",
	"diff":          "--from cluster.yaml --with cluster.yaml",
	"doctor":        "--from cluster.yaml",
	"explain":       "get nodes --node worker-1 --from cluster.yaml",
	"explain-code":  "OwnName",
	"kubeadm":       "--output out --dry-run",
	"list":          "",
	"machine":       "--node-name worker-1",
	"man":           "man1",
	"merge":         "part.json",
	"quarantine":    "node/worker-1 --reason test",
	"reach":         "worker-1 --from cluster.yaml",
	"release":       "node/worker-1",
	"review":        "--from cluster.yaml",
	"revoke":        "worker-1",
	"server":        "--authorizer alwaysallow",
	"snapshot":      "-o out.snapshot --from cluster.yaml",
	"suggest":       "--serviceaccount shop/agent --from cluster.yaml --audit audit.log",
	"test-provider": "--command sh --collector-command sh",
	"token":         "--cluster-id shop",
	"undo":          "",
	"validate":      "config.yaml",
	"verify":        "",
	"version":       "",
	"who-can":       "get nodes --from cluster.yaml",
}

// probed are the values that a flag must refuse, by the name of its argument. A name without a row must be in
// anyText or checkedByCommand.
var probed = map[string][]string{
	command.ValueNumber:   {"-1", "99999999999999999999", "1.5", "many", ""},
	command.ValueDuration: {"-1s", "9999999h", "99999999999999999999h", "soon", "5 days", ""},
	command.ValueFile:     {"", "no-such-file", "folder"},
	command.ValueURL:      {"::x", "https://"},
	"bool":                {"maybe", "2"},
}

// anyText are the names of values that are texts of any form, or that only the state can refuse.
var anyText = []string{
	command.ValueName, command.ValueText, command.ValueNode, command.ValueNamespace, "USER", "GROUP",
	"VARIABLE", "ID", "KEY", "HOLDING", "TOKEN", "REGION", "TYPE", "ARN",
}

// checkedByCommand are the names of values of which each command has a list or a form.
var checkedByCommand = map[string]string{
	"CHECKS": "x", "COMMAND": "x",
	"FORMAT": "x", "FORM": "x", "GATES": "x", "HASH": "x", "KIND": "x", "MODE": "x", "POLICY": "x", "RULE": "x",
	"SEVERITY": "x", "FINDING": "x", "VERSION": "x", "WORDS": "x",
	"SELECTOR": "x", "KIND/NAME": "x", "NAMESPACE/NAME": "x", "INDEX/COUNT": "-1/2",
	command.ValueAddress: "::x",
}

func TestFlagsRefuseWhatTheyDoNotTake(t *testing.T) {
	cluster, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	key, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"audit.log": "", "config.yaml": "", "part.json": "{}", "cluster.yaml": string(cluster),
		"ca.crt": string(authority(server)), "ca.key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
	}
	a := &command.App{}
	var sweep func(cmd *cobra.Command)
	sweep = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			sweep(c)
		}
		if !command.Acts(cmd) || cmd.Hidden {
			return
		}
		path := strings.Fields(cmd.CommandPath())[1:]
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			for _, value := range wrongValuesOf(t, cmd, f) {
				t.Run(strings.Join(path, " ")+" --"+f.Name+"="+value, func(t *testing.T) {
					t.Chdir(folderWith(t, files))
					refuses(t, path, f, value)
				})
			}
		})
	}
	sweep(root(a, binaryName))
}

// folderWith returns a new folder with files.
func folderWith(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(folder, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", filepath.Join(folder, "kubeconfig"))
	return folder
}

func wrongValuesOf(t *testing.T, cmd *cobra.Command, f *pflag.Flag) []string {
	t.Helper()
	for _, name := range []string{f.Name, cmd.Name() + " " + f.Name} {
		if reason, ok := command.NotHere[name]; ok && reason != "it is read to join only" {
			return []string{""}
		}
	}
	if command.IsIn(command.Outputs, cmd, f) {
		return []string{"", "no-such-folder/file"}
	}
	takes := command.FlagValue(cmd.Name(), f)
	if takes == command.ValueFile && command.IsIn(command.Folders, cmd, f) {
		return []string{"", "no-such-file"}
	}
	if f.Value.Type() == "bool" {
		takes = "bool"
	}
	if values, ok := probed[takes]; ok {
		return values
	}
	if value, ok := checkedByCommand[takes]; ok {
		return []string{value}
	}
	if !slices.Contains(anyText, takes) {
		t.Errorf("%s --%s takes %s, which the sweep does not classify", cmd.CommandPath(), f.Name, takes)
	}
	return nil
}

// refuses runs a command with a flag that has a wrong value: the error is one of usage, names the flag, and
// says what is wrong in words for people, once.
func refuses(t *testing.T, path []string, f *pflag.Flag, value string) {
	usual, ok := sweepArguments[path[len(path)-1]]
	if !ok {
		t.Fatalf("sweepArguments has no %s", path[len(path)-1])
	}
	var out, errOut bytes.Buffer
	args := append(append(append([]string{binaryName}, path...), strings.Fields(usual)...), "--"+f.Name+"="+value)
	status := Main(args, strings.NewReader(""), &out, &errOut)
	got := errOut.String()
	switch named := regexp.MustCompile("(?m)^error: --" + f.Name + "[ :]").MatchString(got); {
	case status != command.StatusUndecided || !named:
		t.Errorf("status %d, error %q: want one that begins with the flag", status, got)
	case regexp.MustCompile(`strconv|parsing|Go value|json:|yaml:`).MatchString(got):
		t.Errorf("an error of a library: %s", got)
	}
	if twice := repeated(got); twice != "" {
		t.Errorf("%q is in it twice: %s", twice, got)
	}
}

// repeated returns the first part of an error that is in it twice.
func repeated(text string) string {
	parts := strings.FieldsFunc(text, func(r rune) bool { return r == ';' || r == ':' || r == '\n' })
	for i, part := range parts {
		if part = strings.TrimSpace(part); len(part) > 10 && slices.ContainsFunc(parts[i+1:], func(other string) bool {
			return strings.TrimSpace(other) == part
		}) {
			return part
		}
	}
	return ""
}
