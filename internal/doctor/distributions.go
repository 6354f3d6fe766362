package doctor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

// Distribution is a distribution of Kubernetes that does not write all flags of kube-apiserver
// into its pod.
type Distribution string

// The distributions.
const (
	OpenShift Distribution = "OpenShift"
	K3s       Distribution = "k3s"
	RKE2      Distribution = "RKE2"
	Talos     Distribution = "Talos"
)

const (
	groupOpenShift = "kubecontrolplane.config.openshift.io"
	openShiftKind  = "KubeAPIServerConfig"
	// openShiftNamespace has the static pods of OpenShift's API servers, and their
	// configuration in the ConfigMap config, or config-REVISION.
	openShiftNamespace = "openshift-kube-apiserver"
	flagOpenShift      = "openshift-config"

	// rancherFlag is the option of k3s and RKE2 that sets flags of kube-apiserver, on the
	// command line and in the config file.
	rancherFlag = "kube-apiserver-arg"
)

// APIServerConfig is a KubeAPIServerConfig of OpenShift, which its kube-apiserver reads with
// --openshift-config.
type APIServerConfig struct {
	Place finding.Place
	// Name is the name of its ConfigMap; empty for a file.
	Name string
	// Flags are the equivalent flags of kube-apiserver.
	Flags flagValues
}

// openShiftFlags reads a KubeAPIServerConfig.
// Source: https://github.com/openshift/api/blob/master/kubecontrolplane/v1/types.go
func openShiftFlags(text []byte) (flagValues, error) {
	var c struct {
		Kind      string     `json:"kind"`
		Arguments flagValues `json:"apiServerArguments"`
		Admission struct {
			Enabled  []string `json:"enabledPlugins"`
			Disabled []string `json:"disabledPlugins"`
		} `json:"admission"`
	}
	if err := yaml.Unmarshal(text, &c); err != nil {
		return nil, fmt.Errorf("not a KubeAPIServerConfig: %w", err)
	}
	if c.Kind != openShiftKind {
		return nil, fmt.Errorf("kind is %q, want %s", c.Kind, openShiftKind)
	}
	flags := flagValues{}
	maps.Copy(flags, c.Arguments)
	for flag, plugins := range map[string][]string{flagEnable: c.Admission.Enabled, flagDisable: c.Admission.Disabled} {
		if len(plugins) > 0 {
			flags[flag] = slices.Concat(flags[flag], plugins)
		}
	}
	return flags, nil
}

// openShift reads a KubeAPIServerConfig at a path of a document, with the name of its ConfigMap.
func (r *reader) openShift(d *manifest.Document, name string, text []byte, path ...string) error {
	flags, err := openShiftFlags(text)
	if err != nil {
		return d.Fail(err, path...)
	}
	r.cluster.APIServerConfigs = append(r.cluster.APIServerConfigs, APIServerConfig{Place: place(d, path...), Name: name, Flags: flags})
	return nil
}

func (r *reader) openShiftConfig(d *manifest.Document) error { return r.openShift(d, "", d.JSON()) }

func (c *Cluster) openShiftConfigOf(a *APIServer) *APIServerConfig {
	for _, name := range []string{"config-" + a.Revision, "config", "kas-config", ""} { // hosted control planes have kas-config
		if named := selected(c.APIServerConfigs, func(config APIServerConfig) bool { return config.Name == name }); len(named) == 1 {
			return &named[0]
		}
	}
	return nil
}

// rancherFlags returns the flags of kube-apiserver that k3s and RKE2 make from the values of
// kube-apiserver-arg: NAME replaces a default, NAME+ appends to it, and NAME- prepends.
// Source: https://docs.k3s.io/cli/server and https://docs.k3s.io/installation/configuration
func rancherFlags(values []string) flagValues {
	defaults := map[string]string{flagMode: modeNode + "," + modeRBAC, flagEnable: pluginNodeRestriction, "anonymous-auth": "false"}
	flags := flagValues{}
	for _, value := range values {
		name, text, given := strings.Cut(strings.TrimPrefix(value, "--"), "=")
		if !given {
			text = "true"
		}
		flag := strings.TrimRight(name, "+-")
		var before []string
		if initial, ok := defaults[flag]; ok && flag != name {
			before = []string{initial}
		}
		delete(defaults, flag)
		if strings.HasSuffix(name, "-") {
			flags[flag] = slices.Concat([]string{text}, before, flags[flag])
		} else {
			flags[flag] = slices.Concat(before, flags[flag], []string{text})
		}
	}
	if len(flags[flagConfig]) > 0 {
		delete(defaults, flagMode)
	}
	for flag, value := range defaults {
		flags[flag] = []string{value}
	}
	return flags
}

// rancherFile is a config file of k3s or RKE2.
type rancherFile struct {
	place finding.Place
	path  string
	// folder is the folder of config.yaml, or the path of a file on its own, as with --config. dropIn is the name of a
	// file of config.yaml.d; empty for others.
	folder, dropIn string
	// values are the values of kube-apiserver-arg. set is true if there are any; added is true
	// if they are appended to the values of earlier files.
	values     []string
	added, set bool
	// noAPIServer is true for a server without kube-apiserver.
	noAPIServer bool
}

func isRancherConfig(c map[string]json.RawMessage) bool {
	return slices.ContainsFunc(rancherServerOptions(), func(option string) bool {
		return c[option] != nil || c[option+"+"] != nil
	})
}

// rancherServerOptions returns options that identify the config file of a server.
func rancherServerOptions() []string {
	return []string{
		rancherFlag, "cluster-init", "write-kubeconfig-mode", "tls-san", "kube-controller-manager-arg", "cluster-cidr", "service-cidr",
	}
}

