package doctor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/internal/finding"
	"github.com/node-authorizer/node-authorizer/internal/state/manifest"
)

const (
	// talosVersion is the apiVersion of Talos' documents.
	talosVersion = "v1alpha1"
	// talosAuthorizationFile is the AuthorizationConfiguration that Talos writes.
	talosAuthorizationFile = "/system/config/kubernetes/kube-apiserver/authorization-config.yaml"
	talosHostname          = "HostnameConfig"
	talosAuthorizer        = "KubeAuthorizerConfig"
)

// machineConfig has the fields of a Talos machine config about kube-apiserver.
// Source: https://www.talos.dev/latest/reference/configuration/v1alpha1/config/
type machineConfig struct {
	Machine *struct {
		Type    string `json:"type"`
		Network struct {
			Hostname string `json:"hostname"`
		} `json:"network"`
	} `json:"machine"`
	Cluster struct {
		APIServer struct {
			ExtraArgs   map[string]json.RawMessage `json:"extraArgs"`
			Authorizers []map[string]any           `json:"authorizationConfig"`
		} `json:"apiServer"`
	} `json:"cluster"`
}

// talosConfig reads a machine config. It ignores machines that are not control planes.
func (r *reader) talosConfig(d *manifest.Document, text []byte) error {
	var m machineConfig
	if err := yaml.Unmarshal(text, &m); err != nil {
		return d.Fail(errors.New(
			"not a machine config of Talos: want a mapping in machine and in cluster.apiServer, " +
				"and in cluster.apiServer.authorizationConfig a list",
		))
	}
	if m.Machine == nil || m.Machine.Type != "controlplane" {
		return nil
	}
	a := talosServer(d, "cluster", "apiServer")
	if m.Machine.Network.Hostname != "" {
		a.Name = m.Machine.Network.Hostname
	}
	var err error
	if a.Flags, err = talosFlags(d, m.Cluster.APIServer.ExtraArgs, "cluster", "apiServer", "extraArgs"); err != nil {
		return err
	}
	defaults := []string{modeNode, modeRBAC}
	if a.Flags.has(flagMode) || a.hasAuthorizationWebhook() {
		for _, mode := range a.Flags.list(flagMode) {
			if !slices.Contains(defaults, mode) {
				defaults = append(defaults, mode)
			}
		}
		a.Flags[flagMode] = defaults
	} else {
		authorizers := m.Cluster.APIServer.Authorizers
		for i, mode := range defaults {
			if !slices.ContainsFunc(authorizers, func(a map[string]any) bool { return a["type"] == mode }) {
				authorizers = slices.Insert(slices.Clone(authorizers), min(i, len(authorizers)), map[string]any{
					"type": mode, "name": strings.ToLower(mode),
				})
			}
		}
		a.authorizeBy(authorizers, talosPlace(d, "cluster", "apiServer", "authorizationConfig"))
	}
	f := r.talosFile(d)
	f.machines = append(f.machines, a)
	return nil
}

func talosPlace(d *manifest.Document, path ...string) finding.Place {
	at := place(d, path...)
	at.Object = ""
	return at
}

func talosServer(d *manifest.Document, path ...string) APIServer {
	return APIServer{Place: talosPlace(d, path...), Name: d.File(), Distribution: Talos}
}

// talosFlags returns the flags of extraArgs at a path, with the plugin that Talos always enables.
func talosFlags(d *manifest.Document, args map[string]json.RawMessage, path ...string) (flagValues, error) {
	flags := flagValues{}
	for _, flag := range slices.Sorted(maps.Keys(args)) {
		values, err := oneOrMany(args[flag])
		if err != nil {
			return nil, d.Fail(err, append(path, flag)...)
		}
		flags[flag] = values
	}
	flags[flagEnable] = slices.Concat([]string{pluginNodeRestriction}, flags[flagEnable])
	return flags, nil
}

