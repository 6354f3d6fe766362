package doctor

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/internal/manifest"
)

// talosVersion is the apiVersion of Talos' documents.
const talosVersion = "v1alpha1"

// talosFile is what the documents of a machine config say of kube-apiserver, since
// Talos 1.14 with documents of their own for it.
// Source: https://docs.siderolabs.com/talos/v1.14/reference/configuration/kubernetes/kubeapiserverconfig
type talosFile struct {
	hostname string
	// machine is true if the first document is that of a control plane.
	machine bool
	// server is that of the KubeAPIServerConfig; nil without one.
	server *APIServer
	// authorizers are the KubeAuthorizerConfigs, in their order, which Talos asks without
	// adding any.
	authorizers []map[string]any
	// part is true for documents that change others, which are elsewhere.
	part bool
	// first is a server without flags, at the first document about kube-apiserver.
	first APIServer
}

// talosKinds are the documents about kube-apiserver.
func talosKinds() []documentKind {
	return []documentKind{
		{groupKind{"", "KubeAPIServerConfig"}, nil, (*reader).talosServer},
		{groupKind{"", "KubeAuthorizerConfig"}, nil, (*reader).talosAuthorizer},
		{groupKind{"", "HostnameConfig"}, nil, (*reader).talosHostname},
	}
}

// talosFile is that of a document; nil if it is not Talos'.
func (r *reader) talosFile(d *manifest.Document) *talosFile {
	if d.APIVersion != "" && d.APIVersion != talosVersion {
		return nil
	}
	if r.cluster.talos == nil {
		r.cluster.talos = map[string]*talosFile{}
	}
	if r.cluster.talos[d.File()] == nil {
		r.cluster.talos[d.File()] = &talosFile{}
	}
	return r.cluster.talos[d.File()]
}

// noted remembers where something is said of kube-apiserver, and whether it is a patch.
func (f *talosFile) noted(d *manifest.Document) {
	if f.first.Name == "" {
		f.first = APIServer{Place: place(d), Name: d.File(), Distribution: Talos}
		f.first.Place.Object = ""
	}
	var patch map[string]json.RawMessage
	f.part = f.part || json.Unmarshal(d.JSON(), &patch) == nil && patch["$patch"] != nil
}

func (r *reader) talosServer(d *manifest.Document) error {
	f := r.talosFile(d)
	if f == nil {
		return nil
	}
	var c struct {
		Image     string                     `json:"image"`
		ExtraArgs map[string]json.RawMessage `json:"extraArgs"`
	}
	if json.Unmarshal(d.JSON(), &c) != nil {
		return d.Fail(errors.New("not a KubeAPIServerConfig of Talos: want a mapping in extraArgs"))
	}
	f.noted(d)
	a := f.first
	a.Place = place(d)
	a.Place.Object = ""
	a.Version = imageTag(c.Image)
	var err error
	if a.Flags, err = talosFlags(c.ExtraArgs); err != nil {
		return d.Fail(err, "extraArgs")
	}
	f.part = f.part || f.server != nil
	f.server = &a
	return nil
}

// talosFlags are the flags of extraArgs, with the plugin that Talos always enables.
func talosFlags(args map[string]json.RawMessage) (map[string][]string, error) {
	flags := map[string][]string{}
	for _, flag := range slices.Sorted(maps.Keys(args)) {
		values, err := oneOrMany(args[flag])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		flags[flag] = values
	}
	flags[flagEnable] = slices.Concat([]string{pluginNodeRestriction}, flags[flagEnable])
	return flags, nil
}

func (r *reader) talosAuthorizer(d *manifest.Document) error {
	f := r.talosFile(d)
	if f == nil {
		return nil
	}
	var a struct {
		Name    string         `json:"name"`
		Type    string         `json:"type"`
		Webhook map[string]any `json:"webhook"`
	}
	if json.Unmarshal(d.JSON(), &a) != nil {
		return d.Fail(errors.New("not a KubeAuthorizerConfig of Talos: want texts in name and type, and a mapping in webhook"))
	}
	f.noted(d)
	authorizer := map[string]any{"name": a.Name, "type": a.Type}
	if a.Webhook != nil {
		authorizer["webhook"] = a.Webhook
	}
	f.authorizers = append(f.authorizers, authorizer)
	return nil
}

func (r *reader) talosHostname(d *manifest.Document) error {
	var c struct {
		Hostname string `json:"hostname"`
	}
	if f := r.talosFile(d); f != nil && json.Unmarshal(d.JSON(), &c) == nil {
		f.hostname = c.Hostname
	}
	return nil
}

// saysOfAPIServers reports whether the documents say something of kube-apiserver.
func (f *talosFile) saysOfAPIServers() bool { return f.first.Name != "" }

// talosServers are the API servers that the documents of their own describe. A server
// that cannot be put together is one whose flags are not known.
func (c *Cluster) talosServers() []APIServer {
	c.Authorizations = slices.DeleteFunc(c.Authorizations, func(a Authorization) bool { return a.derived || c.describedTwice(a.Place) })
	var servers []APIServer
	for _, file := range slices.Sorted(maps.Keys(c.talos)) {
		f := c.talos[file]
		if !f.saysOfAPIServers() {
			continue
		}
		a := f.first
		if f.server != nil {
			a = *f.server
		}
		if f.hostname != "" {
			a.Name = f.hostname
		}
		switch {
		case f.part:
			a.Unseen = file + " has documents that change others (patches): give the whole machine config, " +
				"as talosctl get machineconfig -o yaml prints it"
		case f.server == nil && f.machine:
			a.Unseen = file +
				" has KubeAuthorizerConfigs and no KubeAPIServerConfig: how Talos puts them together with cluster.apiServer is not read"
		case f.server == nil:
			a.Unseen = file + " has KubeAuthorizerConfigs and no KubeAPIServerConfig: give the whole machine config"
		}
		if a.Unseen != "" {
			a.Lacking = resourceAPIServers
			servers = append(servers, a)
			continue
		}
		authorization := talosConfiguration(f.authorizers, a.Place)
		c.Authorizations = append(c.Authorizations, authorization)
		a.Flags = maps.Clone(a.Flags)
		a.Flags[flagConfig] = []string{talosAuthorizationFile}
		a.Authorization = &authorization
		servers = append(servers, a)
	}
	return servers
}

// describedTwice reports whether the documents of a file say of kube-apiserver what its
// first one, which was read as all there is, does not.
func (c *Cluster) describedTwice(at finding.Place) bool {
	f := c.talos[at.File]
	return f != nil && f.saysOfAPIServers() && strings.HasPrefix(at.Key, "cluster.apiServer")
}
