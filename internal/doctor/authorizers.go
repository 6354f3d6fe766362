package doctor

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"

	"github.com/node-authorizer/node-authorizer/finding"
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

	pluginNodeRestriction = "NodeRestriction"
)

// setup is how an API server decides, as far as it can be seen.
type setup struct {
	// name is that of the API server, "kube-apiserver-a"; for a configuration that no
	// API server was seen to use it is that of the file.
	name string
	// server is nil for a configuration alone.
	server *APIServer
	// place is where the authorizers are written, in key.
	place finding.Place
	// authorizers are their types in order; nil if they cannot be known, and unknown
	// says why.
	authorizers []string
	unknown     string
	// byConfig is whether they are from a configuration, and config that, if it was given.
	byConfig bool
	config   *Authorization
	// invalid is why the configuration cannot be read.
	invalid error
}

func (s *setup) asks(mode string) bool { return slices.Contains(s.authorizers, mode) }

// setups are those of the API servers seen, or else of the configurations given.
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
		s := setup{name: a.Place.File, place: a.Place, byConfig: true}
		if s.name == "" {
			s.name = a.Place.Object
		}
		s.read(a)
		list = append(list, s)
	}
	return list
}

func (c *Cluster) setupOf(server *APIServer) setup {
	s := setup{name: server.Name, server: server, place: server.at(flagMode)}
	files := server.Flags[flagConfig]
	if len(files) == 0 {
		s.authorizers = server.list(flagMode)
		if len(s.authorizers) == 0 {
			s.authorizers = []string{modeAlwaysAllow}
		}
		return s
	}
	s.byConfig, s.place = true, server.at(flagConfig)
	file := files[len(files)-1]
	config := c.authorization(file)
	if config == nil {
		s.unknown = fmt.Sprintf("%s reads %s, which was not given", s.name, file)
		return s
	}
	s.read(config)
	return s
}

// authorization finds the configuration that an API server reads, by the name of its
// file; if there is but one, it is taken to be that.
func (c *Cluster) authorization(file string) *Authorization {
	var named []*Authorization
	for i := range c.Authorizations {
		if path.Base(c.Authorizations[i].Place.File) == path.Base(file) {
			named = append(named, &c.Authorizations[i])
		}
	}
	switch {
	case len(named) == 1:
		return named[0]
	case len(named) == 0 && len(c.Authorizations) == 1:
		return &c.Authorizations[0]
	}
	return nil
}

// read takes the authorizers out of a configuration, with Kubernetes' own loader.
// Kubeconfigs that it names are not looked for: they are elsewhere.
func (s *setup) read(a *Authorization) {
	s.config, s.place = a, a.Place
	var decoded *apiserver.AuthorizationConfiguration
	if decoded, s.invalid = load.LoadFromData(a.Text); s.invalid != nil {
		s.unknown = fmt.Sprintf("%s cannot be read: %v", a.Place, s.invalid)
		return
	}
	s.authorizers = []string{}
	for _, authorizer := range decoded.Authorizers {
		s.authorizers = append(s.authorizers, string(authorizer.Type))
	}
}

// at is the place of a flag.
func (a *APIServer) at(flag string) finding.Place {
	place := a.Place
	place.Key = "--" + flag
	return place
}

// list is the entries of a flag that takes several, over all times it is given.
func (a *APIServer) list(flag string) []string {
	var entries []string
	for _, value := range a.Flags[flag] {
		for _, entry := range strings.Split(value, ",") {
			if entry = strings.TrimSpace(entry); entry != "" {
				entries = append(entries, entry)
			}
		}
	}
	return entries
}

// last is the value of a flag that takes one.
func (a *APIServer) last(flag string) string {
	values := a.Flags[flag]
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// has reports whether a flag is given.
func (a *APIServer) has(flag string) bool { return len(a.Flags[flag]) > 0 }

// nodeRestriction reports whether the plugin is on. It is off unless it is asked for.
func (a *APIServer) nodeRestriction() bool {
	if slices.Contains(a.list(flagDisable), pluginNodeRestriction) {
		return false
	}
	return slices.Contains(a.list(flagEnable), pluginNodeRestriction) || slices.Contains(a.list(flagPlugins), pluginNodeRestriction)
}

// asksNode reports whether every API server is seen to ask the Node authorizer.
func (c *Cluster) asksNode() bool {
	setups := c.setups()
	return len(setups) > 0 && !slices.ContainsFunc(setups, func(s setup) bool { return !s.asks(modeNode) })
}
