package generate

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/node-authorizer/node-authorizer/internal/output/render"
	"github.com/node-authorizer/node-authorizer/kubeversion"
	"github.com/node-authorizer/node-authorizer/nodescope"
)

// uncached is the first minor version whose API server can be told not to cache a webhook's
// answers.
const uncached kubeversion.Minor = 34

type document struct{ strings.Builder }

func (d *document) line(format string, args ...any) { fmt.Fprintf(d, format+"\n", args...) }

// quoted writes a string as YAML, in double quotes. All escapes of Go are YAML's too.
func quoted(text string) string { return strconv.QuoteToASCII(text) }

// Authorization writes an AuthorizationConfiguration with the webhook before Node and RBAC.
func Authorization(o *Options) (string, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	version := "v1"
	if o.Minor != 0 && o.Minor < 32 {
		version = "v1beta1"
	}
	known := "1.32 and later"
	if o.Minor != 0 {
		known = o.Minor.String()
	}
	d := &document{}
	d.line("# For kube-apiserver --authorization-config, Kubernetes %s. If the API server has such a file already,", known)
	d.line("# add the first authorizer to it, before all others: one before it could allow what a scope refuses.")
	d.line("apiVersion: apiserver.config.k8s.io/%s", version)
	d.line("kind: AuthorizationConfiguration")
	d.line("authorizers:")
	d.line("- type: Webhook")
	d.line("  name: node-authorizer-containment")
	d.line("  webhook:")
	d.line("    connectionInfo:")
	d.line("      type: KubeConfigFile")
	d.line("      # The address of the server's /authorize, and the credentials for it.")
	d.line("      kubeConfigFile: %s", quoted(o.Kubeconfig))
	d.line("    subjectAccessReviewVersion: v1")
	d.line("    matchConditionSubjectAccessReviewVersion: v1")
	o.matchConditions(d)
	d.line("    timeout: 3s")
	o.failure(d)
	o.cache(d)
	d.line("- type: Node")
	d.line("  name: node")
	d.line("- type: RBAC")
	d.line("  name: rbac")
	return d.String(), nil
}

func (o *Options) matchConditions(d *document) {
	for _, line := range o.sends() {
		d.line("    # %s", line)
	}
	d.line("    matchConditions:")
	for _, c := range o.conditions(userFields{user: "request.user", groups: "request.groups", extra: "request.extra"}) {
		d.line("    - expression: %s", quoted(c.expression))
	}
}

// sends describes what is sent to the server.
func (o *Options) sends() []string {
	var lines []string
	if len(o.Scopes) > 0 {
		lines = append(lines, fmt.Sprintf("Sent: the accounts of %s, %s.", render.Count(len(o.Scopes), "NodeScope"), map[Selection]string{
			ByAccount:   "by name",
			ByNamespace: "by their namespaces, because there are too many accounts to list",
			AllAccounts: "as all service accounts, because there are too many to list",
		}[o.Selection()]))
		lines = append(lines, "Write this again when scopes get other subjects: an account that is not sent is not scoped.")
	}
	if o.Quarantines {
		lines = append(lines,
			"Sent for quarantines: nodes, and tokens that are bound to a node. A quarantine of another credential, such",
			"as a person's certificate, has no effect: that user is not sent.")
	}
	if len(o.ServerUsers) > 0 {
		return append(lines, "The server's own requests are never sent, and neither are requests of system:masters.")
	}
	return append(lines, "Requests of system:masters are never sent.")
}

