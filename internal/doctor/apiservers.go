package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/node-authorizer/node-authorizer/internal/finding"
)

// Codes of findings about the configuration of API servers.
const (
	AlwaysAllow                finding.Code = "AlwaysAllow"
	AuthorizationModeInvalid   finding.Code = "AuthorizationModeInvalid"
	AuthorizationConfigInvalid finding.Code = "AuthorizationConfigInvalid"
	AuthorizationOrder         finding.Code = "AuthorizationOrder"
	BothConfigAndFlags         finding.Code = "BothConfigAndFlags"
	NodeAuthorizationOff       finding.Code = "NodeAuthorizationOff"
	NodeAuthorizationElsewhere finding.Code = "NodeAuthorizationElsewhere"
	NodeWithoutRBAC            finding.Code = "NodeWithoutRBAC"
	NodeRestrictionOff         finding.Code = "NodeRestrictionOff"
	NodeRestrictionElsewhere   finding.Code = "NodeRestrictionElsewhere"
	NodeIsolationGate          finding.Code = "NodeIsolationGate"
	TokenWebhookMissing        finding.Code = "TokenWebhookMissing"
	APIServersDiffer           finding.Code = "APIServersDiffer"
)

const (
	resourceAPIServers = "pods/kube-apiserver"
	resourceWebhooks   = "mutatingwebhookconfigurations." + admissionregistrationv1.GroupName
)

func apiServers(e *examination) {
	setups := e.cluster.setups()
	for i := range setups {
		s := &setups[i]
		if s.invalid != nil {
			e.found(s.finding(AuthorizationConfigInvalid, finding.Error, s.place,
				"the AuthorizationConfiguration cannot be read: "+strings.Join(strings.Fields(s.invalid.Error()), " "),
				"kube-apiserver does not start with it; one that runs keeps the one that it read before",
				"fix the field that is named, and put the file in place as a whole"))
		}
		if s.authorizers != nil {
			e.invalidModes(s)
			e.alwaysAllow(s)
			e.nodeAuthorizer(s)
			e.order(s)
		}
		if s.server != nil && s.server.Unseen == "" {
			e.flags(s)
		}
	}
	e.compare(setups)
	e.probed()
}

func (s *setup) finding(
	code finding.Code, severity finding.Severity, at finding.Place, message, consequence, remedy string,
) finding.Finding {
	return finding.Finding{
		Code: code, Severity: severity, Place: at, Subject: s.name, Message: message, Consequence: consequence, Remedy: remedy,
	}
}

func (e *examination) invalidModes(s *setup) {
	var wrong []string
	seen := map[string]bool{}
	for _, mode := range s.authorizers {
		switch {
		case !slices.Contains(modes(), mode) && !s.distribution().has(mode):
			wrong = append(wrong, fmt.Sprintf("there is no %q", mode))
		case seen[mode] && !(s.byConfig && mode == modeWebhook):
			wrong = append(wrong, mode+" is there twice")
		}
		seen[mode] = true
	}
	if len(wrong) > 0 {
		e.found(s.finding(AuthorizationModeInvalid, finding.Error, s.key(), strings.Join(wrong, "; "),
			"kube-apiserver does not start so", "name each once, of "+strings.Join(modes(), ", ")))
	}
}

func (e *examination) alwaysAllow(s *setup) {
	if !s.asks(modeAlwaysAllow) {
		return
	}
	message, consequence := s.name+" allows everything that no other authorizer denies", everyoneAdministrator
	if s.server != nil && !s.server.Flags.has(flagMode) && !s.byConfig && s.distribution() == "" {
		message = fmt.Sprintf("%s is given neither --%s nor --%s, and so allows everything", s.name, flagMode, flagConfig)
	}
	if s.byConfig && (s.server == nil || s.server.Flags.last("anonymous-auth") != "false") {
		consequence = "whoever reaches the API server is administrator, " +
			"also without a credential unless anonymous requests are off (--anonymous-auth=false)"
	}
	e.found(s.finding(AlwaysAllow, finding.Error, s.key(), message, consequence, "ask the Node authorizer and RBAC: "+s.recommended()))
}

