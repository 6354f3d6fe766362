package doctor

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/internal/manifest"
)

// machineConfig has the fields of a Talos machine config about kube-apiserver.
// Source: https://www.talos.dev/latest/reference/configuration/v1alpha1/config/
type machineConfig struct {
	Version string `json:"version"`
	Machine *struct {
		Type    string `json:"type"`
		Network struct {
			Hostname string `json:"hostname"`
		} `json:"network"`
	} `json:"machine"`
	Cluster struct {
		APIServer struct {
			Image       string                     `json:"image"`
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
	r.talosFile(d).machine = true
	at := place(d, "cluster", "apiServer")
	at.Object = ""
	a := APIServer{
		Place: at, Name: d.File(), Distribution: Talos, Version: imageTag(m.Cluster.APIServer.Image), Flags: map[string][]string{},
	}
	if m.Machine.Network.Hostname != "" {
		a.Name = m.Machine.Network.Hostname
	}
	for flag, value := range m.Cluster.APIServer.ExtraArgs {
		values, err := oneOrMany(value)
		if err != nil {
			return d.Fail(err, "cluster", "apiServer", "extraArgs", flag)
		}
		a.Flags[flag] = values
	}
	a.Flags[flagEnable] = slices.Concat([]string{pluginNodeRestriction}, a.Flags[flagEnable])
	if a.has(flagMode) || a.hasAuthorizationWebhook() {
		modes := []string{modeNode, modeRBAC}
		for _, mode := range a.list(flagMode) {
			if !slices.Contains(modes, mode) {
				modes = append(modes, mode)
			}
		}
		a.Flags[flagMode] = modes
	} else {
		authorization, err := talosAuthorization(m.Cluster.APIServer.Authorizers, place(d, "cluster", "apiServer", "authorizationConfig"))
		if err != nil {
			return d.Fail(err, "cluster", "apiServer", "authorizationConfig")
		}
		a.Flags[flagConfig] = []string{talosAuthorizationFile}
		r.cluster.Authorizations = append(r.cluster.Authorizations, authorization)
		a.Authorization = &authorization
	}
	r.cluster.machines = append(r.cluster.machines, a)
	return nil
}

// talosAuthorizationFile is the AuthorizationConfiguration that Talos writes.
const talosAuthorizationFile = "/system/config/kubernetes/kube-apiserver/authorization-config.yaml"

// talosAuthorization returns the configuration that Talos makes from the authorizers of a machine
// config: Node and RBAC come first unless they are listed.
func talosAuthorization(authorizers []map[string]any, at finding.Place) (Authorization, error) {
	for i, mode := range []string{modeNode, modeRBAC} {
		if !slices.ContainsFunc(authorizers, func(a map[string]any) bool { return a["type"] == mode }) {
			authorizers = slices.Insert(slices.Clone(authorizers), min(i, len(authorizers)), map[string]any{
				"type": mode, "name": strings.ToLower(mode),
			})
		}
	}
	text, err := json.Marshal(authorizationOf(authorizers))
	at.Object = ""
	return Authorization{Place: at, Text: text}, err
}

// talosConfiguration returns the configuration that Talos makes from separate authorizer documents. It
// adds no others.
func talosConfiguration(authorizers []map[string]any, at finding.Place) Authorization {
	text, err := json.Marshal(authorizationOf(authorizers))
	if err != nil {
		text = nil // cannot happen: it was decoded from JSON
	}
	return Authorization{Place: at, Text: text, derived: true}
}

func authorizationOf(authorizers []map[string]any) map[string]any {
	return map[string]any{"apiVersion": groupServerConfig + "/v1", "kind": "AuthorizationConfiguration", "authorizers": authorizers}
}
