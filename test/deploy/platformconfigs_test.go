package deploy

import (
	"encoding/json"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/api/config/v1alpha1"
)

// platformBlock returns the only block of a language on the pages about platforms that contains a
// text.
func platformBlock(t *testing.T, language, containing string) string {
	t.Helper()
	found := slices.DeleteFunc(blocks(t), func(b block) bool {
		return !strings.HasPrefix(b.page, "reference/platforms/") || b.language != language || !strings.Contains(b.text, containing)
	})
	if len(found) != 1 {
		t.Fatalf("%d blocks contain %q, want 1", len(found), containing)
	}
	return found[0].text
}

func unmarshalStrict(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(text), into); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
}

// talosConfig has the fields of a machine config that the page sets.
// Source: github.com/siderolabs/talos/pkg/machinery@v1.13.0/config/types/v1alpha1
type talosConfig struct {
	Machine struct {
		Files []talosFile      `json:"files"`
		Pods  []map[string]any `json:"pods"`
	} `json:"machine"`
	Cluster struct {
		APIServer struct {
			ExtraVolumes []struct {
				HostPath  string `json:"hostPath"`
				MountPath string `json:"mountPath"`
				ReadOnly  bool   `json:"readonly"`
			} `json:"extraVolumes"`
			AuthorizationConfig []map[string]any `json:"authorizationConfig"`
			AdmissionControl    []map[string]any `json:"admissionControl"`
		} `json:"apiServer"`
	} `json:"cluster"`
}

type talosFile struct {
	Path        string `json:"path"`
	Op          string `json:"op"`
	Permissions uint32 `json:"permissions"`
	Content     string `json:"content"`
}

// Talos gets the authorizers and the admission plugin of deploy.
func TestTalosAPIServer(t *testing.T) {
	var patch talosConfig
	unmarshalStrict(t, platformBlock(t, "yaml", "authorizationConfig:"), &patch)
	server := patch.Cluster.APIServer
	var ours struct {
		Authorizers []map[string]any `json:"authorizers"`
	}
	if err := yaml.Unmarshal([]byte(read(t, deployFolder, "static-pod/apiserver/authorization.yaml")), &ours); err != nil {
		t.Fatal(err)
	}
	node := map[string]any{"type": nodeType, "name": "node"}
	if want := slices.Insert(ours.Authorizers, 1, node); !reflect.DeepEqual(server.AuthorizationConfig, want) {
		t.Errorf("authorizers are %v, want %v", server.AuthorizationConfig, want)
	}
	document, err := json.Marshal(map[string]any{
		"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AuthorizationConfiguration", "authorizers": server.AuthorizationConfig,
	})
	if err != nil {
		t.Fatal(err)
	}
	authorization(t, string(document))

	var admission struct {
		Plugins []map[string]any `json:"plugins"`
	}
	if err := yaml.Unmarshal([]byte(read(t, deployFolder, "static-pod/apiserver/admission.yaml")), &admission); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(server.AdmissionControl, admission.Plugins) {
		t.Errorf("admission plugins are %v, want %v", server.AdmissionControl, admission.Plugins)
	}
	if v := server.ExtraVolumes; len(v) != 1 || v[0].MountPath != apiserverFolder || !v[0].ReadOnly {
		t.Errorf("volumes are %v", v)
	}
}

// Talos gets all other files, where its kube-apiserver and the static pod look for them.
func TestTalosFiles(t *testing.T) {
	h := newHost(t)
	h.install(t)
	runIn(t, h.dir, platformBlock(t, "sh", `"create", permissions:`))
	var files, pods, apiServer talosConfig
	unmarshalStrict(t, read(t, h.path("files.yaml")), &files)
	unmarshalStrict(t, read(t, h.path("pods.yaml")), &pods)
	unmarshalStrict(t, platformBlock(t, "yaml", "authorizationConfig:"), &apiServer)

	var want []string
	for _, name := range []string{"admission.kubeconfig", "authorize.kubeconfig", "ca.crt", "client.crt", "client.key"} {
		want = append(want, path.Join(apiServer.Cluster.APIServer.ExtraVolumes[0].HostPath, name))
	}
	pod := staticPod(t, pods)
	folder := pod.Spec.Volumes[0].HostPath
	if folder.Type != nil {
		t.Error("the kubelet of Talos, in a container of its own, looks for the folder")
	}
	for _, name := range []string{
		"ca.crt", "client.crt", "client.key", "cluster-ca.crt", "config.yaml", "kubeconfig", "tls.crt", "tls.key",
	} {
		want = append(want, path.Join(folder.Path, name))
	}
	var got []string
	for _, f := range files.Machine.Files {
		// Talos creates files under /var only, and the processes that read them are not root.
		if !strings.HasPrefix(f.Path, "/var/") || f.Op != "create" || f.Permissions != 0o444 || f.Content == "" {
			t.Errorf("%s: %s, %o, %d bytes", f.Path, f.Op, f.Permissions, len(f.Content))
		}
		got = append(got, f.Path)
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("files are\n%v, want\n%v", got, want)
	}
}

func staticPod(t *testing.T, config talosConfig) *corev1.Pod {
	t.Helper()
	if len(config.Machine.Pods) != 1 {
		t.Fatalf("%d pods", len(config.Machine.Pods))
	}
	document, err := json.Marshal(config.Machine.Pods[0])
	if err != nil {
		t.Fatal(err)
	}
	return only[*corev1.Pod](t, mustDecode(t, string(document)))
}

