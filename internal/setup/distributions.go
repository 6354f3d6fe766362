package setup

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Distributions returns the names of those whose control plane has other files than kubeadm's.
func Distributions() []string { return []string{"k3s", "rke2", "talos"} }

// Authorities returns where a distribution has its authorities on a control plane node; empty if it has no such folder.
func Authorities(distribution string) string {
	if distribution == "talos" {
		return ""
	}
	return filepath.Join("/var/lib/rancher", distribution, "server/tls")
}

// DirFor returns the folder on the node, below which the files of the server are.
func DirFor(distribution string) string {
	if distribution == "talos" {
		return "/var/etc/kubernetes" // Talos makes files below /var only
	}
	return "/etc/kubernetes"
}

// For plans the files for a distribution, whose authorities are read. They are written to a folder and copied from there.
func For(distribution string, o Options, read Read) (*Plan, error) {
	p := &Plan{Options: o, Address: "127.0.0.1:6443"}
	p.Dir = DirFor(distribution)
	servers, users := "server-ca.crt", "client-ca"
	if distribution == "talos" {
		if o.Mode == Replace {
			return nil, fmt.Errorf("the Node authorizer and NodeRestriction always run on Talos: use --mode=observe or --mode=beside")
		}
		servers, users = "ca.crt", "ca"
	}
	if err := p.addServer(read, authorities{servers, users + ".crt", users + ".key"}, false); err != nil {
		return nil, err
	}
	if distribution == "talos" {
		return p, p.forTalos()
	}
	p.Files[len(p.Files)-1].Path = filepath.Join("/var/lib/rancher", distribution, "agent/pod-manifests/node-authorizer.yaml")
	return p, p.forRancher(distribution)
}

// forRancher adds what k3s and RKE2 read. RKE2 runs kube-apiserver as a static pod, so its files are mounted, and its own
// configuration of admission is repeated.
func (p *Plan) forRancher(distribution string) error {
	admission := p.text("static-pod/apiserver/admission.yaml")
	arguments := []string{"authorization-config=" + p.path("apiserver", p.authorizationFile())}
	if p.Mode == Replace {
		arguments = append(arguments, "enable-admission-plugins=NamespaceLifecycle") // it is on by default
	}
	config := map[string]any{}
	if distribution == "rke2" {
		admission = strings.Replace(admission, "plugins:\n", `plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults:
      enforce: privileged
      enforce-version: latest
`, 1)
		config["kube-apiserver-extra-mount+"] = []string{p.path("apiserver") + ":" + p.path("apiserver") + ":ro"}
		config["pod-security-admission-config-file"] = p.path("apiserver", "admission.yaml")
	} else {
		arguments = append(arguments, "admission-control-config-file="+p.path("apiserver", "admission.yaml"))
	}
	config["kube-apiserver-arg+"] = arguments
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	p.add("apiserver/admission.yaml", []byte(admission))
	p.Files = append(p.Files, File{
		Path: filepath.Join("/etc/rancher", distribution, "config.yaml.d/node-authorizer.yaml"), Content: text, Mode: 0o600,
	})
	return nil
}

// forTalos adds patches of the machine config, which have the other files. Talos writes the AuthorizationConfiguration and the
// configuration of admission itself. Its kube-apiserver and our server run as other users than the owner of the files, so
// that these are readable for all.
func (p *Plan) forTalos() error {
	var files []any
	var authorization struct {
		Authorizers []any `json:"authorizers"`
	}
	var admission struct {
		Plugins []any `json:"plugins"`
	}
	var pod map[string]any
	for i := range p.Files {
		f := &p.Files[i]
		var err error
		switch name := filepath.Base(f.Path); {
		case name == "node-authorizer.yaml":
			err = yaml.Unmarshal(bytes.Replace(f.Content, []byte("      type: Directory\n"), nil, 1), &pod)
		case name == p.authorizationFile():
			err = yaml.Unmarshal(f.Content, &authorization)
		case slices.Contains([]string{"server", "apiserver"}, filepath.Base(filepath.Dir(f.Path))):
			files = append(files, map[string]any{"path": f.Path, "op": "create", "permissions": 0o444, "content": string(f.Content)})
		}
		if err != nil {
			return err
		}
	}
	if err := yaml.Unmarshal([]byte(p.text("static-pod/apiserver/admission.yaml")), &admission); err != nil {
		return err
	}
	volume := map[string]any{"hostPath": p.path("apiserver"), "mountPath": p.path("apiserver"), "readonly": true}
	for _, patch := range []struct {
		name    string
		secret  bool
		content any
	}{
		{"files.yaml", true, map[string]any{"machine": map[string]any{"files": files}}},
		{"pods.yaml", false, map[string]any{"machine": map[string]any{"pods": []any{pod}}}},
		{"apiserver.yaml", false, map[string]any{"cluster": map[string]any{"apiServer": map[string]any{
			"extraVolumes":        []any{volume},
			"authorizationConfig": authorization.Authorizers,
			"admissionControl":    admission.Plugins,
		}}}},
	} {
		text, err := yaml.Marshal(patch.content)
		if err != nil {
			return err
		}
		p.Files = append(p.Files, File{Path: patch.name, Content: text, Mode: 0o600, Secret: patch.secret})
	}
	return nil
}
