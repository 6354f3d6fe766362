package observe

import (
	"context"
	"errors"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/node-authorizer/node-authorizer/finding"
	"github.com/node-authorizer/node-authorizer/iam"
	"github.com/node-authorizer/node-authorizer/internal/review"
	"github.com/node-authorizer/node-authorizer/verdict"
)

// Outcomes of authentications.
const (
	outcomeAuthenticated = "authenticated"
	outcomeRefused       = "refused"
	outcomeThrottled     = "throttled"
)

// authentications are the metrics of bearer tokens.
type authentications struct {
	tokens       *metrics.CounterVec
	tokenSeconds *metrics.HistogramVec
	tokenCache   *metrics.CounterVec
	stsRequests  *metrics.CounterVec
	stsSeconds   *metrics.HistogramVec
	ec2Requests  *metrics.CounterVec
}

func newAuthentications() authentications {
	return authentications{
		tokens: counters("authentications_total", "Bearer tokens by what became of them and code of the reason.", "outcome", "code"),
		tokenSeconds: histograms("authentication_duration_seconds", "Time to find out whose a bearer token is, by what became of it.",
			requestBuckets(), "outcome"),
		tokenCache:  counters("token_cache_total", "Well-formed tokens by whether their caller was known from before.", "result"),
		stsRequests: counters("sts_requests_total", "Questions to STS whose a token is, by what became of them.", "outcome"),
		stsSeconds:  histograms("sts_request_duration_seconds", "Time that a question to STS took, by what became of it.", requestBuckets(), "outcome"),
		ec2Requests: counters("instance_requests_total", "Requests to EC2 and IAM about instances by what became of them.", "service", "outcome"),
	}
}

func (a *authentications) all() []metrics.Registerable {
	return []metrics.Registerable{a.tokens, a.tokenSeconds, a.tokenCache, a.stsRequests, a.stsSeconds, a.ec2Requests}
}

// Authenticate counts and times what becomes of bearer tokens.
func (m *Metrics) Authenticate(next review.Authenticate) review.Authenticate {
	return func(ctx context.Context, token string) (*iam.User, error) {
		begin := time.Now()
		user, err := next(ctx, token)
		m.staleAnswer(EndpointAuthenticate, err)
		outcome, code := authenticationOutcome(user, err)
		m.tokens.WithLabelValues(outcome, string(code)).Inc()
		m.tokenSeconds.WithLabelValues(outcome).Observe(time.Since(begin).Seconds())
		return user, err
	}
}

func authenticationOutcome(user *iam.User, err error) (outcome string, code verdict.Code) {
	if err == nil && user != nil {
		return outcomeAuthenticated, ""
	}
	if refusal, ok := errors.AsType[*iam.Refusal](err); ok {
		return outcomeRefused, refusal.Code
	}
	if _, ok := errors.AsType[*iam.Throttled](err); ok {
		return outcomeThrottled, ""
	}
	return outcomeError, ""
}

// Unasked counts a token review that was refused without a look at its token.
func (m *Metrics) Unasked(refusal *iam.Refusal) {
	m.tokens.WithLabelValues(outcomeRefused, string(refusal.Code)).Inc()
}

// TokenCache counts a token by whether its caller was known from before.
func (m *Metrics) TokenCache(hit bool) {
	result := "miss"
	if hit {
		result = "hit"
	}
	m.tokenCache.WithLabelValues(result).Inc()
}

// STSRequest counts and times a question to STS. The outcome is a fixed word
// of package sts. The status is that of HTTP, 0 if there was no answer.
func (m *Metrics) STSRequest(outcome string, _ int, took time.Duration) {
	m.stsRequests.WithLabelValues(outcome).Inc()
	m.stsSeconds.WithLabelValues(outcome).Observe(took.Seconds())
}

// EC2Request counts a request to EC2 or IAM. The outcome is a fixed word of package
// instances.
func (m *Metrics) EC2Request(service, outcome string) {
	m.ec2Requests.WithLabelValues(service, outcome).Inc()
}

// MappingSource is a source of mappings as it is now.
type MappingSource struct {
	// Name is the kind of source: "File", "ConfigMap" or "IdentityMapping".
	Name string
	// Healthy is false while the source, or a part of it, cannot be read, so that what
	// was read last is still in force, or nothing is.
	Healthy bool
	// Mappings are those in force, by kind.
	Mappings map[iam.MappingKind]int
	// Findings are what is wrong with what is written there.
	Findings []finding.Finding
}

// WatchMappings exports the sources of mappings, as they are when metrics are asked
// for. It may be called once.
func (m *Metrics) WatchMappings(sources func() []MappingSource) {
	desc := func(name, help string, labels ...string) *metrics.Desc {
		return metrics.NewDesc(prefix+name, help, labels, nil, metrics.ALPHA, "")
	}
	m.registry.CustomMustRegister(&mappingCollector{
		sources:  sources,
		mappings: desc("mappings", "Mappings of IAM identities in force by source and kind.", "source", "kind"),
		findings: desc("mapping_findings", "What is wrong with what is written in a source of mappings, by severity and code.",
			"source", "severity", "code"),
		healthy: desc("mapping_source_healthy", "1 when all of a source of mappings can be read.", "source"),
	})
}

type mappingCollector struct {
	metrics.BaseStableCollector
	sources                     func() []MappingSource
	mappings, findings, healthy *metrics.Desc
}

// DescribeWithStability implements metrics.StableCollector.
func (c *mappingCollector) DescribeWithStability(ch chan<- *metrics.Desc) {
	for _, d := range []*metrics.Desc{c.mappings, c.findings, c.healthy} {
		ch <- d
	}
}

// CollectWithStability implements metrics.StableCollector.
func (c *mappingCollector) CollectWithStability(ch chan<- metrics.Metric) {
	gauge := func(d *metrics.Desc, value float64, labels ...string) {
		ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, labels...)
	}
	type findingClass struct {
		severity finding.Severity
		code     finding.Code
	}
	for _, source := range c.sources() {
		gauge(c.healthy, one(source.Healthy), source.Name)
		for _, kind := range []iam.MappingKind{iam.RoleMapping, iam.UserMapping, iam.AccountMapping} {
			gauge(c.mappings, float64(source.Mappings[kind]), source.Name, string(kind))
		}
		classes := map[findingClass]int{}
		for i := range source.Findings {
			classes[findingClass{source.Findings[i].Severity, source.Findings[i].Code}]++
		}
		for class, n := range classes {
			gauge(c.findings, float64(n), source.Name, string(class.severity), string(class.code))
		}
	}
}