// RKE2 gets the flags of deploy, and a file of admission plugins with RKE2's own.
func TestRKE2(t *testing.T) {
	var config struct {
		Args      []string `json:"kube-apiserver-arg+"`
		Mounts    []string `json:"kube-apiserver-extra-mount+"`
		Admission string   `json:"pod-security-admission-config-file"`
	}
	unmarshalStrict(t, platformBlock(t, "yaml", "pod-security-admission-config-file:"), &config)
	if want := []string{"authorization-config=" + apiserverFolder + "/authorization.yaml"}; !slices.Equal(config.Args, want) {
		t.Errorf("flags are %v, want %v", config.Args, want)
	}
	if want := []string{apiserverFolder + ":" + apiserverFolder + ":ro"}; !slices.Equal(config.Mounts, want) {
		t.Errorf("mounts are %v, want %v", config.Mounts, want)
	}
	if want := apiserverFolder + "/admission.yaml"; config.Admission != want {
		t.Errorf("admission plugins are in %s, want %s", config.Admission, want)
	}
	plugins := admissionPlugins(t, platformBlock(t, "yaml", "PodSecurityConfiguration"))
	ours := admissionPlugins(t, read(t, deployFolder, "static-pod/apiserver/admission.yaml"))
	if plugins["MutatingAdmissionWebhook"] != ours["MutatingAdmissionWebhook"] || plugins["PodSecurity"] == "" || len(plugins) != 2 {
		t.Errorf("admission plugins are %v", plugins)
	}
}

// kopsSpec has the fields of kops' Cluster that the page sets.
// Source: k8s.io/kops@v1.36.0/pkg/apis/kops/v1alpha2
type kopsSpec struct {
	Spec struct {
		KubeAPIServer struct {
			AuditPolicyFile                      string `json:"auditPolicyFile"`
			AuditLogPath                         string `json:"auditLogPath"`
			AuditLogMaxSize                      int32  `json:"auditLogMaxSize"`
			AuditLogMaxBackups                   int32  `json:"auditLogMaxBackups"`
			AuthenticationTokenWebhookConfigFile string `json:"authenticationTokenWebhookConfigFile"`
			AuthenticationTokenWebhookCacheTTL   string `json:"authenticationTokenWebhookCacheTtl"`
			AdmissionControlConfigFile           string `json:"admissionControlConfigFile"`
		} `json:"kubeAPIServer"`
		FileAssets []kopsAsset `json:"fileAssets"`
	} `json:"spec"`
}

type kopsAsset struct {
	Name    string   `json:"name"`
	Path    string   `json:"path"`
	Roles   []string `json:"roles"`
	Mode    string   `json:"mode"`
	Content string   `json:"content"`
}

// kops gets every file that its settings and these files name.
func TestKops(t *testing.T) {
	h := newHost(t)
	h.install(t)
	runIn(t, h.dir, platformBlock(t, "sh", "assets.json"))
	var spec kopsSpec
	unmarshalStrict(t, platformBlock(t, "yaml", "fileAssets:"), &spec)
	server := spec.Spec.KubeAPIServer
	var policy auditv1.Policy
	for _, asset := range spec.Spec.FileAssets {
		if asset.Path != server.AuditPolicyFile {
			t.Errorf("the policy is in %s, want %s", asset.Path, server.AuditPolicyFile)
		}
		unmarshalStrict(t, asset.Content, &policy)
	}
	if len(policy.Rules) == 0 {
		t.Error("the audit policy has no rules")
	}
	var assets []kopsAsset
	unmarshalStrict(t, read(t, h.path("assets.json")), &assets)
	files := map[string]string{}
	for _, asset := range assets {
		if files[asset.Path] != "" || !slices.Equal(asset.Roles, []string{"ControlPlane"}) || asset.Mode != "0444" {
			t.Errorf("asset %s is %s for %v, mode %s", asset.Name, asset.Path, asset.Roles, asset.Mode)
		}
		files[asset.Path] = asset.Content
	}
	if want := countFiles(t, h.path("host/apiserver")) + countFiles(t, h.path("host/server")) + 1; len(assets) != want {
		t.Errorf("%d assets, want %d", len(assets), want)
	}
	admission := files[server.AdmissionControlConfigFile]
	if kubeconfig := path.Join(path.Dir(server.AdmissionControlConfigFile), "admission.kubeconfig"); files[kubeconfig] == "" ||
		!strings.Contains(admissionPlugins(t, admission)["MutatingAdmissionWebhook"], kubeconfig) {
		t.Errorf("%s is not the kubeconfig of\n%s", kubeconfig, admission)
	}
	checkKubeconfig(t, files, server.AuthenticationTokenWebhookConfigFile, "https://127.0.0.1:10270/authenticate")
	pod := only[*corev1.Pod](t, mustDecode(t, files["/etc/kubernetes/manifests/node-authorizer.yaml"]))
	folder := pod.Spec.Volumes[0].HostPath.Path
	checkKubeconfig(t, files, path.Join(folder, "kubeconfig"), "https://127.0.0.1")
	config, err := v1alpha1.Parse([]byte(files[path.Join(folder, "config.yaml")]))
	if err != nil || config.IAM.ClusterID != "blue" {
		t.Errorf("the server's config: %v", err)
	}
}

func countFiles(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// checkKubeconfig checks the server of a kubeconfig, and that the files that it names are beside it.
func checkKubeconfig(t *testing.T, files map[string]string, name, server string) {
	t.Helper()
	dir := t.TempDir()
	for file, content := range files {
		if path.Dir(file) == path.Dir(name) {
			write(t, path.Join(dir, path.Base(file)), content)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", path.Join(dir, path.Base(name)))
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != server {
		t.Errorf("%s: the server is %s, want %s", name, config.Host, server)
	}
	for _, file := range []string{config.CAFile, config.CertFile, config.KeyFile} {
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
