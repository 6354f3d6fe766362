package sts

import (
	"crypto/tls"
	"net/http"
	"time"

	"github.com/node-authorizer/node-authorizer/internal/aws/calleridentity"
	"github.com/node-authorizer/node-authorizer/internal/aws/iam"
)

// Options are settings of a [Verifier]. All but Transport, Now and Observe are required; the configuration's validation checks
// the limits.
type Options struct {
	// ClusterID is the cluster that tokens must be signed for.
	ClusterID string
	// Hosts are the hosts of STS that receive requests; see [NewHosts].
	Hosts iam.Hosts
	// Transport sends the requests. The default uses the proxy of the environment
	// (HTTPS_PROXY).
	Transport http.RoundTripper
	// Timeout bounds one request, and before that the wait until it may be sent.
	Timeout time.Duration
	// MaxInFlight is the number of requests that may be in flight. Further ones wait. A
	// quarter is reserved for known callers, see [Verifier.Authenticated]. In addition,
	// there may be one request to each host that has not answered recently.
	MaxInFlight int
	// PerSecond is the rate limit of requests, and Burst the number of requests that may
	// be sent at once after a pause. Further ones fail with an [*iam.Throttled]. A quarter
	// of the burst, rounded down, is reserved for known callers.
	PerSecond float64
	Burst     int
	// CacheTTL is how long an answer is used for the same token, but not beyond the end
	// of the token. If it is 0, answers are not cached.
	CacheTTL time.Duration
	// CacheSize is the number of answers that are cached, and the number of access keys of
	// known callers.
	CacheSize int
	// Now returns the time; the default is time.Now.
	Now func() time.Time
	// Observe is notified of requests and cache look-ups. Optional.
	Observe Observer
}

// Observer is notified of the requests and answers of a [Verifier]. It is called concurrently.
type Observer interface {
	// STSRequest reports one request: its outcome, the HTTP status of the answer (0 for
	// none), and its duration.
	STSRequest(outcome Outcome, status int, took time.Duration)
	// TokenCache reports whether the answer about a token was cached.
	TokenCache(hit bool)
}

// Outcome is the outcome of a request to STS. It is the value of a metric's label.
type Outcome string

// All outcomes.
const (
	// Answered: STS returned the caller.
	Answered Outcome = "answered"
	// Refused: STS refused the token.
	Refused Outcome = "refused"
	// Throttled: STS throttled the request.
	Throttled Outcome = "throttled"
	// Failed: there was no answer, or not one in STS's form.
	Failed Outcome = "failed"
	// Limited: the request was not sent, because of the limits in [Options].
	Limited Outcome = "limited"
	// Abandoned: no caller waited for the answer any more.
	Abandoned Outcome = "abandoned"
)

type unobserved struct{}

func (unobserved) STSRequest(Outcome, int, time.Duration) {}
func (unobserved) TokenCache(bool)                        {}

// complete checks options and sets defaults.
func (o Options) complete() (Options, error) {
	if err := iam.CheckClusterID(o.ClusterID); err != nil {
		return Options{}, err
	}
	if o.Transport == nil {
		o.Transport = newTransport(o.MaxInFlight)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Observe == nil {
		o.Observe = unobserved{}
	}
	return o, nil
}

// newTransport returns a transport that keeps idle as many connections as may be in use.
func newTransport(connections int) *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: calleridentity.MaxAnswer, DisableCompression: true, ForceAttemptHTTP2: true,
	}
}
