package v1alpha1

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/node-authorizer/node-authorizer/kubeversion"
)

// Limits of reasonable values.
const (
	minBodyBytes = 1 << 10
	maxBodyBytes = 40 << 20 // of any document
	maxVerbosity = 10
	maxFreshness = 10 * time.Second
	// API servers send a bookmark about once a minute.
	minStaleness  = 90 * time.Second
	maxStaleness  = time.Hour
	maxReviewTTL  = time.Hour
	maxDelay      = 10 * time.Minute
	maxShutdown   = 10 * time.Minute
	maxPerSecond  = 100_000
	addressSample = `host:port, for example ":8443" or "127.0.0.1:8443"`
)

// Validate returns every mistake in a configuration, without lines.
func Validate(c *ServerConfiguration) Problems {
	v := &validation{}
	v.cluster(&c.Cluster)
	if c.Webhook.Address != "" {
		v.webhook(&c.Webhook)
	}
	v.bootstrap(&c.Bootstrap)
	v.approver(&c.Approver)
	v.somethingToDo(c)
	v.serves(c)
	v.metrics(c)
	v.authorization(&c.Authorization)
	v.duration("admission.freshnessWait", c.Admission.FreshnessWait, 0, maxFreshness)
	v.duration("admission.accessReviews.allowedTTL", c.Admission.AccessReviews.AllowedTTL, 0, maxReviewTTL)
	v.duration("admission.accessReviews.deniedTTL", c.Admission.AccessReviews.DeniedTTL, 0, maxReviewTTL)
	v.containment(c)
	v.log(&c.Log)
	v.duration("shutdown.delay", c.Shutdown.Delay, 0, maxDelay)
	v.duration("shutdown.timeout", c.Shutdown.Timeout, time.Second, maxShutdown)
	return v.problems
}

type validation struct{ problems Problems }

func (v *validation) wrong(field, format string, args ...any) {
	v.problems.add(0, field, format, args...)
}

func (v *validation) cluster(c *Cluster) {
	if d := c.MaxStaleness.Duration; d < minStaleness || d > maxStaleness {
		v.wrong("cluster.maxStaleness",
			"want a duration from %v to %v, got %v: an API server without changes sends a bookmark about once a minute",
			minStaleness, maxStaleness, d)
	}
	features := kubeversion.Features{}
	versioned := c.KubernetesVersion != ""
	if versioned {
		minor, err := kubeversion.Parse(c.KubernetesVersion)
		if err != nil {
			v.wrong("cluster.kubernetesVersion", "%v", err)
			versioned = false
		} else {
			features = kubeversion.For(minor)
		}
	}
	known := kubeversion.Gates()
	for _, name := range slices.Sorted(maps.Keys(c.FeatureGates)) {
		field, gate := "cluster.featureGates."+name, kubeversion.Gate(name)
		if !slices.Contains(known, gate) {
			v.wrong(field, "not a gate that decisions about nodes depend on: those are %s", joined(known))
		} else if versioned {
			if _, err := features.With(gate, c.FeatureGates[name]); err != nil {
				v.wrong(field, "%v: leave it out, or correct cluster.kubernetesVersion", err)
			}
		}
	}
}

func (v *validation) webhook(w *Webhook) {
	v.address("webhook.address", w.Address)
	v.required("webhook.certificateFile", w.CertificateFile, "the path of the server's certificate")
	v.required("webhook.keyFile", w.KeyFile, "the path of the server's key")
	v.callers(w)
	v.number("webhook.maxBodyBytes", w.MaxBodyBytes, minBodyBytes, maxBodyBytes)
}

// callers checks that the configuration says who may call.
func (v *validation) callers(w *Webhook) {
	const (
		field, authorities, names = "webhook.clientAuthentication", "webhook.clientCAFile", "webhook.allowedClientNames"
		signers                   = "the path of the authorities that sign the certificates of callers, or set " + field + " to None"
	)
	named := len(w.AllowedClientNames) > 0
	unused := func(other string, given bool) {
		if given {
			v.wrong(other, "has no effect with %s: %s: remove it, or set that to %s", field, w.ClientAuthentication,
				ClientCertificateRequired)
		}
	}
	switch w.ClientAuthentication {
	case ClientCertificateRequired:
		v.required(authorities, w.ClientCAFile, signers)
		if !named {
			v.wrong(names, "required: write the common name of kube-apiserver's client certificate, such as [kube-apiserver]: "+
				"openssl x509 -noout -subject -in FILE prints the name in the client-certificate of its kubeconfig for this webhook; "+
				"with %s: %s, everybody with a certificate of %s can ask about every node", field, AnyClientCertificate, authorities)
		}
	case AnyClientCertificate:
		v.required(authorities, w.ClientCAFile, signers)
		unused(names, named)
	case NoClientAuthentication:
		unused(authorities, w.ClientCAFile != "")
		unused(names, named)
	default:
		v.choice(field, string(w.ClientAuthentication), string(ClientCertificateRequired), string(AnyClientCertificate),
			string(NoClientAuthentication))
	}
	v.list(names, w.AllowedClientNames, nil, "the common name of a caller's certificate")
}