func (r *reader) rancherConfig(at finding.Place, file string, c map[string]json.RawMessage) error {
	f := rancherFile{place: at, path: file, folder: path.Dir(file)}
	switch base := path.Base(file); {
	case path.Base(f.folder) == "config.yaml.d":
		f.folder, f.dropIn = path.Dir(f.folder), base
	case base != "config.yaml":
		f.folder = file
	}
	for _, key := range []string{rancherFlag, rancherFlag + "+"} {
		if c[key] == nil {
			continue
		}
		values, err := oneOrMany(c[key])
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		f.values, f.set, f.added = append(f.values, values...), true, strings.HasSuffix(key, "+")
	}
	f.noAPIServer = strings.Trim(string(c["disable-apiserver"]), `"`) == "true"
	r.cluster.rancher = append(r.cluster.rancher, f)
	return nil
}

func oneOrMany(value json.RawMessage) ([]string, error) {
	var many []string
	if json.Unmarshal(value, &many) == nil {
		return many, nil
	}
	var one string
	if json.Unmarshal(value, &one) == nil {
		return []string{one}, nil
	}
	return nil, errors.New("want a text or a list of texts")
}

// rancherServers returns the API servers that config files of k3s and RKE2 describe: the file
// config.yaml and the files of config.yaml.d in the same folder, in the order of their names.
func (c *Cluster) rancherServers() []APIServer {
	slices.SortStableFunc(c.rancher, func(a, b rancherFile) int {
		return cmp.Or(strings.Compare(a.folder, b.folder), strings.Compare(a.dropIn, b.dropIn))
	})
	var servers []APIServer
	for _, files := range grouped(c.rancher, func(f rancherFile) string { return f.folder }) {
		if !slices.ContainsFunc(files, func(f rancherFile) bool { return f.noAPIServer }) {
			servers = append(servers, rancherServer(files))
		}
	}
	return servers
}

func rancherServer(files []rancherFile) APIServer {
	a := APIServer{Place: files[0].place, Name: files[0].path, Distribution: K3s}
	if strings.Contains(files[0].path, "rke2") {
		a.Distribution = RKE2
	}
	var values []string
	for _, f := range files {
		if !f.set {
			continue
		}
		if !f.added {
			values = nil
		}
		values, a.Place, a.Name = append(values, f.values...), f.place, f.path
	}
	a.Flags = rancherFlags(values)
	if files[0].dropIn != "" {
		a.Lacking, a.Unseen = "config.yaml", a.Name+" adds to a config.yaml that was not given; "+a.Distribution.orAnnotation()
	}
	return a
}

func (d Distribution) annotation() string { return d.program() + ".io/node-args" }

func (d Distribution) orAnnotation() string {
	return "where there is none, the annotation " + d.annotation() + " of the Node has all options"
}

// program returns the name of the program, and folder the folder of its config files.
func (d Distribution) program() string { return strings.ToLower(string(d)) }

func (d Distribution) folder() string { return "/etc/rancher/" + d.program() }

func rancherNode(n *corev1.Node, at finding.Place) *APIServer {
	for _, d := range []Distribution{K3s, RKE2} {
		var words []string
		if json.Unmarshal([]byte(n.Annotations[d.annotation()]), &words) != nil {
			continue
		}
		at.Key = "metadata.annotations." + d.annotation()
		if a := serverOf(d.program(), words, n.Name, "the annotation", at); a != nil {
			return a
		}
	}
	return nil
}

// complete combines the files and objects about API servers. It can be called again after more
// input was read.
func (c *Cluster) complete() {
	c.APIServers = slices.Clone(c.pods)
	for i := range c.APIServers {
		c.withOpenShiftConfig(&c.APIServers[i])
	}
	overridden := map[Distribution]bool{}
	for _, a := range c.units {
		// A unit without options takes them from a config file. If that was given, it describes the API server.
		if a.configFile != "" {
			a.Lacking = "config.yaml"
			a.Unseen = fmt.Sprintf("%s also reads %s, which was not given; %s", a.Place.File, a.configFile, a.Distribution.orAnnotation())
		}
		overridden[a.Distribution] = overridden[a.Distribution] || a.configFile == ""
		if a.configFile == "" || len(c.rancher) == 0 {
			c.APIServers = append(c.APIServers, a)
		}
	}
	for _, a := range c.rancherServers() {
		if !overridden[a.Distribution] {
			c.APIServers = append(c.APIServers, a)
		}
	}
	for i := range c.Nodes {
		if a := c.Nodes[i].server; a != nil && (a.Distribution == K3s || len(c.pods) == 0) { // API servers of RKE2 are pods too
			c.APIServers = append(c.APIServers, *a)
		}
	}
	if len(c.pods) == 0 {
		c.APIServers = append(c.APIServers, c.machines...)
	}
}

// withOpenShiftConfig adds the flags of the config that an API server of OpenShift
// reads. They replace the flags of the command.
func (c *Cluster) withOpenShiftConfig(a *APIServer) {
	file := a.Flags.last(flagOpenShift)
	if file == "" {
		return
	}
	a.Distribution = OpenShift
	config := c.openShiftConfigOf(a)
	if config == nil {
		a.Lacking = "ConfigMap " + openShiftNamespace + "/config"
		a.Unseen = fmt.Sprintf("%s is set up by %s, which was not read", a.Name, file)
		return
	}
	a.configPlace, a.Flags = config.Place, maps.Clone(a.Flags)
	maps.Copy(a.Flags, config.Flags)
}
