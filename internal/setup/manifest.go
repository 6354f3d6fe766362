package setup

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/yamltext"
)

// Flags of kube-apiserver.
const (
	authorizationMode   = "authorization-mode"
	authorizationConfig = "authorization-config"
	admissionConfig     = "admission-control-config-file"
	enabledPlugins      = "enable-admission-plugins"
	nodeRestriction     = "NodeRestriction"
)

// byHand ends errors about settings that setup does not change.
const byHand = ", which setup does not change: install the server by hand, as docs/guides/install.md says"

// staticPod is the manifest of a static pod with one container.
type staticPod struct {
	corev1.Pod
	// whole has the fields that the type does not know too.
	whole map[string]any
}

func parsePod(name string, text []byte) (*staticPod, error) {
	p := &staticPod{}
	if err := decodeFile(name, text, &p.whole); err != nil {
		return nil, err
	}
	err := utiljson.ConvertMapNumbers(p.whole, 0)
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(p.whole, &p.Pod)
	}
	if err != nil || p.Kind != "Pod" || len(p.Spec.Containers) != 1 {
		return nil, fmt.Errorf("%s is not a Pod with one container, as kubeadm writes it; correct it", name)
	}
	return p, nil
}

// decodeFile decodes a file in YAML. The parser's own error is left out, because it may quote the file.
func decodeFile(name string, text []byte, into any) error {
	if _, err := yamltext.Parse(text); err != nil {
		return fmt.Errorf("%s: line %d is not valid YAML; correct it", name, err.Line)
	}
	exact := func(d *json.Decoder) *json.Decoder { d.UseNumber(); return d }
	if err := yaml.UnmarshalStrict(text, into, exact); err != nil {
		return fmt.Errorf("%s has fields that it should not have, or has fields twice; correct it", name)
	}
	return nil
}

func (p *staticPod) flag(name string) (string, bool) {
	for _, argument := range slices.Backward(p.Spec.Containers[0].Command) {
		if value, found := strings.CutPrefix(argument, "--"+name+"="); found {
			return value, true
		}
	}
	return "", false
}

// readable returns an error if a flag that setup reads or changes may have another value than [staticPod.flag] returns.
func (p *staticPod) readable() error {
	if len(p.Spec.Containers[0].Args) > 0 {
		return errors.New("kube-apiserver has arguments in args: write them in command, as kubeadm does")
	}
	seen := map[string]bool{}
	for _, argument := range p.Spec.Containers[0].Command {
		written, _, single := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		name := strings.ReplaceAll(written, "_", "-") // kube-apiserver reads both
		switch {
		case argument == "":
			return errors.New("kube-apiserver has an empty argument: remove it")
		case strings.HasPrefix(name, "authorization-webhook-"):
			return fmt.Errorf("kube-apiserver has --%s, which it refuses beside --%s: remove it, or install the server "+
				"by hand, as docs/guides/install.md says", name, authorizationConfig)
		case !slices.Contains([]string{authorizationMode, authorizationConfig, admissionConfig, enabledPlugins}, name):
		case !single:
			return fmt.Errorf("kube-apiserver has --%s and its value as two arguments: write them as one, --%s=VALUE", name, name)
		case seen[name]:
			return fmt.Errorf("kube-apiserver has --%s twice: write one with all values", name)
		case written != name:
			return fmt.Errorf("kube-apiserver has --%s: write it as --%s", written, name)
		default:
			seen[name] = true
		}
	}
	return nil
}

// address returns the host and port where kube-apiserver listens on its node.
func (p *staticPod) address() string {
	host, _ := p.flag("bind-address")
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	port, _ := p.flag("secure-port")
	return net.JoinHostPort(host, cmp.Or(port, "6443"))
}

// minor returns the minor version of Kubernetes in the tag of the image; 0 if it has none.
func (p *staticPod) minor() int {
	_, tag, _ := strings.Cut(path.Base(p.Spec.Containers[0].Image), ":v1.")
	number, _, _ := strings.Cut(tag, ".")
	minor, _ := strconv.Atoi(number)
	return minor
}

// hostPath returns where a file of the container is on the host; empty if it is not on the host.
func (p *staticPod) hostPath(file string) string {
	for _, mount := range p.Spec.Containers[0].VolumeMounts {
		rest, err := filepath.Rel(mount.MountPath, file)
		if err != nil || !filepath.IsLocal(rest) {
			continue
		}
		for _, volume := range p.Spec.Volumes {
			if volume.Name == mount.Name && volume.HostPath != nil {
				return path.Join(volume.HostPath.Path, mount.SubPath, rest)
			}
		}
	}
	return ""
}