// somethingToDo checks that the server would serve something.
func (v *validation) somethingToDo(c *ServerConfiguration) {
	if c.Webhook.Address == "" && c.Bootstrap.Address == "" && !c.Approver.Enabled {
		v.wrong("webhook.address",
			"empty, and neither bootstrap.address nor approver.enabled is set: set one of them, or the server has nothing to do")
	}
}

func (v *validation) metrics(c *ServerConfiguration) {
	if c.Metrics.Address != "" {
		v.address("metrics.address", c.Metrics.Address)
	}
	v.different("bootstrap.address", c.Bootstrap.Address, "webhook.address", c.Webhook.Address)
	v.different("metrics.address", c.Metrics.Address, "webhook.address", c.Webhook.Address)
	v.different("metrics.address", c.Metrics.Address, "bootstrap.address", c.Bootstrap.Address)
}

// different rejects an address that is used twice.
func (v *validation) different(field, address, otherField, other string) {
	if _, port, err := net.SplitHostPort(address); err == nil && port != "0" && address == other {
		v.wrong(field, "%s is also %s: choose another port", quoted(address), otherField)
	}
}

func (v *validation) authorization(a *Authorization) {
	switch a.Mode {
	case NodeMode:
		if a.ConfigFile != "" {
			v.wrong("authorization.configFile", "has no effect with authorization.mode: Node: remove it, or set the mode to Chain")
		}
	case ChainMode:
		v.required("authorization.configFile", a.ConfigFile, "the path of an AuthorizationConfiguration, or set authorization.mode to Node")
	default:
		v.choice("authorization.mode", string(a.Mode), string(NodeMode), string(ChainMode))
	}
	v.duration("authorization.freshnessWait", a.FreshnessWait, 0, maxFreshness)
}

func (v *validation) log(l *Log) {
	oneOf(v, "log.format", l.Format, TextLog, JSONLog)
	v.number("log.verbosity", int64(l.Verbosity), 0, maxVerbosity)
	v.number("log.refusals.verbosity", int64(l.Refusals.Verbosity), 0, maxVerbosity)
	v.number("log.refusals.perSecond", int64(l.Refusals.PerSecond), 1, maxPerSecond)
	v.number("log.refusals.burst", int64(l.Refusals.Burst), 1, maxPerSecond)
}

func (v *validation) required(field, value, want string) {
	if value == "" {
		v.wrong(field, "required: write %s", want)
	}
}

func (v *validation) choice(field, value string, known ...string) {
	v.wrong(field, "want %s%s", strings.Join(known, " or "), given(value))
}

// oneOf rejects an unknown value.
func oneOf[S ~string](v *validation, field string, value S, known ...S) {
	if slices.Contains(known, value) {
		return
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	v.choice(field, string(value), names...)
}

// list rejects empty, repeated and malformed names.
func (v *validation) list(field string, names []string, form func(string) bool, want string) {
	for i, name := range names {
		switch path := elementPath(field, i); {
		case name == "":
			v.wrong(path, "empty: write %s", want)
		case slices.Contains(names[:i], name):
			v.wrong(path, "%s is given twice: remove one", quoted(name))
		case form != nil && !form(name):
			v.wrong(path, "want %s%s", want, given(name))
		}
	}
}

func (v *validation) address(field, value string) {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		v.wrong(field, "want %s%s", addressSample, given(value))
	}
}

func (v *validation) number(field string, value, least, most int64) {
	if value < least || value > most {
		v.wrong(field, "want a number from %d to %d, got %d", least, most, value)
	}
}

func (v *validation) duration(field string, value metav1.Duration, least, most time.Duration) {
	if value.Duration < least || value.Duration > most {
		v.wrong(field, "want a duration from %v to %v, got %v", least, most, value.Duration)
	}
}

// given returns the end of a message about a value.
func given(value string) string {
	if value == "" {
		return ", got nothing"
	}
	return ", got " + quoted(value)
}

// quoted returns a value of the file for messages.
func quoted(value string) string { return strconv.Quote(shortened(value)) }

// shortened truncates a value for messages.
func shortened(value string) string {
	const limit = 80
	if len(value) <= limit {
		return value
	}
	return strings.ToValidUTF8(value[:limit], "") + "…"
}

func elementPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func joined[S ~string](names []S) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return strings.Join(list, ", ")
}
