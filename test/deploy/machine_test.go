package deploy

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

const machineFolder = deployFolder + "/machine"

// cloudConfig has the fields of a cloud-init document that the test needs.
type cloudConfig struct {
	WriteFiles []struct {
		Path        string `json:"path"`
		Permissions string `json:"permissions"`
		Encoding    string `json:"encoding"`
		Content     string `json:"content"`
	} `json:"write_files"`
	RunCmd [][]string `json:"runcmd"`
}

// Manual setup and cloud-init give the same files.
func TestCloudInitWritesTheFilesOfTheFolder(t *testing.T) {
	text := read(t, machineFolder, "cloud-init.yaml")
	if !strings.HasPrefix(text, "#cloud-config\n") {
		t.Error("the file has no cloud-config header")
	}
	var config cloudConfig
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		t.Fatal(err)
	}
	for path, file := range map[string]string{
		"/etc/systemd/system/node-authorizer.service":                      "node-authorizer.service",
		"/etc/systemd/system/kubelet.service.d/20-node-authorizer.conf":    "kubelet.service.d/20-node-authorizer.conf",
		"/etc/node-authorizer/client.env":                                  "client.env",
		variable(t, read(t, machineFolder, "client.env"), "TLS_CLIENT_CA"): "",
		variable(t, read(t, machineFolder, "client.env"), "KUBEAPI_CA"):    "",
	} {
		found := false
		for _, w := range config.WriteFiles {
			if w.Path != path {
				continue
			}
			found = true
			if file != "" && w.Content != read(t, machineFolder, file) {
				t.Errorf("%s is not %s", path, file)
			}
		}
		if !found {
			t.Errorf("%s is not written", path)
		}
	}
	if len(config.WriteFiles) != 5 || len(config.RunCmd) == 0 {
		t.Errorf("%d files are written, and %d commands run", len(config.WriteFiles), len(config.RunCmd))
	}
}

// variable returns the value of a line NAME=VALUE.
func variable(t *testing.T, text, name string) string {
	t.Helper()
	m := regexp.MustCompile("(?m)^" + name + "=(.*)$").FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("there is no %s in\n%s", name, text)
	}
	return m[1]
}

// The client writes the bootstrap kubeconfig of the kubelet, and the kubelet's
// certificate stops the client from asking again. The kubelet's kubeconfig cannot be used
// for that: a kubelet that renews its certificates writes it before it has the first one,
// and a machine that stopped in between could not join any more.
func TestUnitAndDropInUseTheSameFiles(t *testing.T) {
	dropIn := read(t, machineFolder, "kubelet.service.d/20-node-authorizer.conf")
	unit := read(t, machineFolder, "node-authorizer.service")
	bootstrap := variable(t, read(t, machineFolder, "client.env"), "KUBECONFIG_BOOTSTRAP")
	if !strings.Contains(dropIn, "--bootstrap-kubeconfig="+bootstrap+" ") {
		t.Errorf("the kubelet does not begin with %s", bootstrap)
	}
	if !strings.Contains(dropIn, " --kubeconfig=/var/lib/kubelet/kubeconfig\"") {
		t.Error("the kubelet writes another kubeconfig than the pages say")
	}
	const certificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	if got := variable(t, unit, "ConditionPathExists"); got != "!"+certificate {
		t.Errorf("the client asks while there is not %s, want %s", got, certificate)
	}
	if filepath.Dir(bootstrap) != "/run/"+variable(t, unit, "RuntimeDirectory") {
		t.Errorf("%s is not in the unit's folder", bootstrap)
	}
}

func TestKubeletConfiguration(t *testing.T) {
	pages := []string{read(t, machineFolder, "kubelet.yaml")}
	for _, b := range blocks(t) {
		if b.language == "yaml" && strings.Contains(b.text, "kind: KubeletConfiguration") {
			pages = append(pages, b.text)
		}
	}
	if len(pages) != 2 {
		t.Errorf("%d pages have the kubelet's configuration", len(pages)-1)
	}
	for _, page := range pages {
		var config kubeletv1beta1.KubeletConfiguration
		if err := yaml.UnmarshalStrict([]byte(page), &config); err != nil {
			t.Fatal(err)
		}
		if !config.RotateCertificates || !config.ServerTLSBootstrap || config.APIVersion != kubeletv1beta1.SchemeGroupVersion.String() {
			t.Errorf("certificates are not from the cluster: %s", page)
		}
	}
}