// Consequences that flags and probes show.
const (
	everyoneAdministrator = "whoever authenticates is administrator, every node and every pod among them"
	nodesHaveAll          = "kubelets need rights to all secrets and pods, and each kubelet has them " +
		"for the secrets and pods of all nodes: one node that is taken over has the cluster"
	nodesWriteAll = "a node may change the labels, taints and status of every node, and every pod's status, " +
		"and may ask for certificates in other nodes' names"
)

func (e *examination) nodeAuthorizer(s *setup) {
	asks := strings.Join(s.authorizers, ", ")
	switch {
	case s.asks(modeAlwaysAllow):
	case !s.asks(modeNode) && s.asks(modeWebhook):
		consequence := "nodes are restricted only if the webhook does it, as node-authorizer's does; " +
			"the configuration does not show whether it does"
		remedy := "if it does not: " + s.recommended()
		if s.asksUs() {
			consequence = "by the name of the webhook, node-authorizer's server restricts nodes; whether it answers is not known"
			remedy = "nothing, if the server runs; to go back: " + s.recommended()
		}
		e.found(s.finding(NodeAuthorizationElsewhere, finding.Info, s.key(),
			fmt.Sprintf("%s asks %s, not the Node authorizer", s.name, asks), consequence, remedy))
	case !s.asks(modeNode):
		e.found(s.finding(NodeAuthorizationOff, finding.Error, s.key(),
			fmt.Sprintf("%s asks %s, not the Node authorizer", s.name, cmp.Or(asks, "nobody")), nodesHaveAll,
			s.recommended()+", one API server after another (node-authorizer doctor --plan)"))
	case s.asks(modeRBAC):
	case s.asks(modeWebhook), s.asks(modeABAC):
		e.found(s.finding(NodeWithoutRBAC, finding.Warning, s.key(), fmt.Sprintf("%s asks %s, not RBAC", s.name, asks),
			"roles and bindings have no effect, also for controllers: another authorizer has to allow all that they do",
			s.recommended()))
	default:
		e.found(s.finding(NodeWithoutRBAC, finding.Error, s.key(), fmt.Sprintf("%s asks %s, not RBAC", s.name, asks),
			"roles and bindings have no effect: controllers, the scheduler and people are refused, unless they are in "+groupMasters,
			s.recommended()))
	}
}

// order checks that the order of the authorizers lets each of them answer. Users choose the
// position of webhooks, except that node-authorizer's must come before the Node authorizer,
// which would answer instead (docs/guides/install.md).
func (e *examination) order(s *setup) {
	node, rbac, ends := s.positions()
	severity, consequence := finding.Warning, ""
	switch {
	case ends >= 0 && ends < len(s.authorizers)-1:
		severity, consequence = finding.Error, fmt.Sprintf("nobody after %s is ever asked", s.authorizers[ends])
	case node >= 0 && rbac >= 0 && rbac < node && s.distribution() != OpenShift: // whose operator fixes that order
		consequence = "it works, but every request of a kubelet goes through all of its bindings first, " +
			"and what RBAC allows a node is not seen in the Node authorizer's answers"
	case node >= 0 && s.ours > node:
		severity, consequence = finding.Info, "node-authorizer's server is asked only about what the Node authorizer does not allow: "+
			"its log and metrics show little of what it would decide"
	default:
		return
	}
	e.found(s.finding(AuthorizationOrder, severity, s.key(),
		fmt.Sprintf("%s asks in the order %s", s.name, strings.Join(s.authorizers, ", ")), consequence, s.recommended()))
}

