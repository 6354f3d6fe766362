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

// Limits of what makes sense.
const (
	minBodyBytes  = 1 << 10
	maxBodyBytes  = 40 << 20 // of any document
	maxVerbosity  = 10
	maxFreshness  = 10 * time.Second
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
	v.webhook(&c.Webhook)
	v.metrics(c)
	v.authorization(&c.Authorization)
	v.duration("admission.freshnessWait", c.Admission.FreshnessWait, 0, maxFreshness)
	v.duration("admission.accessReviews.allowedTTL", c.Admission.AccessReviews.AllowedTTL, 0, maxReviewTTL)
	v.duration("admission.accessReviews.deniedTTL", c.Admission.AccessReviews.DeniedTTL, 0, maxReviewTTL)
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
	switch w.ClientAuthentication {
	case ClientCertificateRequired:
		v.required("webhook.clientCAFile", w.ClientCAFile,
			"the path of the authorities that sign the certificates of callers, or set webhook.clientAuthentication to None")
	case NoClientAuthentication:
		const remedy = "has no effect with webhook.clientAuthentication: None: remove it, or require certificates"
		if w.ClientCAFile != "" {
			v.wrong("webhook.clientCAFile", remedy)
		}
		if len(w.AllowedClientNames) > 0 {
			v.wrong("webhook.allowedClientNames", remedy)
		}
	default:
		v.choice("webhook.clientAuthentication", string(w.ClientAuthentication), string(ClientCertificateRequired), string(NoClientAuthentication))
	}
	for i, name := range w.AllowedClientNames {
		if field := elementPath("webhook.allowedClientNames", i); name == "" {
			v.wrong(field, "empty: write the common name of a caller's certificate")
		} else if slices.Contains(w.AllowedClientNames[:i], name) {
			v.wrong(field, "%s is given twice: remove one", quoted(name))
		}
	}
	v.number("webhook.maxBodyBytes", w.MaxBodyBytes, minBodyBytes, maxBodyBytes)
}

func (v *validation) metrics(c *ServerConfiguration) {
	address := c.Metrics.Address
	if address == "" {
		return
	}
	v.address("metrics.address", address)
	if _, port, err := net.SplitHostPort(address); err == nil && port != "0" && address == c.Webhook.Address {
		v.wrong("metrics.address", "%s is also webhook.address: choose another port", quoted(address))
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
	if l.Format != TextLog && l.Format != JSONLog {
		v.choice("log.format", string(l.Format), string(TextLog), string(JSONLog))
	}
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

// given is the end of a message about a value.
func given(value string) string {
	if value == "" {
		return ", got nothing"
	}
	return ", got " + quoted(value)
}

// quoted is a value of the file as messages show it.
func quoted(value string) string { return strconv.Quote(shortened(value)) }

// shortened cuts off what is too long for a message.
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
