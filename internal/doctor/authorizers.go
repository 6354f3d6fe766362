package doctor

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// Authorizers by their type, as --authorization-mode and AuthorizationConfigurations
// have them.
const (
	modeNode        = "Node"
	modeRBAC        = "RBAC"
	modeWebhook     = "Webhook"
	modeABAC        = "ABAC"
	modeAlwaysAllow = "AlwaysAllow"
	modeAlwaysDeny  = "AlwaysDeny"
)

func modes() []string {
	return []string{modeNode, modeRBAC, modeWebhook, modeABAC, modeAlwaysAllow, modeAlwaysDeny}
}

const (
	flagMode    = "authorization-mode"
	flagConfig  = "authorization-config"
	flagEnable  = "enable-admission-plugins"
	flagDisable = "disable-admission-plugins"
	// flagPlugins is the list of all plugins, from before there were the other two.
	flagPlugins = "admission-control"

	flagTokenWebhook = "authentication-token-webhook-config-file"

	pluginNodeRestriction = "NodeRestriction"
)

const (
	// ourAuthorizer is the name of the webhook of node-authorizer's server in the
	// AuthorizationConfigurations of docs/guides/install.md, and restrictionWebhook the name of its
	// admission webhook.
	ourAuthorizer      = "node-authorizer"
	restrictionWebhook = "noderestriction.node-authorizer.io"
)

// has reports whether a distribution adds an authorizer of that type.
// Source: https://github.com/openshift/kubernetes/blob/master/pkg/kubeapiserver/authorizer/modes/patch.go
func (d Distribution) has(mode string) bool {
	return d == OpenShift && (mode == "Scope" || mode == "SystemMasters" || mode == "MinimumKubeletVersion")
}

// setup is the authorization configuration of an API server, as far as it is known.
type setup struct {
	// name is the name of the API server, "kube-apiserver-a", or the file name of a
	// configuration without a known API server.
	name string
	// server is nil for a configuration without a known API server.
	server *APIServer
	// place and key are where the authorizers are configured.
	place finding.Place
	// authorizers are the types of the authorizers in order; nil if unknown. In that case,
	// unknown is the reason.
	authorizers []string
	unknown     string
	// lacking names the missing input.
	lacking string
	// ours is the index of node-authorizer's server among them, or -1.
	ours int
	// byConfig is true if they come from a configuration; config is that, if it was given.
	byConfig bool
	config   *Authorization
	// invalid is why the configuration cannot be read.
	invalid error
}

func (s *setup) asks(mode string) bool { return slices.Contains(s.authorizers, mode) }

func (s *setup) asksUs() bool { return s.ours >= 0 }

func (s *setup) distribution() Distribution {
	if s.server == nil {
		return ""
	}
	return s.server.Distribution
}

// setups returns the setups of the known API servers, or else of the given configurations.
func (c *Cluster) setups() []setup {
	var list []setup
	for i := range c.APIServers {
		list = append(list, c.setupOf(&c.APIServers[i]))
	}
	if len(list) > 0 {
		return list
	}
	for i := range c.Authorizations {
		a := &c.Authorizations[i]
		s := setup{name: cmp.Or(a.Place.File, a.Place.Object), place: a.Place, byConfig: true, ours: -1}
		s.read(a)
		list = append(list, s)
	}
	return list
}

func (c *Cluster) setupOf(server *APIServer) setup {
	s := setup{name: server.Name, server: server, place: server.at(flagMode), ours: -1}
	if server.Flags.has(flagConfig) {
		s.byConfig, s.place = true, server.at(flagConfig)
		config := server.Authorization
		if config == nil {
			config = c.authorization(server.Flags.last(flagConfig))
		}
		if config == nil {
			s.unknown = fmt.Sprintf("%s reads %s, which was not given", s.name, server.Flags.last(flagConfig))
		} else {
			s.read(config)
		}
		return s
	}
	authorizers := server.Flags.list(flagMode)
	switch {
	case server.Unseen != "":
		s.unknown, s.lacking = server.Unseen, server.Lacking
	case len(authorizers) > 0:
		s.authorizers = authorizers
	case server.Distribution == OpenShift:
		s.unknown, s.lacking = fmt.Sprintf("%s does not say which authorizers %s asks", server.configPlace, s.name), flagMode
	default:
		s.authorizers = []string{modeAlwaysAllow}
	}
	return s
}

// authorization returns the configuration that an API server reads, by the name of its file. If
// there is only one configuration, it returns that.
func (c *Cluster) authorization(file string) *Authorization {
	named := selected(c.Authorizations, func(a Authorization) bool { return path.Base(a.Place.File) == path.Base(file) })
	switch {
	case len(named) == 1:
		return &named[0]
	case len(named) == 0 && len(c.Authorizations) > 0 && !slices.ContainsFunc(c.Authorizations, func(a Authorization) bool {
		return !bytes.Equal(a.Text, c.Authorizations[0].Text)
	}):
		return &c.Authorizations[0]
	}
	return nil
}

// read reads the authorizers of a configuration with Kubernetes' own loader. It does not read
// the kubeconfigs in it, which are on the API server's machine.
func (s *setup) read(a *Authorization) {
	s.config, s.place = a, a.Place
	var decoded *apiserver.AuthorizationConfiguration
	if decoded, s.invalid = load.LoadFromData(a.Text); s.invalid != nil {
		s.unknown = fmt.Sprintf("%s cannot be read: %v", a.Place, s.invalid)
		return
	}
	s.authorizers = []string{}
	for i, authorizer := range decoded.Authorizers {
		if authorizer.Type == modeWebhook && authorizer.Name == ourAuthorizer {
			s.ours = i
		}
		s.authorizers = append(s.authorizers, string(authorizer.Type))
	}
}

func (a *APIServer) at(flag string) finding.Place {
	place := a.Place
	switch a.Distribution {
	case OpenShift:
		place = cmp.Or(a.configPlace, place)
		place.Key = strings.TrimPrefix(place.Key+": apiServerArguments."+flag, ": ")
	case K3s, RKE2:
		place.Key = strings.TrimPrefix(strings.TrimSuffix(place.Key, rancherFlag)+" "+rancherFlag+" "+flag, " ")
	case Talos:
		place.Key = "cluster.apiServer.extraArgs." + flag
	default:
		place.Key = "--" + flag
	}
	return place
}

// nodeRestriction reports whether the plugin is enabled. It is disabled by default.
func (a *APIServer) nodeRestriction() bool {
	if slices.Contains(a.Flags.list(flagDisable), pluginNodeRestriction) {
		return false
	}
	return slices.Contains(slices.Concat(a.Flags.list(flagEnable), a.Flags.list(flagPlugins)), pluginNodeRestriction)
}