// positions returns the indices of Node and RBAC, and of the first authorizer that decides every request; -1 without one.
func (s *setup) positions() (node, rbac, ends int) {
	ends = slices.IndexFunc(s.authorizers, func(m string) bool { return m == modeAlwaysAllow || m == modeAlwaysDeny })
	return slices.Index(s.authorizers, modeNode), slices.Index(s.authorizers, modeRBAC), ends
}

// key returns the place of the authorizers in their file or among the flags.
func (s *setup) key() finding.Place {
	place := s.place
	if s.config != nil {
		place.Key = "authorizers"
	}
	return place
}

func (s *setup) recommended() string {
	order := s.withNode()
	if s.byConfig {
		return "list the authorizers in the order " + strings.Join(order, ", ")
	}
	return s.server.set(flagMode, order)
}

// withNode returns the authorizers with Node before RBAC. If Node was missing, it is inserted
// just before RBAC, as in docs/guides/install.md. Node-authorizer's server is moved before Node. Other
// authorizers keep their position. Authorizers that decide every request are removed.
func (s *setup) withNode() []string {
	const ours = "node-authorizer's webhook"
	var order []string
	for i, mode := range s.authorizers {
		switch {
		case mode == modeAlwaysAllow || mode == modeAlwaysDeny:
		case i == s.ours:
			order = append(order, ours)
		default:
			order = append(order, mode)
		}
	}
	if !slices.Contains(order, modeRBAC) {
		order = append(order, modeRBAC)
	}
	order = before(order, modeNode, modeRBAC)
	if slices.Contains(order, ours) {
		order = before(order, ours, modeNode)
		order[slices.Index(order, ours)] = modeWebhook
	}
	return order
}

// before moves or inserts an entry just before another one, unless it already precedes it.
func before(list []string, entry, other string) []string {
	if i := slices.Index(list, entry); i >= 0 && i < slices.Index(list, other) {
		return list
	}
	list = slices.DeleteFunc(list, func(s string) bool { return s == entry })
	return slices.Insert(list, slices.Index(list, other), entry)
}

func (e *examination) flags(s *setup) {
	a := s.server
	if a.Flags.has(flagConfig) && (a.Flags.has(flagMode) || a.hasAuthorizationWebhook()) {
		e.found(s.finding(BothConfigAndFlags, finding.Error, a.at(flagConfig),
			fmt.Sprintf("%s is given --%s beside --%s or --authorization-webhook-…", s.name, flagConfig, flagMode),
			"kube-apiserver does not start so", "leave the other flags out, and have what they say in the configuration"))
	}
	switch {
	case a.nodeRestriction():
	case len(e.cluster.Restrictions) > 0:
		e.found(s.finding(NodeRestrictionElsewhere, finding.Info, a.at(flagEnable),
			fmt.Sprintf("%s does not have the admission plugin %s on, and %s has the webhook %s",
				s.name, pluginNodeRestriction, e.cluster.Restrictions[0], restrictionWebhook),
			"node-authorizer's server restricts what nodes write; whoever may delete the webhook can end that",
			"nothing, if that is meant (docs/guides/install.md)"))
	case len(e.cluster.unread(resourceWebhooks)) > 0: // a webhook may do it
	default:
		at, state := a.at(flagEnable), "does not have the admission plugin "+pluginNodeRestriction+" on"
		if slices.Contains(a.Flags.list(flagDisable), pluginNodeRestriction) {
			at, state = a.at(flagDisable), "has the admission plugin "+pluginNodeRestriction+" switched off"
		}
		e.found(s.finding(NodeRestrictionOff, finding.Error, at, s.name+" "+state,
			nodesWriteAll+"; unless node-authorizer's webhook is asked in the plugin's place", a.restrictNodes()))
	}
	set := map[string]string{}
	for _, entry := range a.Flags.list("feature-gates") {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = strings.ToLower(value)
	}
	for _, gate := range isolationGates() {
		if set[gate.name] == gate.setTo {
			e.found(s.finding(NodeIsolationGate, finding.Warning, a.at("feature-gates"),
				fmt.Sprintf("%s has the feature gate %s=%s", s.name, gate.name, gate.setTo), gate.consequence,
				"leave the gate at its default"))
		}
	}
	if e.cluster.AWSAuth != nil && !a.Flags.has(flagTokenWebhook) {
		e.found(s.finding(TokenWebhookMissing, finding.Warning, a.at(flagTokenWebhook),
			fmt.Sprintf("there is a ConfigMap aws-auth, and %s asks nobody about tokens", s.name),
			"mappings of AWS roles have no effect: a kubelet with such a token is refused with 401",
			"set --authentication-token-webhook-config-file to a kubeconfig of node-authorizer's server, or delete the ConfigMap"))
	}
}

