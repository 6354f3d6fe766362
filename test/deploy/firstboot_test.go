package deploy

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coreos/butane/config"
	"github.com/coreos/butane/config/common"
	"github.com/coreos/ignition/v2/config/v3_4"
	ignition "github.com/coreos/ignition/v2/config/v3_4/types"
	"github.com/vincent-petithory/dataurl"
)

const (
	unitFile    = "node-authorizer.service"
	kubeletFile = "kubelet.service.d/20-node-authorizer.conf"
	settings    = "/etc/node-authorizer/"
	systemd     = "/etc/systemd/system/"
)

// dropIns are the drop-ins of the unit with CREDENTIAL=certificate and AUTHORIZER=tpm.
func dropIns() []string {
	return []string{"node-authorizer.service.d/certificate.conf", "node-authorizer.service.d/tpm.conf"}
}

// indented returns the lines of a file of deploy/machine in a YAML block.
func indented(t *testing.T, name string, spaces int) string {
	t.Helper()
	var block strings.Builder
	for line := range strings.Lines(read(t, machineFolder, name)) {
		if line != "\n" {
			block.WriteString(strings.Repeat(" ", spaces))
		}
		block.WriteString(line)
	}
	return block.String()
}

// cloudInit makes user data from the files of deploy/machine.
func cloudInit(t *testing.T, comment, env string, dropIns ...string) string {
	text := "#cloud-config\n" + comment + "write_files:\n"
	for _, authority := range []string{"ca.crt\n%scontent: CA_BUNDLE\n", "cluster-ca.crt\n%scontent: API_SERVER_CA\n"} {
		text += "- path: " + settings + fmt.Sprintf(authority, "  permissions: \"0644\"\n  encoding: b64\n  ")
	}
	add := func(path, name string) {
		text += "- path: " + path + "\n  permissions: \"0644\"\n  content: |\n" + indented(t, name, 4)
	}
	add(settings+"client.env", env)
	for _, name := range append([]string{unitFile, kubeletFile}, dropIns...) {
		add(systemd+name, name)
	}
	return text + `runcmd:
- [systemctl, daemon-reload]
- [systemctl, enable, node-authorizer.service, kubelet.service]
# On the first boot systemd has already reached its target, so start both units.
- [systemctl, start, --no-block, node-authorizer.service]
- [systemctl, restart, --no-block, kubelet.service]
`
}

const imageComment = "# For machine images that have the kubelet, a container runtime and\n# /usr/local/bin/node-authorizer.\n"

const certificateComment = imageComment +
	"# The client gets the kubelet's certificate. client.env says what the machine shows: one provider's lines.\n"

// butane makes the source of an Ignition config from the files of deploy/machine.
func butane(t *testing.T) string {
	text := certificateComment + "variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n"
	for _, authority := range []string{"ca.crt\n%sCA_BUNDLE\n", "cluster-ca.crt\n%sAPI_SERVER_CA\n"} {
		text += "  - path: " + settings + fmt.Sprintf(authority, "    mode: 0644\n    contents:\n      source: data:;base64,")
	}
	text += "  - path: " + settings + "client.env\n    mode: 0644\n    contents:\n      inline: |\n" +
		indented(t, "client-certificate.env", 8)
	dropIn := func(name string) string {
		return "    - name: " + filepath.Base(name) + "\n      contents: |\n" + indented(t, name, 8)
	}
	text += "systemd:\n  units:\n  - name: " + unitFile + "\n    enabled: true\n    contents: |\n" +
		indented(t, unitFile, 6) + "    dropins:\n"
	for _, name := range dropIns() {
		text += dropIn(name)
	}
	return text + "  - name: kubelet.service\n    enabled: true\n    dropins:\n" + dropIn(kubeletFile)
}

// placeholders are replaced in Ignition's files before the translation, because Ignition checks values in base64. Each value is
// the placeholder itself in base64.
func placeholders() (oldNew, newOld *strings.Replacer) {
	var there, back []string
	for _, name := range []string{"base64,CA_BUNDLE", "base64,API_SERVER_CA"} {
		value := "base64," + base64.StdEncoding.EncodeToString([]byte(strings.TrimPrefix(name, "base64,")))
		there, back = append(there, name, value), append(back, value, name)
	}
	return strings.NewReplacer(there...), strings.NewReplacer(back...)
}

