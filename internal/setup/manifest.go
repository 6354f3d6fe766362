package setup

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"path"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	sigsyaml "sigs.k8s.io/yaml"
)

// Flags of kube-apiserver.
const (
	authorizationMode   = "authorization-mode"
	authorizationConfig = "authorization-config"
	admissionConfig     = "admission-control-config-file"
	enabledPlugins      = "enable-admission-plugins"
	nodeRestriction     = "NodeRestriction"
)

// staticPod is the manifest of a static pod with one container.
type staticPod struct {
	corev1.Pod
	text []byte
}

func parsePod(text []byte) (*staticPod, error) {
	p := &staticPod{text: text}
	if err := sigsyaml.UnmarshalStrict(text, &p.Pod); err != nil {
		return nil, fmt.Errorf("the manifest of a static pod: %w; correct it", err)
	}
	if p.Kind != "Pod" || len(p.Spec.Containers) != 1 {
		return nil, fmt.Errorf("the manifest of a static pod is a %q with %d containers, want a Pod with one container, as kubeadm writes it",
			p.Kind, len(p.Spec.Containers))
	}
	return p, nil
}

// flag returns the last value of a flag.
func (p *staticPod) flag(name string) (string, bool) {
	for _, argument := range slices.Backward(p.Spec.Containers[0].Command) {
		if value, found := strings.CutPrefix(argument, "--"+name+"="); found {
			return value, true
		}
	}
	return "", false
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
	minor, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return minor
}

// beta reports whether the AuthorizationConfiguration has the version v1beta1.
func (p *staticPod) beta() bool { return p.minor() != 0 && p.minor() < 32 }

// hostPath returns where a file of the container is on the host.
func (p *staticPod) hostPath(file string) (string, bool) {
	mounts := slices.Clone(p.Spec.Containers[0].VolumeMounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return len(b.MountPath) - len(a.MountPath) })
	for _, mount := range mounts {
		rest, below := strings.CutPrefix(file, strings.TrimSuffix(mount.MountPath, "/"))
		if !below || rest != "" && rest[0] != '/' {
			continue
		}
		for _, volume := range p.Spec.Volumes {
			if volume.Name == mount.Name && volume.HostPath != nil {
				return path.Join(volume.HostPath.Path, mount.SubPath, rest), true
			}
		}
	}
	return "", false
}

// editAPIServer returns kube-apiserver's manifest with the files of the plan, and adds the admission configuration.
func (p *Plan) editAPIServer(pod *staticPod, read Read) ([]byte, error) {
	if minor := pod.minor(); minor != 0 && minor < 30 {
		return nil, fmt.Errorf("kube-apiserver has the version 1.%d: --%s needs Kubernetes 1.30 or later; upgrade it", minor, authorizationConfig)
	}
	if file, found := pod.flag(authorizationConfig); found {
		return nil, fmt.Errorf("kube-apiserver has --%s=%s, which setup does not change: add the authorizer to that file by hand, "+
			"as docs/install.md says", authorizationConfig, file)
	}
	modes, _ := pod.flag(authorizationMode)
	sorted := strings.Split(modes, ",")
	slices.Sort(sorted)
	if !slices.Equal(sorted, []string{"Node", "RBAC"}) {
		return nil, fmt.Errorf("kube-apiserver has --%s=%s, and setup replaces Node,RBAC only: write its other authorizers by hand, "+
			"as docs/install.md says", authorizationMode, modes)
	}
	plugins, _ := pod.flag(enabledPlugins)
	enabled := strings.FieldsFunc(plugins, func(r rune) bool { return r == ',' })
	if !slices.Contains(enabled, nodeRestriction) {
		return nil, fmt.Errorf("kube-apiserver runs without the admission plugin %s: add it to --%s first, so that there is something "+
			"to compare with and to return to", nodeRestriction, enabledPlugins)
	}
	admission, err := p.admission(pod, read)
	if err != nil {
		return nil, err
	}
	p.addAPIServer("admission.yaml", admission, false)
	change := map[string]string{
		authorizationMode: "--" + authorizationConfig + "=" + p.path("apiserver", p.authorizationFile()),
		admissionConfig:   "--" + admissionConfig + "=" + p.path("apiserver", "admission.yaml"),
	}
	if p.Mode == Replace {
		change[enabledPlugins] = ""
		if others := slices.DeleteFunc(enabled, func(name string) bool { return name == nodeRestriction }); len(others) > 0 {
			change[enabledPlugins] = "--" + enabledPlugins + "=" + strings.Join(others, ",")
		}
	}
	text, err := pod.edit(change, p.path("apiserver"))
	if err != nil {
		return nil, err
	}
	edited, err := parsePod(text)
	if err == nil {
		p.Command = edited.Spec.Containers[0].Command
	}
	return text, err
}

// admission returns the admission configuration: the one that kube-apiserver has, with the client certificate for webhooks.
func (p *Plan) admission(pod *staticPod, read Read) (string, error) {
	ours := p.text("static-pod/apiserver/admission.yaml")
	file, found := pod.flag(admissionConfig)
	if !found {
		return ours, nil
	}
	inRoot, mounted := pod.hostPath(file)
	inRoot, below := strings.CutPrefix(inRoot, p.Root+"/")
	if !mounted || !below {
		return "", fmt.Errorf("kube-apiserver has --%s=%s, which is not mounted from %s: move it there", admissionConfig, file, p.Root)
	}
	text, err := read(inRoot)
	if err != nil {
		return "", fmt.Errorf("read kube-apiserver's --%s: %w", admissionConfig, err)
	}
	var theirs, added struct {
		APIVersion string           `json:"apiVersion"`
		Kind       string           `json:"kind"`
		Plugins    []map[string]any `json:"plugins"`
	}
	if err := sigsyaml.UnmarshalStrict(text, &theirs); err != nil {
		return "", fmt.Errorf("read kube-apiserver's --%s=%s: %w", admissionConfig, file, err)
	}
	if err := sigsyaml.UnmarshalStrict([]byte(ours), &added); err != nil {
		return "", err
	}
	for _, plugin := range theirs.Plugins {
		if plugin["name"] == added.Plugins[0]["name"] {
			return "", fmt.Errorf("%s has a configuration of the plugin %s already: add the client certificate for %s to its kubeConfigFile, "+
				"as docs/install.md says", file, plugin["name"], p.webhook())
		}
		if relative, ok := plugin["path"].(string); ok && relative != "" && !path.IsAbs(relative) {
			plugin["path"] = path.Join(path.Dir(file), relative)
		}
	}
	theirs.Plugins = append(theirs.Plugins, added.Plugins...)
	merged, err := sigsyaml.Marshal(theirs)
	return string(merged), err
}

