package observe

import (
	"context"
	"errors"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
	"github.com/node-authorizer/node-authorizer/internal/finding"
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
		tokens: counters("authentications_total", "Bearer tokens by outcome and code of the reason.", "outcome", "code"),
		tokenSeconds: histograms("authentication_duration_seconds",
			"Time to authenticate a bearer token, by outcome.", requestBuckets(), "outcome"),
		tokenCache:  counters("token_cache_total", "Well-formed tokens by whether their caller was in the cache.", "result"),
		stsRequests: counters("sts_requests_total", "Requests to STS about tokens, by outcome.", "outcome"),
		stsSeconds: histograms("sts_request_duration_seconds",
			"Time of a request to STS, by outcome.", requestBuckets(), "outcome"),
		ec2Requests: counters("instance_requests_total",
			"Requests to EC2 and IAM about instances, by outcome.", "service", "outcome"),
	}
}

func (a *authentications) all() []metrics.Registerable {
	return []metrics.Registerable{a.tokens, a.tokenSeconds, a.tokenCache, a.stsRequests, a.stsSeconds, a.ec2Requests}
}

// Authenticate counts and times authentications of bearer tokens.
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

// Unasked counts a token review that was refused without verifying its token.
func (m *Metrics) Unasked(refusal *iam.Refusal) {
	m.tokens.WithLabelValues(outcomeRefused, string(refusal.Code)).Inc()
}

// TokenCache counts a token by whether its caller was in the cache.
func (m *Metrics) TokenCache(hit bool) {
	result := "miss"
	if hit {
		result = "hit"
	}
	m.tokenCache.WithLabelValues(result).Inc()
}

// STSRequest counts and times a request to STS. The outcome is a constant of package sts.
// The status is the HTTP status, 0 if there was no response.
func (m *Metrics) STSRequest(outcome string, _ int, took time.Duration) {
	m.stsRequests.WithLabelValues(outcome).Inc()
	m.stsSeconds.WithLabelValues(outcome).Observe(took.Seconds())
}

// EC2Request counts a request to EC2 or IAM. The outcome is a constant of package
// instances.
func (m *Metrics) EC2Request(service, outcome string) {
	m.ec2Requests.WithLabelValues(service, outcome).Inc()
}

// MappingSource is the current state of a source of mappings.
type MappingSource struct {
	// Name is the kind of source: "File", "ConfigMap" or "IdentityMapping".
	Name string
	// Healthy is false if the source, or a part of it, cannot be read. Then the mappings
	// that were read last stay in force, if there are any.
	Healthy bool
	// Mappings counts the mappings in force, by kind.
	Mappings map[iam.MappingKind]int
	// Findings are the mistakes in the source.
	Findings []finding.Finding
}

// WatchMappings exports the state of the sources of mappings at each scrape. It must not be
// called twice.
func (m *Metrics) WatchMappings(sources func() []MappingSource) {
	mappings := scrapedGauge("mappings", "Mappings of IAM identities in force by source and kind.", "source", "kind")
	findings := scrapedGauge("mapping_findings", "Mistakes in a source of mappings, by severity and code.", "source", "severity", "code")
	healthy := scrapedGauge("mapping_source_healthy", "1 when all of a source of mappings can be read.", "source")
	type findingClass struct {
		severity finding.Severity
		code     finding.Code
	}
	m.scrape(func(send sendFunc) {
		for _, source := range sources() {
			send(healthy, one(source.Healthy), source.Name)
			for _, kind := range []iam.MappingKind{iam.RoleMapping, iam.UserMapping, iam.AccountMapping} {
				send(mappings, float64(source.Mappings[kind]), source.Name, string(kind))
			}
			classes := map[findingClass]int{}
			for i := range source.Findings {
				classes[findingClass{source.Findings[i].Severity, source.Findings[i].Code}]++
			}
			for class, n := range classes {
				send(findings, float64(n), source.Name, string(class.severity), string(class.code))
			}
		}
	}, mappings, findings, healthy)
}