// translated returns the Ignition config that Butane makes, strictly, with texts that people can read and replace.
func translated(t *testing.T, text string) string {
	t.Helper()
	filled, original := placeholders()
	config, problems, err := config.TranslateBytes([]byte(filled.Replace(text)), common.TranslateBytesOptions{
		TranslateOptions: common.TranslateOptions{NoResourceAutoCompression: true}, Pretty: true,
	})
	if err != nil || len(problems.Entries) > 0 {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	return original.Replace(string(config)) + "\n"
}

// The files for the first boot are made from the units, the drop-ins and the settings.
func TestFirstBootFilesAreMadeFromTheFolder(t *testing.T) {
	for name, want := range map[string]string{
		"cloud-init.yaml":             cloudInit(t, imageComment, "client.env"),
		"cloud-init-certificate.yaml": cloudInit(t, certificateComment, "client-certificate.env", dropIns()...),
		"butane.yaml":                 butane(t),
		"ignition.json":               translated(t, butane(t)),
	} {
		path := filepath.Join(machineFolder, name)
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, _ := os.ReadFile(path); string(got) != want {
			t.Errorf("%s is not up to date: UPDATE_GOLDEN=1 go test -run TestFirstBootFiles", path)
		}
	}
}

func TestButaneTranslatesForFlatcarToo(t *testing.T) {
	flatcar := strings.Replace(butane(t), "variant: fcos\nversion: 1.5.0\n", "variant: flatcar\nversion: 1.1.0\n", 1)
	if got := translated(t, flatcar); got != read(t, machineFolder, "ignition.json") {
		t.Errorf("the config for Flatcar differs:\n%s", got)
	}
}

// Ignition writes the files of the folder.
func TestIgnitionAcceptsItsConfig(t *testing.T) {
	filled, _ := placeholders()
	parsed, problems, err := v3_4.Parse([]byte(filled.Replace(read(t, machineFolder, "ignition.json"))))
	if err != nil || len(problems.Entries) > 0 {
		t.Fatalf("%v\n%s", err, problems.String())
	}
	written := map[string]string{}
	for _, f := range parsed.Storage.Files {
		content, err := dataurl.DecodeString(*f.Contents.Source)
		if err != nil {
			t.Fatal(err)
		}
		written[f.Path] = string(content.Data)
	}
	for i := range parsed.Systemd.Units {
		unit := &parsed.Systemd.Units[i]
		if unit.Enabled == nil || !*unit.Enabled {
			t.Errorf("%s is not enabled", unit.Name)
		}
		if unit.Contents != nil {
			written[systemd+unit.Name] = *unit.Contents
		}
		for _, d := range unit.Dropins {
			written[systemd+unit.Name+".d/"+d.Name] = *d.Contents
		}
	}
	want := map[string]string{
		settings + "ca.crt": "CA_BUNDLE", settings + "cluster-ca.crt": "API_SERVER_CA",
		settings + "client.env": read(t, machineFolder, "client-certificate.env"),
	}
	for _, name := range append([]string{unitFile, kubeletFile}, dropIns()...) {
		want[systemd+name] = read(t, machineFolder, name)
	}
	for path, content := range want {
		if written[path] != content {
			t.Errorf("Ignition writes %s:\n%s", path, written[path])
		}
	}
	if len(written) != len(want) || parsed.Ignition.Version != ignition.MaxVersion.String() {
		t.Errorf("Ignition %s writes %d files, want %d", parsed.Ignition.Version, len(written), len(want))
	}
}

func TestCloudInitAcceptsTheUserData(t *testing.T) {
	program, err := exec.LookPath("cloud-init")
	if err != nil {
		t.Skip("cloud-init is not installed")
	}
	for _, name := range []string{"cloud-init.yaml", "cloud-init-certificate.yaml"} {
		check := exec.CommandContext(t.Context(), program, "schema", "--config-file", filepath.Join(machineFolder, name))
		if said, err := check.CombinedOutput(); err != nil || !strings.Contains(string(said), "Valid") {
			t.Errorf("%s: %v: %s", name, err, said)
		}
	}
}

// Each provider's lines are complete, and one provider is chosen.
func TestSettingsForCertificates(t *testing.T) {
	text := read(t, machineFolder, "client-certificate.env")
	var chosen, offered []string
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimPrefix(line, "#"), "AUTHORIZER="); ok {
			offered = append(offered, strings.TrimSpace(value))
			if !strings.HasPrefix(line, "#") {
				chosen = append(chosen, strings.TrimSpace(value))
			}
		}
	}
	if fmt.Sprint(chosen, offered) != "[tpm] [tpm key oidc oidc]" {
		t.Errorf("%v of %v are chosen", chosen, offered)
	}
	kubeconfig := variable(t, text, "KUBECONFIG_BOOTSTRAP")
	if !strings.Contains(read(t, machineFolder, kubeletFile), "--kubeconfig="+kubeconfig+`"`) {
		t.Errorf("the kubelet does not use %s", kubeconfig)
	}
	common := read(t, machineFolder, "client.env")
	for _, name := range []string{"NODE_AUTHORIZER_URL", "KUBEAPI_URL", "TLS_CLIENT_CA", "KUBEAPI_CA", "INTERVAL", "TIMEOUT"} {
		if variable(t, text, name) != variable(t, common, name) {
			t.Errorf("%s differs from client.env", name)
		}
	}
}