// editAPIServer returns kube-apiserver's manifest with the files of the plan, and adds the admission configuration.
func (p *Plan) editAPIServer(pod *staticPod, read Read) ([]byte, error) {
	if minor := pod.minor(); minor != 0 && minor < 30 {
		return nil, fmt.Errorf("kube-apiserver has the version 1.%d, and --%s needs Kubernetes 1.30 or later: upgrade it", minor,
			authorizationConfig)
	}
	if err := pod.readable(); err != nil {
		return nil, err
	}
	if file, found := pod.flag(authorizationConfig); found {
		return nil, fmt.Errorf("kube-apiserver has --%s=%s%s", authorizationConfig, file, byHand)
	}
	modes, _ := pod.flag(authorizationMode)
	if sorted := slices.Sorted(strings.SplitSeq(modes, ",")); !slices.Equal(sorted, []string{"Node", "RBAC"}) {
		return nil, fmt.Errorf("kube-apiserver has --%s=%s instead of Node,RBAC%s", authorizationMode, modes, byHand)
	}
	plugins, _ := pod.flag(enabledPlugins)
	enabled := strings.Split(plugins, ",")
	if !slices.Contains(enabled, nodeRestriction) {
		return nil, fmt.Errorf("kube-apiserver runs without the admission plugin %s: add it to --%s first, so that there is something "+
			"to compare with and to return to", nodeRestriction, enabledPlugins)
	}
	admission, err := p.admission(pod, read)
	if err != nil {
		return nil, err
	}
	p.add("apiserver/admission.yaml", admission)
	change := map[string]string{
		authorizationMode: "--" + authorizationConfig + "=" + p.path("apiserver", p.authorizationFile()),
		admissionConfig:   "--" + admissionConfig + "=" + p.path("apiserver", "admission.yaml"),
	}
	if p.Mode == Replace {
		others := slices.DeleteFunc(enabled, func(name string) bool { return name == nodeRestriction })
		if len(others) == 0 {
			others = []string{"NamespaceLifecycle"} // it is on by default
		}
		change[enabledPlugins] = "--" + enabledPlugins + "=" + strings.Join(others, ",")
	}
	return pod.edit(change, p.path("apiserver"))
}

// admission returns the admission configuration: the one that kube-apiserver has, with the client certificate for webhooks.
func (p *Plan) admission(pod *staticPod, read Read) ([]byte, error) {
	ours := []byte(p.text("static-pod/apiserver/admission.yaml"))
	file, found := pod.flag(admissionConfig)
	if !found {
		return ours, nil
	}
	onHost, err := filepath.Rel(p.Dir, pod.hostPath(file))
	if err != nil || !filepath.IsLocal(onHost) {
		return nil, fmt.Errorf("kube-apiserver has --%s=%s, which is not mounted from %s: move it there", admissionConfig, file, p.Dir)
	}
	text, err := read(onHost)
	if err != nil {
		return nil, fmt.Errorf("read kube-apiserver's --%s: %w", admissionConfig, err)
	}
	var theirs, added struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Plugins    []map[string]any `json:"plugins"`
	}
	if err := decodeFile(file, text, &theirs); err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(ours, &added); err != nil {
		return nil, err
	}
	for _, plugin := range theirs.Plugins {
		if plugin["name"] == added.Plugins[0]["name"] {
			return nil, fmt.Errorf("%s has a configuration of the plugin %s%s", file, plugin["name"], byHand)
		}
		if relative, ok := plugin["path"].(string); ok && relative != "" && !path.IsAbs(relative) {
			plugin["path"] = path.Join(path.Dir(file), relative)
		}
	}
	theirs.Plugins = append(theirs.Plugins, added.Plugins...)
	return yaml.Marshal(theirs)
}

// edit returns the manifest with changed flags, by name, and a folder of the host. kubeadm writes manifests with the same
// encoder, so that nothing else changes; comments of others are lost until the manifest is restored.
func (p *staticPod) edit(change map[string]string, dir string) ([]byte, error) {
	pod := runtime.DeepCopyJSON(p.whole)
	spec := pod["spec"].(map[string]any)
	container := spec["containers"].([]any)[0].(map[string]any)
	command := container["command"].([]any)
	done := map[string]bool{}
	for i := range command {
		name, _, _ := strings.Cut(strings.TrimPrefix(command[i].(string), "--"), "=")
		if value, changed := change[name]; changed {
			command[i], done[name] = value, true
		}
	}
	if !done[admissionConfig] {
		command = append(command, change[admissionConfig])
	}
	container["command"] = command
	mounts, _ := container["volumeMounts"].([]any)
	container["volumeMounts"] = append(mounts, map[string]any{"mountPath": dir, "name": folder, "readOnly": true})
	volumes, _ := spec["volumes"].([]any)
	spec["volumes"] = append(volumes, map[string]any{"hostPath": map[string]any{"path": dir, "type": "Directory"}, "name": folder})
	return yaml.Marshal(pod)
}