const volumeName = "node-authorizer"

// edit returns the text of the manifest with changed flags, by name, and a volume. An empty value removes a flag. All other
// lines stay as they are.
func (p *staticPod) edit(change map[string]string, mounted string) ([]byte, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(p.text, &document); err != nil {
		return nil, fmt.Errorf("parse kube-apiserver's manifest: %w", err)
	}
	spec := member(document.Content[0], "spec")
	container := member(spec, "containers").Content[0]
	lines := strings.SplitAfter(string(p.text), "\n")
	want := p.DeepCopy()
	var command []string
	done := map[string]bool{}
	items := member(container, "command")
	for i, argument := range p.Spec.Containers[0].Command {
		name, _, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		value, changed := change[name]
		if changed && strings.HasPrefix(argument, "--") {
			line := items.Content[i].Line - 1
			lines[line], done[name] = "", true
			if value != "" {
				lines[line] = indent(items.Content[i]) + "- " + value + "\n"
			}
			argument = value
		}
		if argument != "" {
			command = append(command, argument)
		}
	}
	last := items.Content[len(items.Content)-1]
	for _, name := range []string{authorizationMode, admissionConfig} {
		if value := change[name]; value != "" && !done[name] {
			lines[last.Line-1] += indent(last) + "- " + value + "\n"
			command = append(command, value)
		}
	}
	mounts, volumes := member(container, "volumeMounts"), member(spec, "volumes")
	if mounts == nil || volumes == nil || items.Style&yaml.FlowStyle != 0 {
		return nil, fmt.Errorf("kube-apiserver's manifest is not in the form that kubeadm writes: its command, volumeMounts and volumes " +
			"must be block lists")
	}
	before(lines, mounts, "mountPath: "+mounted, "name: "+volumeName, "readOnly: true")
	before(lines, volumes, "hostPath:", "  path: "+mounted, "  type: Directory", "name: "+volumeName)
	directory := corev1.HostPathDirectory
	want.Spec.Containers[0].Command = command
	want.Spec.Containers[0].VolumeMounts = slices.Insert(want.Spec.Containers[0].VolumeMounts, 0,
		corev1.VolumeMount{Name: volumeName, MountPath: mounted, ReadOnly: true})
	want.Spec.Volumes = slices.Insert(want.Spec.Volumes, 0, corev1.Volume{Name: volumeName, VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: mounted, Type: &directory},
	}})
	text := []byte(strings.Join(lines, ""))
	edited, err := parsePod(text)
	if err != nil || !equality.Semantic.DeepEqual(&edited.Pod, want) {
		return nil, fmt.Errorf("kube-apiserver's manifest is not in the form that kubeadm writes, so it cannot be edited: " +
			"each argument and volume must have lines of its own")
	}
	return text, nil
}

// before inserts an item of a list before the first one.
func before(lines []string, list *yaml.Node, item ...string) {
	first := list.Content[0]
	text := indent(first) + "- " + strings.Join(item, "\n"+indent(first)+"  ") + "\n"
	lines[first.Line-1] = text + lines[first.Line-1]
}

// indent returns the spaces before the dash of an item.
func indent(item *yaml.Node) string { return strings.Repeat(" ", max(item.Column-3, 0)) }

// member returns the value of a key of a mapping; nil if there is none.
func member(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// clusterConfiguration returns the part of kubeadm's ClusterConfiguration with which `kubeadm upgrade` and new control plane
// nodes keep the flags.
func (p *Plan) clusterConfiguration() []byte {
	type argument struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	var arguments []argument
	for _, flag := range p.Command {
		name, value, _ := strings.Cut(strings.TrimPrefix(flag, "--"), "=")
		if name == authorizationConfig || name == admissionConfig || name == enabledPlugins {
			arguments = append(arguments, argument{name, value})
		}
	}
	if p.Mode == Replace && !slices.ContainsFunc(arguments, func(a argument) bool { return a.Name == enabledPlugins }) {
		arguments = append(arguments, argument{enabledPlugins, "NamespaceLifecycle"}) // kubeadm's own default has NodeRestriction
	}
	text, err := json.Marshal(map[string]any{"apiServer": map[string]any{
		"extraArgs": arguments,
		"extraVolumes": []map[string]any{{
			"name": volumeName, "hostPath": p.path("apiserver"), "mountPath": p.path("apiserver"), "readOnly": true, "pathType": "Directory",
		}},
	}})
	if err == nil {
		text, err = sigsyaml.JSONToYAML(text)
	}
	if err != nil {
		panic(err) // texts are always encoded
	}
	return append([]byte("# Add this to the ClusterConfiguration, so that kubeadm upgrade keeps it (kubeadm.k8s.io/v1beta4):\n"+
		"# kubectl -n kube-system edit configmap kubeadm-config\n"), text...)
}