// authorizeBy sets the AuthorizationConfiguration that Talos makes from authorizers.
func (a *APIServer) authorizeBy(authorizers []map[string]any, at finding.Place) {
	text, _ := json.Marshal(map[string]any{ // it was decoded from JSON
		"apiVersion": groupServerConfig + "/v1", "kind": "AuthorizationConfiguration", "authorizers": authorizers,
	})
	a.Flags[flagConfig] = []string{talosAuthorizationFile}
	a.Authorization = &Authorization{Place: at, Text: text}
}

// talosFile is the content of the documents of a machine config about kube-apiserver. Since Talos 1.14 there are
// separate documents for it.
// Source: https://docs.siderolabs.com/talos/v1.14/reference/configuration/kubernetes/kubeapiserverconfig
type talosFile struct {
	hostname string
	// machines are the API servers of the first documents, which do not count if separate documents are about kube-apiserver.
	machines []APIServer
	// server has no name if no separate document is about kube-apiserver, and no flags without a KubeAPIServerConfig.
	server APIServer
	// authorizers are the KubeAuthorizerConfigs, in their order, which Talos asks without
	// adding any.
	authorizers []map[string]any
	// part is true for documents that change others, which are elsewhere.
	part bool
}

func (r *reader) talosFile(d *manifest.Document) *talosFile {
	if r.talos[d.File()] == nil {
		r.talos[d.File()] = &talosFile{}
	}
	return r.talos[d.File()]
}

// talosDocument reads a separate document.
func (r *reader) talosDocument(d *manifest.Document) error {
	if d.APIVersion != "" && d.APIVersion != talosVersion {
		return nil
	}
	var c struct {
		Patch     json.RawMessage            `json:"$patch"`
		Hostname  string                     `json:"hostname"`
		ExtraArgs map[string]json.RawMessage `json:"extraArgs"`
		Name      string                     `json:"name"`
		Type      string                     `json:"type"`
		Webhook   map[string]any             `json:"webhook"`
	}
	f := r.talosFile(d)
	err := json.Unmarshal(d.JSON(), &c)
	switch {
	case d.Kind == talosHostname:
		f.hostname = c.Hostname
		return nil
	case err != nil:
		return d.Fail(fmt.Errorf("not a %s of Talos: want texts in name and type, and mappings in extraArgs and webhook", d.Kind))
	}
	f.part = f.part || c.Patch != nil
	if f.server.Name == "" {
		f.server = talosServer(d)
	}
	if d.Kind == talosAuthorizer {
		authorizer := map[string]any{"name": c.Name, "type": c.Type}
		if c.Webhook != nil {
			authorizer["webhook"] = c.Webhook
		}
		f.authorizers = append(f.authorizers, authorizer)
		return nil
	}
	f.part = f.part || f.server.Flags != nil
	f.server = talosServer(d)
	f.server.Flags, err = talosFlags(d, c.ExtraArgs, "extraArgs")
	return err
}

// addTalosServers adds the API servers that machine configs describe.
func (r *reader) addTalosServers() {
	for _, file := range slices.Sorted(maps.Keys(r.talos)) {
		f := r.talos[file]
		servers := f.machines
		if f.server.Name != "" {
			servers = []APIServer{f.separate(file)}
		}
		for _, a := range servers {
			if a.Authorization != nil {
				r.cluster.Authorizations = append(r.cluster.Authorizations, *a.Authorization)
			}
		}
		r.cluster.machines = append(r.cluster.machines, servers...)
	}
}

// separate returns the API server that separate documents of a file describe. If it cannot be put together, its flags are not
// known.
func (f *talosFile) separate(file string) APIServer {
	a := f.server
	a.Name = cmp.Or(f.hostname, a.Name)
	switch alone := file + " has KubeAuthorizerConfigs and no KubeAPIServerConfig: "; {
	case f.part:
		a.Unseen = file + " has documents that change others (patches): give the whole machine config, " +
			"as talosctl get machineconfig -o yaml prints it"
	case a.Flags == nil && len(f.machines) > 0:
		a.Unseen = alone + "how Talos puts them together with cluster.apiServer is not read"
	case a.Flags == nil:
		a.Unseen = alone + "give the whole machine config"
	default:
		a.authorizeBy(f.authorizers, a.Place)
		return a
	}
	a.Lacking = resourceAPIServers
	return a
}
