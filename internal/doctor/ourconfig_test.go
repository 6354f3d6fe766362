package doctor

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// deployedConfig is the config file that users install.
const deployedConfig = "../../deploy/iam/static-pod/config.yaml"

// tokensFor returns a kubeconfig that makes tokens for a cluster.
func tokensFor(id string) string {
	return "---\napiVersion: v1\nkind: Config\nusers:\n- name: kubelet\n  user:\n" +
		"    exec: {apiVersion: client.authentication.k8s.io/v1, command: node-authorizer, args: [token, --cluster-id=" + id + "]}\n"
}

func configMapJSON(t *testing.T, config string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": "node-authorizer", "namespace": "kube-system"},
		"data": map[string]string{"config.yaml": config},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOurConfigDefinesWhichTokensAreAccepted(t *testing.T) {
	const pod = "../../deploy/static-pod/server/node-authorizer.yaml"
	config := readFile(t, deployedConfig)
	for _, test := range []struct {
		rule, text string
		want       []string
	}{
		{"a file", config + tokensFor("blue"), []string{"error ClusterIDMismatch blue"}},
		{"a file, for the same cluster", config + tokensFor("CLUSTER_ID"), nil},
		{"a file beside the static pod", config + "---\n" + readFile(t, pod) + tokensFor("blue"), []string{"error ClusterIDMismatch blue"}},
		{
			"a ConfigMap",
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: node-authorizer, namespace: kube-system}\ndata:\n  config.yaml: |\n" +
				indented(config) + tokensFor("blue"),
			[]string{"error ClusterIDMismatch blue"},
		},
		{"a ConfigMap in JSON", configMapJSON(t, config) + "\n" + tokensFor("blue"), []string{"error ClusterIDMismatch blue"}},
		{
			"an item of a list", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Secret\n" +
				"- {apiVersion: config.node-authorizer.io/v1alpha1, kind: ServerConfiguration, iam: {clusterID: shop}, " +
				"webhook: {serves: [Authentication], certificateFile: a, keyFile: b, clientCAFile: c, allowedClientNames: [d]}}\n" +
				tokensFor("blue"),
			[]string{"error ClusterIDMismatch blue"},
		},
		{"a server that authenticates nobody", readFile(t, "../../deploy/static-pod/server/config.yaml") + tokensFor("blue"), nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			wantFindings(t, run(readText(t, test.text), awsAuth).Findings, test.want...)
		})
	}
}

func TestOurConfigIsReadAsTheServerReadsIt(t *testing.T) {
	config := readFile(t, deployedConfig)
	id := "clusterID: CLUSTER_ID"
	inConfigMap := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: node-authorizer, namespace: kube-system}\ndata:\n  config.yaml: |\n"
	for _, test := range []struct{ rule, text, want string }{
		{
			"an unknown field", strings.Replace(config, id, id+"\n  clusterid: x", 1),
			"stdin: document 1, line 19: ServerConfiguration: iam.clusterid: unknown field",
		},
		{
			"a mistake in a second document", "kind: Secret\napiVersion: v1\n---\n" + strings.Replace(config, id, id+"\n  clusterid: x", 1),
			"document 2, line 22: ",
		},
		{"a field in another case", strings.Replace(config, id, "clusterid: x", 1), "iam.clusterid: unknown field"},
		{"another kind", strings.Replace(config, "kind: ServerConfiguration", "kind: Config", 1), "kind: want ServerConfiguration"},
		{"another version", strings.Replace(config, "/v1alpha1", "/v2", 1), "apiVersion: want config.node-authorizer.io/v1alpha1"},
		{
			"a mistake in a ConfigMap", inConfigMap + indented(strings.Replace(config, id, id+"\n  clusterid: x", 1)),
			"line 24: ConfigMap kube-system/node-authorizer: data.config.yaml: iam.clusterid: unknown field",
		},
	} {
		t.Run(test.rule, func(t *testing.T) {
			_, err := Read(t.Context(), []string{"-"}, ReadOptions{Stdin: strings.NewReader(test.text)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q in it", err, test.want)
			}
		})
	}
}

// withReserved returns the deployed config file with fields of iam.reserved.
func withReserved(t *testing.T, fields string) string {
	t.Helper()
	const id = "clusterID: CLUSTER_ID"
	return strings.Replace(readFile(t, deployedConfig), id, id+"\n  reserved: {"+fields+"}", 1)
}

func TestReservedNamesOfOurConfigAreUsed(t *testing.T) {
	const manager, admin = "system:kube-controller-manager", "corp:admin"
	refused := []string{"error MappingReserved arn:aws:iam::111122223333:role/manager"}
	for _, test := range []struct {
		rule, config, username string
		want                   []string
	}{
		{"a name that is reserved by default", withReserved(t, ""), manager, refused},
		{"a granted username", withReserved(t, "grantedUsernames: ["+manager+"]"), manager, nil},
		{"a prefix that is not reserved", withReserved(t, "prefixes: ['corp:']"), manager, nil},
		{"no prefixes", withReserved(t, "prefixes: []"), manager, nil},
		{"a prefix that is not reserved by default", withReserved(t, "prefixes: ['system:', 'corp:']"), admin, refused},
		{"no config", "", manager, nil},
	} {
		t.Run(test.rule, func(t *testing.T) {
			text := awsAuthText(roleEntry("manager", test.username)) + "---\n" + test.config
			reserved := slices.DeleteFunc(run(readText(t, text), awsAuth).Findings, func(f finding.Finding) bool {
				return f.Code != iam.MappingReserved
			})
			wantFindings(t, reserved, test.want...)
		})
	}
}

func TestDefaultsOfOurConfigAreUsed(t *testing.T) {
	c := readText(t, readFile(t, deployedConfig))
	if len(c.Authenticators) != 1 {
		t.Fatalf("authenticators are %+v", c.Authenticators)
	}
	a := c.Authenticators[0]
	if a.Kind != NodeAuthorizer || a.Partition != "aws" || a.RolePaths != "MatchName" || a.Place.Key != "iam" || a.Place.Line != 18 {
		t.Errorf("got %+v", a)
	}
}
