package cli

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
)

// emptyFile is a file without content. A log may be empty: it shows nothing, which does not answer the question either.
const emptyFile = "an-empty-one"

// wrongContents are texts that no file of a command has.
var wrongContents = map[string]string{
	"a-broken": "a: [b\n", "a-cut": `{"a":`, "a-binary": "\x00\x01\xff", "a-text": "hello\n", "a-list": "- a\n- b\n", emptyFile: "",
	"a-types": "apiVersion: 5\nkind: []\n", "a-items": "apiVersion: v1\nkind: List\nitems: 5\n",
}

const agentScope = `apiVersion: policy.node-authorizer.io/v1alpha1
kind: NodeScope
metadata: {name: agent}
spec: {subjects: [{namespace: shop, name: agent}], mode: Observe}
`

// readFiles are commands up to a file, which comes next.
var readFiles = []string{
	"can-i --node worker-1 get pods --from cluster.yaml --authorization-config",
	"can-i --node worker-1 get pods --from cluster.yaml --with",
	"can-i --node worker-1 get pods --from",
	"can-i --node worker-1 get pods --kubeconfig",
	"explain --node worker-1 create pods/x --from cluster.yaml --filename",
	"audit --from cluster.yaml",
	"audit merge",
	"attack-paths --all-nodes --from cluster.yaml --techniques",
	"attack-paths --all-nodes --from cluster.yaml --compare-with",
	"config validate",
	"diff --from cluster.yaml --with",
	"diff --from cluster.yaml --to",
	"doctor --from",
	"doctor --from cluster.yaml --baseline",
	"doctor --from cluster.yaml --audit-report",
	"review --from cluster.yaml --filename",
	"scope check --audit audit.log --filename",
	"scope check --filename scope.yaml --from cluster.yaml --audit",
	"scope admission-policy --filename",
	"scope suggest --serviceaccount shop/agent --from cluster.yaml --audit",
	"server --config",
	"server --authorizer alwaysallow --kubeconfig",
	"snapshot -o - --from",
}

// ofALibrary matches errors in the words of Go and its libraries.
var ofALibrary = regexp.MustCompile(`(?m)(^|: )(json|yaml): |strconv|Go (value|struct)|\bEOF\b|[Uu]nmarshal|converting YAML|error loading`)

// TestFilesWithWrongContent: no command answers, and the error is in words for people and names the file.
func TestFilesWithWrongContent(t *testing.T) {
	cluster, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"cluster.yaml": string(cluster), "audit.log": "", "scope.yaml": agentScope}
	maps.Copy(files, wrongContents)
	for _, command := range readFiles {
		for name := range wrongContents {
			t.Run(command+" "+name, func(t *testing.T) {
				t.Chdir(folderWith(t, files))
				var out, errOut bytes.Buffer
				args := append([]string{binaryName}, append(strings.Fields(command), name)...)
				status := Main(args, strings.NewReader(""), &out, &errOut)
				switch got := out.String() + errOut.String(); {
				case status == 0:
					t.Errorf("an answer: %s", got)
				case !strings.Contains(got, name) && name != emptyFile:
					t.Errorf("the file is not named: %s", got)
				case ofALibrary.MatchString(got):
					t.Errorf("an error of a library: %s", got)
				}
			})
		}
	}
}