func (o *Options) failure(d *document) {
	if o.FailurePolicy == Deny {
		d.line("    # While the server does not answer, every request that is sent is refused, also in mode Observe: agents on")
		d.line("    # all nodes stop working. If the server's own pod needs one of them to start, such as the CNI plugin, it")
		d.line("    # must run with host networking, or this does not recover by itself.")
		if o.Quarantines {
			d.line("    # Because of quarantines this includes all nodes and all pods: the whole cluster depends on the server. Run")
			d.line("    # it beside each API server, not as a pod that the nodes have to start.")
		}
	} else if o.Quarantines {
		d.line("    # While the server does not answer, nothing is scoped and nothing is quarantined: Node and RBAC decide. Whoever")
		d.line("    # can stop the server, or cut it off from the API server, is free of both.")
	} else {
		d.line("    # While the server does not answer, nothing is scoped: Node and RBAC decide. Whoever can stop the server, or cut")
		d.line("    # it off from the API server, is free of the scopes.")
	}
	for _, line := range o.observing("Deny") {
		d.line("    # %s", line)
	}
	d.line("    failurePolicy: %s", o.FailurePolicy)
}

// observing says when the failure policy no longer fits, and what it is by default then.
func (o *Options) observing(then string) []string {
	if o.FailurePolicy != NoOpinion || !o.OnlyObserves() {
		return nil
	}
	return []string{
		"All scopes at hand observe, so an outage changes nothing. Write this again before one enforces: the",
		"default is " + then + " then.",
	}
}

func (o *Options) cache(d *document) {
	d.line("    # Answers are not kept: a quarantine takes effect at once, and a pod that has just arrived counts.")
	if o.Minor >= uncached {
		d.line("    cacheAuthorizedRequests: false")
		d.line("    cacheUnauthorizedRequests: false")
		return
	}
	d.line("    # Zero is not allowed; since %s, caching can be turned off.", uncached)
	d.line("    authorizedTTL: 1ms")
	d.line("    unauthorizedTTL: 1ms")
}

// Admission writes a MutatingWebhookConfiguration for the server's /admit.
func Admission(o *Options) (string, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	failure := "Fail"
	if o.FailurePolicy == NoOpinion {
		failure = "Ignore"
	}
	d := &document{}
	d.line("# What only admission sees of a write: the name of a created object, and its content.")
	d.line("# It is a mutating webhook although it changes nothing: only these get objects as the agent sent them,")
	d.line("# before defaults are filled in, and NodeRestriction decides about these.")
	d.line("# Replace CA_BUNDLE with the authority of the server's certificate: base64 -w0 ca.crt")
	for _, line := range o.sends() {
		d.line("# %s", line)
	}
	d.line("apiVersion: admissionregistration.k8s.io/v1")
	d.line("kind: MutatingWebhookConfiguration")
	d.line("metadata:")
	d.line("  name: node-authorizer-containment")
	d.line("  labels:")
	d.line("    app.kubernetes.io/name: node-authorizer")
	d.line("webhooks:")
	d.line("- name: %s", nodescope.Webhook)
	d.line("  admissionReviewVersions: [v1]")
	d.line("  clientConfig:")
	d.line("    url: %s", quoted(o.URL))
	d.line("    caBundle: CA_BUNDLE")
	d.line("  # %s", map[string]string{
		"Fail":   "Without an answer such a write is refused.",
		"Ignore": "Without an answer such a write is admitted, even if a scope refuses it.",
	}[failure])
	for _, line := range o.observing("Fail") {
		d.line("  # %s", line)
	}
	d.line("  failurePolicy: %s", failure)
	d.line("  matchConditions:")
	v := userFields{
		user: "request.userInfo.username", groups: "request.userInfo.groups", extra: "request.userInfo.extra",
		guard: "has(request.userInfo.extra) && ",
	}
	for _, c := range append([]condition{{"users", "has(request.userInfo.username)"}}, o.conditions(v)...) {
		d.line("  - name: %s", c.name)
		d.line("    expression: %s", quoted(c.expression))
	}
	d.line("  matchPolicy: Exact")
	d.line("  # Call it again when a later webhook changes the object.")
	d.line("  reinvocationPolicy: IfNeeded")
	d.line("  rules:")
	d.line(`  - apiGroups: ["*"]`)
	d.line(`    apiVersions: ["*"]`)
	d.line("    operations: [CREATE, UPDATE, DELETE, CONNECT]")
	d.line(`    resources: ["*/*"]`)
	d.line("  sideEffects: None")
	d.line("  timeoutSeconds: 3")
	return d.String(), nil
}