func (a *APIServer) hasAuthorizationWebhook() bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(a.Flags)), func(flag string) bool {
		return strings.HasPrefix(flag, "authorization-webhook-")
	})
}

func (a *APIServer) restrictNodes() string {
	flag := flagEnable
	if a.Flags.has(flagPlugins) && !a.Flags.has(flagEnable) {
		flag = flagPlugins
	}
	plugins := a.Flags.list(flag)
	if !slices.Contains(plugins, pluginNodeRestriction) {
		plugins = append(plugins, pluginNodeRestriction)
	}
	remedy := a.set(flag, plugins)
	if slices.Contains(a.Flags.list(flagDisable), pluginNodeRestriction) {
		remedy = fmt.Sprintf("take it out of --%s, and %s", flagDisable, remedy)
	}
	return remedy
}

func (a *APIServer) set(flag string, values []string) string {
	value := strings.Join(values, ",")
	switch a.Distribution {
	case OpenShift:
		return fmt.Sprintf(
			"apiServerArguments: {%s: [%s]} in what the kube-apiserver operator writes: take out the override of its resource "+
				"kubeapiserver/cluster that changes it",
			flag, strings.Join(values, ", "),
		)
	case K3s, RKE2:
		return fmt.Sprintf("%s: %s=%s, on every server", rancherFlag, flag, value)
	case Talos:
		return fmt.Sprintf("cluster.apiServer.extraArgs: {%s: %q} in the machine config", flag, value)
	}
	return "--" + flag + "=" + value
}

// isolationGate is a feature gate setting that restricts nodes less.
type isolationGate struct{ name, setTo, consequence string }

func isolationGates() []isolationGate {
	return []isolationGate{
		{"AuthorizeNodeWithSelectors", "false", "every node may list all pods and all nodes"},
		{"ServiceAccountNodeAudienceRestriction", "false", "a node may have tokens of its pods' service accounts for any audience"},
		{"AllowInsecureKubeletCertificateSigningRequests", "true", "a node may ask for certificates in other nodes' names"},
	}
}

func (e *examination) compare(setups []setup) {
	traits := []struct {
		of   string
		read func(*setup) string
	}{
		{"authorizers", func(s *setup) string { return strings.Join(s.authorizers, ",") + s.unknown }},
		{"admission plugin " + pluginNodeRestriction, func(s *setup) string {
			if s.server.nodeRestriction() {
				return "on"
			}
			return "off"
		}},
		{"token webhook", func(s *setup) string { return s.server.Flags.last(flagTokenWebhook) }},
	}
	seen := slices.DeleteFunc(setups, func(s setup) bool { return s.server == nil || s.server.Unseen != "" })
	for i := range seen {
		first, other := &seen[0], &seen[i]
		for _, trait := range traits {
			a, b := trait.read(first), trait.read(other)
			if a != b {
				e.found(other.finding(APIServersDiffer, finding.Warning, other.server.Place,
					fmt.Sprintf("%s differ: %s has %s, %s has %s", trait.of, first.name, cmp.Or(a, "none"), other.name, cmp.Or(b, "none")),
					"the same request is answered differently, by which API server it reaches",
					"finish the change on all API servers, one after another"))
			}
		}
	}
}
