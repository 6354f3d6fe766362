package doctor

import (
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/node-authorizer/node-authorizer/finding"
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

// apiServers checks the configuration of API servers, as far as it is known.
func apiServers(e *examination) {
	setups := e.cluster.setups()
	for i := range setups {
		s := &setups[i]
		e.authorizers(s)
		if s.server != nil && s.server.Unseen == "" {
			e.flags(s)
		}
	}
	e.compare(setups)
	e.probed()
}

// authorizers checks the authorizers and their order.
func (e *examination) authorizers(s *setup) {
	if s.invalid != nil {
		e.found(finding.Finding{
			Code: AuthorizationConfigInvalid, Severity: finding.Error, Place: s.place, Subject: s.name,
			Message:     "the AuthorizationConfiguration cannot be read: " + oneLine(s.invalid.Error()),
			Consequence: "kube-apiserver does not start with it; one that runs goes on with what it read before",
			Remedy:      "mend the field that is named, and put the file in place as a whole",
		})
	}
	if s.authorizers == nil {
		return
	}
	e.invalidModes(s)
	e.alwaysAllow(s)
	e.nodeAuthorizer(s)
	e.order(s)
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
	if len(wrong) == 0 {
		return
	}
	e.found(finding.Finding{
		Code: AuthorizationModeInvalid, Severity: finding.Error, Place: s.key(), Subject: s.name,
		Message:     strings.Join(wrong, "; "),
		Consequence: "kube-apiserver does not start so",
		Remedy:      "name each once, of " + strings.Join(modes(), ", "),
	})
}

func (e *examination) alwaysAllow(s *setup) {
	if !s.asks(modeAlwaysAllow) {
		return
	}
	f := finding.Finding{
		Code: AlwaysAllow, Severity: finding.Error, Place: s.key(), Subject: s.name,
		Message:     fmt.Sprintf("%s allows everything that no other authorizer denies", s.name),
		Consequence: "whoever authenticates is administrator, every node and every pod among them",
		Remedy:      "ask the Node authorizer and RBAC: " + s.recommended(),
	}
	if s.server != nil && !s.server.has(flagMode) && !s.byConfig && s.distribution() == "" {
		f.Message = fmt.Sprintf("%s is given neither --%s nor --%s, and so allows everything", s.name, flagMode, flagConfig)
	}
	if s.byConfig && (s.server == nil || s.server.last("anonymous-auth") != "false") {
		f.Consequence = "whoever reaches the API server is administrator, " +
			"also without a credential unless anonymous requests are off (--anonymous-auth=false)"
	}
	e.found(f)
}

// nodeAuthorizer checks that one authorizer decides about nodes, and one about other users.
func (e *examination) nodeAuthorizer(s *setup) {
	switch {
	case s.asks(modeAlwaysAllow):
	case !s.asks(modeNode) && s.asks(modeWebhook):
		f := finding.Finding{
			Code: NodeAuthorizationElsewhere, Severity: finding.Info, Place: s.key(), Subject: s.name,
			Message:     fmt.Sprintf("%s asks %s, not the Node authorizer", s.name, strings.Join(s.authorizers, ", ")),
			Consequence: "nodes are restricted only if the webhook does it, as node-authorizer's does; that is not to be seen here",
			Remedy:      "if it does not: " + s.recommended(),
		}
		if s.asksUs() {
			f.Consequence = "by the name of the webhook, node-authorizer's server restricts nodes; " +
				"whether it answers is not to be seen here"
			f.Remedy = "nothing, if the server runs; to go back: " + s.recommended()
		}
		e.found(f)
	case !s.asks(modeNode):
		e.found(finding.Finding{
			Code: NodeAuthorizationOff, Severity: finding.Error, Place: s.key(), Subject: s.name,
			Message: fmt.Sprintf("%s asks %s, not the Node authorizer", s.name, orNobody(s.authorizers)),
			Consequence: "kubelets need rights to all secrets and pods, and each has them for those of all nodes: " +
				"one node that is taken over has the cluster",
			Remedy: s.recommended() + ", one API server after another (node-authorizer doctor --plan)",
		})
	case !s.asks(modeRBAC):
		e.found(s.withoutRBAC())
	}
}

func (s *setup) withoutRBAC() finding.Finding {
	f := finding.Finding{
		Code: NodeWithoutRBAC, Severity: finding.Error, Place: s.key(), Subject: s.name,
		Message: fmt.Sprintf("%s asks %s, not RBAC", s.name, strings.Join(s.authorizers, ", ")),
		Consequence: "roles and bindings have no effect: controllers, the scheduler and people are refused, unless they are in " +
			groupMasters,
		Remedy: s.recommended(),
	}
	if s.asks(modeWebhook) || s.asks(modeABAC) {
		f.Severity = finding.Warning
		f.Consequence = "roles and bindings have no effect, those of controllers among them: " +
			"another authorizer has to allow all that they do"
	}
	return f
}

// order checks that the order of the authorizers lets each of them answer. Users choose the
// position of webhooks, except that node-authorizer's must come before the Node authorizer,
// which would answer instead (docs/install.md).
func (e *examination) order(s *setup) {
	node, rbac := slices.Index(s.authorizers, modeNode), slices.Index(s.authorizers, modeRBAC)
	ends := slices.IndexFunc(s.authorizers, func(m string) bool { return m == modeAlwaysAllow || m == modeAlwaysDeny })
	f := finding.Finding{
		Code: AuthorizationOrder, Severity: finding.Warning, Place: s.key(), Subject: s.name,
		Message: fmt.Sprintf("%s asks in the order %s", s.name, strings.Join(s.authorizers, ", ")),
		Remedy:  s.recommended(),
	}
	switch {
	case ends >= 0 && ends < len(s.authorizers)-1:
		f.Severity = finding.Error
		f.Consequence = fmt.Sprintf("nobody after %s is ever asked", s.authorizers[ends])
	case node >= 0 && rbac >= 0 && rbac < node && s.distribution() != OpenShift: // whose operator fixes that order
		f.Consequence = "it works, but every request of a kubelet goes through all of its bindings first, " +
			"and what RBAC allows a node is not seen in the Node authorizer's answers"
	case node >= 0 && s.ours > node:
		f.Severity = finding.Info
		f.Consequence = "node-authorizer's server is asked only about what the Node authorizer does not allow: " +
			"its log and metrics show little of what it would decide"
	default:
		return
	}
	e.found(f)
}

// key returns the place of the authorizers in their file or among the flags.
func (s *setup) key() finding.Place {
	place := s.place
	if s.config != nil {
		place.Key = "authorizers"
	}
	return place
}

// recommended returns how to configure the authorizers with Node and RBAC.
func (s *setup) recommended() string {
	order := s.withNode()
	if s.byConfig {
		return "list the authorizers in the order " + strings.Join(order, ", ")
	}
	return s.server.set(flagMode, order)
}

// withNode returns the authorizers with Node before RBAC. If Node was missing, it is inserted
// just before RBAC, as in docs/install.md. Node-authorizer's server is moved before Node. Other
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

// flags checks the flags that do not affect authorization.
func (e *examination) flags(s *setup) {
	a := s.server
	if a.has(flagConfig) && (a.has(flagMode) || a.hasAuthorizationWebhook()) {
		e.found(finding.Finding{
			Code: BothConfigAndFlags, Severity: finding.Error, Place: a.at(flagConfig), Subject: s.name,
			Message:     fmt.Sprintf("%s is given --%s beside --%s or --authorization-webhook-…", s.name, flagConfig, flagMode),
			Consequence: "kube-apiserver does not start so",
			Remedy:      "leave the other flags out, and have what they say in the configuration",
		})
	}
	switch {
	case a.nodeRestriction():
	case len(e.cluster.Restrictions) > 0:
		e.found(restrictionElsewhere(s, e.cluster.Restrictions[0]))
	case len(e.cluster.unread(resourceWebhooks)) > 0: // a webhook may do it
	default:
		e.found(restrictionOff(s))
	}
	e.gates(s)
	if e.cluster.AWSAuth != nil && !a.has(flagTokenWebhook) {
		e.found(finding.Finding{
			Code: TokenWebhookMissing, Severity: finding.Warning, Place: a.at(flagTokenWebhook), Subject: s.name,
			Message:     fmt.Sprintf("there is a ConfigMap aws-auth, and %s asks nobody about tokens", s.name),
			Consequence: "mappings of AWS roles have no effect: a kubelet with such a token is refused with 401",
			Remedy: "set --authentication-token-webhook-config-file to a kubeconfig of node-authorizer's server, " +
				"or delete the ConfigMap",
		})
	}
}

func (a *APIServer) hasAuthorizationWebhook() bool {
	for flag := range a.Flags {
		if strings.HasPrefix(flag, "authorization-webhook-") {
			return true
		}
	}
	return false
}

func restrictionElsewhere(s *setup, at finding.Place) finding.Finding {
	return finding.Finding{
		Code: NodeRestrictionElsewhere, Severity: finding.Info, Place: s.server.at(flagEnable), Subject: s.name,
		Message: fmt.Sprintf(
			"%s does not have the admission plugin %s on, and %s has the webhook %s", s.name, pluginNodeRestriction, at, restrictionWebhook,
		),
		Consequence: "node-authorizer's server restricts what nodes write; whoever may delete the webhook can end that",
		Remedy:      "nothing, if that is meant (docs/install.md)",
	}
}

func restrictionOff(s *setup) finding.Finding {
	a := s.server
	f := finding.Finding{
		Code: NodeRestrictionOff, Severity: finding.Error, Place: a.at(flagEnable), Subject: s.name,
		Message: fmt.Sprintf("%s does not have the admission plugin %s on", s.name, pluginNodeRestriction),
		Consequence: "a node may change the labels, taints and status of every node, and every pod's status, " +
			"and may ask for certificates in other nodes' names; " +
			"unless node-authorizer's webhook is asked in the plugin's place",
		Remedy: a.withNodeRestriction(),
	}
	if slices.Contains(a.list(flagDisable), pluginNodeRestriction) {
		f.Place, f.Message = a.at(flagDisable), fmt.Sprintf("%s has the admission plugin %s switched off", s.name, pluginNodeRestriction)
		f.Remedy = fmt.Sprintf("take it out of --%s, and %s", flagDisable, f.Remedy)
	}
	return f
}

// withNodeRestriction returns the flag with the plugin added.
func (a *APIServer) withNodeRestriction() string {
	flag := flagEnable
	if a.has(flagPlugins) && !a.has(flagEnable) {
		flag = flagPlugins
	}
	plugins := a.list(flag)
	if !slices.Contains(plugins, pluginNodeRestriction) {
		plugins = append(plugins, pluginNodeRestriction)
	}
	return a.set(flag, plugins)
}

// set returns how to set a flag where this API server is configured.
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

func (e *examination) gates(s *setup) {
	set := map[string]string{}
	for _, entry := range s.server.list("feature-gates") {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = strings.ToLower(value)
	}
	for _, gate := range isolationGates() {
		if set[gate.name] != gate.setTo {
			continue
		}
		e.found(finding.Finding{
			Code: NodeIsolationGate, Severity: finding.Warning, Place: s.server.at("feature-gates"), Subject: s.name,
			Message:     fmt.Sprintf("%s has the feature gate %s=%s", s.name, gate.name, gate.setTo),
			Consequence: gate.consequence,
			Remedy:      "leave the gate at its default",
		})
	}
}

// compare reports API servers that answer the same question differently.
func (e *examination) compare(setups []setup) {
	if len(setups) < 2 {
		return
	}
	traits := []struct {
		of   string
		read func(*setup) string
	}{
		{"authorizers", func(s *setup) string { return strings.Join(s.authorizers, ",") + s.unknown }},
		{"admission plugin " + pluginNodeRestriction, func(s *setup) string {
			return map[bool]string{true: "on", false: "off"}[s.server.nodeRestriction()]
		}},
		{"token webhook", func(s *setup) string { return s.server.last(flagTokenWebhook) }},
	}
	seen := slices.DeleteFunc(slices.Clone(setups), func(s setup) bool { return s.server == nil || s.server.Unseen != "" })
	for i := range seen {
		first, other := &seen[0], &seen[i]
		for _, trait := range traits {
			a, b := trait.read(first), trait.read(other)
			if a == b {
				continue
			}
			e.found(finding.Finding{
				Code: APIServersDiffer, Severity: finding.Warning, Place: other.server.Place, Subject: other.name,
				Message:     fmt.Sprintf("%s differ: %s has %s, %s has %s", trait.of, first.name, orNone(a), other.name, orNone(b)),
				Consequence: "the same request is answered differently, by which API server it reaches",
				Remedy:      "finish the change on all API servers, one after another",
			})
		}
	}
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func orNobody(list []string) string {
	if len(list) == 0 {
		return "nobody"
	}
	return strings.Join(list, ", ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
